"""A conversation in which the answer is shown as it comes, thoughts apart from it, of any OpenAI-compatible server.

    pip install . openai
    export OPENAI_BASE_URL=http://127.0.0.1:8000/v1 OPENAI_API_KEY=none      # vLLM, llama.cpp, Ollama...
    python examples/streamed_reply.py

Thoughts go to standard error, answers to standard output. With a model that answers like this, it prints:

    > What is the capital of France?
    The capital of France is Paris.
    > And of Norway?
    Oslo.
"""

import sys
from typing import Any

import openai

import asides
import asides.openai


def show(event: asides.Event) -> None:
    """Write what a user sees, as soon as it is known what it is."""
    match event:
        case asides.ThinkingDelta(text=text):
            print(text, end="", file=sys.stderr, flush=True)
        case asides.PartStart(kind="text", gap=gap):  # what stands between two texts of one answer
            print(gap, end="")
        case asides.TextDelta(text=text):
            print(text, end="", flush=True)
        case asides.PartStart(kind="tool_call", name=name):
            print(f"(calls {name})", file=sys.stderr)
        case asides.Retyped(kind="thinking"):  # a model that nobody knows had begun inside a thought
            print("\n(all of this was a thought)")


def main() -> None:
    """Ask two questions, the second with the first in mind."""
    with openai.OpenAI() as client:
        model = client.models.list().data[0].id  # or the name of yours
        messages: list[Any] = []
        for question in ("What is the capital of France?", "And of Norway?"):
            print(">", question)
            messages.append({"role": "user", "content": question})
            with client.chat.completions.create(model=model, messages=messages, stream=True) as stream:
                events = asides.openai.split(stream)
                for event in events:
                    show(event)
            print()
            messages.append(events.reply.message.to_openai(model=model))


if __name__ == "__main__":
    main()
