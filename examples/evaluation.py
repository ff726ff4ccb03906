"""A score that changes because thoughts were scored as answers. No model, no network: the outputs are written here.

    pip install .
    python examples/evaluation.py

It prints:

    question      all of the output  behind </think>  answer_of
    5 + 7         10  wrong          12  right        12  right
    9 - 4         9  wrong           5  right         5  right
    3 * 3         9  right           9  right         none  wrong
    8 / 2         8  wrong           2  wrong         4  right
    6 * 7         6  wrong           6  wrong         42  right
    score         1 of 5             3 of 5           4 of 5

The scorer takes the first number, as many do. On all of the output it scores what the model considered. Cutting at
a tag rewards who never answered (3 * 3), and fails who thinks again (8 / 2) or writes no such tag (6 * 7).
"""

from __future__ import annotations

import re

from asides.plugins.evals import answer_of

OUTPUTS = {
    "5 + 7": ("12", "<think>10? No, one more than 11.</think>\n\n12"),
    "9 - 4": ("5", "The user asks for 9 - 4. Count back from 9.</think>\n\n5"),
    "3 * 3": ("9", "<think>9, or did they mean 3 + 3? Let me start again:"),
    "8 / 2": ("4", "<think>8 halved.</think>4<think>2 * 4 = 8, good.</think>, since 2 * 4 = 8."),
    "6 * 7": ("42", "<|channel|>analysis<|message|>6 * 7.<|end|><|start|>assistant<|channel|>final<|message|>42"),
}
READERS = {
    "all of the output": lambda output: output,
    "behind </think>": lambda output: output.rpartition("</think>")[2],
    "answer_of": answer_of,
}


def first_number(text: str) -> str:
    """What the scorer compares with the right answer."""
    return next(iter(re.findall(r"\d+", text)), "none")


def show(title: str, cells: list[str]) -> None:
    """Print a line of the table."""
    print(title.ljust(14) + "".join(c.ljust(len(n) + 2) for c, n in zip(cells, READERS, strict=True)).rstrip())


show("question", list(READERS))
right = [0] * len(READERS)
for question, (expected, output) in OUTPUTS.items():
    numbers = [first_number(read(output)) for read in READERS.values()]
    show(question, [f"{number}  {'right' if number == expected else 'wrong'}" for number in numbers])
    right = [count + (number == expected) for count, number in zip(right, numbers, strict=True)]
show("score", [f"{count} of {len(OUTPUTS)}" for count in right])
