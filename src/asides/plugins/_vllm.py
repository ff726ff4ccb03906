"""The two halves that vLLM asks for, and the one engine behind both.

vLLM makes two objects for each reply, a reasoning parser and directly after it a tool parser; neither knows of the
other. Text goes to the first until it declares reasoning over, and from then on to the second, for good. A second
thought, or a call in a thought that never closes, needs both at once. So the tool half joins the reasoning half that
was made just before it, and they share a `SharedReply`:

    both               the reasoning half hands the first piece on, the tool half reads everything, thoughts too
    reasoning alone    reads everything and hands nothing on; calls are text, as the model wrote them
    tools alone        reads everything; thoughts are text, with their markers, and a call in one is still a draft

Ids are read only for what the scheduler asks: whether thinking is over, and which tokens it took (`TurnIds`).
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import vllm.envs as envs
from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)
from vllm.exceptions import VLLMValidationError
from vllm.reasoning import ReasoningParser
from vllm.tool_parsers import ToolParser
from xgrammar import StructuralTag

from .._engine.format import TEXT, Format, thinking_pair
from .._engine.tokens import TokenParser, read_prompt_ids
from .._engine.vocabulary import Vocabulary, vocabulary_of
from ..detect._markers import closers, literals, openers, thinks
from ..dialects.openai_chat._writer import ChoiceWriter
from ..errors import UsageError
from ..events import Notice, PartEnd, PartStart
from ..families import get_format, switch_of
from ..parts import Thinking
from ..policies import DEFAULTS
from ..reading import Reading
from ..reply import RawText, ReplyEvent, ReplyItem
from ..reply._corrected import corrected
from ._halves import CallHalf, CallsTaken, ThoughtHalf, ThoughtsTaken

_log = logging.getLogger("asides.plugins.vllm")
NEAR = 32
"""How many ids the longest header or marker may take."""


class DeltaBuilder:
    """Collects what one delta of vLLM's holds."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._calls: list[DeltaToolCall] = []

    def add_text(self, field: str, text: str) -> None:
        """Add to `content` or `reasoning`."""
        if text:
            self._texts.setdefault(field, []).append(text)

    def add_call(self, index: int, name: str, arguments: str, id: str) -> None:
        """Add to a call; its first piece has its name and its id."""
        if not self._calls or self._calls[-1].index != index:
            begun: dict[str, Any] = {"id": id, "type": "function"} if name else {}
            function = DeltaFunctionCall(name=name or None, arguments=arguments)
            self._calls.append(DeltaToolCall(index=index, function=function, **begun))
        else:
            self._calls[-1].function.arguments += arguments

    def message(self) -> DeltaMessage | None:
        """The delta; None if there is nothing in it."""
        texts = {field: "".join(pieces) for field, pieces in self._texts.items()}
        return DeltaMessage(**texts, tool_calls=self._calls) if texts or self._calls else None


class JoinedReader:
    """Reads a reply for both halves."""

    def __init__(self, reading: Reading) -> None:
        self._splitter = reading.splitter()
        self._read = self._splitter.fast_path(0)[1]
        self._writer = ChoiceWriter("reasoning", False, {})

    def feed(self, text: str, to: DeltaBuilder) -> None:
        """Read a piece."""
        found = self._read(text)
        self._write(found if isinstance(found, list) else [ReplyEvent(0, found)], to)

    def finish(self, to: DeltaBuilder) -> None:
        """Nothing more will come: what was held back."""
        self._write(self._splitter.finish(None), to)

    def read_whole(self, text: str, to: DeltaBuilder) -> None:
        """Read a whole reply, of which a broken call stays text: vLLM takes it that the calls of one can be decoded."""
        found = self._splitter.feed(RawText(0, text)) + self._splitter.finish(None)
        items = [item for item in corrected(found) if type(item) is ReplyEvent]
        broken = {item.event.index for item in items if isinstance(item.event, PartEnd) and item.raw}
        for item in items:
            event = item.event
            if isinstance(event, PartStart) and event.index in broken:
                # The writer makes text of a call without a name.
                item = ReplyEvent(0, msgspec.structs.replace(event, name=""))
            self._write([item], to)

    def _write(self, items: Iterable[ReplyItem], to: DeltaBuilder) -> None:
        for item in items:
            if type(item) is not ReplyEvent:
                continue
            if type(item.event) is Notice:
                _log_notice(item.event)
            for delta in self._writer.deltas_of(item):
                for call in delta.pop("tool_calls", ()):
                    function = call["function"]
                    to.add_call(call["index"], function.get("name", ""), function["arguments"], call.get("id", ""))
                for field, text in delta.items():
                    to.add_text(field, text)


