"""Qwen and its like: `<think>` tags, ChatML turns, calls as JSON or XML in `<tool_call>` tags.

Its formats differ in two things: where output starts (from Qwen3 2507 on the generation prompt opens thinking) and how
calls are written (JSON; from Qwen3-Coder on XML). Both are read after the same opener, because the body tells.
"""

from __future__ import annotations

from msgspec.structs import replace

from .._engine.format import THINKING, Format
from ._family import NO_SWITCH, EarlierThinking, Family, MarkerIds, Model, RendererEntry, Switch
from ._shared import ASSISTANT, HERMES, QWEN_XML, STOPS, TURNS, with_siblings

QWEN3 = Format.tags(
    "<think>",
    "</think>",
    name="qwen3",
    aliases=(
        "qwen",
        "qwen25",
        "qwen2d5",
        "qwen3_json",
        "qwen3_disable_thinking",
        "qwen3_instruct",
        "qwen3_vl",
        "qwen3_vl_instruct",
    ),
    source="chat template of Qwen3-0.6B, whose generation prompt opens no thinking (vLLM starts in thinking, "
    "SGLang and Dynamo in text); added tokens 151657, 151658, 151667, 151668",
    stops=STOPS,
    other_turns=TURNS,
    calls=with_siblings(HERMES),
    assistant=ASSISTANT,
)
QWEN3_THINKING = QWEN3.but(
    name="qwen3_thinking",
    aliases=("qwen3_vl_thinking", "qwq", "qwen_qwq", "holo2"),
    source="Qwen3 2507 Thinking, Qwen3-VL Thinking, QwQ and Holo2: the generation prompt ends with the opener",
    start=THINKING,
)
QWEN3_CODER = QWEN3.but(
    name="qwen3_coder",
    aliases=("qwen3_xml", "nanbeige", "qwen3_5_disable_thinking"),
    source="chat template of Qwen3-Coder: no opener in the generation prompt; calls as XML",
    calls=with_siblings(QWEN_XML),
)
MIMO_XML = replace(QWEN_XML, framed=False)
"""The same with values that are taken to the character."""
MIMO = QWEN3_CODER.but(
    name="mimo",
    source="MiMo-V2 as vLLM reads it: Qwen3-Coder's tags, but no newline around a value is framing",
    calls=with_siblings(MIMO_XML),
)
QWEN3_5 = QWEN3_CODER.but(
    name="qwen3.5",
    aliases=("ornith", "qwen3.6", "qwen3.8", "intern_s2", "interns2_preview", "prime_qwen3"),
    source="chat template of Qwen3.5-4B: the generation prompt ends with the opener unless thinking is off",
    start=THINKING,
)
_KEEPS = {"preserve_thinking": True}
TEMPLATE = r"""{%- set empty = '<think>\n\n</think>\n\n' %}
{%- for message in messages %}
    {%- set is_result, is_answer = message.role == 'tool', message.role == 'assistant' %}
    {%- set begins = not is_result or loop.first or loop.previtem.role != 'tool' %}
    {%- set ends = not is_result or loop.last or loop.nextitem.role != 'tool' %}
    {{- '' if loop.first else '\n' }}
    {%- if begins %}{{ '<|im_start|>' + ('user' if is_result else message.role) + '\n' }}{% endif %}
    {%- set in_turn = closed or 0 < turn_start <= loop.index0 %}
    {%- set has_block = is_answer and (history == 'keep' or message.is_target and in_turn) %}
    {%- if closed and message.is_target and message.thinks %}
        {{- raise_exception('the prompt has closed thinking, so an answer that thinks is no target') }}
    {%- endif %}
    {%- if closed and has_block %}{{ empty }}{% endif %}
    {%- generation %}
        {%- if is_result %}
            {{- '<tool_response>\n' + message.text + '\n</tool_response>' }}
        {%- elif is_answer %}
            {%- if has_block and not closed and not message.thinks %}{{ empty }}{% endif %}
            {%- for part in message.parts %}
                {%- if not part.thinks %}{{ part.text }}
                {%- elif not closed %}{{ '<think>\n' + part.text + '\n</think>\n\n' }}
                {%- endif %}
            {%- endfor %}
            {%- for call in message.calls %}
                {{- '' if loop.first and not message.text else '\n' }}
                {{- '<tool_call>\n{"name": ' ~ (call.name | tojson) ~ ', "arguments": ' }}
                {{- call.arguments + '}\n</tool_call>' }}
            {%- endfor %}
        {%- else %}
            {{- message.text }}
            {%- if message.tools %}
                {{- '\n\n' if message.text else '' }}
                {{- '# Tools\n\nYou may call one or more functions to assist with the user query.\n\n' }}
                {{- 'You are provided with function signatures within <tools></tools> XML tags:\n<tools>' }}
                {%- for tool in message.tools %}
                    {{- '\n' ~ ({'type': 'function', 'function': tool} | tojson) }}
                {%- endfor %}
                {{- '\n</tools>\n\nFor each function call, return a json object with function name and arguments ' }}
                {{- 'within <tool_call></tool_call> XML tags:\n<tool_call>\n' }}
                {{- '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>' }}
            {%- endif %}
        {%- endif %}
        {{- '<|im_end|>' if ends else '' }}
    {%- endgeneration %}
{%- endfor %}
{%- if opens %}
    {{- ('\n' if messages else '') + '<|im_start|>' + opens + '\n' }}
    {{- empty if closed and opens == 'assistant' else '' }}
{%- endif %}
"""
"""How the renderers of Qwen3 write; `closed`: the prompt ends with an empty block."""

