"""Small chat templates of our own, one for each way in which real ones show, or hide, that a model thinks."""

from __future__ import annotations

from typing import NamedTuple

CHATML_CALLS = """\
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>\\n' }}{{- {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}
{{- '\\n</tool_call>' }}
{%- endfor %}"""

ECHO = (
    """\
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.role == 'assistant' and message.reasoning_content %}
{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}
{%- endif %}
{{- message.content or '' }}
"""
    + CHATML_CALLS
    + """
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}
"""
)
"""Writes thoughts; switched off by an empty pair."""

STRIPPING = """\
{%- for message in messages %}
{%- if message.role == 'user' %}{{- '<｜User｜>' + message.content }}{%- endif %}
{%- if message.role == 'assistant' %}
{%- set content = message.content or '' %}
{%- if '</think>' in content %}{%- set content = content.split('</think>')[-1] %}{%- endif %}
{{- '<｜Assistant｜>' + content }}
{%- for call in message.tool_calls or [] %}
{{- ('<｜tool▁calls▁begin｜>' if loop.first else '\\n') + '<｜tool▁call▁begin｜>function<｜tool▁sep｜>' }}
{{- call.function.name + '\\n```json\\n' + call.function.arguments | tojson + '\\n```<｜tool▁call▁end｜>' }}
{{- '<｜tool▁calls▁end｜>' if loop.last else '' }}
{%- endfor %}
{{- '<｜end▁of▁sentence｜>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<｜Assistant｜><think>\\n' }}{%- endif %}
"""
"""Takes thoughts out of the history; the prompt always opens thinking."""

CLOSED = """\
{%- set thinking = thinking | default(false) %}
{%- for message in messages %}
{%- if message.role == 'user' %}{{- '<|user|>' + message.content }}{%- endif %}
{%- if message.role == 'assistant' %}
{{- '<|assistant|>' }}
{%- if message.reasoning_content %}{{- '<think>' + message.reasoning_content + '</think>' }}{%- endif %}
{{- message.content or '' }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>' + call.function.name }}
{%- for key, value in call.function.arguments.items() %}
{{- '<arg_key>' + key + '</arg_key><arg_value>' + value + '</arg_value>' }}
{%- endfor %}{{- '</tool_call>' }}
{%- endfor %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|assistant|>' + ('<think>' if thinking else '</think>') }}{%- endif %}
"""
"""Off unless asked for: the prompt ends with a bare closer. GLM's calls."""

CHANNELS = """\
{%- for message in messages %}
{%- if message.role == 'user' %}{{- '<|start|>user<|message|>' + message.content + '<|end|>' }}{%- endif %}
{%- if message.role == 'assistant' %}
{%- if message.thinking %}
{{- '<|start|>assistant<|channel|>analysis<|message|>' + message.thinking + '<|end|>' }}
{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '<|start|>assistant to=functions.' + call.function.name + '<|channel|>commentary json<|message|>' }}
{{- call.function.arguments | tojson }}{{- '<|call|>' }}
{%- endfor %}
{%- if message.content %}
{{- '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|return|>' }}
{%- endif %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{%- endif %}
"""
"""Messages with headers; thoughts in the field `thinking`."""

RECIPIENTS = """\
{%- for message in messages %}
{%- if message.role == 'user' %}{{- '<|start|>user<|message|>' + message.content + '<|eot|>' }}{%- endif %}
{%- if message.role == 'assistant' %}
{%- if message.reasoning_content %}
{{- '<|start|>assistant to=self<|message|>' + message.reasoning_content + '<|eom|>' }}
{%- endif %}
{%- if message.content %}{{- '<|start|>assistant to=user<|message|>' + message.content + '<|eom|>' }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '<|start|>assistant to=' + call.function.name + '<|message|><atem:function_calls>' }}
{{- '<atem:invoke name="' + call.function.name + '">' }}
{%- for key, value in call.function.arguments.items() %}
{{- '<atem:parameter name="' + key + '">' + value + '</atem:parameter>' }}
{%- endfor %}
{{- '</atem:invoke></atem:function_calls><|eom|>' }}
{%- endfor %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{%- endif %}
"""
"""Messages with headers; whom a message is for says what it is."""

