"""Kinds of servers: how one is recognised, and what the answers of each are read as, odd ones included."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest

from asides import dialects
from asides._config.schema import UpstreamSettings
from asides.dialects._request import Request
from asides.dialects._servers import (
    ENGINES,
    KINDS,
    OLLAMA,
    OPENAI,
    ListedModel,
    ServerKind,
    ShownModel,
    engine_of,
    kind_of,
)

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [({"version": "0.13.0"}, OLLAMA), ({"error": "not found"}, OPENAI), (None, OPENAI), ([], OPENAI), ("0.1", OPENAI)],
)
def test_a_server_is_recognised_by_its_version(answer: Any, kind: ServerKind) -> None:
    """Only Ollama has that path."""
    assert kind_of(answer) is kind


@every_kind
def test_a_kind_speaks_the_dialects_in_which_it_is_asked(kind: ServerKind) -> None:
    """About messages and about a bare prompt."""
    chat, bare = Request(dialect="x"), Request(dialect="x", prompt="Hi")
    assert kind.speaks(kind.dialect(chat))
    assert kind.speaks(kind.dialect(bare))
    assert not all(kind.speaks(dialect) for dialect in dialects.ALL)


def test_models_are_listed() -> None:
    """With what each kind says of them."""
    entry = {"id": "m", "object": "model", "created": 5, "owned_by": "vllm", "max_model_len": 9}
    assert OPENAI.read_models({"data": [entry, {"id": 5}, None]}) == [
        ListedModel("m", 5, "vllm", extra={"max_model_len": 9})
    ]
    found = OLLAMA.read_models({"models": [{"name": "q:8b", "modified_at": "1970-01-01T00:00:07Z"}, {"size": 1}]})
    assert found is not None
    assert [(model.id, model.created, model.owned_by) for model in found] == [("q:8b", 7, "ollama")]


@every_kind
@pytest.mark.parametrize("answer", [None, [], {}, {"data": {}, "models": {}}, "x"], ids=repr)
def test_an_answer_without_a_list_is_none(kind: ServerKind, answer: Any) -> None:
    """So that a client can say that this is no model server."""
    assert kind.read_models(answer) is None


def test_templates_are_shown() -> None:
    """In Jinja only: Ollama's own are in Go's language."""
    assert OPENAI.show is not None
    assert OLLAMA.show is not None
    assert OPENAI.show("a/b c") == ("GET", "/props?model=a%2Fb%20c", None)
    assert OPENAI.read_shown({"chat_template": "{% if x %}"}) == ShownModel("{% if x %}")
    assert OPENAI.read_shown({"chat_template": 5}) == ShownModel()
    method, path, body = OLLAMA.show("q")
    assert (method, path, body) == ("POST", "/api/show", b'{"model":"q"}')
    assert OLLAMA.read_shown({"template": "{{ .Prompt }}", "capabilities": ["tools"]}) == ShownModel("", ("tools",))
    info = {"tokenizer.chat_template": "{% x %}"}
    assert OLLAMA.read_shown({"template": "{{ .Prompt }}", "model_info": info}) == ShownModel("{% x %}")
    assert OLLAMA.read_shown({"model_info": [], "template": {}, "capabilities": 5}) == ShownModel()


def test_engines_are_known_by_the_owner_of_their_models() -> None:
    """By the name that each gives itself in its list, and the configuration has the same names."""
    for engine in ENGINES.values():
        assert engine_of([ListedModel("a"), ListedModel("b", owned_by=engine.owner)]) is engine
    assert engine_of([ListedModel("a", owned_by="somebody")]) is None
    assert engine_of([]) is None
    assert engine_of([], "llama.cpp") is ENGINES["llamacpp"]
    assert engine_of([ListedModel("a", owned_by="vllm")], "llama.cpp") is ENGINES["vllm"]
    assert engine_of([], "") is engine_of([], "uvicorn") is None
    names = get_args(get_type_hints(UpstreamSettings)["engine"])
    assert set(names) == {"auto", "other", *ENGINES}
