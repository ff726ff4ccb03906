"""The cards: each is whole, and what is made from them is up to date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import asides
from asides.families import Family, families, get_format
from asides.families import _registry as registry
from asides.families._index import MODULES
from tools.families import FOLDER, MADE, modules

CARDS = families()


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_from_the_cards_is_up_to_date(name: str) -> None:
    assert Path(FOLDER, name).read_text(encoding="utf-8") == MADE[name](), "run: make families"


def test_every_card_is_found() -> None:
    """A new file with a card in it needs no other list: making the index is enough."""
    assert sorted(set(MODULES.values())) == modules(), "run: make families"


def test_no_two_families_have_a_name() -> None:
    names = [registry.fold(family.name) for family in CARDS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("family", CARDS, ids=lambda family: family.name)
def test_a_card_speaks_of_its_own_formats(family: Family) -> None:
    own = [format.name for format in family.formats]
    if isinstance(family.switch, dict):
        assert family.switch.keys() <= set(own)
    assert family.decisive is None or family.decisive in family.formats
    assert all(format.source for format in family.formats)
    for row in family.models:
        assert get_format(row.format)
        assert ("{}" in row.pattern) >= bool(row.versions), f"{row.pattern} names no version"
        re.compile(row.pattern)
    for name in own:
        assert registry.family_of(name) is family


def test_every_format_is_on_a_card() -> None:
    assert sorted(format.name for family in CARDS for format in family.formats) == asides.formats()
