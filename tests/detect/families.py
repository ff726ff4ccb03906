"""Chat templates in the style of families, put together from what each family writes. Their own are longer."""

from __future__ import annotations

import json
from typing import NamedTuple

NAME = "{{- call.function.name }}"
ARGUMENTS = "{{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}"
JSON = "{{- {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}"
PARAMETERS = "{{- {'name': call.function.name, 'parameters': call.function.arguments} | tojson }}"
DEEPSEEK, EOS = "<｜Assistant｜>", "<｜end▁of▁sentence｜>"
CHATML, LLAMA = "<|im_start|>assistant\n", "<|start_header_id|>assistant<|end_header_id|>\n\n"


def write(text: str) -> str:
    """Jinja that writes a text."""
    return "{{- " + json.dumps(text, ensure_ascii=False) + " }}" if text else ""


def each(before: str, body: str, behind: str, *, first: str = "", last: str = "", between: str = "") -> str:
    """Jinja that writes a message's calls, with something around all of them."""
    one = write(before) + body + write(behind)
    return (
        "{%- if message.tool_calls %}"
        + write(first)
        + f"{{%- for call in message.tool_calls %}}{one}{{%- if not loop.last %}}{write(between)}{{%- endif %}}"
        + "{%- endfor %}"
        + write(last)
        + "{%- endif %}"
    )


def pairs(before: str, between: str, behind: str) -> str:
    """Jinja that writes a call's arguments one by one; a `%` in what stands behind is the key again."""
    back = "".join(map(write, behind)) if "%" not in behind else "{{- " + _joined(behind) + " }}"
    inside = write(before) + "{{- key }}" + write(between) + "{{- value }}" + back
    return "{%- for key, value in call.function.arguments.items() %}" + inside + "{%- endfor %}"


def _joined(text: str) -> str:
    return " + key + ".join(json.dumps(piece, ensure_ascii=False) for piece in text.split("%"))


def python(quote: str) -> str:
    """Jinja that writes a call as Python does."""
    inside = "{{- key + '=' }}" + f"{{{{- value | tojson }}}}{quote}" + "{%- if not loop.last %}{{- ', ' }}{%- endif %}"
    items = "{%- for key, value in call.function.arguments.items() %}" + inside + "{%- endfor %}"
    return NAME + write("(") + items + write(")")


class Style(NamedTuple):
    """What a family's template writes."""

    format: str
    """The format that detection must find; `auto` where calls do not show."""
    header: str
    stop: str
    calls: str = ""
    think: tuple[str, str] | None = ("<think>", "</think>")
    """None where the template drops thoughts."""
    opened: str = ""
    """What the generation prompt ends with behind the header."""
    told: str = ""
    """What stands in the prompt alone."""
    start: str | None = "text"

    @property
    def template(self) -> str:
        """The template."""
        turn = "{%- set thought = message.reasoning_content %}" if self.think else ""
        if self.think:
            opener, closer = map(write, self.think)
            turn += "{%- if thought %}" + opener + "{{- thought }}" + closer
            # A prompt that opens thinking is gone on from by every turn.
            turn += "{%- else %}" + write(self.opened) + (closer if self.opened else "") + "{%- endif %}"
        turn += "{{- message.content or '' }}" + self.calls + write(self.stop)
        return (
            (f"{{%- if tools %}}{write(self.told)}{{%- endif %}}" if self.told else "")
            + "{%- for message in messages %}"
            + "{%- if message.role == 'user' %}" + write("<|ask|>") + "{{- message.content }}" + write("<|asked|>\n")
            + "{%- elif message.role == 'assistant' %}" + write(self.header) + turn + "{%- endif %}"
            + "{%- endfor %}"
            + "{%- if add_generation_prompt %}" + write(self.header + self.opened) + "{%- endif %}"
        )  # fmt: skip


