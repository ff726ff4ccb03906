"""Harmony (gpt-oss): messages with headers; the channel says what is thought and what is said."""

from __future__ import annotations

from ..engine.format import END, HEADER, OUTSIDE, TEXT, THINKING, Format, Header

HARMONY = Format(
    name="harmony",
    states={
        TEXT: {"<|end|>": OUTSIDE, "<|return|>": END, "<|call|>": END, "<|start|>": HEADER, "<|channel|>": HEADER},
        THINKING: {"<|end|>": OUTSIDE, "<|return|>": END, "<|call|>": END, "<|start|>": HEADER, "<|channel|>": HEADER},
        HEADER: {"<|constrain|>": HEADER},
    },
    start=HEADER,
    header=Header(
        channels={"analysis": THINKING, "commentary": TEXT, "final": TEXT},
        recipients={"assistant": TEXT, "user": TEXT},
        channel_marker="<|channel|>",
        type_marker="<|constrain|>",
        body="<|message|>",
        strip="functions.",
    ),
    assistant=("<|start|>assistant",),
)
FORMATS = (HARMONY,)
