"""Kinds of servers: what a model server offers besides replies, and which dialects it speaks.

A `ServerKind` is chosen once for an upstream: by configuration, by the name of its host (`_providers.py`), or by asking
it (`/api/version` is Ollama's alone). From then on everybody uses its members: which dialect a request is written in,
where models are listed and how, where a chat template is shown, where tokens are counted. A path that a kind does not
have is empty.

    kind = KINDS["ollama"]
    kind.dialect(request).upstream_path(request)   # "/api/chat"
    kind.read_models(answer)                       # [ListedModel("qwen3:8b", ...)]

Sends nothing; knows paths and the shapes of their answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from . import anthropic, ollama, openai_chat, openai_completions, openai_responses
from ._base import Dialect
from ._fields import as_object, as_objects, as_text
from ._framing import to_json
from ._rendered_prompts import PROMPT_ENDPOINTS, PromptEndpoint
from ._request import Request
from .anthropic._request import BINDING_BETA

KindName = Literal["openai", "ollama", "anthropic", "responses"]
"""The names of `KINDS`. (The configuration repeats them, because it loads no dialect; a test compares the two.)"""


CONTROL_PATH = "/v1/chat/completions/control"
"""Where llama.cpp takes orders for a reply that it is writing."""
END_THOUGHT = "reasoning_end"
"""The order to end the thought and to answer."""


class ListedModel(msgspec.Struct, frozen=True):
    """A model that a server lists."""

    id: str
    """The name under which the server serves the model, as requests write it."""
    created: int = 0
    """When the model was made, in seconds since 1970; 0 where the server does not say."""
    owned_by: str = "upstream"
    """The owner that the server gives, such as `vllm` or `library`; `upstream` where it gives none."""
    details: dict[str, Any] = {}
    """Ollama's own fields of the model, for clients that speak Ollama's API."""
    extra: dict[str, Any] = {}
    """Further fields that an OpenAI-compatible server lists with the model."""


class ShownModel(msgspec.Struct, frozen=True):
    """What a server shows of one model."""

    template: str = ""
    """The model's chat template in Jinja; empty where the server shows none."""
    capabilities: tuple[str, ...] | None = None
    """What the model can do, as Ollama lists it (`thinking`, `tools`); None where the server lists nothing."""


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """What serves the models at an OpenAI-compatible API, where that is known: how it bounds thinking, and what it can
    be asked about its prompts."""

    name: str
    """Its name in the configuration: `vllm`, `sglang` or `llamacpp`."""
    owner: str
    """The `owned_by` that it writes into its list of models, by which it is recognised."""
    budget: str
    """The request field for the number of tokens that thinking may take; `field.inner` for one inside an object."""
    certain: bool
    """Whether every server of this engine obeys that field; False where it depends on how it was started."""
    by_template: bool
    """Whether it obeys only where the model's chat template shows how thoughts are written."""
    continues: dict[str, Any] | None
    """The request fields with which it continues the last message of the assistant; None where it cannot."""
    server: str = ""
    """The `server` header of its answers, where that names it."""
    shows_template: bool = False
    """Whether it shows its chat template."""
    token_ids: str = ""
    """The request field that asks for the ids of the tokens of a reply; empty where it has none."""
    control: str = ""
    """The request field that allows its thought to be ended later, by `/chat/completions/control`; empty where it has
    none."""

    @property
    def prompt_endpoint(self) -> PromptEndpoint:
        """How it is asked for the prompt that it makes of a request."""
        return PROMPT_ENDPOINTS[self.name]


ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine(
            name="vllm",
            owner="vllm",
            budget="thinking_token_budget",
            certain=True,
            by_template=False,
            continues={"continue_final_message": True, "add_generation_prompt": False},
            token_ids="return_token_ids",
        ),
        # Kept only by a server with `--enable-strict-thinking`, or with a logit processor.
        Engine(
            name="sglang",
            owner="sglang",
            budget="custom_params.thinking_budget",
            certain=False,
            by_template=False,
            continues={"continue_final_message": True},
            token_ids="return_token_ids",
        ),
        # A last message of the assistant is continued by itself.
        Engine(
            name="llamacpp",
            owner="llamacpp",
            budget="reasoning_budget_tokens",
            certain=True,
            by_template=True,
            continues={},
            server="llama.cpp",
            shows_template=True,
            control="reasoning_control",
        ),
    )
}
"""Every engine, by the name that the configuration uses."""


