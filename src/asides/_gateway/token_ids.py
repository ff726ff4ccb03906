"""Replies that are read by the ids of their tokens: which servers are asked for ids, and what they made of it.

Asked are servers whose engine takes the request field, for models whose tokenizer is configured, once a reply has shown
that the server does not separate thoughts and calls by itself. One that refuses the field, ignores it, or sends ids of
another tokenizer is not asked again for that model until the gateway is reloaded; its replies are read as text, as
before. `asides.reply` compares ids and text.
"""

from __future__ import annotations

import asyncio
import logging
from functools import lru_cache
from typing import Any

from .._engine.vocabulary import Vocabulary, vocabulary_of
from ..errors import Error
from ..reply._splitter import Splitter
from .bounded import BoundedDict
from .model_profile import MOST_MODELS

log = logging.getLogger("asides.gateway")


@lru_cache(maxsize=16)
def open_tokenizer(path: str) -> Any:
    """The tokenizer of a `tokenizer.json`; None, with a line in the log, where that cannot be used."""
    try:
        from tokenizers import Tokenizer  # here, because it is an extra

        return Tokenizer.from_file(path)
    except Exception as error:  # the package raises nothing more particular
        log.warning("tokenizer %s cannot be used, tokens are estimated and replies read as text: %s", path, error)
        return None


class TokenIds:
    """What is known of ids, by upstream and model."""

    def __init__(self) -> None:
        self._vocabularies: dict[str, Vocabulary | None] = {}
        self._raw: BoundedDict[tuple[str, str], bool] = BoundedDict(MOST_MODELS)
        """Of whom a reply was seen that had not been split."""
        self._refused: BoundedDict[tuple[str, str, bool], bool] = BoundedDict(MOST_MODELS)
        """Who is not asked; streams and whole replies apart, because SGLang gives ids with one of them only."""

    def sends_raw(self, upstream: str, model: str) -> bool:
        """Whether a server was seen to send a model's output as it is."""
        return (upstream, model) in self._raw

    def may_ask(self, upstream: str, model: str, streams: bool) -> bool:
        """Whether a server may be asked for ids."""
        return (upstream, model) in self._raw and (upstream, model, streams) not in self._refused

    async def load(self, path: str) -> None:
        """Read a tokenizer, once."""
        if path not in self._vocabularies:
            self._vocabularies[path] = await asyncio.to_thread(_read, path)  # large

    def vocabulary(self, path: str) -> Vocabulary | None:
        """A tokenizer that was read; None where it cannot be used."""
        return self._vocabularies.get(path)

    def refuse(self, upstream: str, model: str, streams: bool, why: str) -> None:
        """Ask no more, for this reason."""
        if (upstream, model, streams) not in self._refused:
            self._refused[upstream, model, streams] = True
            what = "streams" if streams else "whole replies"
            log.warning("%s of %r at %s are read as text, not by ids: %s", what, model[:200], upstream, why)

    def see(self, upstream: str, model: str, streams: bool, splitter: Splitter, *, asked: bool) -> None:
        """Take what a finished reply shows. `asked`: whether it was asked for with ids."""
        if splitter.fields or splitter.calls_separated:
            if asked:
                self.refuse(upstream, model, streams, "the server separates thoughts or calls by itself")
        elif not asked:
            # Only a marker that acted shows it; a plain answer looks the same from any server.
            if splitter.found_parts:
                self._raw[upstream, model] = True
        elif splitter.id_use == "disagree":
            self.refuse(upstream, model, streams, "its ids are not those of the tokenizer that is configured")
        elif splitter.id_use == "none" and splitter.answer_characters:
            self.refuse(upstream, model, streams, "the server sends none")


def _read(path: str) -> Vocabulary | None:
    tokenizer = open_tokenizer(path)
    try:
        return None if tokenizer is None else vocabulary_of(tokenizer)
    except Error as error:
        log.warning("tokenizer %s cannot be used, replies are read as text: %s", path, error)
        return None
