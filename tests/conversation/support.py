"""What the tests of conversations share: small tokenizers, generated conversations, and Jinja without origins."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from typing import Any

import jinja2
import jinja2.ext
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import asides
from tests.conversation.templates import FORMATS, MARKERS, TEMPLATES

WORDS = [
    "the answer is four and not five, as everyone knows who has looked\n\n",
    'What is 2+2? I think so. Let me look it up in Ulm!\n</tool_call>{"name": "look", "arguments": {"place": ',
    "user assistant system tool\nfunctions to=assistant json commentary final analysis",
]
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Looks <things> up; says <|im_end|>.",
            "parameters": {
                "type": "object",
                "properties": {"place": {"type": "string"}, "n": {"type": "integer", "default": 3}},
                "required": ["place"],
            },
        },
    }
]


@cache
def tokenizer(kind: str) -> Tokenizer:
    """A small tokenizer: `bytes` as most models have, `pieces` as SentencePiece writes, with a space put first."""
    if kind == "bytes":
        made = Tokenizer(models.BPE())
        split = pre_tokenizers.Split(
            Regex(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"), "isolated"
        )
        made.pre_tokenizer = pre_tokenizers.Sequence(
            [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
        made.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
        )
    else:
        made = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
        made.normalizer = normalizers.Sequence([normalizers.NFC()])
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
        made.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
        bytes_ = [f"<0x{number:02X}>" for number in range(256)]
        trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=["<unk>", *bytes_], show_progress=False)
    made.train_from_iterator(WORDS * 3, trainer)
    if kind == "pieces":
        # The trainer makes tokens of the bytes that would be found in texts; in a model they are none.
        description = json.loads(made.to_str())
        description["added_tokens"] = description["added_tokens"][:1]
        made = Tokenizer.from_str(json.dumps(description))
    special = [AddedToken(text, special=True, normalized=False) for text in MARKERS if "|" in text or "｜" in text]
    made.add_special_tokens(special)
    made.add_tokens([AddedToken(text, special=False, normalized=False) for text in MARKERS if "|" not in text])
    return made


@cache
def conversation(
    name: str, kind: str = "bytes", tools: bool = False, *, harmless: bool = False, **options: Any
) -> asides.Conversation:
    """A conversation with one of our templates. `harmless`: no marker stands in the tools' definitions."""
    definitions = (
        [{**TOOLS[0], "function": {**TOOLS[0]["function"], "description": "Looks things up."}}] if harmless else TOOLS
    )
    return asides.Conversation(
        tokenizer(kind),
        TEMPLATES[name],
        tools=definitions if tools else None,
        format=FORMATS[name],
        bos_token="<｜begin▁of▁sentence｜>",
        **options,
    )


def plainly(source: str, messages: list[dict[str, Any]], **variables: Any) -> str:
    """What Jinja writes, in an environment as transformers makes it, knowing nothing of origins."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
    )

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    environment.filters["tojson"] = lambda value, ensure_ascii=False, indent=None, separators=None, sort_keys=False: (
        json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    )
    environment.globals |= {"raise_exception": refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
    given = []
    for message in messages:
        message = {name: value for name, value in message.items() if value is not None}
        thought = next(
            (message[name] for name in ("reasoning_content", "thinking", "reasoning") if name in message), None
        )
        if thought is not None:
            message = {"thinking": thought, **message, "reasoning_content": thought}
        given.append(message)
    return environment.from_string(source).render(messages=given, documents=None, **variables)


class Generation(jinja2.ext.Extension):
    """`{% generation %}` as a call that gives back what stands in it."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja declares it

    def parse(self, parser: Any) -> Any:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller: Any) -> Any:
        return caller()


def rows(prompt: asides.Prompt) -> list[tuple[int | None, str, str]]:
    """Stretches of equal message, kind and sampling: message, kind (with `*` where sampled), text."""
    found: list[tuple[int | None, str, list[int]]] = []
    for id, message, kind, sampled in zip(prompt.ids, prompt.message, prompt.kind, prompt.sampled, strict=True):
        name = kind + "*" * sampled
        if not found or found[-1][:2] != (message, name):
            found.append((message, name, []))
        found[-1][2].append(id)
    text = prompt.conversation.text
    return [(message, kind, text(ids)) for message, kind, ids in found]


# Generated conversations.

TEXT = st.text(st.one_of(st.sampled_from("ab \n\t\"'\\{}<|>é你🤔"), st.characters(codec="utf-8")), max_size=12)
MARKED = st.lists(st.one_of(TEXT, st.sampled_from(MARKERS)), max_size=4).map("".join)
"""Words with markers spelled out in them."""


def calls(texts: st.SearchStrategy[str]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Several calls at once."""
    values = st.one_of(
        texts, st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False), st.lists(texts, max_size=2)
    )
    arguments = st.dictionaries(st.sampled_from(["place", "n", "über"]), values, max_size=3)
    call = st.builds(
        lambda given: {"id": "c1", "type": "function", "function": {"name": "look", "arguments": given}}, arguments
    )
    return st.lists(call, min_size=1, max_size=3)


def answers(texts: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    """An assistant's message."""
    optional = st.one_of(st.none(), texts)
    return st.builds(
        lambda content, thought, called: {
            "role": "assistant",
            "content": content,
            "reasoning_content": thought,
            "tool_calls": called,
        },
        texts,
        optional,
        st.one_of(st.none(), calls(texts)),
    )


@st.composite
def conversations(draw: st.DrawFn, texts: st.SearchStrategy[str] = TEXT, answered: bool = True) -> list[dict[str, Any]]:
    """Messages as people have them: a system or none, questions, answers, calls and their results in any order."""
    messages: list[dict[str, Any]] = []
    if draw(st.booleans()):
        messages.append({"role": "system", "content": draw(texts)})
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(texts)})
        for _ in range(draw(st.integers(0, 2))):
            answer = draw(answers(texts))
            messages.append(answer)
            for _ in answer["tool_calls"] or ():
                messages.append({"role": "tool", "tool_call_id": "c1", "name": "look", "content": draw(texts)})
    if not answered and messages[-1]["role"] == "assistant":
        messages.append({"role": "user", "content": draw(texts)})
    return messages
