"""A model of lighteval that wraps another: metrics see answers, the details hold what the model wrote.

Lighteval removes pairs of tags from all responses by itself, after the model has run. It leaves thoughts that only
close or never do, and metrics over several samples (`avg@n`) get each sample without it. A response from here has its
answers for good: what lighteval's own removal would put in their place is left out.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import fields
from typing import Any, Unpack

from .._engine.format import Format
from ..policies import DEFAULTS, Policies, PolicyOptions
from ..reading import Reading
from ..reply import Ended, Fold, RawText, ThinkingChunk
from ._hosts import require_host
from ._wrapping import delegate

require_host("lighteval")

from lighteval.models.abstract_model import LightevalModel
from lighteval.models.model_output import ModelResponse


class AnswerResponse(ModelResponse):
    """A response whose `text` is what the model wrote and whose `final_text`, which metrics read, are the answers."""

    def __init__(self, response: ModelResponse, answers: list[str], reasonings: list[str | None]) -> None:
        self._answers = answers
        values = {field.name: getattr(response, field.name) for field in fields(ModelResponse)}
        super().__init__(**{**values, "reasonings": reasonings})

    @property
    def text_post_processed(self) -> list[str]:
        """The answers."""
        return self._answers

    @text_post_processed.setter
    def text_post_processed(self, value: object) -> None:
        """Leave out what lighteval's removal of tags makes of `text`."""

    def __getitem__(self, index: int) -> AnswerResponse:
        return AnswerResponse(super().__getitem__(index), [self._answers[index]], [self.reasonings[index]])


class AnswerModel(LightevalModel):
    """Another model, its responses read with a format.

    `model` is the model's name, for `format="auto"`; without it the name in the wrapped model's configuration is taken.
    """

    def __init__(
        self,
        wrapped: LightevalModel,
        model: str | None = None,
        format: str | Format = "auto",
        policies: Policies = DEFAULTS,
        **options: Unpack[PolicyOptions],
    ) -> None:
        self._wrapped = wrapped
        # What lighteval's pipeline takes from a model by itself.
        self.config, self._cache, self.is_async = wrapped.config, wrapped._cache, wrapped.is_async
        name = model or wrapped.config.model_name
        self._reading = Reading.of(name, format=format, policies=policies.but(**options))

    def greedy_until(self, docs: list[Any]) -> Any:
        """Generate with the wrapped model, and read what comes."""
        responses = self._wrapped.greedy_until(docs)
        return self._read_later(responses) if self.is_async else [self._read(response) for response in responses]

    async def _read_later(self, responses: Awaitable[list[ModelResponse]]) -> list[AnswerResponse]:
        return [self._read(response) for response in await responses]

    def _read(self, response: ModelResponse) -> AnswerResponse:
        given = [*response.reasonings, *[None] * len(response.text)]
        replies = [self._reply(text, thought or "") for text, thought in zip(response.text, given, strict=False)]
        return AnswerResponse(
            response, [reply.text for reply in replies], [reply.thinking or None for reply in replies]
        )

    def _reply(self, text: str, thought: str) -> Any:
        """One sample. `thought`: what its server has split off already."""
        splitter, fold = self._reading.splitter(whole=True), Fold()
        for chunk in (ThinkingChunk(0, thought), RawText(0, text), Ended(0)):
            for item in splitter.feed(chunk):
                fold.add(item)
        return fold.reply


delegate(AnswerModel, LightevalModel)