def engine_of(models: Iterable[ListedModel], server: str = "") -> Engine | None:
    """The engine that serves these models; None where none is known by its name for itself.

    `server`: the header of that name. It counts less, because a proxy may write its own.
    """
    owners = {model.owned_by for model in models}
    by_owner = (engine for engine in ENGINES.values() if engine.owner in owners)
    return next(by_owner, None) or next(
        (engine for engine in ENGINES.values() if engine.server and engine.server == server), None
    )


class ServerKind(msgspec.Struct, frozen=True, kw_only=True):
    """What all servers of a kind have in common."""

    name: KindName
    """Its name in the configuration."""
    title: str
    """Its name in messages to people."""
    dialects: tuple[Dialect, ...]
    """The dialects that it serves itself, so that a request in one of them may pass unchanged."""
    chat: Dialect
    """The dialect for requests with messages."""
    prompts: Dialect
    """The dialect for requests that continue a bare prompt."""
    thinking_field: str
    """The field in which it sends thinking, unless a reply has shown another."""
    models_path: str
    """The path that lists its models."""
    models_field: str
    """The field of that list in the answer."""
    read_model: Callable[[dict[str, Any]], ListedModel | None]
    """Reads an entry of that list; returns None for an entry that is no model."""
    show: Callable[[str], tuple[str, str, bytes | None]] | None = None
    """Makes the request (method, path, body) for the details of a model; of a server with OpenAI's paths it is asked
    only where its engine shows templates. None: servers of this kind show nothing."""
    read_shown: Callable[[dict[str, Any]], ShownModel] = lambda answer: ShownModel()
    """Reads the answer to that request."""
    show_path: str = ""
    """The path at which the gateway's clients may ask for the same; empty where it is not passed on."""
    version_path: str = ""
    """The path that gives its version."""
    running_path: str = ""
    """The path that lists the models that are loaded."""
    tokenize_path: str = ""
    """The path that counts tokens."""
    count_path: str = ""
    """The path that counts the tokens of a request in its own dialect, and answers with `input_tokens`."""
    key_header: str = ""
    """The header for a key; empty: `Authorization`, as `Bearer`."""
    headers: Mapping[str, str] = {}
    """Headers that every request must have, unless the client's own or the configuration's have them."""
    separates: bool = False
    """Whether its API has places of their own for thoughts and calls, so that no text is searched for markers."""
    budgets: bool = False
    """Whether its API has a field for the number of tokens that thinking may take."""
    stops: bool = True
    """Whether its API takes stop strings."""
    binding_headers: Mapping[str, str] = {}
    """Headers without which it does not take the order to leave out thoughts that are bound to another conversation."""
    proved: bool = False
    """Whether it takes thoughts of earlier turns back only with the proof that it sent with them."""
    stateless: bool = False
    """Whether it stores replies unless it is told not to, and sends what it wants back only where it is told to."""
    parameters: str = ""
    """The request field for parameters that no dialect names; empty: they go to the top level of the request."""
    beside: frozenset[str] = frozenset()
    """Parameters that go to the top level of the request all the same."""

    def credentials(self, key: str) -> dict[str, str]:
        """The headers that show a key; none for an empty one."""
        if not key:
            return {}
        return {self.key_header: key} if self.key_header else {"authorization": f"Bearer {key}"}

    def add_parameters(self, body: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
        """The body of a request with parameters that no dialect has a name for."""
        beside = {name: value for name, value in parameters.items() if not self.parameters or name in self.beside}
        rest = {name: value for name, value in parameters.items() if name not in beside}
        return body | beside | ({self.parameters: body.get(self.parameters, {}) | rest} if rest else {})

    def read_models(self, answer: Any) -> list[ListedModel] | None:
        """The models in the answer from `models_path`; None where it holds no list."""
        listed = as_object(answer).get(self.models_field)
        if not isinstance(listed, list):
            return None
        return [model for entry in as_objects(listed) if (model := self.read_model(entry)) is not None]

    def dialect(self, request: Request) -> Dialect:
        """The dialect in which it is asked for a reply to this request."""
        return self.chat if request.prompt is None else self.prompts

    def speaks(self, dialect: Dialect) -> bool:
        """Whether a client's request may go to it as it is, and its own headers and errors to the client."""
        return dialect in self.dialects


def _openai_model(entry: dict[str, Any]) -> ListedModel | None:
    if not isinstance(entry.get("id"), str):
        return None
    created, known = entry.get("created"), ("id", "object", "created", "owned_by")
    return ListedModel(
        entry["id"],
        created if isinstance(created, int) else 0,
        as_text(entry.get("owned_by")) or "upstream",
        extra={name: value for name, value in entry.items() if name not in known},
    )


def _ollama_model(entry: dict[str, Any]) -> ListedModel | None:
    name = entry.get("model") or entry.get("name")
    return ListedModel(name, _seconds(entry), "ollama", entry) if isinstance(name, str) else None


def _anthropic_model(entry: dict[str, Any]) -> ListedModel | None:
    name = entry.get("id")
    return ListedModel(name, _seconds(entry, "created_at"), "anthropic") if isinstance(name, str) else None


def _seconds(entry: dict[str, Any], field: str = "modified_at") -> int:
    try:
        return int(datetime.fromisoformat(as_text(entry.get(field))).timestamp())
    except (ValueError, OverflowError):
        return 0


def _read_ollama_shown(answer: dict[str, Any]) -> ShownModel:
    # Ollama's own templates are in Go's language; models that carry Jinja show it in their metadata.
    template = as_object(answer.get("model_info")).get("tokenizer.chat_template") or answer.get("template")
    listed = answer.get("capabilities")
    return ShownModel(
        template if isinstance(template, str) and "{%" in template else "",
        tuple(map(str, listed)) if isinstance(listed, list) else None,
    )


OPENAI = ServerKind(
    name="openai",
    title="OpenAI chat completions",
    dialects=(openai_chat, openai_completions),
    chat=openai_chat,
    prompts=openai_completions,
    thinking_field="reasoning_content",
    models_path="/v1/models",
    models_field="data",
    read_model=_openai_model,
    show=lambda model: ("GET", f"/props?model={quote(model, safe='')}", None),  # llama.cpp's
    read_shown=lambda answer: ShownModel(as_text(answer.get("chat_template"))),
    tokenize_path="/tokenize",  # vLLM's and llama.cpp's
)
"""Servers with OpenAI's paths: vLLM, SGLang, llama.cpp and most others."""
OLLAMA = ServerKind(
    name="ollama",
    title="Ollama",
    dialects=(ollama,),
    chat=ollama,
    prompts=ollama,
    thinking_field="thinking",
    models_path="/api/tags",
    models_field="models",
    read_model=_ollama_model,
    show=lambda model: ("POST", "/api/show", to_json({"model": model})),
    read_shown=_read_ollama_shown,
    show_path="/api/show",
    version_path="/api/version",
    running_path="/api/ps",
    parameters="options",
    beside=frozenset({"keep_alive"}),
)
"""Ollama, by its own paths."""
ANTHROPIC = ServerKind(
    name="anthropic",
    title="Anthropic's Messages API",
    dialects=(anthropic,),
    chat=anthropic,
    prompts=anthropic,
    thinking_field="thinking",
    models_path="/v1/models?limit=1000",  # it lists 20 unless it is asked for more
    models_field="data",
    read_model=_anthropic_model,
    count_path="/v1/messages/count_tokens",
    key_header="x-api-key",
    headers={"anthropic-version": "2023-06-01"},
    separates=True,
    proved=True,
    budgets=True,
    binding_headers={"anthropic-beta": BINDING_BETA},
)
"""Anthropic, and others with its Messages API."""
RESPONSES = ServerKind(
    name="responses",
    title="OpenAI Responses",
    dialects=(openai_responses,),
    chat=openai_responses,
    prompts=openai_responses,
    thinking_field="summary_text",
    models_path="/v1/models",
    models_field="data",
    read_model=_openai_model,
    separates=True,
    proved=True,
    stops=False,
    stateless=True,
)
"""OpenAI by its Responses API, and others that have it."""
KINDS: dict[str, ServerKind] = {kind.name: kind for kind in (OPENAI, OLLAMA, ANTHROPIC, RESPONSES)}
"""Every kind, by the name that the configuration uses."""
VERSION_PATH = OLLAMA.version_path
"""What a server is asked to find out its kind."""


def kind_of(version: Any) -> ServerKind:
    """The kind of a server that answered this to `VERSION_PATH`: only Ollama has that path."""
    return OLLAMA if isinstance(version, dict) and "version" in version else OPENAI
