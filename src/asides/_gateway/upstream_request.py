"""A request in the upstream's words: in which dialect it is asked, at which path, and what is added. Sends nothing."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import msgspec

from .._config.schema import ModelSettings
from ..dialects import completions, ollama, openai_chat
from ..dialects.request import Request, RequestError, WriteOptions
from .model_profile import ModelProfile
from .refusals import Refusal
from .upstreams import Upstream

SPOKEN: dict[str, tuple[ModuleType, ...]] = {"openai": (openai_chat, completions), "ollama": (ollama,)}
"""The dialects that an upstream of each kind speaks itself."""


def write_request(
    upstream: Upstream,
    request: Request,
    upstream_dialect: ModuleType,
    settings: ModelSettings,
    profile: ModelProfile,
    *,
    field: str,
) -> dict[str, Any]:
    """The request in the upstream's words. `field` is where it is known to send thinking; empty: not known."""
    if (
        request.thinking.think is not None
        and profile.switch not in ("", "reasoning_effort")
        and upstream_dialect is not ollama
    ):
        value = profile.on if request.thinking.think else profile.off
        template = {profile.switch: value, **request.template_arguments}
        request = msgspec.structs.replace(request, template_arguments=template)
    options = WriteOptions(
        replay=settings.replay,
        field=field or profile.field or "reasoning_content",
        keep_thinking=settings.keep_thinking or "all",
        switch=profile.switch,
        budget=settings.budget,
        model=settings.name,
    )
    try:
        sent: dict[str, Any] = upstream_dialect.write_request(request, options)
    except RequestError as error:
        raise Refusal(error.status, error.message, param=error.param) from error
    if upstream_dialect is not ollama:
        if sent.get("stream"):
            sent["stream_options"] = {**sent.get("stream_options", {}), "include_usage": True}
        if upstream.settings.skip_special_tokens and profile.special:
            sent.setdefault("skip_special_tokens", False)
    return {**sent, **settings.extra_body}


def dialect_for(kind: str, request: Request) -> ModuleType:
    """The dialect in which an upstream is asked."""
    if kind == "ollama":
        return ollama
    return openai_chat if request.prompt is None else completions


def upstream_path(upstream_dialect: ModuleType, request: Request) -> str:
    """The path under which it is asked."""
    if upstream_dialect is ollama:
        return ollama.endpoint(request)
    return f"/v1/{path_of(upstream_dialect)}"


def path_of(dialect: ModuleType) -> str:
    """Where an OpenAI-compatible server answers a dialect."""
    return "completions" if dialect is completions else "chat/completions"