def _dsml(prefix: str, block: str) -> str:
    parameters = pairs(f'<{prefix}parameter name="', '" string="true">', f"</{prefix}parameter>\n")
    return each(
        f'<{prefix}invoke name="',
        NAME + write('">\n') + parameters,
        f"</{prefix}invoke>\n",
        first=f"\n\n<{prefix}{block}>\n",
        last=f"</{prefix}{block}>",
    )


_DSML = _dsml("｜DSML｜", "tool_calls")
_DSML_OF_V32 = _DSML.replace("｜DSML｜tool_calls>", '｜" + "DSML｜function_calls>')
"""Put together in the template, so that no marker of a block stands in its source."""
_XML = each(
    "\n<tool_call>\n<function=",
    NAME + write(">\n") + pairs("<parameter=", ">\n", "\n</parameter>\n"),
    "</function>\n</tool_call>",
)
_KEYED = pairs("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n")
_FENCED = each(
    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
    NAME + write("\n```json\n") + ARGUMENTS,
    "\n```<｜tool▁call▁end｜>",
    first="<｜tool▁calls▁begin｜>",
    last="<｜tool▁calls▁end｜>",
    between="\n",
)
_CHATML_JSON = each("\n<tool_call>\n", JSON, "\n</tool_call>")


def _hy(suffix: str) -> tuple[str, str, str, tuple[str, str]]:
    """Header, stop, calls and thinking of a checkpoint whose tags have this suffix."""
    keys = pairs(f"<arg_key{suffix}>", f"</arg_key{suffix}><arg_value{suffix}>", f"</arg_value{suffix}>")
    calls = each(
        f"<tool_call{suffix}>",
        NAME + keys,
        f"</tool_call{suffix}>",
        first=f"<tool_calls{suffix}>",
        last=f"</tool_calls{suffix}>",
    )
    return f"<｜hy_Assistant{suffix}｜>", f"<｜hy_eos{suffix}｜>", calls, (f"<think{suffix}>", f"</think{suffix}>")


