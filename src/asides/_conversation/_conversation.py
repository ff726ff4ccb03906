"""`Conversation`: a tokenizer and a chat template, and from them prompts in ids.

It holds no messages. `prompt` renders messages with origins (`_template`), encodes the text (`_encoding`) and leaves
the rest for when it is asked: whose each id is (`_layout`), what it is, and what the model samples. That last is found
without knowing the family: an assistant's turn begins after what the template writes to ask for one (with and without
`add_generation_prompt`), and ends with the first stop token after its last word.

    conversation = asides.Conversation("./Qwen3-8B", tools=tools, enable_thinking=True)
    prompt = conversation.prompt([{"role": "user", "content": "2+2?"}])
    prompt.ids, prompt.kind, prompt.sampled
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import structs

from .._engine.format import END, TEXT, THINKING, Format
from .._engine.token_text import TokenPlaces
from .._engine.vocabulary import Vocabulary, vocabulary_of
from ..detect._facts import Facts, choose_template
from ..detect._facts import read as read_facts
from ..detect._files import read_text
from ..errors import UsageError
from ..message import Message
from ..parts import Span
from ..reading import Reading
from ._collator import Collator
from ._encoding import ChatEncoder
from ._examples import Loss, weight_of
from ._given import read_ids, read_messages, read_roles, read_texts
from ._layout import ChatLayout, Kind, TokenOwners, role_kind
from ._origin import NOBODY
from ._prompt import Labels, Prompt, asks
from ._template import (
    ChatTemplate,
    Leaves,
    Owner,
    RenderedChat,
    chat_template,
    common_length,
    tag_messages,
)

PROTECT = ("user", "tool")
"""Whose words become no added token, if nobody says otherwise."""
NEAR = 4096
"""Ids before an answer that show where it begins, without the words of others."""


class Conversation:
    """Writes conversations as ids with a model's own tokenizer and chat template.

    Examples:
        >>> from splintr import Tokenizer
        >>> template = (
        ...     "{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>\\n{% endfor %}"
        ...     "{% if add_generation_prompt %}<|im_start|>assistant\\n{% endif %}"
        ... )
        >>> tokenizer = Tokenizer.from_pretrained("qwen3")
        >>> conversation = asides.Conversation(tokenizer, template, format="qwen3")
        >>> prompt = conversation.prompt([{"role": "user", "content": "Hi"}])
        >>> prompt.kind
        ('header', 'header', 'header', 'user', 'marker', 'marker', 'header', 'header', 'header')
    """

    def __init__(
        self,
        tokenizer: Any,
        template: str | os.PathLike[str] | None = None,
        *,
        tools: Sequence[Any] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        model: str | None = None,
        format: str | Format | None = None,
        stop: Iterable[str] = (),
        protect: Iterable[str] = PROTECT,
        **template_kwargs: Any,
    ) -> None:
        """`tokenizer`: of `tokenizers` or `transformers`, or any that asides reads; a `tokenizer.json` or its folder.

        `template`: Jinja source, or the path of a file that has it (`chat_template.jinja`, `tokenizer_config.json`, a
        GGUF); otherwise the tokenizer's own. `tools`, `documents` and all
        keywords go to the template as with `apply_chat_template`. `model` or `format` says how answers are read, where
        the template does not show it; `stop` names further tokens at which sampling ends. `protect`: the roles whose
        words become no added token, whatever they spell; tool definitions count as `tool`.
        """
        facts = read_facts(tokenizer)
        if facts.live is None and facts.file is None:
            raise UsageError(
                "this holds no tokenizer that can encode: give a tokenizer, its tokenizer.json or its folder"
            )
        self.tokenizer: Any = facts.loaded()
        """The tokenizer."""
        # A file is loaded once, whatever is made of this conversation.
        self._source: Any = tokenizer if facts.live is not None else structs.replace(facts, live=self.tokenizer)
        self.tools: tuple[Any, ...] | None = _read_tools(tools)
        """The definitions of tools."""
        self.template: str = _template_source(template, tokenizer, facts, tools is not None)
        """The source of the chat template."""
        self.protect: tuple[str, ...] = read_roles(protect)
        """The roles whose words become no added token."""
        self.template_kwargs: dict[str, Any] = template_kwargs
        """What else the template is given."""
        self._facts = facts
        self._documents = documents
        for name, value, kinds in (("model", model, str), ("format", format, str | Format)):
            if value is not None and not isinstance(value, kinds):
                raise UsageError(f"{name} is a name (a str), not a {type(value).__name__}")
        self._model, self._format = model, format
        self._stops = read_texts(stop, "stop")
        self._vocabulary: Vocabulary = vocabulary_of(self.tokenizer)
        self._encoder = _encoder(self._vocabulary)
        self._jinja: ChatTemplate = chat_template(self.template)
        self._leaves = Leaves()
        self._variables = self._tag_variables()
        self._generation_prompts: dict[tuple[Any, ...], _Asked] = {}
        # What was written after answers of one shape, the same whether or not all messages before were rendered; None
        # where it once was not.
        self._local: dict[tuple[Any, ...], set[str] | None] = {}

    def but(self, *, tools: Sequence[Any] | None = None, **template_kwargs: Any) -> Conversation:
        """The same with other tools, or other keywords for the template. What is not given stays."""
        return Conversation(
            self._source,
            self.template,
            tools=tools if tools is not None else self.tools,
            documents=self._documents,
            model=self._model,
            format=self._format,
            stop=self._stops,
            protect=self.protect,
            **{**self.template_kwargs, **template_kwargs},
        )

    def collator(
        self,
        loss: Loss = "assistant",
        *,
        max_length: int | None = None,
        pad_id: int | None = None,
        tensors: Literal["pt"] | None = "pt",
    ) -> Collator:
        """A data collator for rows with `messages` (or `prompt` and `completion`) and, where they have any, `tools`.

        Only what a model samples is learned, as far as `loss` names it. `tensors=None` gives lists in place of torch's.
        """
        if max_length is not None and (not isinstance(max_length, int) or max_length < 1):
            raise UsageError(f"max_length is a whole number above zero, not {max_length!r}")
        if tensors not in ("pt", None):
            raise UsageError(f"tensors is 'pt', for torch, or None, for lists; not {tensors!r}")
        weight_of(loss)
        if pad_id is None:
            pad_id = getattr(self.tokenizer, "pad_token_id", None)
        if pad_id is None:
            pad_id = self._vocabulary.added.get(self._facts.stop, 0)
        return Collator(self, loss, max_length, pad_id, tensors)

    def __repr__(self) -> str:
        return f"<Conversation with a template of {len(self.template):,} characters>"

    def _tag_variables(self) -> dict[str, Any]:
        """What the template is given beside messages."""
        leaves = self._leaves
        special = _special_tokens(self.tokenizer, self._facts)
        given = {
            name: leaves.tag(value, None, NOBODY, name) if name not in _SPECIAL else value
            for name, value in self.template_kwargs.items()
        }
        tools = leaves.tag(list(self.tools), None, NOBODY, "tools") if self.tools is not None else None
        documents = leaves.tag(self._documents, None, NOBODY, "documents") if self._documents is not None else None
        return {**special, **given, "tools": tools, "documents": documents}

    def prompt(
        self,
        messages: Iterable[Mapping[str, Any]],
        *,
        add_generation_prompt: bool | None = None,
        protect: Iterable[str] | None = None,
    ) -> Prompt:
        """The ids of a conversation.

        Unless `add_generation_prompt` says so, the model is asked for an answer if the last message is not its own.
        """
        given = read_messages(messages)
        generates = asks(given) if add_generation_prompt is None else add_generation_prompt
        roles = self.protect if protect is None else read_roles(protect)
        chat = self._render(given, generates)
        encoded = self._encoder.encode(chat.text, self._protected(chat, given, roles))
        return Prompt(
            self,
            given,
            tuple(encoded.ids),
            chat.text,
            roles,
            _chat=chat,
            _encoded=encoded,
        )

    def text(self, ids: Iterable[int]) -> str:
        """The text of ids."""
        return self._vocabulary.text(read_ids(ids))

    # Text.

    def _render(self, messages: Sequence[Mapping[str, Any]], generates: bool) -> RenderedChat:
        leaves = Leaves(self._leaves)
        try:
            tagged = tag_messages(leaves, messages)
        except RecursionError as error:
            raise UsageError("the messages are nested too deeply, or hold themselves") from error
        return self._jinja.render({**self._variables, "messages": tagged, "add_generation_prompt": generates}, leaves)

    def _protected(self, chat: RenderedChat, messages: Sequence[Mapping[str, Any]], roles: Sequence[str]) -> list[Span]:
        """The stretches of a text in which no added token may arise."""
        if not roles:
            return []
        owners = [role_kind(_role(message)) in roles for message in messages]
        shared = {"tools": "tool" in roles, "documents": "user" in roles}
        known: dict[int, bool] = {NOBODY: False}
        spans: list[Span] = []
        start = 0
        for end, leaf in chat.runs:
            protected = known.get(leaf)
            if protected is None:
                message, name = chat.leaves.message(leaf), chat.leaves.field(leaf)
                if message is None:
                    protected = shared.get(name, False)
                else:
                    # A role is a word of the template's; some write `<|` + role + `|>`.
                    protected = owners[message] and not (name == "role" and _role(messages[message]).isidentifier())
                known[leaf] = protected
            if protected:
                if spans and spans[-1][1] == start:
                    spans[-1] = (spans[-1][0], end)
                else:
                    spans.append((start, end))
            start = end
        return spans

    # Whose each id is, and what.

    @cached_property
    def reading(self) -> Reading:
        """How answers are read, and the evidence for it."""
        found = _reading(self._vocabulary, self.template, self._model, self._format)
        return found.but(tools=list(self.tools)) if self.tools else found

    @cached_property
    def stops(self) -> tuple[str, ...]:
        """The markers at which sampling ends."""
        format = self.reading.format
        found = [marker for markers in format.states.values() for marker, target in markers.items() if target == END]
        if format.settle is not None:
            # Nothing is known of the model, so everyone's stops say less than what its template writes.
            found = [self._turn_end]
        return tuple(dict.fromkeys(each for each in (*self._stops, self._facts.stop, *found) if each))

    def _layout(self, chat: RenderedChat, messages: Sequence[Mapping[str, Any]]) -> ChatLayout:
        text = chat.text

        def markers(start: int, stop: int) -> list[Span]:
            return [(start + first, start + last) for first, last in self._encoder.markers(text[start:stop], ())]

        roles = [_role(message) for message in messages]
        return ChatLayout(chat, roles, markers, begin=self._variables.get("bos_token") or "", end=self._turn_end)

    def _label(self, prompt: Prompt) -> Labels:
        """What the ids are that a prompt was encoded to."""
        shown = range(len(prompt.messages)) if prompt._shown is None else prompt._shown
        messages = [prompt.messages[index] for index in shown]
        layout = self._layout(prompt._chat, messages)
        regions = self._regions(layout, prompt._chat, messages)
        places = prompt._encoded.places()
        if not prompt._start:
            return self._labels_of(layout, regions, prompt._encoded.ids, places)
        origin = prompt._start - prompt._closing
        places = TokenPlaces(*([place + origin for place in each] for each in places))
        # What was sampled is in the turn's ids; a turn that was cut is closed by the prompt.
        assert prompt.turn is not None
        answered = shown.index(len(prompt.turn.prompt.messages))
        regions = {index: span for index, span in regions.items() if index > answered}
        labels = self._labels_of(layout, regions, prompt._encoded.ids, places)
        closing = bisect_left(places.firsts, prompt._start) if prompt._closing else 0
        labels.owners[:closing] = [Owner(answered, "")] * closing
        labels.kinds[:closing] = ["marker"] * closing
        if prompt._shown is not None:
            labels.owners[:] = [
                owner if owner is None or owner.message is None else Owner(shown[owner.message], owner.part)
                for owner in labels.owners
            ]
        return labels

    def _labels_of(
        self, layout: ChatLayout, regions: dict[int, list[Span]], ids: list[int], places: TokenPlaces
    ) -> Labels:
        """What ids are that stand at these places of a rendered conversation."""
        stretches = layout.stretches
        chosen = TokenOwners.of(stretches, places).stretch
        owners = [stretches[number].owner for number in chosen]
        by_stretch = [layout.kind(stretch) for stretch in stretches]
        kinds: list[Kind] = [by_stretch[number] for number in chosen]
        sampled = [False] * len(ids)
        for index, (start, stop) in ((index, span) for index, spans in regions.items() for span in spans):
            first = bisect_left(places.firsts, start)
            last = bisect_left(places.firsts, stop)
            if first < last:
                sampled[first:last] = [True] * (last - first)
                # A stop token that is the next role's marker belongs to who samples it.
                for number in range(last - 1, first - 1, -1):
                    if (owner := owners[number]) is not None and owner.message == index:
                        break
                    owners[number] = Owner(index, "")
                kinds[first:last] = self._kinds(self._before(ids, kinds, first), ids[first:last])
        return Labels(owners, kinds, sampled)

    def _before(self, ids: Sequence[int], kinds: Sequence[Kind], first: int) -> list[int]:
        """The ids that show where an answer begins: all that is nobody else's words, from the last question on."""
        found: list[int] = []
        for number in range(first - 1, -1, -1):
            if kinds[number] in ("header", "marker", "thinking", "text", "call"):
                found.append(ids[number])
            elif kinds[number] == "user" or len(found) > NEAR:
                break
        return found[::-1]

    def _kinds(self, before: Sequence[int], ids: Sequence[int]) -> list[Kind]:
        """What ids of an answer are."""
        parser = self.reading.token_parser(self._vocabulary, prompt_ids=before)
        parser.feed(ids)
        parser.finish()
        return list(parser.message.roles)

    # Turns.

    @cached_property
    def takes_thinking(self) -> bool:
        """Whether the template writes thinking that a message has in a field of its own."""
        call = {"id": "call00001", "type": "function", "function": {"name": "f", "arguments": {}}}
        answer = {"role": "assistant", "content": "x", "reasoning_content": "y"}
        result = {"role": "tool", "content": "z", "name": "f", "tool_call_id": "call00001"}
        rendered = False
        for answered in ([answer], [{**answer, "content": "", "tool_calls": [call]}, result]):
            try:
                chat = self._render([{"role": "user", "content": "?"}, *answered], False)
            except UsageError:
                continue
            rendered = True
            if any(leaf >= 0 and chat.leaves.owner(leaf) == (1, "reasoning_content") for _, leaf in chat.runs):
                return True
        # Where nothing could be tried, what its source names has to do.
        return not rendered and self._jinja.mentions("reasoning")

    @cached_property
    def takes_only_parts(self) -> bool:
        """Whether the template leaves out content that is a text, and writes it as a list of parts."""

        def writes(content: Any) -> bool:
            try:
                chat = self._render([{"role": "user", "content": content}], True)
            except UsageError:
                return False
            return "words" in chat.text

        return not writes("words") and writes([{"type": "text", "text": "words"}])

    def _read(self, prompt: Prompt, ids: Sequence[int], finish_reason: str | None) -> Message:
        """An answer to a prompt, taken apart."""
        labels = prompt._labels
        parser = self.reading.token_parser(
            self._vocabulary, prompt_ids=self._before(prompt.ids, labels.kinds, len(prompt.ids))
        )
        parser.feed(ids)
        parser.finish(finish_reason)
        return parser.message

    @cached_property
    def _lead(self) -> str:
        """An added token to encode a text after, so that no space is put before it."""
        added = self._encoder.vocabulary.added
        return next((stop for stop in self.stops if stop in added), next(iter(added), ""))

    def _words(self, text: str) -> str:
        """What a text says beside thinking markers and whitespace."""
        for marker in self._thinking_markers:
            text = text.replace(marker, "")
        return text.strip()

    @cached_property
    def _closers(self) -> tuple[str, ...]:
        """What closes a thought or a call."""
        states = self.reading.format.states
        closers = [marker for marker, target in states.get(THINKING, {}).items() if target == TEXT]
        return (*closers, *(closer for syntax in self.reading.format.calls for closer in syntax.closers))

    @cached_property
    def _thinking_markers(self) -> tuple[str, ...]:
        states = self.reading.format.states
        opens = [marker for marker, target in states.get(TEXT, {}).items() if target == THINKING]
        return (*opens, *(marker for marker, target in states.get(THINKING, {}).items() if target == TEXT))

    # What the model samples.

    def _regions(
        self, layout: ChatLayout, chat: RenderedChat, messages: Sequence[Mapping[str, Any]]
    ) -> dict[int, list[Span]]:
        """For each message of the assistant that is written: the stretches that a model samples."""
        return {
            index: layout.without_others(index, self._region(layout, chat.text, messages, index), self.stops)
            for index, message in enumerate(messages)
            if role_kind(_role(message)) == "assistant" and index in layout.blocks
        }

    def _region(self, layout: ChatLayout, text: str, messages: Sequence[Mapping[str, Any]], index: int) -> Span:
        """Where what a model samples of a message begins and ends."""
        block = layout.blocks[index][0]
        body = layout.bodies.get(index)
        limit = body[0] if body is not None else len(text)
        start = min(self._asked_until(layout, text, messages, index, block), limit)
        end = self._end_of_turn(layout, text, index, max(start, body[1]) if body is not None else start)
        return start, end

    def _asked_until(
        self, layout: ChatLayout, text: str, messages: Sequence[Mapping[str, Any]], index: int, block: int
    ) -> int:
        """Where in a text that ends which the template writes to ask for an answer."""
        asked = self._generation_prompt(messages, index)
        # What follows the last words before the answer, where the template writes the same there.
        before = layout.bodies.get(index - 1)
        if before is not None and before[1] <= block:
            matched = self._matched(asked.after, text, before[1])
            if before[1] + matched > block:
                return before[1] + matched
        matched = self._matched(asked.own, text, block)
        if not matched:
            # Here it would have gone on without a header; it may write one all the same.
            matched = self._matched(self._header, text, block)
        return block + matched

    def _end_of_turn(self, layout: ChatLayout, text: str, index: int, after: int) -> int:
        """The end of the first stop token after an answer, before anything of another message."""
        limit = layout.others_from(index, after)
        found = [(text.find(stop, after, limit), stop) for stop in self.stops]
        at, marker = min(((at, stop) for at, stop in found if at >= 0), default=(after, ""))
        if marker:
            return at + len(marker)
        # The marker of another role may be where sampling stops. Otherwise what closes the last part ends the answer.
        following = next((stop for stop in self.stops if text.startswith(stop, limit)), "")
        if following:
            return limit + len(following)
        closed = [place + len(closer) for closer in self._closers if (place := text.rfind(closer, after, limit)) >= 0]
        return max(closed, default=after)

    def _generation_prompt(self, messages: Sequence[Mapping[str, Any]], index: int) -> _Asked:
        """What the template writes to ask for the answer that the message of this index is."""
        users = (place for place in range(index - 1, -1, -1) if role_kind(_role(messages[place])) == "user")
        first = next(users, 0)
        near = [*messages[:1], *messages[first:index]] if first and _is_system(messages[0]) else messages[first:index]
        key = tuple((_role(message), bool(message.get("tool_calls"))) for message in near)
        if key not in self._generation_prompts:
            self._generation_prompts[key] = self._ask(near, messages[:index])
        return self._generation_prompts[key]

    def _ask(self, near: Sequence[Mapping[str, Any]], all: Sequence[Mapping[str, Any]]) -> _Asked:
        for messages in (near, all):
            if not messages:
                continue
            try:
                without, asked = (self._render(messages, generates) for generates in (False, True))
            except UsageError:
                continue
            cut = self._not_inside(asked.text, common_length(without.text, asked.text))
            words = asked.last_words(len(messages) - 1)
            return _Asked(asked.text[cut:], asked.text[words:] if words is not None else "")
        return _Asked("", "")

    @cached_property
    def _header(self) -> str:
        """What the template writes to ask for an answer to a question."""
        return self._ask([{"role": "user", "content": "?"}], ()).own

    @cached_property
    def _turn_end(self) -> str:
        """The token that the template writes after an answer."""
        messages = [{"role": role, "content": "x"} for role in ("user", "assistant", "user")]
        try:
            chat = self._render(messages, False)
        except UsageError:
            return ""
        words = chat.last_words(1)
        rest = chat.text[words:] if words is not None else ""
        found = self._encoder.markers(rest, ())
        return rest[slice(*found[0])] if found and not rest[: found[0][0]].strip() else ""

    def _matched(self, asked: str, text: str, start: int) -> int:
        """How much of what the template writes stands at a place of a text, without the half of a marker."""
        there = text[start : start + len(asked) + 200]
        matched = common_length(asked, there)
        return min(self._not_inside(asked, matched), self._not_inside(there, matched))

    def _not_inside(self, text: str, cut: int) -> int:
        """A place in a text, or the beginning of the marker that it is inside of."""
        for start, stop in self._encoder.markers(text[max(0, cut - 200) : cut + 200], ()):
            start, stop = (place + max(0, cut - 200) for place in (start, stop))
            if start < cut < stop:
                return start
        return cut


