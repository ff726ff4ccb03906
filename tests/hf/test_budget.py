"""A pattern of a response template that would search for ever is stopped, told of, and found by the linter."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from asides import Parser, UsageError, formats
from asides.hf import ResponseParser, TemplateError, format_from, lint_template, template_for
from asides.hf import _anchors as anchors
from asides.hf import _budget as budget
from asides.hf import _growth as growth
from asides.hf._growth import pumped_growth
from tests.cli.running import run

KINDS = {
    "an alternative twice": "(?:x|x)*y",
    "overlapping alternatives": "(?:x|xx)*y",
    "any character or one of them": "(?:.|x)*Q",
    "quantifiers inside a quantifier": "(?:x+x+)+y",
    "quantifiers in a row": "(x*)*(x*)*(x*)*(x*)*y",
}
PUMPED = "x" * 3000


def _template(key: str, pattern: str) -> dict[str, Any]:
    thinking: dict[str, Any] = {"open": "<t>", "close": "</t>", "repeats": True, "join": ""}
    template: dict[str, Any] = {"start_anchor": "A", "fields": {"thinking": thinking, "content": {}}}
    if key == "start_anchor_pattern":
        del template["start_anchor"]
        template[key] = "A" + pattern
    elif key == "tag_pattern":
        del thinking["repeats"], thinking["join"]
        thinking |= {"content": "xml-inline", "content_args": {key: f"<p>(?P<key>{pattern})"}}
    else:
        name = key.removesuffix("_pattern")
        thinking[key] = thinking.pop(name) + pattern
    return template


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little time, so that tests are quick."""
    monkeypatch.setattr(budget, "SECONDS", 0.02)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("key", ["open_pattern", "close_pattern", "tag_pattern", "start_anchor_pattern"])
@pytest.mark.parametrize("pattern", KINDS.values(), ids=KINDS)
@pytest.mark.timeout(60)
def test_every_pattern_ends(key: str, pattern: str) -> None:
    """With all of the text kept, whatever the place of the pattern; and with a notice where it was stopped."""
    parser = ResponseParser(_template(key, pattern), "A" + PUMPED)
    output = f"before <t>{PUMPED} thought <p>{PUMPED}</t>{PUMPED} after"
    for place in range(0, len(output), 50):
        parser.feed(output[place : place + 50])
    message, _ = parser.finalize()
    assert json.dumps(message).count("x") + "".join(parser.left_out).count("x") >= 3 * len(PUMPED)
    if pattern != KINDS["quantifiers inside a quantifier"] and pattern != KINDS["quantifiers in a row"]:
        assert any("given up" in notice for notice in parser.notices)


@pytest.mark.usefixtures("short")
@pytest.mark.timeout(60)
def test_one_place_does_not_take_the_others_with_it() -> None:
    """An anchor that was given up at one place is found at the next."""
    parser = ResponseParser(_template("open_pattern", KINDS["an alternative twice"]), "")
    parser.feed(f"<t>{PUMPED} no <t>xxy a thought</t> and the answer")
    message, _ = parser.finalize()
    assert message["thinking"] == "a thought"
    assert any(notice.startswith("fields.thinking.open_pattern was given up") for notice in parser.notices)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("key", ["open_pattern", "close_pattern", "tag_pattern"])
def test_calls_in_the_engine_end(key: str) -> None:
    """Where a template is read as a format."""
    call: dict[str, Any] = {
        "open_pattern": r"<call>(?P<name>\w+)>",
        "close": "</call>",
        "content": "xml-inline",
        "content_args": {"tag_pattern": "<p>(?P<key>[^<]+)</p>(?P<value>[^<]*)"},
        "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}},
    }
    if key == "open_pattern":
        call[key] = r"<call>(?P<name>(?:x|x)*)>"
    elif key == "close_pattern":
        del call["close"]
        call[key] = "</call>(?:x|x)*y"
    else:
        call["content_args"] = {key: "<p>(?P<key>(?:x|x)*y)(?P<value>[^<]*)"}
    parser = Parser(format_from({"start_anchor": "A", "fields": {"tool_calls": call, "content": {}}}))
    for _ in range(20):
        parser.feed(f"<call>{PUMPED[:30]} <p>{PUMPED}</call>{PUMPED} ")
    parser.finish()
    assert parser.message.raw.count("x") > 20 * len(PUMPED)


@pytest.mark.parametrize("key", ["open_pattern", "close_pattern", "tag_pattern", "start_anchor_pattern"])
@pytest.mark.parametrize("pattern", KINDS.values(), ids=KINDS)
def test_the_linter_pumps_each_pattern_after_its_literal(
    key: str, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts that hold no literal of it never come as far."""
    monkeypatch.setattr(growth, "SEARCH_SECONDS", 0.05)
    found = [finding for finding in lint_template(_template(key, pattern)) if finding.code == "cost"]
    assert [finding.key.rpartition(".")[2] for finding in found] == [key]
    assert "'x' after" in found[0].text


def test_a_quantifier_deep_inside_is_reached() -> None:
    """By a text that matches what stands before it."""
    found = pumped_growth(r"<call>\s*<function=(?P<name>[A-Za-z][\w-]{2,8})\s+id=[^>]{3}(?:\d|[0-9])*>")
    assert found is not None
    assert found.pumped is not None
    assert re.fullmatch(r"<call><function=A.{2}\sid=.{3}", found.pumped[0])


def test_the_command_reports_it(tmp_path: Path) -> None:
    """With the key, and what was repeated."""
    path = tmp_path / "template.json"
    path.write_text(json.dumps(_template("close_pattern", KINDS["overlapping alternatives"])))
    result = run("probe", "--lint", str(path))
    assert result.returncode == 1
    assert b"fields.thinking.close_pattern: measured" in result.stdout
    assert b"does not end" in result.stdout


def test_nothing_that_we_write_is_steep() -> None:
    """Every pattern of every template."""
    patterns: set[str] = set()

    def collect(value: Any) -> None:
        for key, each in value.items():
            if isinstance(each, dict):
                collect(each)
            elif key.endswith("pattern"):
                patterns.add(each)

    for name in formats():
        try:
            collect(template_for(name).template)
        except TemplateError:
            continue  # formats that no template can say
    assert len(patterns) > 30
    assert {pattern: str(steep) for pattern in patterns if (steep := pumped_growth(pattern))} == {}


def test_a_pattern_of_many_ways_is_taken_apart() -> None:
    """Its beginnings are not all listed."""
    template = _template("open_pattern", "(?:a|b)" * 40 + "(?:c?d?)" * 40 + r"\w+>")
    assert ResponseParser(template, "").feed("x")
    with pytest.raises(TemplateError, match="characters; 4,096 are allowed"):
        ResponseParser(_template("open_pattern", "a" * 5000), "")


def test_without_regex_no_foreign_pattern_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What literals say is read all the same."""
    monkeypatch.setattr(anchors, "_engine", re)
    monkeypatch.setattr(anchors, "PARTIAL", False)
    literal = ResponseParser({"start_anchor": "A", "fields": {"content": {"close_pattern": r"</a>\s*|$"}}}, "")
    literal.feed("b</a> ")
    assert literal.finalize()[0] == {"content": "b"}
    for key in ("open_pattern", "close_pattern", "tag_pattern", "start_anchor_pattern"):
        with pytest.raises(UsageError, match=rf"{key}: .* needs the package regex"):
            ResponseParser(_template(key, "[ab]+y"), "")
