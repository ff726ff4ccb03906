"""The recipe of docs/how-to/detection.md over every template of the tests: nothing is read worse than by `auto`."""

from __future__ import annotations

import pytest

from tests.detect import templates
from tests.detect.families import STYLES
from tests.detect.turns import count, detection_of

pytestmark = pytest.mark.usefixtures("_rendered_here")

TEMPLATES = {
    **{name: expected.template for name, expected in templates.KNOWN.items()},
    **{name: style.template for name, style in STYLES.items()},
    "unknown pair": templates.UNKNOWN_PAIR,
    "unknown in prompt": templates.UNKNOWN_IN_PROMPT,
    "unknown closer": templates.UNKNOWN_CLOSER,
}
UNREADABLE = {
    "an unknown syntax": "nobody writes calls so",
    "unknown closer": "an answer alone cannot be told from a thought that nothing opened and nothing closed",
}


@pytest.mark.parametrize("name", STYLES)
def test_the_format_of_a_family_is_found(name: str) -> None:
    found = detection_of(STYLES[name].template)
    assert (found.format, found.start) == (STYLES[name].format, STYLES[name].start), found.reasons


@pytest.mark.parametrize("name", TEMPLATES)
def test_what_a_template_writes_is_read_by_what_detection_says_of_it(name: str) -> None:
    counts = count(TEMPLATES[name])
    print(f"{name}: {counts.outputs} outputs, {counts.detected} read with detection, {counts.auto} with auto")
    assert counts.detected >= counts.auto
    assert bool(counts.wrong) == (name in UNREADABLE)