FAMILY = Family(
    name="Qwen",
    formats=(QWEN3, QWEN3_5, QWEN3_THINKING, QWEN3_CODER, MIMO),
    models=(
        Model(r"\bqwq", "qwen3_thinking", True, who="QwQ", switch=NO_SWITCH),
        Model(r"\bholo-?{}", "qwen3_thinking", True, "2", line="Holo"),
        Model(r"ornith", "qwen3.5", True, line="Ornith"),
        Model(r"\bmimo-v{}", "mimo", True, "2", line="MiMo"),
        Model(r"\bmimo-(?:vl|7b)", "qwen3", True, who="MiMo before the second", line="MiMo"),
        Model(r"\bmimo$", "mimo", True, line="MiMo"),
        Model(r"tongyi-deepresearch", "qwen3", True, who="Tongyi DeepResearch", line="Tongyi"),
        Model(r"nanbeige-?{}", "qwen3_coder", True, "4.2", line="Nanbeige"),
        Model(r"qwen-?{}", "qwen3.5", True, "3.5"),
        Model(r"qwen-?{}", "qwen3.5", True, "3.6", earlier=EarlierThinking(keywords=_KEEPS)),
        Model(r"qwen-?{}", "qwen3.5", True, "3.8", earlier=EarlierThinking(keywords=_KEEPS, default=True)),
        Model(r"qwen-?{}.*(?:embedding|reranker|guard)", "qwen3", False, "3", "a Qwen 3 that writes no answers"),
        Model(r"qwen-?{}-?coder", "qwen3_coder", False, "3", "Qwen 3 Coder"),
        Model(r"qwen-?{}.*(?<!disable-)thinking", "qwen3_thinking", True, "3", "Qwen 3 Thinking", switch=NO_SWITCH),
        Model(r"qwen-?{}.*instruct", "qwen3", False, "3", "Qwen 3 Instruct"),
        Model(r"qwen-?{}-?(?:vl|omni|next)", "qwen3", None, "3", "Qwen 3, of which there are variants that think"),
        Model(r"qwen-?{}", "qwen3", True, "3"),
        Model(r"qwen-?{}", "qwen25", False, "1 1.5 2 2.5"),
        Model(r"qwen-?\d+b|codeqwen", "qwen25", False, who="a Qwen before the third"),
    ),
    base=True,
    switch=Switch(),
    plain_calls=(MIMO_XML,),
    rank=1,
    renderers={
        "qwen3": RendererEntry("Qwen3", TEMPLATE),
        "qwen3_disable_thinking": RendererEntry("Qwen3DisableThinking", TEMPLATE),
    },
    marker_ids={
        "Qwen3": MarkerIds(
            ("qwen3", "qwen3_thinking", "qwen3_coder"),
            {
                "<|endoftext|>": 151643,
                "<|im_start|>": 151644,
                "<|im_end|>": 151645,
                "<tool_call>": 151657,
                "</tool_call>": 151658,
                "<think>": 151667,
                "</think>": 151668,
            },
        ),
    },
)