class LoneReader:
    """Reads a reply for one half: what is the other's stays text."""

    def __init__(self, half: ThoughtHalf | CallHalf) -> None:
        self._half = half

    def feed(self, text: str, to: DeltaBuilder) -> None:
        """Read a piece."""
        self._write(self._half.feed(text), to)

    def finish(self, to: DeltaBuilder) -> None:
        """Nothing more will come: what was held back."""
        self._write(self._half.finish(), to)

    def read_whole(self, text: str, to: DeltaBuilder) -> None:
        """Read a whole reply."""
        if isinstance(self._half, CallHalf):
            self._write(self._half.read_whole(text), to)
        else:
            self.feed(text, to)
            self.finish(to)

    def _write(self, piece: ThoughtsTaken | CallsTaken, to: DeltaBuilder) -> None:
        if isinstance(piece, ThoughtsTaken):
            to.add_text("reasoning", piece.thinking)
            to.add_text("content", piece.rest)
        else:
            to.add_text("content", piece.text)
            for call in piece.calls:
                to.add_call(call.number, call.name, call.arguments, call.id)
        for notice in self._half.notices:
            _log_notice(notice)
        self._half.notices.clear()


def _log_notice(notice: Notice) -> None:
    # Its message may quote what the model wrote, which does not belong into a log.
    _log.debug("notice %s at character %d", notice.code, notice.offset)


class TurnIds:
    """Ids of a prompt, or of a prompt and what follows it, as far as they show where thinking stands."""

    def __init__(self, format: Format, vocabulary: Vocabulary) -> None:
        format = format.for_tokens(vocabulary.added)
        added = vocabulary.added
        self.format = format
        self.vocabulary = vocabulary
        self.markers: frozenset[int] = _ids_of(added, {*openers(format), *closers(format)})
        """The ids of the markers around thoughts."""
        self._closers = _ids_of(added, closers(format))
        self._thinks = thinks(format)
        self._acting = frozenset(id for text, id in added.items() if any(text in each for each in literals(format)))
        self._spelled = tuple(marker for marker in closers(format) if marker not in added)
        self._heads = frozenset(id for header in format.assistant if (id := _first_token(added, header)) is not None)

    def turn(self, ids: Sequence[int]) -> list[int]:
        """The end of a prompt, from the header of the last turn on: a long prompt is not read again for each reply."""
        if not self.format.assistant:
            return list(ids[-NEAR:])
        heads = self._heads
        last = next((place for place in range(len(ids) - 1, -1, -1) if ids[place] in heads), 0) if heads else 0
        return list(ids[max(0, last - NEAR) :])

    def text(self, ids: Sequence[int]) -> str:
        """The text of that."""
        return self.vocabulary.text(self.turn(ids))

    def is_over(self, ids: Sequence[int]) -> bool:
        """Whether thinking is over: it was closed, or the answer has begun, or the format has none."""
        answers, begun = self._place(ids)
        return answers and (begun or not self._thinks)

    def ends_in(self, ids: Sequence[int], delta: Sequence[int]) -> bool:
        """Whether thinking ends in `delta`, the last of the ids. Where nothing in it acts, it alone is looked at."""
        if not self._closers.isdisjoint(delta) or self._spells_closer(ids, delta):
            return self._place(ids)[0]
        if self.format.header is None or self._acting.isdisjoint(delta):
            return False
        return self._place(ids)[0] and not self._place(ids[: len(ids) - len(delta)])[0]

    def _spells_closer(self, ids: Sequence[int], delta: Sequence[int]) -> bool:
        """Whether a closer that is no token of its own ends in the delta."""
        if not self._spelled:
            return False
        text, near = self.vocabulary.text, ids[-NEAR - len(delta) :]
        before, after = text(near[: len(near) - len(delta)]), text(near)
        return any(after.count(marker) > before.count(marker) for marker in self._spelled)

    def _place(self, ids: Sequence[int]) -> tuple[bool, bool]:
        """Whether an answer, if one came next, would be text; and whether something shows that it does come next."""
        format, turn = self.format, self.turn(ids)
        text = self.vocabulary.text(turn)
        behind = max((text.rfind(header) + len(header) for header in format.assistant if header in text), default=-1)
        if behind < 0 and format.assistant:  # a reply without its prompt
            reading = Reading.of(format=format, policies=_UNREAD)
            parser = reading.token_parser(self.vocabulary, whole=True)
            parser.feed(turn)
            return parser.state in ("text", "ended"), True
        if format.header is not None and turn and turn[-1] in self._closers:
            return False, False  # between two messages
        opening = read_prompt_ids(self.vocabulary, format, turn)
        return opening.state == TEXT, opening.fresh or (behind >= 0 and bool(text[behind:].strip()))


