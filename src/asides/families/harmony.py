"""Harmony (gpt-oss): messages with headers; the channel says what is thought and what is said."""

from __future__ import annotations

from .._engine.calls.named_calls import BodyCalls
from .._engine.format import END, HEADER, OUTSIDE, TEXT, THINKING, BareHeader, Format, Header
from .family import Family, Model, RendererEntry, Switch

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
    assistant=("<|start|>assistant",),
)
FAMILY = Family(
    name="gpt-oss",
    formats=(HARMONY,),
    models=(Model(r"gpt-?oss", "harmony", True),),
    # It thinks at medium effort by itself, and nothing turns thinking off.
    switch=Switch(keyword="reasoning_effort", on=None, off=None, efforts=("low", "medium", "high")),
    decisive=HARMONY,
    rank=5,
    renderers={
        **dict.fromkeys(("gpt_oss", "gpt_oss_no_sysprompt"), RendererEntry("gpt_oss", "GptOss")),
        **{
            f"gpt_oss_{effort}_reasoning": RendererEntry("gpt_oss", "GptOss", {"effort": effort})
            for effort in ("low", "medium", "high")
        },
    },
)
