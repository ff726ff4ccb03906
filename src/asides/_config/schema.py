"""What may be configured: typed records with their defaults, and which of them hold for a model.

The records are the one place where a setting is declared. From them follow what the file may hold and how a mistake is
explained (`reading`, `values`), the variable of each setting (`loading`), and the tables of docs/configuration.md, for
which the text under each field is its meaning.

    resolve_model(config, "Qwen/Qwen3-8B").format       of `models: {"Qwen/*": ...}`, else of `defaults`

Reads no file and no environment.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Literal, Unpack

import msgspec

from ..policies import DEFAULTS, CallsInThinking, Mentions, Policies, PolicyOptions, Start, Whitespace

ReasoningField = Literal[
    "raw", "summary", "both", "drop", "reasoning_content", "reasoning", "thinking", "details", "tags"
]
"""Where clients find thinking: the choices of every dialect, and those of `asides.dialects.openai_chat`."""
Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of the configuration; a key that it does not know is an error."""


class Listen(Section, frozen=True):
    """Where the gateway listens."""

    host: str = "127.0.0.1"
    """A name or an address. Only programs of this machine reach 127.0.0.1; beyond it, set `keys`."""
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8777
    """0 takes a free one and says which."""
    workers: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    """Processes that share the port, each with one core. More than one need a store that they share: `store: history`
    in `responses` and in `replay_cache`."""


class UpstreamSettings(Section, frozen=True):
    """One model server."""

    url: str
    """Its address, with or without `/v1` at its end."""
    name: str = ""
    """What logs and models call it; its host and port where it has no name."""
    kind: Literal["auto", "openai", "ollama"] = "auto"
    """`auto` asks for `/api/version`, which only Ollama answers."""
    key: str = ""
    """The key it is given. Empty: the client's own where the gateway has no keys, else none. `$NAME` and `${NAME}`
    are taken from the environment."""
    headers: dict[str, str] = {}
    """Sent with every request."""
    engine: Literal["auto", "vllm", "sglang", "llamacpp", "other"] = "auto"
    """What runs the models: how thinking budgets are passed on. `auto`: as its list of models says."""
    models: tuple[str, ...] = ()
    """The names it serves, with `*` and `?`. Empty: those that it lists."""
    skip_special_tokens: bool = False
    """Whether it takes this field; then `false` is sent to formats whose markers are special tokens."""


class BudgetSettings(Section, frozen=True):
    """How much a model may think. A text in its place is `field`."""

    SHORTHAND: ClassVar[str] = "field"
    field: str = ""
    """The name under which the upstream keeps to a thinking budget. Empty: as what runs there has it."""
    tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """The budget of requests that name none. None: without bound."""
    enforce: Literal["continue", "cut", "never"] | None = None
    """Where the upstream keeps to no budget: `continue` ends the thought and lets the model go on with its answer,
    `cut` ends the reply with `length`, `never` lets the thought run on. None: `continue`."""
    tokenizer: str = ""
    """A `tokenizer.json` to count with. Empty: four bytes count as a token."""


