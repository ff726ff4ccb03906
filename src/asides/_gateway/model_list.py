"""Lists of models: asked of upstreams in their shapes, told to clients in theirs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ..dialects.servers import ListedModel
from .model_profile import ModelProfile, fetch_json
from .upstreams import Upstream

LAST = 253_402_300_799
"""The last second that a date can tell."""


async def ask(upstream: Upstream, key: str) -> list[ListedModel]:
    """The models of an upstream, which is asked with this key where it has none configured."""
    kind = await upstream.find_kind()
    return kind.read_models(await fetch_json(upstream, "GET", kind.models_path, None, key)) or []


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
    plain = {"name": model.id, "model": model.id, "modified_at": _time(model.created), "size": 0, "digest": ""}
    return {**plain, "details": no_details(), **model.details}


def _time(seconds: int) -> str:
    """A moment as clients read it; the beginning of time where an upstream tells one that cannot be."""
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


def write_show(told: dict[str, Any], model: str, profile: ModelProfile, thinks: bool | None) -> dict[str, Any]:
    """`/api/show`: what the upstream tells, else what is known. Clients read `model_info` and `details` blindly."""
    capabilities = list(profile.capabilities or ())
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
        **told,
        "details": {**no_details(), **_mapping(told.get("details"))},
        "model_info": {"general.architecture": "", **_mapping(told.get("model_info"))},
        "capabilities": capabilities,
    }


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
