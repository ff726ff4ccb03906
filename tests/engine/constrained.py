"""What the tests of structural tags share: tools, calls as each family writes them, and what a reading must give.

The calls are written by hand-made writers (those of the round trip, and more here) and by the renderers, not by what
makes the tags: both would otherwise have the same mistakes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import asides
from asides import Format
from asides._engine.calls.syntax import CallSyntax
from asides.render import get_renderer
from tests.laws.test_round_trip import WRITERS, Arguments, Write, as_json, dsml, named, plain, tagged

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                    "days": {"type": "integer"},
                    "exact": {"type": "boolean"},
                },
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "search",
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {"type": ["string", "null"]},
                    "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                    "filter": {
                        "type": "object",
                        "properties": {"min": {"type": "number"}, "deep": {"$ref": "#/$defs/deep"}},
                        "required": ["min"],
                    },
                },
                "required": ["tags", "filter"],
                "$defs": {
                    "deep": {
                        "type": "object",
                        "properties": {"note": {"type": "string"}, "flag": {"type": "boolean"}},
                        "required": ["note"],
                    }
                },
            },
        },
    },
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
    {
        "name": "book",
        "input_schema": {
            "type": "object",
            "properties": {
                "date": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"},
                "code": {"type": "string", "minLength": 2, "maxLength": 4},
                "seats": {"type": "integer", "minimum": 1, "maximum": 9},
                "kind": {"enum": ["window", 1, None]},
                "who": {
                    "anyOf": [
                        {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
                        {"type": "null"},
                    ]
                },
                "rows": {
                    "type": "array",
                    "items": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
                    "minItems": 1,
                    "maxItems": 2,
                },
                "extra": {},
                "note": {"type": ["string", "integer"]},
                "sure": {"const": True},
            },
            "required": ["seats"],
        },
    },
]
"""Tools with what schemas say most often, in both shapes of definition."""

SCHEMAS: dict[str, dict[str, Any]] = {
    function["name"]: function.get("parameters") or function["input_schema"]
    for function in (tool.get("function", tool) for tool in TOOLS)
}
LETTERS = "abc xyzé🤔.,:;!?'\"\\/-_(){}[]=&|#0123"
TOLERATED = {"foreign_marker"}
"""Notices of a text that has nothing to do with calls."""


def fixed(name: str) -> Format:
    """A format; where checkpoints choose a suffix, with the one that its card knows."""
    format = asides.get_format(name)
    return format.for_tokens(marker for state in format.states.values() for marker in state)


def tagged_formats() -> dict[str, Format]:
    """The formats that have a structural tag."""
    found = {}
    for name in asides.formats():
        format = fixed(name)
        try:
            format.structural_tag(TOOLS)
        except asides.UsageError:
            continue
        found[name] = format
    return found


def stop_of(format: Format) -> str:
    """The marker at which a server would end the turn, behind a call too."""
    if format.header is not None:
        return format.header.calls[0].close[0]
    return next((marker for marker, leads in format.states["text"].items() if leads == "end"), "")


def faults(format: Format, text: str, validate: Callable[[str, Any], str]) -> tuple[int, list[str]]:
    """How many calls a text gives, and everything about them that is not as it must be.

    `validate` says what is wrong with the arguments of a tool. Under a structural tag every marker acts, so quotes and
    code blocks around one mean nothing.
    """
    policies: dict[str, Any] = {} if format.header is not None else {"start": format.start}
    message = asides.parse(text, format, tools=TOOLS, mentions="marker", **policies)
    found = [f"{notice.code}: {notice.message}" for notice in message.notices if notice.code not in TOLERATED]
    for call in message.tool_calls:
        if call.error is not None:
            found.append(f"{call.error}: {call.error_message}")
        elif call.name not in SCHEMAS:
            found.append(f"no tool is called {call.name!r}")
        elif wrong := validate(call.name, json.loads(call.arguments)):
            found.append(wrong)
    openers = [opener for syntax in format.calls for opener in syntax.openers]
    found += [f"{opener} is left in the words" for opener in openers if opener in message.text + message.thinking]
    return len(message.tool_calls), found


# Calls that families write.


def sample(schema: Any, random: Random, root: Any) -> Any:
    """A value that a schema allows; `schema` uses no more of the standard than the tools above."""
    if "$ref" in schema:
        return sample(root["$defs"][schema["$ref"].rpartition("/")[2]], random, root)
    if "anyOf" in schema:
        return sample(random.choice(schema["anyOf"]), random, root)
    if "enum" in schema or "const" in schema:
        return random.choice(schema.get("enum") or [schema["const"]])
    type = schema.get("type", "string")
    type = random.choice(type) if isinstance(type, list) else type
    if type == "object":
        members, required = schema["properties"], schema.get("required", ())
        chosen = [key for key in members if key in required or random.random() < 0.5]
        return {key: sample(members[key], random, root) for key in chosen}
    if type == "array":
        count = random.randint(schema.get("minItems", 0), schema.get("maxItems", 3))
        return [sample(schema["items"], random, root) for _ in range(count)]
    if "pattern" in schema:
        return f"{random.randint(0, 9999):04}-{random.randint(0, 99):02}"
    if "maxLength" in schema:
        return "".join(random.choices("abcxyz012", k=random.randint(schema["minLength"], schema["maxLength"])))
    scalars: dict[str, Callable[[], Any]] = {
        "string": lambda: "".join(random.choices(LETTERS, k=random.randint(1, 30))).strip() or "x",
        "integer": lambda: random.randint(schema.get("minimum", -99), schema.get("maximum", 99)),
        "number": lambda: random.choice([random.uniform(-9, 9), random.randint(-9, 9), 1e21]),
        "boolean": lambda: random.random() < 0.5,
        "null": lambda: None,
    }
    return scalars[type]()


def nested(prefix: str) -> Write:
    """MiniMax M3: a tag for every member, at any depth."""

    def value(given: object) -> str:
        if isinstance(given, dict):
            return "".join(f"{prefix}<{key}>{value(each)}{prefix}</{key}>" for key, each in given.items())
        if isinstance(given, list):
            return "".join(f"{prefix}<item>{value(each)}{prefix}</item>" for each in given)
        return plain(given)

    return lambda called, given: (
        f'{prefix}<tool_call>\n{prefix}<invoke name="{called}">{value(given)}{prefix}</invoke>\n{prefix}</tool_call>'
    )


def kimi_k3(called: str, given: Arguments) -> str:
    """Kimi K3, which names the type of every value and counts its calls."""
    types = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}
    values = ""
    for key, value in given.items():
        values += f'<|open|>argument key="{key}" type="{types.get(type(value), "null")}"<|sep|>'
        values += f"{plain(value)}<|close|>argument<|sep|>"
    call = f'<|open|>call tool="{called}" index="1"<|sep|>{values}<|close|>call<|sep|>'
    return f"<|open|>tools<|sep|>{call}<|close|>tools<|sep|>"


def invoked(section: str, prefix: str, typed: bool = True) -> Write:
    """`<invoke name="f">` in a section, with a prefix before the name of every tag."""
    string = ' string="{}"' if typed else ""
    return tagged(
        f'<{section}>\n<{prefix}invoke name="{{}}">\n',
        f'<{prefix}parameter name="{{}}"{string}>',
        f"</{prefix}parameter>\n",
        f"</{prefix}invoke>\n</{section}>",
        dsml,
    )


MORE: dict[str, Write] = {
    "deepseek_v4": invoked("｜DSML｜tool_calls", "｜DSML｜"),
    "deepseek_v41": invoked("｜DSML｜ calls", "｜DSML｜ "),
    "gigachat35": invoked("｜GCML｜tool_calls", "｜GCML｜"),
    "minimax_m2": invoked("minimax:tool_call", "", typed=False),
    "minimax_m3": nested("]<]minimax[>["),
    "kimi_k3": kimi_k3,
    "functionary_v3_1": named("<function=", ">", "</function>"),
    "harmony": named(" to=functions.", "<|channel|>commentary <|constrain|>json<|message|>", ""),
    "hy_v3": tagged(
        "<tool_calls:opensource>\n<tool_call:opensource>{}<tool_sep:opensource>\n",
        "<arg_key:opensource>{}</arg_key:opensource>\n<arg_value:opensource>",
        "</arg_value:opensource>\n",
        "</tool_call:opensource>\n</tool_calls:opensource>",
    ),
    "hy_v4": tagged(
        "<tool_calls:6124c78e><tool_call:6124c78e>{}",
        "<arg_key:6124c78e>{}</arg_key:6124c78e><arg_value:6124c78e>",
        "</arg_value:6124c78e>",
        "</tool_call:6124c78e></tool_calls:6124c78e>",
    ),
    "spark25": WRITERS["glm45"],
    "iquest_q1": tagged(
        "<iquest_tool_call>{}\n",
        "<arg_key>{}</arg_key>\n<arg_value>",
        "</arg_value>\n",
        "</iquest_tool_call>",
    ),
    "k2_horizon": tagged(
        "<ifm|tool_calls>\n<ifm|tool_call>{}\n",
        "<ifm|arg_key>{}</ifm|arg_key><ifm|arg_value>",
        "</ifm|arg_value>\n",
        "</ifm|tool_call>\n</ifm|tool_calls>",
    ),
    "mimo": tagged("<tool_call>\n<function={}>\n", "<parameter={}>", "</parameter>\n", "</function>\n</tool_call>"),
    "plamo3": named(
        "<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>",
        "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>",
        "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|>",
    ),
    "step3": tagged(
        '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{}">',
        '<steptml:parameter name="{}">',
        "</steptml:parameter>",
        "</steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
    ),
    "cohere": as_json("<|START_ACTION|>[\n    ", "\n]<|END_ACTION|>", "tool_name", "parameters"),
}
RENDERED = {
    "qwen3": "qwen3",
    "deepseek_v3": "deepseekv3_disable_thinking",
    "deepseek_v3_thinking": "deepseekv3_thinking",
    "kimi_k2": "kimi_k2",
    "harmony": "gpt_oss",
}
"""Formats with a renderer of ours."""


def writer_of(name: str, format: Format) -> Write:
    """How the family of a format writes a call: by its name, or as another format with the same syntax."""
    if name in MORE:
        return MORE[name]
    if name in WRITERS:
        return WRITERS[name]
    same = [other for other in (*WRITERS, *MORE) if _own(fixed(other))[:1] == _own(format)[:1]]
    return {**WRITERS, **MORE}[same[0]]


def _own(format: Format) -> list[CallSyntax]:
    return [syntax for syntax in format.calls if not syntax.sibling]


def written_calls(name: str, format: Format, count: int, seed: int = 0) -> Iterator[str]:
    """Outputs with a call in them: what the renderers give where there is one, else what the writers do."""
    random = Random(seed)
    write = writer_of(name, format)
    render = _Rendering(RENDERED[name], format) if name in RENDERED else None
    for number in range(count):
        tool = random.choice(list(SCHEMAS))
        arguments = sample(SCHEMAS[tool], random, SCHEMAS[tool])
        thinks = format.header is None and format.start == "thinking"
        if render is not None and number % 2:
            yield render(
                tool, arguments, "Hm." if random.random() < 0.5 or thinks else "", random.choice(["", "Let me."])
            )
        else:
            closes = [marker for marker, leads in format.states.get("thinking", {}).items() if leads == "text"]
            before = f"Hm.\n{closes[0]}\n\n" if thinks else ""
            yield (
                before
                + ("" if format.header is not None else random.choice(["", "Let me.\n"]))
                + write(tool, arguments)
            )


TURNS = (
    "<|message|>", "<|constrain|>", "<|im_start|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>",
    "<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>",
)  # fmt: skip
"""Tokens of prompts."""


class _Letters:
    """A tokenizer whose tokens are characters, and a format's markers."""

    def __init__(self, format: Format) -> None:
        markers = [marker for state in format.states.values() for marker in state]
        markers += [marker for syntax in format.calls for marker in (*syntax.openers, *syntax.closers)]
        markers += [marker for marker in format.strays + format.assistant + TURNS if marker.startswith("<")]
        self.special_tokens = {marker: 0x110000 + number for number, marker in enumerate(dict.fromkeys(markers))}

    def encode(self, text: str) -> list[int]:
        for marker, id in self.special_tokens.items():
            if marker in text:
                before, _, after = text.partition(marker)
                return [*self.encode(before), id, *self.encode(after)]
        return [ord(letter) for letter in text]

    def decode(self, ids: Any) -> str:
        names = {id: marker for marker, id in self.special_tokens.items()}
        return "".join(names.get(id) or chr(id) for id in ids)


class _Rendering:
    """What a renderer writes for an answer, without the marker that ends the turn."""

    def __init__(self, renderer: str, format: Format) -> None:
        self._tokens = _Letters(format)
        self._renderer = get_renderer(renderer, self._tokens, seed=0)
        self._stop = stop_of(format)

    def __call__(self, tool: str, arguments: Arguments, thinking: str, text: str) -> str:
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"type": "function", "id": f"functions.{tool}:0", "function": function}
        content = [{"type": "thinking", "thinking": thinking}] if thinking else []
        content += [{"type": "text", "text": text}] if text else []
        answer = {"role": "assistant", "content": content or "", "tool_calls": [call]}
        ids, weights = self._renderer.build_supervised_example([{"role": "user", "content": "Q"}, answer])
        written = self._tokens.decode([id for id, weight in zip(ids, weights, strict=True) if weight])
        return written.removesuffix(self._stop)