class ModelSettings(Section, frozen=True):
    """How one model, or all whose name matches, is read and asked."""

    upstream: str = ""
    """The name of the upstream that serves it."""
    name: str = ""
    """The upstream's own name of it; empty for the client's."""
    format: str = ""
    """Empty: found by the model's name or its chat template, else `auto`. `none`: not split at all."""
    tags: dict[str, str] = {}
    """Markers of your own in place of a format: each that opens a thought, with the one that closes it."""
    start: Start | None = None
    """Where replies begin. None: as the request, the template or the format has it. With `undecided` a stream waits
    for the first marker."""
    reasoning: ReasoningField | None = None
    """Where clients find thinking. `raw`, `summary`, `both` and `drop` hold for every API, the others name a chat
    client's field. None: `both` for Responses, `reasoning_content` for chat."""
    extra_body: dict[str, Any] = {}
    """Merged into every request for this model; wins over the client's own fields."""
    calls: Literal["auto", "always", "never"] | None = None
    """Whether calls are read from the text; `auto`: where the request has tools. None for the gateway's default."""
    calls_in_thinking: CallsInThinking | None = None
    """What a call inside open thinking is: `resolve` makes it a call where the turn ends with it. None: as the format
    says."""
    mentions: Mentions | None = None
    """What a quoted or fenced marker is: words about it, or a marker that acts. None: `literal`."""
    whitespace: Whitespace | None = None
    """Whether whitespace beside markers belongs to them or to the reply. None: `tidy`."""
    repair: bool | None = None
    """Whether the closing brackets that a cut-off call lacks are written. None: no."""
    empty_answer: Literal["leave", "thinking"] | None = None
    """`thinking` puts a thought that never closed into an answer that is empty; None for the gateway's default."""
    switch: str = ""
    """The chat template's keyword that turns thinking on and off. Empty: found in the template, or the family's."""
    budget: BudgetSettings = BudgetSettings()
    """How much it may think: a section of its own, below."""
    replay: Literal["auto", "reasoning_content", "reasoning", "tags", "drop"] = "auto"
    """How thinking of earlier turns is sent back."""
    keep_thinking: Literal["all", "tool_turns", "none"] | None = None
    """Which earlier thinking is sent back; None for what the dialect's default says."""


class Limits(Section, frozen=True):
    """What the gateway bears."""

    body: Positive = 64 * 1024 * 1024
    """Bytes of a request, and of a whole reply."""
    header: Positive = 64 * 1024
    """Bytes of a request's headers."""
    upload: Seconds = 30.0
    """Seconds that a request's body may take, besides a second for each `upload_rate` bytes of it."""
    upload_rate: Positive = 16 * 1024
    """Bytes a second at which a body must come once `upload` is over."""
    messages: Positive = 10_000
    """Messages, and tools, of one request."""
    values: Positive = 1_000_000
    """JSON values of one request, or of a whole reply: strings, numbers, lists and all else."""
    concurrency: Positive = 2000
    """Requests at once; one more is a 429."""
    frame: Positive = 16 * 1024 * 1024
    """Bytes of one frame of an upstream's stream; a larger one ends the reply."""
    calls: Positive = 1000
    """Calls in one reply; one more ends it."""
    held: Positive = DEFAULTS.limit
    """Characters that a parser may hold back."""
    connect: Seconds = 10.0
    """Seconds to reach an upstream."""
    idle: Seconds = 600.0
    """Seconds without a byte from an upstream that is waited for. There is no limit on the whole."""
    keep_alive: Seconds = 15.0
    """Seconds after which an idle stream is sent keep-alive bytes."""
    shutdown: Seconds = 30.0
    """Seconds that open streams have to end when the gateway stops."""


class ReplayCacheSettings(Section, frozen=True):
    """The replay cache: thoughts kept in memory for clients that drop them between tool turns. Formerly `cache`."""

    store: Literal["memory", "history"] = "memory"
    """`history`: also in the store that `history.store` names, where other workers and gateways find them."""
    entries: Annotated[int, msgspec.Meta(ge=0)] = 1000
    """0 turns it off."""
    characters: Positive = 16 * 1024 * 1024
    """All entries together."""


class ResponsesSettings(Section, frozen=True):
    """Replies of the Responses API that are kept, so that clients can refer to them by id."""

    store: Literal["memory", "history"] = "memory"
    """`history`: in the store that `history.store` names, where they outlast the process and others find them."""
    entries: Annotated[int, msgspec.Meta(ge=0)] = 10_000
    """How many are kept; those used longest ago go first. 0 keeps none."""
    size: Positive = 64 * 1024 * 1024
    """Bytes of all of them together, as JSON. In memory each takes some 700 bytes more."""
    keep_days: Annotated[float, msgspec.Meta(gt=0, le=36500)] = 30.0
    """Days since its last use after which one is deleted."""


