"""For an application: show the answer as it comes, keep the thoughts apart, and see what was odd.

    pip install .
    python examples/application.py

It prints:

    (thinking...) The capital of France is Paris.
    thoughts: ['The user asks for a capital.', 'Paris, not Lyon.']
    answer: 'The capital of France is Paris.'
    notices: []
"""

from collections.abc import Iterator

import asides

REPLY = "<think>The user asks for a capital.</think>The capital of France is <think>Paris, not Lyon.</think>Paris."


def stream(prompt: str) -> Iterator[str]:
    """What a model server sends: text, cut anywhere. With OpenAI's SDK it is `chunk.choices[0].delta.content`."""
    for start in range(0, len(REPLY), 5):
        yield REPLY[start : start + 5]


def show(event: asides.Event) -> None:
    """Write what a user sees, as soon as it is known what it is."""
    match event:
        case asides.PartStart(kind="thinking", index=0):
            print("(thinking...) ", end="")
        case asides.PartStart(kind="text", gap=gap):  # what to write between two texts of one answer
            print(gap, end="")
        case asides.TextDelta(text=text):
            print(text, end="", flush=True)


def main() -> None:
    """Ask, show, and look at the whole message."""
    parser = asides.Parser("qwen3")  # or leave the format out: it is found by the markers
    for chunk in stream("What is the capital of France?"):
        for event in parser.feed(chunk):
            show(event)
    for event in parser.finish():  # what was held back, because it could have become a marker
        show(event)
    message = parser.message
    print()
    print("thoughts:", [part.text for part in message.parts if isinstance(part, asides.Thinking)])
    print("answer:", repr(message.text))
    print("notices:", [notice.code for notice in message.notices])


if __name__ == "__main__":
    main()