def _ids_of(added: Mapping[str, int], markers: Iterable[str]) -> frozenset[int]:
    return frozenset(added[marker] for marker in markers if marker in added)


def _first_token(added: Mapping[str, int], header: str) -> int | None:
    """The first token of its own that stands in a header."""
    found = [(header.find(text), id) for text, id in added.items() if text.strip() and text in header]
    return min(found)[1] if found else None


_UNREAD = DEFAULTS.but(calls=False, collect=False)
"""For ids of which only the place counts where they end."""


@lru_cache(maxsize=64)
def _turn_ids(format: Format, vocabulary: Vocabulary) -> TurnIds:
    return TurnIds(format, vocabulary)


@lru_cache(maxsize=256)
def _choose(format: str, model: str | None) -> Reading:
    return Reading.of(model, format=format)


@lru_cache(maxsize=256)
def _combine(reasoning: Format, tools: Format) -> Format:
    """One format from two: the thoughts of the first, the calls of the second. Always the same object."""
    if reasoning is tools or tools.settle is not None:
        return reasoning
    if reasoning.settle is not None:
        return tools
    if reasoning.header is not None or tools.header is not None:
        raise UsageError(
            f"{reasoning.name} and {tools.name} cannot be combined: messages with headers have both in one"
        )
    combined = reasoning.but(name=f"{reasoning.name} and {tools.name}", calls=tools.calls)
    combined.check()
    return combined