class _Asked(NamedTuple):
    """What a template writes to ask for an answer."""

    own: str
    """What it writes only then."""
    after: str
    """All that it writes after the last words of the conversation."""


def _role(message: Mapping[str, Any]) -> str:
    return str(message.get("role", ""))


def _is_system(message: Mapping[str, Any]) -> bool:
    return role_kind(_role(message)) == "system"


@lru_cache(maxsize=64)
def _reading(vocabulary: Vocabulary, template: str, model: str | None, format: str | Format | None) -> Reading:
    """How answers are read: to find it out of a template takes a process of its own."""
    if format is not None:
        return Reading.of(model, format=format)
    return Reading.of(model, tokenizer=vocabulary.tokenizer, chat_template=template)


@lru_cache(maxsize=64)
def _encoder(vocabulary: Vocabulary) -> ChatEncoder:
    return ChatEncoder(vocabulary)


def _read_tools(tools: Sequence[Any] | None) -> tuple[Any, ...] | None:
    if tools is None:
        return None
    if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
        raise UsageError(f"tools are a list of definitions or functions, not a {type(tools).__name__}")
    return tuple(map(_schema, tools))


def _schema(tool: Any) -> Any:
    """A tool's definition; a function's, where transformers is there to read it."""
    if isinstance(tool, Mapping):
        return tool
    if not callable(tool):
        raise UsageError(f"a tool is a definition (a dict) or a function, not a {type(tool).__name__}")
    try:
        # By name, because it is no dependency of ours.
        return import_module("transformers.utils").get_json_schema(tool)
    except ImportError as error:
        raise UsageError("to read a function as a tool, transformers is needed; give its definition instead") from error


