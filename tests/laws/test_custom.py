"""Laws 1, 2 and 5 over formats that nobody has registered: any markers, alike and overlapping, in every combination."""

from __future__ import annotations

from typing import Any

from hypothesis import given, reject, settings
from hypothesis import strategies as st

from asides import Format, UsageError
from asides._engine.calls.json_calls import JsonCalls
from asides._engine.format import TEXT, THINKING
from asides._engine.tag_markers import TagRule
from tests.laws.effort import examples
from tests.laws.texts import policies
from tests.support import characters, check_chunking, check_held, check_kept, check_one_path, every_place, markers

MARKERS = st.text("<a>/b|`", min_size=1, max_size=4)
SOME = ("a", "x", " ", "\n", "`", '"', "``", "\n```\n", '{"name":"f","arguments":{}}', "{", "<", ">")


@st.composite
def formats(draw: st.DrawFn) -> Format:
    """A format of tags, perhaps with stops, wrappers, calls, attributes, or without regard to case."""
    opens = tuple(draw(st.lists(MARKERS, min_size=1, max_size=2, unique=True)))
    attributes = draw(st.booleans())
    if attributes:
        opens = tuple(dict.fromkeys(f"<{name.strip('<>')}>" for name in opens))
    try:
        return Format.tags(
            opens,
            tuple(draw(st.lists(MARKERS, min_size=1, max_size=2, unique=True))),
            stops=tuple(draw(st.lists(MARKERS, max_size=1))),
            wrappers=tuple(draw(st.lists(MARKERS, max_size=1))),
            name="custom",
            attributes=attributes,
            ignore_case=draw(st.booleans()),
            leading=frozenset(opens[:1] if draw(st.booleans()) else ()),
            start=draw(st.sampled_from((TEXT, THINKING))),
            calls=draw(st.sampled_from(CALLS)),
        )
    except UsageError:
        # Markers that could not be told apart are refused.
        reject()


CALLS = (
    (),
    (JsonCalls(open=("<c>",), close=("</c>",)),),
    (JsonCalls(open=("c:",)),),
    (JsonCalls(open=("<c>",), close=("</c>",), bare=True),),
)


RULES = st.sampled_from((None, TagRule(), TagRule(glued=False), TagRule(weak=True)))
NAMES = ("ab", "abc", "b")
AROUND = ("A", "_", "(?", "(?P", ":", ".", "é", "/>", " >", ' a="1"', " b=''", " a", "\t", "</")


@st.composite
def tagged_formats(draw: st.DrawFn) -> Format:
    """A format of tags with other spellings, each with a rule of its own or none."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
    rules = {name: draw(RULES) for name in names}
    found = {f"{head}{name}>": rule for name, rule in rules.items() if rule is not None for head in ("<", "</")}
    return Format.tags(
        tuple(f"<{name}>" for name in names),
        tuple(f"</{name}>" for name in names),
        stops=("<s>",),
        name="custom",
        tag_rules=found,
        start=draw(st.sampled_from((TEXT, THINKING))),
        calls=draw(st.sampled_from(CALLS)),
    )


@settings(max_examples=examples(200))
@given(st.data())
def test_laws_over_tags_in_any_spelling(data: st.DataObject) -> None:
    """Case, attributes and what stands before a tag: the cut does not matter."""
    format = data.draw(tagged_formats())
    own = markers(format)
    heads = [name[:-1] for name in own]
    pieces = [*SOME, *AROUND, *own, *heads, *(name.upper() for name in own), *(name.title() for name in heads)]
    pieces += [f"{head} id=\"1\" x='{space}'>" for head in heads for space in ("", " " * 60, "y" * 200)]
    text = "".join(data.draw(st.lists(st.sampled_from(pieces), max_size=9)))
    chosen: dict[str, Any] = {key: value for key, value in data.draw(policies("qwen3")).items() if key != "prompt"}
    ways = [characters(text), *every_place(text)]
    check_kept(format, text, check_chunking(format, text, ways, chosen), chosen)
    check_one_path(format, text, chosen)
    check_held(format, text, characters(text), chosen)


@settings(max_examples=examples(200))
@given(st.data())
def test_laws_over_any_format(data: st.DataObject) -> None:
    """Whatever the markers are, the cut does not matter and what is held is known."""
    format = data.draw(formats())
    own = markers(format)
    pieces = [*SOME, *own, *(name[:-1] for name in own if name[:-1]), *(name.swapcase() for name in own)]
    text = "".join(data.draw(st.lists(st.sampled_from(pieces), max_size=9)))
    chosen: dict[str, Any] = {key: value for key, value in data.draw(policies("qwen3")).items() if key != "prompt"}
    check_chunking(format, text, [characters(text), *every_place(text)], chosen)
    check_one_path(format, text, chosen)
    check_held(format, text, characters(text), chosen)