class Log(Section, frozen=True):
    """What the gateway logs, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least that is logged. A request is `info`, one that failed with 5xx a `warning`."""
    form: Literal["auto", "json", "text"] = "auto"
    """`auto`: text on a terminal, else JSON lines."""
    bodies: bool = False
    """Whether the text of requests and replies may be logged."""


class HistorySettings(Section, frozen=True):
    """Kept thoughts. Off until asked."""

    save: bool = False
    """Whether the gateway keeps what passes through it."""
    store: str = ""
    """A file or a `postgresql://` address; empty for the usual place."""
    keep_days: Annotated[int, msgspec.Meta(ge=0, le=36500)] = 0
    """A gateway that keeps deletes replies that are older, whoever kept them: at its start and every hour. 0: none."""


class PageSettings(Section, frozen=True):
    """The web page that comes with the gateway. `on` or `off` in its place is `show`."""

    SHORTHAND: ClassVar[str] = "show"
    show: bool = True
    """Whether the gateway serves the page and what it reads (docs/page.md)."""
    watch: Literal["off", "own", "all"] = "off"
    """Whether the page shows requests of other clients while they are answered. `own`: those of the same key; `all`:
    those of every key, to an operator's key. Texts of the last requests are then held in memory."""


class KeySettings(Section, frozen=True):
    """A key that clients may show. A text in its place is `key`."""

    key: str
    """The key itself; `$NAME` and `${NAME}` are taken from the environment."""
    operator: bool = False
    """Whether it may read on the page what other keys asked, and what belongs to no key."""
    name: str = ""
    """What the page calls its client."""


class Telemetry(Section, frozen=True):
    """Spans of OpenTelemetry, by its GenAI conventions. Where they go is for its own variables (`OTEL_...`)."""

    spans: bool = False
    """Whether each request for a reply is reported as a span. Needs the extra `otel`."""
    content: bool = False
    """Whether spans hold the text of requests and replies."""


class RunSettings(Section, frozen=True):
    """`asides run`."""

    url: str = ""
    """The server it talks to."""
    key: str = ""
    """The key it shows there; `$NAME` and `${NAME}` are taken from the environment."""
    model: str = ""
    """The model it asks for."""
    think: bool | Literal["low", "medium", "high", "max"] | None = None
    """Whether the model is asked to think, and how hard. None: as the model pleases."""
    hide_thinking: bool = False
    """Whether thoughts are left out."""


class Terminal(Section, frozen=True):
    """How thoughts and answers look on a terminal."""

    heading: str = "blue"
    """The colour of the line above a thought."""
    text: str = "cyan"
    """The colour of a thought."""
    wrap: bool = True
    """Whether long lines are broken at words."""


class ThinkTagsSection(Section, frozen=True):
    """SelfAI's section, as its documents have it. Our own settings win over it."""

    enabled: bool = True
    """`false`: outputs are not split, as with `format: none` of `defaults`."""
    display_in_ui: bool = True
    """`false`: thoughts are left out, by the filter and by `asides run` (`hide_thinking`)."""
    save_to_memory: bool = False
    """`true`: replies are kept with their thoughts, by the filter, `asides run` and the gateway (`save` of
    `history`)."""
    display_style: str = ""
    """The colour of the line above a thought: `blue`, `cyan`, `grey`, or any other (`heading` of `terminal`)."""


class InferenceService(msgspec.Struct, frozen=True, kw_only=True):
    """NexRL's section. Only these of its keys are read."""

    reasoning_parser: str = ""


