"""Lists of models, read from upstreams and written for clients of OpenAI, Anthropic and Ollama."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from ..dialects._servers import ListedModel
from .model_profile import ModelProfile
from .questions import fetch_json
from .upstreams import Upstream

LAST = 253_402_300_799
"""The last second that a date can have."""


async def fetch(upstream: Upstream, key: str) -> list[ListedModel]:
    """The models of an upstream, which is sent this key where it has none configured; a `Refusal` where it fails."""
    kind = await upstream.find_kind()
    shown = await fetch_json(upstream, "GET", kind.models_path, None, key, refuses=True)
    return kind.read_models(shown) or []


def write_model(model: ListedModel) -> dict[str, Any]:
    """One entry, with the fields of OpenAI and of Anthropic."""
    return {
        **model.extra,
        "id": model.id,
        "object": "model",
        "created": model.created,
        "owned_by": model.owned_by,
        "type": "model",
        "display_name": model.id,
        "created_at": _time(model.created),
    }


def write_models(models: list[ListedModel]) -> dict[str, Any]:
    """`/v1/models`, for clients of OpenAI and of Anthropic."""
    return {
        "object": "list",
        "data": [write_model(model) for model in models],
        "has_more": False,
        "first_id": models[0].id if models else None,
        "last_id": models[-1].id if models else None,
    }


def write_tags(models: list[ListedModel]) -> dict[str, Any]:
    """`/api/tags`."""
    return {"models": [_tag(model) for model in models]}


def _tag(model: ListedModel) -> dict[str, Any]:
    plain = {"name": model.id, "model": model.id, "modified_at": _time(model.created), "size": 0}
    # To Ollama's clients two names with one digest are one model, and some then ask for either. A server that is no
    # Ollama has none, so the name is hashed: always the same, and no other model's.
    digest = model.details.get("digest") or hashlib.sha256(model.id.encode("utf-8", "surrogatepass")).hexdigest()
    return {**plain, "details": no_details(), **model.details, "digest": digest}


def _time(seconds: int) -> str:
    """A time in ISO 8601; 1970 where an upstream sends one that no date can have."""
    known = seconds if 0 <= seconds <= LAST else 0
    return datetime.fromtimestamp(known, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def no_details() -> dict[str, Any]:
    """Ollama's details of a model of which nothing is known."""
    return {
        "parent_model": "",
        "format": "",
        "family": "",
        "families": None,
        "parameter_size": "",
        "quantization_level": "",
    }


def write_show(shown: dict[str, Any], model: str, profile: ModelProfile, thinks: bool | None) -> dict[str, Any]:
    """`/api/show`: what the upstream shows, completed by the profile. Clients need `model_info` and `details`."""
    capabilities = list(profile.capabilities or ())
    # Ollama's clients read here whether a model takes tools and can think.
    if not capabilities:
        capabilities = ["completion"]
        if profile.format is not None and (profile.format.calls or profile.format.header is not None):
            capabilities.append("tools")
        if thinks:
            capabilities.append("thinking")
    made = {
        "license": "",
        "modelfile": f"# served by asides: {model}",
        "parameters": "",
        "template": "",
        "modified_at": "1970-01-01T00:00:00Z",
    }
    return {
        **made,
        **shown,
        "details": {**no_details(), **_mapping(shown.get("details"))},
        "model_info": {"general.architecture": "", **_mapping(shown.get("model_info"))},
        "capabilities": capabilities,
    }


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
