"""Chat templates of our own making, each in the style of a family, with all that makes that family hard."""

# ruff: noqa: E501 - a line of a template is not to be broken

from __future__ import annotations

CHATML = """\
{%- set ns = namespace(last=-1) %}
{%- for message in messages[::-1] %}
    {%- if ns.last < 0 and message.role == 'user' %}{% set ns.last = messages|length - 1 - loop.index0 %}{% endif %}
{%- endfor %}
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- '# Tools\\n' }}
    {%- for tool in tools %}{{- tool | tojson ~ '\\n' }}{%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>' + message.role + '\\n' }}
        {%- if message.reasoning_content and loop.index0 > ns.last %}
            {{- '<think>\\n' + message.reasoning_content.strip('\\n') + '\\n</think>\\n\\n' }}
        {%- endif %}
        {{- message.content }}
        {%- for call in message.tool_calls or [] %}
            {%- if not loop.first or message.content %}{{- '\\n' }}{%- endif %}
            {{- '<tool_call>\\n{"name": "' ~ call.function.name ~ '", "arguments": ' }}
            {{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {%- if loop.first or loop.previtem.role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or loop.nextitem.role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}
"""
"""In the style of Qwen3: thoughts before the last question are dropped, results share a turn of the user."""

GLM = """\
[gMASK]<sop>
{%- if tools %}<|system|>
# Tools
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}{% endif -%}
{%- for m in messages %}
{%- if m.role == 'user' %}<|user|>
{{ m.content }}
{%- elif m.role == 'assistant' %}<|assistant|>
{%- if m.reasoning_content %}{{ '\\n<think>' + m.reasoning_content.strip() + '</think>' }}{% else %}{{ '\\n<think></think>' }}{% endif %}
{%- if m.content.strip() %}{{ '\\n' + m.content.strip() }}{% endif %}
{%- for tc in m.tool_calls or [] %}
{{ '\\n<tool_call>' + tc.function.name }}
{% for k, v in tc.function.arguments.items() %}<arg_key>{{ k }}</arg_key>
<arg_value>{{ v | tojson if v is not string else v }}</arg_value>
{% endfor %}</tool_call>{% endfor %}
{%- elif m.role == 'tool' %}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}<|observation|>{% endif %}
<tool_response>
{{ m.content }}
</tool_response>
{%- elif m.role == 'system' %}<|system|>
{{ m.content }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|assistant|>{{ '\\n<think></think>' if enable_thinking is defined and not enable_thinking else '' }}{% endif %}"""
"""In the style of GLM: no end of a turn; the next role's marker is where sampling stops. Thoughts stay."""

HARMONY = """\
{%- macro define(tool) -%}
type {{ tool.name }} = (_: {
{%- for name, value in tool.parameters.properties.items() %} {{ name }}: {{ value.type }},{% endfor %} }) => any;
{%- endmacro -%}
<|start|>system<|message|>You are a model.
Today: {{ strftime_now('%Y') }}<|end|>
{%- if tools or messages[0].role in ['system', 'developer'] %}<|start|>developer<|message|>
{%- if messages[0].role in ['system', 'developer'] %}{{ messages[0].content }}{% endif %}
{%- if tools %}{% for tool in tools %}
{{ define(tool.function) }}{% endfor %}{% endif %}<|end|>{% endif %}
{%- set state = namespace(call=none) %}
{%- for message in messages %}
{%- if message.role == 'assistant' %}
{%- if message.tool_calls %}
{%- if message.thinking %}<|start|>assistant<|channel|>analysis<|message|>{{ message.thinking }}<|end|>{% endif %}
{%- set call = message.tool_calls[0].function %}
{%- set state.call = call.name %}
{{- '<|start|>assistant to=functions.' + call.name + '<|channel|>commentary json<|message|>' + call.arguments|tojson + '<|call|>' }}
{%- else %}
{%- if message.thinking and loop.last %}<|start|>assistant<|channel|>analysis<|message|>{{ message.thinking }}<|end|>{% endif %}
{{- '<|start|>assistant<|channel|>final<|message|>' + message.content }}{{ '<|return|>' if loop.last else '<|end|>' }}
{%- endif %}
{%- elif message.role == 'tool' %}
{%- if not state.call %}{{ raise_exception('a result without a call') }}{% endif %}
{{- '<|start|>functions.' ~ state.call ~ ' to=assistant<|channel|>commentary<|message|>' ~ message.content|tojson ~ '<|end|>' }}
{%- elif message.role == 'user' %}<|start|>user<|message|>{{ message.content }}<|end|>
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|start|>assistant{% endif %}"""
"""In the style of gpt-oss: channels, another end for the last answer, a call's name again in the result's header."""

DEEPSEEK = """\
{%- if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}
{%- set ns = namespace(after_tool=false, system='') %}
{%- for message in messages %}{% if message['role'] == 'system' %}{% set ns.system = ns.system + message['content'] %}{% endif %}{% endfor %}
{{- bos_token }}{{ ns.system }}
{%- for i in range(messages|length) %}
{%- set message = messages[i] %}
{%- if message['role'] == 'user' %}{% set ns.after_tool = false %}{{ '<｜User｜>' + message['content'] }}
{%- elif message['role'] == 'assistant' %}
{%- if not ns.after_tool %}{{ '<｜Assistant｜>' }}{% endif %}{% set ns.after_tool = false %}
{%- set content = message['content'] or '' %}
{%- if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}
{{- content }}
{%- for call in message['tool_calls'] or [] %}
{%- if loop.first %}{{ '<｜tool▁calls▁begin｜>' }}{% endif %}
{{- '<｜tool▁call▁begin｜>' + call['function']['name'] + '<｜tool▁sep｜>' }}
{{- call['function']['arguments'] if call['function']['arguments'] is string else call['function']['arguments'] | tojson }}
{{- '<｜tool▁call▁end｜>' }}
{%- if loop.last %}{{ '<｜tool▁calls▁end｜>' }}{% endif %}
{%- endfor %}
{{- '<｜end▁of▁sentence｜>' }}
{%- elif message['role'] == 'tool' %}{% set ns.after_tool = true %}{{ '<｜tool▁output▁begin｜>' + message['content'] + '<｜tool▁output▁end｜>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt and not ns.after_tool %}{{ '<｜Assistant｜><think>\\n' }}{% endif %}"""
"""In the style of DeepSeek R1: a loop over numbers, thoughts inside the content cut off, the prompt opens a thought."""

TEMPLATES = {"chatml": CHATML, "glm": GLM, "harmony": HARMONY, "deepseek": DEEPSEEK}
MARKERS = (
    "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>",
    "</tool_response>", "<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>",
    "<|observation|>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<|start|>", "<|message|>",
    "<|channel|>", "<|end|>", "<|call|>", "<|return|>", "<|constrain|>", "<｜User｜>", "<｜Assistant｜>",
    "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>", "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>",
)  # fmt: skip
"""What these templates write as tokens."""
FORMATS = {"chatml": "qwen3", "glm": "glm45", "harmony": "harmony", "deepseek": "deepseek_r1"}
