"""Harmony (gpt-oss): messages with headers; the channel says what is thought and what is said.

Thoughts, preambles, answers and calls are messages of their own. The template for the renderers writes tools as the
TypeScript that the models were trained to read.
"""

from __future__ import annotations

from .._engine.calls.named_calls import BodyCalls
from .._engine.format import END, HEADER, OUTSIDE, TEXT, THINKING, BareHeader, Format, Header
from ._family import Family, MarkerIds, Model, RendererEntry, Switch

HARMONY_BODY = BodyCalls(prefix="functions.", close=("<|call|>", "<|end|>", "<|return|>", "<|start|>", "<|channel|>"))
"""The body of a message to a tool."""

_ENDS = {
    "<|end|>": OUTSIDE,
    "<|return|>": END,
    "<|call|>": END,
    "<|endoftext|>": END,
    "<|start|>": HEADER,
    "<|channel|>": HEADER,
}

HARMONY_HEADER = Header(
    channels={"analysis": THINKING, "commentary": TEXT, "final": TEXT},
    recipients={"user": TEXT},
    channel_marker="<|channel|>",
    type_marker="<|constrain|>",
    body="<|message|>",
    calls=(HARMONY_BODY,),
    bare=BareHeader(
        notice="bare_harmony",
        types=("json", "code", "text", "xml"),
        words=("finally", "finale", "finalis", "finalit", "finaliz", "finals"),
    ),
)