class Config(Section, frozen=True):
    """The whole configuration."""

    listen: Listen = Listen()
    upstreams: tuple[UpstreamSettings, ...] = ()
    """None: the embedded recordings."""
    models: dict[str, ModelSettings] = {}
    """By name, with `*` and `?`; an exact name wins, then the first pattern that matches."""
    defaults: ModelSettings = ModelSettings()
    """For models, or settings of models, that are not named above."""
    keys: tuple[str | KeySettings, ...] = ()
    """Keys that clients must show one of: texts, or sections of their own, below. None: everyone may ask."""
    cors: tuple[str, ...] = ()
    """Origins that a browser may ask from, with `*` as in `vscode-webview://*`; `*` alone for all."""
    allowed_hosts: tuple[str, ...] = ()
    """Names, beside the loopback's, that the gateway may be called by: `chat.example`, `chat.example:80`; `*`: any."""
    pass_on: tuple[str, ...] = ()
    """Paths that go to the upstream as they are, beside the usual: `/v1/files`, `DELETE /v1/files/*`; `all`: any."""
    forward_headers: tuple[str, ...] = ()
    """Headers of clients that upstreams get, beside the usual ones."""
    forward_user: bool = False
    """Whether upstreams get `user` and `metadata.user_id` of requests."""
    strict: bool = False
    """Whether a request is refused for a tool that only its API's own server could run (`web_search`…). If not, the
    tool is left out, and the log and the header `X-Asides-Left-Out` name it."""
    keep_alive: Literal["comment", "empty", "off"] = "comment"
    """What an idle chat stream is kept open with: an SSE comment, an empty delta, or nothing."""
    limits: Limits = Limits()
    replay_cache: ReplayCacheSettings = ReplayCacheSettings()
    responses: ResponsesSettings = ResponsesSettings()
    log: Log = Log()
    history: HistorySettings = HistorySettings()
    page: PageSettings = PageSettings()
    telemetry: Telemetry = Telemetry()
    run: RunSettings = RunSettings()
    terminal: Terminal = Terminal()
    think_tags: ThinkTagsSection = ThinkTagsSection()
    """SelfAI's section."""
    inference_service: InferenceService = InferenceService()
    """`reasoning_parser` is the default format where `defaults.format` is empty."""


def keys_of(config: Config) -> tuple[KeySettings, ...]:
    """The keys that clients may show, each with its settings."""
    return tuple(KeySettings(key=entry) if isinstance(entry, str) else entry for entry in config.keys)


BUILT_IN = ModelSettings()
"""What holds for a model of which nothing is configured."""


def resolve_model(config: Config, name: str) -> ModelSettings:
    """The settings of an exact name, else of the first pattern that matches, over `defaults`, field by field.

    A field that has its built-in value counts as not given. `format` and `tags` replace each other. The fields of the
    two `extra_body` are put together.
    """
    own = config.models.get(name)
    if own is None:
        own = next((settings for pattern, settings in config.models.items() if matches(name, pattern)), None)
    if own is None:
        return config.defaults
    given = {
        field: value
        for field in ModelSettings.__struct_fields__
        if (value := getattr(own, field)) != getattr(BUILT_IN, field)
    }
    if "budget" in given:
        own_budget = {name: value for name, value in msgspec.structs.asdict(own.budget).items() if value}
        given["budget"] = msgspec.structs.replace(config.defaults.budget, **own_budget)
    if "format" in given or "tags" in given:
        given = {"format": "", "tags": {}, **given}
    if "extra_body" in given:
        given["extra_body"] = {**config.defaults.extra_body, **own.extra_body}
    return msgspec.structs.replace(config.defaults, **given)


def policies_of(settings: ModelSettings, **others: Unpack[PolicyOptions]) -> Policies:
    """How a model's replies are read. `others`, what a flag, a header or the request says, win over the settings."""
    chosen: PolicyOptions = {"start": settings.start, "calls_in_thinking": settings.calls_in_thinking}
    if settings.mentions is not None:
        chosen["mentions"] = settings.mentions
    if settings.whitespace is not None:
        chosen["whitespace"] = settings.whitespace
    if settings.repair is not None:
        chosen["repair"] = settings.repair
    chosen.update(others)
    return Policies(**chosen)


def matches(name: str, pattern: str) -> bool:
    """Whether a model's name matches: `*` is any run of characters, `?` is one; all else is itself."""
    return fnmatchcase(name, pattern.replace("[", "[[]"))


RENAMED = {"cache": "replay_cache"}
"""Sections by the names that they had before. These still count, with a warning."""