def _template_source(template: str | os.PathLike[str] | None, tokenizer: Any, facts: Facts, tools: bool) -> str:
    if isinstance(template, os.PathLike):
        path = Path(template)
        found = read_facts(path).template if path.suffix in (".json", ".gguf") or path.is_dir() else read_text(path)
        if found is None:
            raise UsageError(f"{path}: holds no chat template")
        return found
    own = getattr(tokenizer, "chat_template", None)
    if template is not None:
        if not isinstance(template, str):
            raise UsageError(f"template is Jinja (a str) or the path of a file, not a {type(template).__name__}")
        if isinstance(own, Mapping) and template in own:
            return choose_template(own[template]) or ""
        if "{" not in template:
            raise UsageError(f"template is Jinja, and {template[:80]!r} has none: a file is named by a pathlib.Path")
        return template
    if tools and isinstance(own, Mapping) and "tool_use" in own:
        return choose_template(own["tool_use"]) or ""
    if facts.template is None:
        raise UsageError(
            "this tokenizer has no chat template: give template=, the content of the checkpoint's chat_template.jinja, "
            "or the folder that holds it or tokenizer_config.json"
        )
    return facts.template


_SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def _special_tokens(tokenizer: Any, facts: Facts) -> dict[str, Any]:
    """The tokens that a template may ask for by name."""
    named = getattr(tokenizer, "special_tokens_map", None)
    if isinstance(named, Mapping):
        return {name: named[name] for name in _SPECIAL if isinstance(named.get(name), str)}
    given = {"bos_token": facts.begin, "eos_token": facts.stop}
    return {name: text for name, text in given.items() if text}
