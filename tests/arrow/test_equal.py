"""A column is what `asides.parse` makes of each of its rows: on every case, and on generated texts of every format."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asides
from asides.arrow import clean, figures, split, thinking
from tests.arrow.expected import expected_row, storable
from tests.laws.effort import examples
from tests.laws.test_shortcut import shapes
from tests.laws.texts import policies, texts
from tests.support import check_each
from tests.test_cases import ALL


def by_format() -> dict[tuple[str, str], list[str]]:
    """The inputs of all cases that share a format and its options."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for case in ALL:
        options = json.dumps(case.said.get("options", {}), sort_keys=True)
        found[case.format, options].append(storable("".join(case.chunks)))
    return found


COLUMNS = by_format()


@pytest.mark.parametrize("format", dict.fromkeys(format for format, _ in COLUMNS))
def test_every_case(format: str) -> None:
    """A column with every case of one format, whatever the policies."""
    check_each(lambda options: _check(format, options), [options for name, options in COLUMNS if name == format])


def _check(format: str, options: str) -> None:
    chosen: dict[str, Any] = json.loads(options)
    rows = COLUMNS[format, options]
    column = split(pa.array(rows), format, parts=True, **chosen)
    column.validate(full=True)
    expected = [expected_row(text, format, **chosen) for text in rows]
    assert column.to_pylist() == expected
    assert clean(pa.array(rows), format, **chosen).to_pylist() == [row["text"] for row in expected]
    assert thinking(pa.array(rows), format, **chosen).to_pylist() == [row["thinking"] for row in expected]


def test_every_case_in_one_column() -> None:
    """Every case without options, of all formats together, its format in a column; and all of them by `auto`."""
    rows = [(format, text) for (format, options), each in COLUMNS.items() if options == "{}" for text in each]
    formats, inputs = (pa.array(each) for each in zip(*rows, strict=True))
    assert len(inputs) > 1024, "or no slice ends inside"
    expected = [expected_row(text, format) for format, text in rows]
    assert split(inputs, formats, parts=True).to_pylist() == expected
    assert split(pa.chunked_array([inputs]), formats.dictionary_encode(), parts=True).to_pylist() == expected
    assert split(inputs, parts=True).to_pylist() == [expected_row(text) for _, text in rows]


@pytest.mark.parametrize("name", asides.formats())
def test_generated_texts(name: str) -> None:
    """Law 2 for columns."""

    @settings(max_examples=examples(12))
    @given(st.lists(shapes(name) | texts(name), min_size=1, max_size=4), policies(name) | st.just({}))
    def law(generated: list[str], chosen: dict[str, Any]) -> None:
        chosen.pop("finish_reason", None)  # a column does not say how its rows ended
        rows = [storable(text) for text in generated]
        prompt = chosen.pop("prompt", None)
        expected = [expected_row(text, name, prompt=prompt, **chosen) for text in rows]
        prompts = None if prompt is None else pa.array([storable(prompt)] * len(rows))
        assert split(pa.array(rows), name, prompt=prompt, parts=True, **chosen).to_pylist() == expected
        assert split(pa.array(rows), name, prompt=prompts, parts=True, **chosen).to_pylist() == expected

    law()


def test_figures_are_those_of_stats() -> None:
    """What `analyze` counts in each case, with the format that was given."""
    from asides.analysis import analyze

    for (format, options), rows in COLUMNS.items():
        if options == "{}":
            found = figures(pa.array(rows), format).to_pylist()
            for row, text in zip(found, rows, strict=True):
                expected = analyze(asides.parse(text, format), format=format)
                assert row.pop("quality") == {"score": expected.quality.score, **expected.quality.parts}
                loop = row.pop("loop")
                assert (loop is None) == (expected.loop is None)
                assert row == {name: getattr(expected, name) for name in row}
