"""Replies as four families write them, made from parts that are known: what a reader of templates must find in them.

A shape says which parts a reply has and in which spelling (`SHAPES`); a family says how a part is written. Most shapes
can be said in a response template. Each of the others names the losses (`asides.hf._losses`) that are the reason why a
reader of templates does not find everything in it.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

FUNCTION = "get_weather"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": FUNCTION,
            "description": "The weather.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer"},
                    "exact": {"type": "boolean"},
                    "units": {"type": "array", "items": {"type": "string"}},
                },
            },
        },
    }
]
_SENTENCE = "the map shows rain over Oslo and wind from north-west; naïve Ünïcode 雨, 3 < 4 & {braces} [lists] café"
_WORDS = _SENTENCE.split(" ")


class GeneratedReply(NamedTuple):
    """One reply and what is in it."""

    prompt: str
    """The end of the prompt."""
    text: str
    thoughts: tuple[str, ...]
    texts: tuple[str, ...]
    calls: tuple[Mapping[str, Any], ...]
    """The arguments of each call that may be run."""


class Shape(NamedTuple):
    """Which parts a reply has: T a thought, S a text, C a call."""

    parts: str
    losses: tuple[str, ...] = ()
    """Codes of what makes a reader of templates miss something; empty where it must find everything."""
    only: tuple[str, ...] = ()
    """The families that write it; empty: all."""


SHAPES = {
    "thought and text": Shape("TS"),
    "text alone": Shape("S"),
    "thought, text, call": Shape("TSC"),
    "thought and call": Shape("TC"),
    "two calls": Shape("TSCC"),
    "two thoughts": Shape("TSTS"),
    "thought behind a call": Shape("TCTS"),
    "text behind a call": Shape("SCS"),
    "opened by the prompt": Shape("TSC", only=("qwen3", "deepseek_v31", "glm45")),
    "recipient before the channel": Shape("TSC", only=("harmony",)),
    "call in the analysis channel": Shape("TSC", only=("harmony",)),
    "no type": Shape("TSC", only=("harmony",)),
    "final behind a call": Shape("TCS", only=("harmony",)),
    "call cut off": Shape("TSC", losses=("broken_raises",), only=("harmony", "qwen3", "deepseek_v31")),
    "parameters cut off": Shape("TSC", losses=("cut_call",), only=("glm45",)),
    "call malformed": Shape("TSC", losses=("broken_raises",), only=("harmony", "qwen3", "deepseek_v31")),
    "closer quoted in a thought": Shape("TSC", losses=("quoted",)),
    "thinking never closed": Shape("TC", losses=("unclosed",), only=("qwen3", "deepseek_v31", "glm45")),
    "closer in an argument": Shape("TSC", losses=("cut_value",), only=("deepseek_v31", "glm45")),
    "two calls in one pair of markers": Shape("TSCC", losses=("several",), only=("qwen3",)),
}
"""What is generated, by name."""
_CUT = ("call cut off", "parameters cut off")


class _Spelling(NamedTuple):
    """How one family writes its parts; harmony is written by `_harmony`."""

    prompt: str
    think: tuple[str, str]
    call: tuple[str, str]
    section: tuple[str, str]
    stop: str


_SPELLINGS = {
    "qwen3": _Spelling(
        "<|im_start|>assistant\n",
        ("<think>\n", "\n</think>\n\n"),
        ("\n<tool_call>\n", "\n</tool_call>"),
        ("", ""),
        "<|im_end|>\n",
    ),
    "deepseek_v31": _Spelling(
        "<｜Assistant｜>",
        ("<think>", "</think>"),
        (f"<｜tool▁call▁begin｜>{FUNCTION}<｜tool▁sep｜>", "<｜tool▁call▁end｜>"),
        ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
        "<｜end▁of▁sentence｜>",
    ),
    "glm45": _Spelling(
        "<|assistant|>",
        ("\n<think>", "</think>\n"),
        (f"\n<tool_call>{FUNCTION}\n", "</tool_call>"),
        ("", ""),
        "<|user|>",
    ),
}
FAMILIES = ("harmony", *_SPELLINGS)
SPECIAL = sorted(
    {
        *(each.strip() for spelling in _SPELLINGS.values() for each in (*spelling.think, *spelling.section)),
        *(spelling.stop.strip() for spelling in _SPELLINGS.values()),
        *("<|im_start|>", "<｜Assistant｜>", "<|assistant|>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>"),
        *("<arg_value>", "</arg_value>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"),
        *("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|constrain|>", "<|call|>", "<|return|>"),
    }
    - {""}
)
"""The markers, which are tokens of their own."""


def replies(family: str, shape: str, number: int) -> Iterator[GeneratedReply]:
    """Replies of one shape, always the same ones."""
    dice = random.Random(f"{family} {shape}")
    for _ in range(number):
        yield _reply(family, shape, dice)


def wanted(reply: GeneratedReply) -> Counter[str]:
    """How many parts of each kind a reader must find, and no call that is none of them."""
    return +Counter(thoughts=len(reply.thoughts), texts=len(reply.texts), calls=len(reply.calls))


def shapes(family: str) -> list[str]:
    """The shapes that a family writes."""
    return [name for name, shape in SHAPES.items() if not shape.only or family in shape.only]


def _reply(family: str, shape: str, dice: random.Random) -> GeneratedReply:
    parts: list[tuple[str, Any]] = []
    for kind in SHAPES[shape].parts:
        parts.append((kind, _arguments(dice) if kind == "C" else _sentence(dice)))
    closer = "<|end|>" if family == "harmony" else "</think>"
    if shape == "closer quoted in a thought":
        parts[0] = ("T", f"{parts[0][1]} They end it with `{closer}` here. {_sentence(dice)}")
    if shape == "closer in an argument":
        parts[-1] = ("C", {"city": f"a {_SPELLINGS[family].call[1]} b"})
    prompt, text = (_harmony if family == "harmony" else _tagged)(family, shape, parts, dice)
    broken = shape in (*_CUT, "call malformed")
    return GeneratedReply(
        prompt,
        text,
        tuple(value for kind, value in parts if kind == "T"),
        tuple(value for kind, value in parts if kind == "S"),
        () if broken else tuple(value for kind, value in parts if kind == "C"),
    )


def _sentence(dice: random.Random) -> str:
    lines = [" ".join(dice.choices(_WORDS, k=dice.randint(2, 20))) + "." for _ in range(dice.randint(1, 4))]
    return "\n".join(lines)


def _arguments(dice: random.Random) -> dict[str, Any]:
    values = {"city": " ".join(dice.choices(_WORDS, k=3)), "days": dice.randrange(9), "exact": dice.random() < 0.5}
    values["units"] = dice.choices(["mm", "°C", "m/s"], k=2)
    chosen = dice.sample(sorted(values), dice.randint(1, 4))
    return {name: values[name] for name in chosen}


def _broken(body: str, shape: str) -> str:
    """The body of a call that is cut off, or that is no JSON."""
    if shape in _CUT:
        return body[: len(body) * 2 // 3]
    return body[:-1] + ', "b": }' if shape == "call malformed" else body


def _harmony(_family: str, shape: str, parts: Sequence[tuple[str, Any]], _dice: random.Random) -> tuple[str, str]:
    written = []
    for place, (kind, value) in enumerate(parts):
        last = place == len(parts) - 1
        if kind == "T":
            written.append(f"<|channel|>analysis<|message|>{value}<|end|>")
        elif kind == "S":
            channel, end = ("final", "<|return|>") if last else ("commentary", "<|end|>")
            written.append(f"<|channel|>{channel}<|message|>{value}{end}")
        else:
            header = {
                "recipient before the channel": f" to=functions.{FUNCTION}<|channel|>commentary <|constrain|>json",
                "call in the analysis channel": f"<|channel|>analysis to=functions.{FUNCTION} <|constrain|>json",
                "no type": f"<|channel|>commentary to=functions.{FUNCTION}",
            }.get(shape, f"<|channel|>commentary to=functions.{FUNCTION} <|constrain|>json")
            body = _broken(json.dumps(value, ensure_ascii=False), shape)
            end = "" if shape in _CUT else "<|call|>"
            written.append(f"{header}<|message|>{body}{end}")
    return "<|start|>assistant", "<|start|>assistant".join(written)


def _tagged(family: str, shape: str, parts: Sequence[tuple[str, Any]], _dice: random.Random) -> tuple[str, str]:
    spelling = _SPELLINGS[family]
    prompt, written = spelling.prompt, ""
    for place, (kind, value) in enumerate(parts):
        before, behind = parts[place - 1][0] if place else "", parts[place + 1][0] if place + 1 < len(parts) else ""
        if kind == "T":
            opener, closer = spelling.think
            if place == 0 and shape == "opened by the prompt":
                prompt, opener = prompt + opener, ""
            written += opener + value + ("" if shape == "thinking never closed" else closer)
        elif kind == "S":
            written += value
        else:
            opener, closer = spelling.call
            body = _broken(_body(family, value), shape)
            if shape == "two calls in one pair of markers":
                opener, closer = opener if before != "C" else "\n", closer if behind != "C" else ""
            cut = shape in _CUT
            written += (spelling.section[0] if before != "C" else "") + opener + body + ("" if cut else closer)
            written += spelling.section[1] if behind != "C" and not cut else ""
    return prompt, written + ("" if shape in _CUT else spelling.stop)


def _body(family: str, arguments: Mapping[str, Any]) -> str:
    if family == "qwen3":
        return json.dumps({"name": FUNCTION, "arguments": arguments}, ensure_ascii=False)
    if family == "glm45":
        values = {
            name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for name, value in arguments.items()
        }
        return "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in values.items())
    return json.dumps(arguments, ensure_ascii=False)
