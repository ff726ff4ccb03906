"""The runner of very many texts: it passes what is right, and shows what is wrong as short as it can."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.laws import seeded
from tests.laws.texts import make_text


@pytest.mark.parametrize("law", sorted(seeded.LAWS))
def test_a_few_texts_of_each_law(law: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert seeded.main([law, "--texts", "60", "--seed", "7"]) == 0
    assert "60 texts over" in capsys.readouterr().out


def test_what_fails_is_shown_short(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def check(_name: str, text: str, policies: dict[str, Any], _chance: random.Random) -> None:
        if "</think>" in text:
            raise AssertionError(f"law 0: a close\n{text!r} {policies}")

    monkeypatch.setitem(seeded.LAWS, "held", check)
    assert seeded.main(["held", "--texts", "200", "--format", "qwen3", "--most", "3"]) == 1
    out = capsys.readouterr().out
    assert out.count("--- text") == 3
    assert out.count("law 0: a close\n'</think>' {}") == 3


def test_the_same_texts_for_a_seed() -> None:
    one, other = (make_text("qwen3", random.Random("1.5").choice, 8) for _ in range(2))
    assert one == other