STYLES = {
    "qwen3": Style("qwen3", CHATML, "<|im_end|>\n", _CHATML_JSON),
    "qwen3 thinking": Style(
        "qwen3_thinking", CHATML, "<|im_end|>\n", _CHATML_JSON, opened="<think>\n", start="thinking"
    ),
    "qwen3 coder": Style("qwen3_coder", CHATML, "<|im_end|>\n", _XML, think=None),
    "qwen3.5": Style("qwen3.5", CHATML, "<|im_end|>\n", _XML, opened="<think>\n", start="thinking"),
    "deepseek v3": Style("deepseek_v3", DEEPSEEK, EOS, _FENCED, think=None),
    "deepseek r1": Style("deepseek_r1", DEEPSEEK, EOS, _FENCED, opened="<think>", start="thinking"),
    "deepseek v3.2": Style("deepseek_v32", DEEPSEEK, EOS, _DSML_OF_V32),
    "deepseek v4": Style("deepseek_v4", DEEPSEEK, EOS, _DSML),
    "deepseek v4.1": Style(
        "deepseek_v41", DEEPSEEK, EOS, _dsml("｜DSML｜ ", "calls"), opened="<think>", start="thinking"
    ),
    "gigachat 3.5": Style(
        "gigachat35",
        "assistant<|role_sep|>\n",
        "<|message_sep|>",
        _dsml("｜GCML｜", "tool_calls"),
        opened="<think>",
        start="thinking",
    ),
    "iquest q1": Style(
        "iquest_q1",
        "<|iquest_assistant|>",
        "",
        each("<iquest_tool_call>", NAME + _KEYED, "</iquest_tool_call>"),
        opened="<think>",
        start="thinking",
    ),
    "k2 horizon": Style(
        "k2_horizon",
        "<|assistant|>",
        "",
        each(
            "<ifm|tool_call>",
            NAME + pairs("<ifm|arg_key>", "</ifm|arg_key><ifm|arg_value>", "</ifm|arg_value>"),
            "</ifm|tool_call>",
            first="<ifm|tool_calls>",
            last="</ifm|tool_calls>",
        ),
        think=("<ifm|think>", "</ifm|think>"),
        opened="<ifm|think>",
        start="thinking",
    ),
    "plamo 3": Style(
        "plamo3",
        "<|plamo:begin_assistant:plamo|>",
        "<|plamo:tag|>",
        each(
            "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>",
            NAME
            + write(
                "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>"
            )
            + ARGUMENTS,
            "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>",
            first="<|plamo:begin_tool_requests:plamo|>",
            last="<|plamo:end_tool_requests:plamo|>",
        ),
        think=("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
        opened="<|plamo:begin_think:plamo|>",
        start="thinking",
    ),
    "functionary 3.1": Style(
        "llama3_json",  # the same grammar, and better known
        LLAMA,
        "<|eot_id|>",
        each("<function=", NAME + write(">") + ARGUMENTS, "</function>"),
        think=None,
    ),
    "firefunction 2": Style(
        "firefunction_v2",
        LLAMA,
        "<|eot_id|>",
        each("", JSON, "", first=" functools[", last="]", between=", "),
        think=None,
    ),
    "command r+": Style(
        "command_r_plus",
        "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
        "<|END_OF_TURN_TOKEN|>",
        each(
            '{"tool_name": "',
            NAME + write('", "parameters": ') + ARGUMENTS,
            "}",
            first="\nAction:\n```json\n[",
            last="]\n```",
            between=", ",
        ),
        think=None,
    ),
    "hy 4": Style("hy_v4", *_hy(":6124c78e"), opened="<think:6124c78e>", start="thinking"),
    "hy 4 with another suffix": Style("hy_v4", *_hy(":0a1b2c3d"), opened="<think:0a1b2c3d>", start="thinking"),
    "spark x2.5": Style("spark25", "<|Bot|>", "", each("<tool_call>", NAME + _KEYED, "</tool_call>")),
    "glm 4.5": Style(
        "glm45",
        "<|assistant|>\n",
        "<|user|>",
        each("\n<tool_call>", NAME + write("\n") + _KEYED, "</tool_call>"),
    ),
    "kimi k2": Style(
        "kimi_k2",
        "<|im_assistant|>assistant<|im_middle|>",
        "<|im_end|>",
        each(
            "<|tool_call_begin|>",
            "{{- call.id }}" + write("<|tool_call_argument_begin|>") + ARGUMENTS,
            "<|tool_call_end|>",
            first="<|tool_calls_section_begin|>",
            last="<|tool_calls_section_end|>",
        ),
    ),
    "minimax m2": Style(
        "minimax_m2",
        "]~b]ai\n",
        "[e~[\n",
        each(
            '<invoke name="',
            NAME + write('">\n') + pairs('<parameter name="', '">', "</parameter>\n"),
            "</invoke>\n",
            first="\n<minimax:tool_call>\n",
            last="</minimax:tool_call>",
        ),
        opened="<think>\n",
        start="thinking",
    ),
    "seed": Style(
        "seed_oss",
        "<seed:bos>assistant\n",
        "<seed:eos>",
        each(
            "\n<seed:tool_call>\n<function=",
            NAME + write(">\n") + pairs("<parameter=", ">", "</parameter>\n"),
            "</function>\n</seed:tool_call>",
        ),
        think=("<seed:think>", "</seed:think>"),
    ),
    "cohere": Style(
        "cohere_command3",
        "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
        "<|END_OF_TURN_TOKEN|>",
        each(
            '{"tool_call_id": "0", "tool_name": "',
            NAME + write('", "parameters": ') + ARGUMENTS,
            "}",
            first="<|START_ACTION|>[",
            last="]<|END_ACTION|>",
            between=", ",
        ),
        think=("<|START_THINKING|>", "<|END_THINKING|>"),
    ),
    "granite 4": Style(
        "granite4",
        "<|start_of_role|>assistant<|end_of_role|>",
        "<|end_of_text|>\n",
        _CHATML_JSON,
        think=None,
    ),
    "llama 3": Style("llama3_json", LLAMA, "<|eot_id|>", each("<|python_tag|>", PARAMETERS, ""), think=None),
    "llama nemotron": Style(
        "nemotron_deci",
        LLAMA,
        "<|eot_id|>",
        each("", JSON, "", first="<TOOLCALL>[", last="]</TOOLCALL>", between=", "),
    ),
    "hunyuan": Style(
        "hunyuan_a13b",
        "<|extra_0|>",
        "<|eos|>",
        each("", JSON, "", first="<tool_calls>[", last="]</tool_calls>", between=", "),
    ),
    "internlm": Style(
        "interns1",
        CHATML,
        "<|im_end|>\n",
        each("<|action_start|> <|plugin|>\n", PARAMETERS, "<|action_end|>\n"),
    ),
    "olmo 3": Style(
        "olmo3",
        CHATML,
        "<|im_end|>\n",
        each("", python(""), "", first="<function_calls>\n", last="\n</function_calls>", between="\n"),
        think=None,
    ),
    "lfm2 with calls": Style(
        "lfm2",
        CHATML,
        "<|im_end|>\n",
        each("", python(""), "", first="<|tool_call_start|>[", last="]<|tool_call_end|>", between=", "),
        told="List of tools: <|tool_list_start|>[]<|tool_list_end|>",
    ),
    "lfm2": Style(
        "lfm2",
        CHATML,
        "<|im_end|>\n",
        think=None,
        told="List of tools: <|tool_list_start|>[]<|tool_list_end|>",
    ),
    "lfm2.5": Style("auto", CHATML, "<|im_end|>\n", told="List of tools: []"),
    "minicpm 5": Style(
        "minicpm5",
        CHATML,
        "<|im_end|>\n",
        each('<function name="', NAME + write('">') + pairs('<param name="', '">', "</param>"), "</function>"),
    ),
    "longcat": Style(
        "longcat",
        "[Round 0] ASSISTANT:",
        "</longcat_s>",
        each("<longcat_tool_call>", JSON, "</longcat_tool_call>"),
        think=("<longcat_think>", "</longcat_think>"),
    ),
    "step 3": Style(
        "step3",
        "<|BOT|>assistant\n",
        "<|EOT|>",
        each(
            '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="',
            NAME + write('">') + pairs('<steptml:parameter name="', '">', "</steptml:parameter>"),
            "</steptml:invoke><｜tool_call_end｜>",
            first="<｜tool_calls_begin｜>",
            last="<｜tool_calls_end｜>",
        ),
        opened="<think>\n",
        start="thinking",
    ),
    "laguna": Style(
        "poolside_v1",
        "<assistant>\n",
        "</assistant>\n",
        each("<tool_call>", NAME + write("\n") + _KEYED, "</tool_call>\n"),
    ),
    "apertus": Style(
        "apertus",
        "<|assistant_start|>",
        "<|assistant_end|>",
        each(
            '{"',
            NAME + write('": ') + ARGUMENTS,
            "}",
            first="<|tools_prefix|>[",
            last="]<|tools_suffix|>",
            between=", ",
        ),
        think=("<|inner_prefix|>", "<|inner_suffix|>"),
    ),
    "apriel 1.5": Style(
        "apriel",
        "<|assistant|>\n",
        "<|end|>\n",
        each("", JSON, "", first="\n<tool_calls>[", last="]</tool_calls>", between=", "),
        think=("<thinking>", "</thinking>"),
    ),
    "phi 4 mini": Style(
        "phi4_mini_json",
        "<|assistant|>",
        "<|end|>",
        each("", JSON, "", first="functools[", last="]", between=", "),
        think=None,
    ),
    "phi 3": Style("auto", "<|assistant|>\n", "<|end|>\n", think=None),
    "gemma 3": Style("auto", "<start_of_turn>model\n", "<end_of_turn>\n", think=None),
    "an unknown syntax": Style(
        "auto", LLAMA, "<|eot_id|>", each("<call ", NAME + write(" ") + ARGUMENTS, ">"), think=None
    ),
}
