"""What the rules of `tests/test_structure.py` do not hold for yet. These sets only shrink."""

from __future__ import annotations

DUPLICATE_CLASSES: set[str] = set()
"""Class names that have several meanings."""

DECODED_NAMES: set[str] = set()
"""Modules, classes and functions with a word in their name that has to be decoded."""

TERSE_MODULES: set[str] = set()
"""Long modules whose docstring is shorter than three lines."""