TYPED = """\
{%- for message in messages %}
{%- if message.role == 'user' %}{{- '[INST]' + message.content + '[/INST]' }}{%- endif %}
{%- if message.role == 'assistant' %}
{%- if message.content is string %}{{- message.content }}
{%- else %}
{%- for block in message.content or [] %}
{%- if block.type == 'thinking' %}{{- '[THINK]' + block.thinking + '[/THINK]' }}
{%- elif block.type == 'text' %}{{- block.text }}
{%- else %}{{- raise_exception('no blocks of type ' + block.type) }}
{%- endif %}
{%- endfor %}
{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '[TOOL_CALLS]' + call.function.name + '[ARGS]' + call.function.arguments | tojson }}
{%- endfor %}
{{- eos_token }}
{%- endif %}
{%- endfor %}
"""
"""Thoughts as typed parts of the content; the generation prompt is not asked for."""

TOOL_TURNS = """\
{%- for message in messages %}
{%- if message.role == 'user' %}{{- '<|turn>user\\n' + message.content + '<turn|>\\n' }}{%- endif %}
{%- if message.role == 'assistant' %}
{{- '<|turn>model\\n' }}
{%- if message.tool_calls and message.reasoning_content %}
{{- '<|channel>thought\\n' + message.reasoning_content + '<channel|>' }}
{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '<|tool_call>call:' + call.function.name + '{' }}
{%- for key, value in call.function.arguments.items() %}
{{- key + ':<|"|>' + value + '<|"|>' + ('' if loop.last else ',') }}
{%- endfor %}
{{- '}<tool_call|>' }}
{%- endfor %}
{{- (message.content or '') + '<turn|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|turn>model\\n' }}{%- if not enable_thinking %}{{- '<|channel>thought\\n<channel|>' }}{%- endif %}
{%- endif %}
"""
"""Writes thoughts only where a call follows; thinking is off by default."""

EFFORT = """\
{%- if not reasoning_effort is defined %}{%- set reasoning_effort = 'no_think' %}{%- endif %}
{%- for message in messages %}
{%- if message.role == 'user' %}{{- '<｜hy_User:opensource｜>' + message.content }}{%- endif %}
{%- if message.role == 'assistant' %}
{{- '<｜hy_Assistant:opensource｜><think:opensource>' + (message.reasoning_content or '') + '</think:opensource>' }}
{{- (message.content or '') + '<｜hy_eos:opensource｜>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<｜hy_Assistant:opensource｜><think:opensource>' }}
{%- if reasoning_effort not in ['low', 'high'] %}{{- '</think:opensource>' }}{%- endif %}
{%- endif %}
"""
"""Switched by a word, not by yes and no."""

MODE = """\
{%- for message in messages %}
{%- if message.role == 'user' %}{{- ']~b]user\\n' + message.content + '[e~[\\n' }}{%- endif %}
{%- if message.role == 'assistant' %}
{{- ']~b]ai\\n' }}
{%- if message.reasoning_content %}{{- '<mm:think>' + message.reasoning_content + '</mm:think>' }}{%- endif %}
{{- (message.content or '') + '[e~[\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- ']~b]ai\\n' }}
{%- if thinking_mode is defined and thinking_mode == 'enabled' %}{{- '<mm:think>' }}{%- endif %}
{%- if thinking_mode is defined and thinking_mode == 'disabled' %}{{- '</mm:think>' }}{%- endif %}
{%- endif %}
"""
"""Switched by `thinking_mode`."""

TOLD = """\
{{- '<|start_of_role|>system<|end_of_role|>' }}
{%- if thinking %}{{- 'Put thoughts in <think></think> and the answer in <response></response>.' }}{%- endif %}
{{- '<|end_of_text|>\\n' }}
{%- for message in messages %}
{{- '<|start_of_role|>' + message.role + '<|end_of_role|>' + (message.content or '') + '<|end_of_text|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_of_role|>assistant<|end_of_role|>' }}{%- endif %}
"""
"""Only asks for thoughts in its system prompt, and only when switched on."""