class SharedReply:
    """How one reply is read: what its reasoning half and its tool half share."""

    def __init__(self, format: str, tokenizer: Any, model: str | None) -> None:
        self._model: str | None = model or getattr(tokenizer, "name_or_path", None)
        self.format = _choose(format, self._model).format
        self.turn_ids: TurnIds | None = None
        """For the prompt; None without a reasoning half, which alone is shown one."""
        self.off = False
        """Whether the request has switched thinking off."""
        self.prompt_ids: Sequence[int] = ()
        """The prompt, once it is known."""
        self.joined = False
        """Whether there are both halves."""
        self.tools: list[dict[str, Any]] = []
        self.handed_on: tuple[str, DeltaMessage] | None = None
        """What the reasoning half has handed on of a whole reply, and all that the reply holds."""
        self._reader: JoinedReader | LoneReader | None = None

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was read yet."""
        return self._reader is None and self.handed_on is None

    def feed(self, text: str, request: Any = None) -> DeltaMessage | None:
        """Read a piece of a stream."""
        if self._reader is None:
            self._reader = self._make_reader(request, whole=False)
        delta = DeltaBuilder()
        if text:
            self._reader.feed(text, delta)
        return delta.message()

    def finish(self) -> DeltaMessage | None:
        """The stream has ended: what was held back."""
        delta = DeltaBuilder()
        if self._reader is not None:
            self._reader.finish(delta)
        return delta.message()

    def read_whole(self, text: str, request: Any, *, thoughts_alone: bool = False) -> DeltaMessage:
        """All that a whole reply holds. `thoughts_alone`: for a reasoning half, as if it were alone."""
        reader = self._make_reader(request, whole=True, thoughts_alone=thoughts_alone)
        message = DeltaBuilder()
        reader.read_whole(text, message)
        return message.message() or DeltaMessage()

    def _make_reader(self, request: Any, *, whole: bool, thoughts_alone: bool = False) -> JoinedReader | LoneReader:
        reading = self.reading(whole=whole).but(tools=self.tools or None)
        if self.turn_ids is not None and (thoughts_alone or not self.joined):
            return LoneReader(ThoughtHalf(reading))
        if getattr(request, "tool_choice", None) == "none":
            reading = reading.but(calls=False)
        return JoinedReader(reading) if self.joined else LoneReader(CallHalf(reading))

    def reading(self, *, whole: bool) -> Reading:
        """How this reply is read: by its prompt, where one was shown, else by the model and what was asked of it."""
        prompt = self.turn_ids.text(self.prompt_ids) if self.turn_ids is not None and self.prompt_ids else None
        think = False if self.off else None
        reading = Reading.of(self._model, format=self.format, prompt=prompt, think=think)
        # Of a whole reply whose prompt nobody has seen, a lone closer shows that the prompt had opened the thought.
        return reading.as_whole() if whole and self.turn_ids is not None else reading


_made = threading.local()
"""The reasoning half that this thread has made last (`half`, a weak reference), for the tool half that comes next."""
_shown = threading.local()
"""The request whose whole reply this thread has read last (`request`, a weak reference), and its `prompt_ids`."""


class ReasoningHalf(ReasoningParser):
    """A reasoning parser of vLLM; each format has a subclass."""

    engine_based_streaming = True
    asides_format = "auto"

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        self.shared = SharedReply(self.asides_format, tokenizer, getattr(kwargs.get("model_config"), "model", None))
        self.shared.turn_ids = self._ids = _turn_ids(self.shared.format, vocabulary_of(tokenizer))
        switch, arguments = switch_of(self.shared.format), kwargs.get("chat_template_kwargs") or {}
        if switch is not None and switch.off is not None:
            self.shared.off = arguments.get(switch.keyword) == switch.off
        self._counted: TokenParser | None = None
        _made.half = weakref.ref(self)

    @property
    def reasoning_start_str(self) -> str | None:
        """What opens a thought, for thinking budgets."""
        return thinking_pair(self.shared.format)[0] or None

    @property
    def reasoning_end_str(self) -> str | None:
        """What closes it."""
        return thinking_pair(self.shared.format)[1] or None

    def adjust_request(self, request: Any) -> Any:
        """Ask for the markers: they are special tokens, which are left out of the text by default."""
        request.skip_special_tokens = False
        return request

    # What the scheduler asks, of ids. The answers depend on the ids alone; the prompt is remembered for reading.

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Whether these ids, a prompt as a rule, leave the model behind its thinking."""
        self._remember(input_ids)
        return self.shared.off or self._ids.is_over(input_ids)

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Whether thinking ends in the last of these ids."""
        return self._ids.ends_in(input_ids, list(delta_ids))

    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None:
        """Remember the prompt: it may have opened a thought."""
        self._remember(prompt_token_ids)

    def _remember(self, ids: Sequence[int]) -> None:
        if self.shared.is_untouched:
            self.shared.prompt_ids = ids

    def extract_content_ids(self, input_ids: Sequence[int]) -> list[int]:
        """The ids of a reply without those of thoughts and of the markers around them."""
        roles = self._parse_ids(input_ids).message.roles
        return [
            id for id, role in zip(input_ids, roles, strict=True) if role != "thinking" and id not in self._ids.markers
        ]

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """How many ids of a reply are of thoughts."""
        parts = self._parse_ids(token_ids).message.parts
        return sum(part.tokens[1] - part.tokens[0] for part in parts if isinstance(part, Thinking) and part.tokens)

    def _parse_ids(self, ids: Sequence[int]) -> TokenParser:
        """A parser that has read these ids. It reads on where they continue those before, as with usage per chunk."""
        parser, given = self._counted, list(ids)
        if parser is None or parser.ids != given[: len(parser.ids)]:
            # Exact: whitespace between the markers of a thought took tokens too.
            reading = self.shared.reading(whole=True)
            reading = reading.but(prompt=None, whitespace="exact", tools=self.shared.tools or None)
            prompt_ids = self._ids.turn(self.shared.prompt_ids) if self.shared.prompt_ids else None
            parser = self._counted = reading.token_parser(self._ids.vocabulary, prompt_ids=prompt_ids)
        parser.feed(given[len(parser.ids) :])
        return parser

    # Reading.

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """The thoughts of a whole reply, and the rest of it, calls as the model wrote them."""
        self._share_prompt(request)
        message = rest = self.shared.read_whole(model_output, request)
        if message.tool_calls:
            # vLLM does not always ask the tool half, and then this is the answer.
            rest = self.shared.read_whole(model_output, request, thoughts_alone=True)
        self.shared.handed_on = rest.content or "", message
        return message.reasoning or None, rest.content or None

    def _share_prompt(self, request: Any) -> None:
        """Of several choices, each has a parser of its own, and the prompt is shown to the first alone."""
        if self.shared.prompt_ids:
            _shown.request, _shown.prompt_ids = weakref.ref(request), self.shared.prompt_ids
        elif getattr(_shown, "request", lambda: None)() is request:
            self.shared.prompt_ids = _shown.prompt_ids

    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> DeltaMessage | None:
        """What a piece of a stream adds; with a tool half of ours, the piece itself, for it to read."""
        if self.shared.joined:
            return DeltaMessage(content=delta_text)
        if previous_text:
            _warn_of_another()
        return self.shared.feed(delta_text)

    def has_engine_confirmed_reasoning_end(self) -> bool:
        """Whether to hand the stream on to the tool half: at once, if that is ours."""
        return self.shared.joined

    def finish_streaming(self) -> DeltaMessage | None:
        """What was held back; nothing where the tool half reads."""
        return None if self.shared.joined else self.shared.finish()


@lru_cache(maxsize=1)
def _warn_of_another() -> None:
    """Once: vLLM keeps the text of a stream only for a tool parser that is not ours."""
    _log.warning("the tool parser is not one of asides: it finds no calls in streams. Use --tool-call-parser asides")


class ToolHalf(ToolParser):
    """A tool parser of vLLM; each format has a subclass."""

    engine_based_streaming = True
    # Calls that a request requires are read as all others; the structural tag makes the model write one.
    supports_required_and_named = False
    structural_tag_model = "asides"
    skip_reasoning_parsing = False
    """Set by vLLM where there is no reasoning parser."""
    asides_format = "auto"

    def __init__(self, tokenizer: Any, tools: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, tools, *args, **kwargs)
        made: Any = getattr(_made, "half", None)
        half = made() if made is not None else None
        _made.half = None
        self._alone = SharedReply(self.asides_format, tokenizer, None)
        self._joined: SharedReply | None = None
        self._no_tag = ""
        """Why there is no grammar, where vLLM has asked for one."""
        if half is not None and half.model_tokenizer is tokenizer and half.shared.is_untouched:
            self._joined = half.shared
            self._joined.format = _combine(half.shared.format, self._alone.format)
            self._joined.joined = True
        for shared in filter(None, (self._alone, self._joined)):
            shared.tools = list(map(_definition, self.tools))

    @property
    def shared(self) -> SharedReply:
        """How the reply is read: as the reasoning half shares it, if there is one of ours."""
        return self._alone if self._joined is None or self.skip_reasoning_parsing else self._joined

    def adjust_request(self, request: Any) -> Any:
        """Ask for the markers, as the reasoning half does.

        Raises vLLM's error for a request that requires a call, where no grammar can make the model write one.
        """
        if self._no_tag:
            if request.tool_choice != "auto":
                raise VLLMValidationError(f"tool_choice: {self._no_tag}", parameter="tool_choice")
            _log.warning("the calls of this request are not held to a grammar: %s", self._no_tag)
        request = super().adjust_request(request)
        request.skip_special_tokens = False
        return request

    def get_structural_tag(self, request: Any, **_: Any) -> StructuralTag | None:
        """The grammar of a reply, for strict tools and for calls that the request requires; None if there is none."""
        if not envs.VLLM_ENFORCE_STRICT_TOOL_CALLING:
            return None
        choice = request.tool_choice
        name = getattr(getattr(choice, "function", choice), "name", None)
        tools = [tool for tool in self.shared.tools if name in (None, tool["function"]["name"])]
        try:
            tag = self.shared.format.structural_tag(tools, start="text")
            if choice != "auto":
                tag = _without_thoughts(tag, self.shared.format, at_least_one=True)
            elif request.parallel_tool_calls is False:  # vLLM then allows one tag, which a thought must not use up
                tag = _without_thoughts(tag, self.shared.format, at_least_one=False)
            return StructuralTag.model_validate(tag)
        except UsageError as error:
            # Not refused here: beside a schema for the answer, vLLM asks as if a call were required though none is.
            self._no_tag = str(error)
            return None

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """The calls of a whole reply, and its text."""
        shared = self.shared
        handed_on, message = shared.handed_on or (None, None)
        if message is None or handed_on != model_output:
            message = shared.read_whole(model_output, request)
        calls = [
            ToolCall(id=call.id, function=FunctionCall(name=call.function.name, arguments=call.function.arguments))
            for call in message.tool_calls
        ]
        return ExtractedToolCallInformation(tools_called=bool(calls), tool_calls=calls, content=message.content)

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> DeltaMessage | None:
        """What a piece of a stream adds: text, calls, and thoughts where there is a reasoning half."""
        return self.shared.feed(delta_text, request)

    def finish_streaming(self) -> DeltaMessage | None:
        """What was held back."""
        return self.shared.finish()


def _without_thoughts(tag: dict[str, Any], format: Format, *, at_least_one: bool) -> dict[str, Any]:
    """A structural tag in which calls alone stand; with `at_least_one`, one must."""
    output = tag["format"]
    if output["type"] != "triggered_tags":
        raise UsageError(f"the calls of {format.name} have no end of their own, so that none can be required")
    thoughts = openers(format)
    triggers = [trigger for trigger in output["triggers"] if trigger not in thoughts]
    tags = [each for each in output["tags"] if each["begin"] not in thoughts]
    return {**tag, "format": {**output, "triggers": triggers, "tags": tags, "at_least_one": at_least_one}}


def _definition(tool: Any) -> dict[str, Any]:
    """A tool of a request as OpenAI's chat completions define it; Responses have the same without `function`."""
    fields: dict[str, Any] = tool.model_dump()
    return fields if "function" in fields else {"type": "function", "function": fields}


_HALVES: dict[str, type[Any]] = {"reasoning": ReasoningHalf, "tools": ToolHalf}


def __getattr__(name: str) -> type[Any]:
    """The half of a format, by the name that `vllm.register` gives vLLM: `reasoning qwen3`, `tools auto`."""
    kind, _, format = name.partition(" ")
    if kind not in _HALVES or not format:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    half = _HALVES[kind]
    return type(f"Asides{half.__name__}", (half,), {"asides_format": get_format(format).name, "__module__": __name__})
