"""A request in the upstream's words: what is known of the model, as options for a dialect. Sends nothing."""

from __future__ import annotations

from typing import Any

from .._config.schema import ModelSettings
from ..dialects import Dialect
from ..dialects.request import Request, RequestError, WriteOptions
from .model_profile import ModelProfile
from .refusals import Refusal
from .upstreams import Upstream


def write_request(
    upstream: Upstream,
    request: Request,
    upstream_dialect: Dialect,
    settings: ModelSettings,
    profile: ModelProfile,
    *,
    field: str,
) -> dict[str, Any]:
    """The request in the upstream's words. `field` is where it is known to send thinking; empty: not known."""
    options = WriteOptions(
        replay=settings.replay,
        field=field or profile.field or "reasoning_content",
        keep_thinking=settings.keep_thinking or "all",
        switch=profile.switch,
        budget=settings.budget,
        model=settings.name,
        usage=True,
        special_tokens=upstream.settings.skip_special_tokens and profile.special,
    )
    try:
        sent = upstream_dialect.write_request(request, options)
    except RequestError as error:
        raise Refusal(error.status, error.message, param=error.param) from error
    return {**sent, **settings.extra_body}