HARMONY = Format(
    name="harmony",
    aliases=("gpt_oss", "openai_gptoss", "openai", "openai_harmony", "gpt_oss_no_sysprompt"),
    source="chat template of gpt-oss-120b; o200k_harmony tokens 200002 to 200012: return, constrain, channel, start, "
    "end, message, call. The generation prompt ends inside the header",
    start=HEADER,
    states={TEXT: _ENDS, THINKING: _ENDS, HEADER: {"<|constrain|>": HEADER}},
    header=HARMONY_HEADER,
    goes_on=frozenset({"<|call|>"}),
    other_turns=("<|start|>",),
    assistant=("<|start|>assistant",),
)
TEMPLATE = r"""{%- macro type_of(schema) %}
    {%- if schema.enum %}
        {%- for choice in schema.enum %}{{ '' if loop.first else ' | ' }}{{ choice | tojson }}{% endfor %}
    {%- elif schema.anyOf or schema.oneOf %}
        {%- set found = namespace(types=[]) %}
        {%- for choice in schema.anyOf or schema.oneOf %}
            {%- set written = type_of(choice) %}
            {%- if written not in found.types %}{% set found.types = found.types + [written] %}{% endif %}
        {%- endfor %}
        {{- found.types | join(' | ') }}
    {%- elif schema.type and schema.type is not string %}
        {%- for one in schema.type %}{{ '' if loop.first else ' | ' }}{{ type_of(dict(schema, type=one)) }}{% endfor %}
    {%- elif schema.type == 'array' %}
        {%- set items = type_of(schema['items'] or {}) %}
        {{- '(' + items + ')[]' if ' | ' in items else items + '[]' }}
    {%- elif schema.type == 'object' and schema.properties %}
        {{- '{\n' + fields(schema) + '}' }}
    {%- else %}
        {{- {'integer': 'number', 'number': 'number', 'string': 'string', 'boolean': 'boolean', 'null': 'null',
             'object': 'object'}.get(schema.type, 'any') }}
    {%- endif %}
{%- endmacro %}
{%- macro comment(text) %}
    {%- for line in ((text or '') | string).splitlines() %}{{ '// ' + line + '\n' }}{% endfor %}
{%- endmacro %}
{%- macro fields(schema) %}
    {%- for name, field in schema.properties.items() %}
        {{- comment(field.description) }}
        {{- name + ('' if name in (schema.required or []) else '?') + ': ' + type_of(field) + ',' }}
        {%- if 'default' in field %}
            {{- ' // default: ' + (field.default if field.default is string else field.default | tojson) }}
        {%- endif %}
        {{- '\n' }}
    {%- endfor %}
{%- endmacro %}
{%- if effort %}
    {{- '<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n' }}
    {{- 'Knowledge cutoff: 2024-06\n' }}
    {{- 'Current date: ' + date + '\n' if date else '' }}
    {{- '\nReasoning: ' + effort + '\n\n# Valid channels: analysis, commentary, final. ' }}
    {{- 'Channel must be included for every message.' }}
    {%- if messages | selectattr('tools') | list %}
        {{- "\nCalls to these tools must go to the commentary channel: 'functions'." }}
    {%- endif %}
    {{- '<|end|>' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<|start|>assistant' }}
        {%- generation %}
            {%- set end = '<|return|>' if message.is_target else '<|end|>' %}
            {%- for part in message.parts %}
                {%- set is_last = loop.last and not message.calls %}
                {{- '' if loop.first else '<|start|>assistant' }}
                {{- '<|channel|>' + ('analysis' if part.thinks else 'final' if is_last else 'commentary') }}
                {{- '<|message|>' + part.text + (end if is_last else '<|end|>') }}
            {%- endfor %}
            {%- for call in message.calls %}
                {{- '' if loop.first and not message.parts else '<|start|>assistant' }}
                {{- ' to=functions.' + call.name + '<|channel|>commentary <|constrain|>json<|message|>' }}
                {{- call.arguments + '<|call|>' }}
            {%- endfor %}
            {%- if not message.parts and not message.calls %}{{ '<|channel|>final<|message|>' + end }}{% endif %}
        {%- endgeneration %}
    {%- elif message.role == 'system' or message.role == 'developer' %}
        {{- '<|start|>developer' }}
        {%- generation %}
            {{- '<|message|>' }}
            {%- if message.text or not message.tools %}{{ '# Instructions\n\n' + message.text + '\n\n' }}{% endif %}
            {%- if message.tools %}
                {{- '# Tools\n\n## functions\n\nnamespace functions {\n\n' }}
                {%- for tool in message.tools %}
                    {{- comment(tool.description) + 'type ' + tool.name + ' = ' }}
                    {%- if (tool.parameters or {}).properties %}
                        {{- '(_: {\n' + fields(tool.parameters) + '}) => any;\n\n' }}
                    {%- else %}
                        {{- '() => any;\n\n' }}
                    {%- endif %}
                {%- endfor %}
                {{- '} // namespace functions' }}
            {%- endif %}
            {{- '<|end|>' }}
        {%- endgeneration %}
    {%- elif message.role == 'tool' %}
        {%- set called = namespace(name=message.name) %}
        {%- set place = loop.index0 %}
        {%- for earlier in messages[:place] if not message.name %}
            {%- for call in earlier.calls if call.id and call.id == message.call_id %}
                {%- set called.name = call.name %}
            {%- endfor %}
        {%- endfor %}
        {%- if not called.name %}
            {{- raise_exception("a tool's result needs the function's name, or the id of a call before it") }}
        {%- endif %}
        {{- '<|start|>functions.' + called.name + ' to=assistant' }}
        {%- generation %}
            {{- '<|channel|>commentary<|message|>' + message.text + '<|end|>' }}
        {%- endgeneration %}
    {%- else %}
        {{- '<|start|>' + message.role }}
        {%- generation %}{{ '<|message|>' + message.text + '<|end|>' }}{% endgeneration %}
    {%- endif %}
{%- endfor %}
{%- if opens %}{{ '<|start|>' + opens }}{% endif %}
"""
"""How the renderers of gpt-oss write, as tinker-cookbook does."""

FAMILY = Family(
    name="gpt-oss",
    formats=(HARMONY,),
    models=(Model(r"gpt-?oss", "harmony", True),),
    # It thinks at medium effort by itself, and nothing turns thinking off.
    switch=Switch(keyword="reasoning_effort", on=None, off=None, efforts=("low", "medium", "high")),
    decisive=HARMONY,
    rank=5,
    renderers={
        **dict.fromkeys(("gpt_oss", "gpt_oss_no_sysprompt"), RendererEntry("GptOss", TEMPLATE)),
        **{
            f"gpt_oss_{effort}_reasoning": RendererEntry("GptOss", TEMPLATE, {"effort": effort})
            for effort in ("low", "medium", "high")
        },
    },
    marker_ids={
        "gpt-oss": MarkerIds(
            ("harmony",),
            {
                "<|endoftext|>": 199999,
                "<|return|>": 200002,
                "<|constrain|>": 200003,
                "<|channel|>": 200005,
                "<|start|>": 200006,
                "<|end|>": 200007,
                "<|message|>": 200008,
                "<|call|>": 200012,
            },
        ),
    },
)