NAMED = """\
{%- if messages[0].role != 'system' %}
{{- '<|im_start|>system\\nYou are MiMo, an assistant.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""
"""Says nothing but who the model is."""

MENTIONED = """\
{%- for message in messages %}
{%- set content = message.content or '' %}
{%- if '</think>' in content %}{%- set content = content.split('</think>')[-1] %}{%- endif %}
{{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""
"""Takes thoughts out, but writes none: it may think."""

NO_THOUGHTS = (
    """\
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') }}
"""
    + CHATML_CALLS
    + """
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""
)
"""Shows no sign of thinking."""

DUMPED = """\
{%- for message in messages %}{{- '<start_of_turn>' + message.role + '\\n' }}{{- message.content }}
{{- '<end_of_turn>\\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<start_of_turn>model\\n' }}{%- endif %}
"""
"""Writes lists as Python does, so that a thought in one is not written as a thought."""

GENERATION = """\
{%- for message in messages %}
{%- if message.role == 'assistant' %}
{%- generation %}{{- '<|im_start|>assistant\\n<think>' + (message.reasoning or '') + '</think>' }}
{{- (message.content or '') + '<|im_end|>\\n' }}{%- endgeneration %}
{%- continue %}
{%- endif %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{{- strftime_now('%Y')[:0] }}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n<think>' }}{%- endif %}
"""
"""Uses the tag `generation`, `continue` and the clock."""

UNKNOWN_PAIR = """\
{%- for message in messages %}
{{- '[' + message.role + ']' }}
{%- if message.role == 'assistant' and message.reasoning_content %}
{{- '<ponder>' + message.reasoning_content + '</ponder>\\n' }}
{%- endif %}
{{- (message.content or '') + '<over>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '[assistant]' }}{%- if deep_thinking %}{{- '<ponder>' }}{%- endif %}{%- endif %}
"""
"""Markers that nobody has."""

UNKNOWN_IN_PROMPT = """\
{%- for message in messages %}
{%- set content = message.content or '' %}
{%- if '</ponder>' in content %}{%- set content = content.split('</ponder>')[-1] %}{%- endif %}
{{- '[' + message.role + ']' + content + '<over>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '[assistant]<ponder>\\n' }}{%- endif %}
"""
"""Markers that nobody has, and that show in the prompt alone."""

UNKNOWN_CLOSER = """\
{%- for message in messages %}
{{- '<<' + message.role + '>>\\n' }}
{%- if message.reasoning %}{{- message.reasoning + '\\n== ANSWER ==\\n' }}{%- endif %}
{{- (message.content or '') + '<over>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<<assistant>>\\n' }}{%- endif %}
"""
"""Nothing opens thinking; a line of words closes it."""


class Expected(NamedTuple):
    """What detection must say of a template."""

    template: str
    format: str | None
    thinks: bool | None
    start: str | None
    switch: str | None = None
    start_on: str | None = None
    start_off: str | None = None
    field: str | None = None


KNOWN = {
    "echo": Expected(ECHO, "qwen3", True, "text", "enable_thinking", "text", "text", "reasoning_content"),
    "stripping": Expected(STRIPPING, "deepseek_r1", True, "thinking"),
    "closed": Expected(CLOSED, "glm45", True, "text", "thinking", "thinking", "text", "reasoning_content"),
    "channels": Expected(CHANNELS, "harmony", True, None, field="thinking"),
    "recipients": Expected(RECIPIENTS, "muse", True, None, field="reasoning_content"),
    "typed": Expected(TYPED, "mistral", True, "text", field="content of type thinking"),
    "tool turns": Expected(TOOL_TURNS, "gemma4", True, "text", "enable_thinking", "text", "text", "reasoning_content"),
    "effort": Expected(EFFORT, "hy_v3", True, "text", "reasoning_effort", "thinking", "text", "reasoning_content"),
    "mode": Expected(MODE, "minimax_m3", True, "text", "thinking_mode", "thinking", "text", "reasoning_content"),
    "told": Expected(TOLD, "granite_3.3", True, "text", "thinking", "text", "text"),
    "named": Expected(NAMED, "auto", True, "text"),
    "generation": Expected(GENERATION, None, True, "thinking", field="reasoning"),
    "mentioned": Expected(MENTIONED, "auto", None, "text"),
    "no thoughts": Expected(NO_THOUGHTS, "qwen3", False, "text"),
    "dumped": Expected(DUMPED, None, False, "text"),
}
"""Templates of known families, by kind. No format where it is not the point."""
