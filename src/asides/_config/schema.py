"""What may be configured: typed records with their defaults, and which of them hold for a model.

The records are the one place where a setting is declared. From them follow what the file may hold and how a mistake is
explained (`reading`, `values`), the variable of each setting (`loading`), and the tables of
docs/reference/configuration.md, for which the text under each field is its meaning.

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
    """Where the gateway listens for clients."""

    host: str = "127.0.0.1"
    """The host name or address to listen on. 127.0.0.1 can be reached from this machine only; for any other, set
    `keys`."""
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8777
    """The port to listen on. 0: any free port, which is logged."""
    workers: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    """Processes that share the port, each on one core. More than one need a store that they share: `store: history` in
    `responses` and in `replay_cache`."""


class UpstreamSettings(Section, frozen=True):
    """The model servers, a list: each has these keys."""

    url: str
    """Its address, with or without `/v1` at the end, such as `http://127.0.0.1:8000/v1`; `localhost:8000` is
    `http://localhost:8000`."""
    name: str = ""
    """A name for it in logs and in `upstream` of `models`. Empty: its host and port."""
    kind: Literal["auto", "openai", "ollama", "anthropic", "responses"] = "auto"
    """The API of the server: OpenAI's chat completions, Ollama's, Anthropic's Messages or OpenAI's Responses. `auto`:
    that of a provider which is known by the name of its host, else found by a request to `/api/version`, which only
    Ollama answers; beyond loopback and private networks that request has neither the `key` nor the `headers`."""
    key: str = ""
    """The API key that is sent to it. Empty: the client's own key if the gateway has no `keys`, else none. `$NAME` and
    `${NAME}` are taken from the environment."""
    headers: dict[str, str] = {}
    """Headers that are sent with every request, by name."""
    engine: Literal["auto", "vllm", "sglang", "llamacpp", "other"] = "auto"
    """The program that runs the models; it decides how thinking budgets are sent, and how the server is asked for the
    prompt that it makes. `auto`: found by its list of models. `other`: it is asked nothing."""
    models: tuple[str, ...] = ()
    """The names of the models that it serves; `*` and `?` are wildcards. Empty: those that it lists."""
    reuse: Literal["same_key", "any"] = "same_key"
    """Whose requests may follow each other on one connection to it: those of the `same_key`, or of `any`. An answer
    that a faulty server sends twice is then never another key's. Clients without a key count as one."""
    skip_special_tokens: bool = False
    """Whether it accepts the request field `skip_special_tokens`. If so, `false` is sent for formats whose markers are
    special tokens."""


class BudgetSettings(Section, frozen=True):
    """How much a model may think. In place of the section, a text is taken as `field`."""

    SHORTHAND: ClassVar[str] = "field"
    field: str = ""
    """The request field by which the upstream limits thinking. Empty: the field of its `engine`."""
    tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """The most tokens of thinking for requests that set no budget themselves. Not set: no limit."""
    enforce: Literal["continue", "cut", "never"] | None = None
    """What the gateway does when the upstream does not obey a budget: `continue` ends the thought and lets the model
    write its answer, `cut` ends the reply with the reason `length`, `never` does nothing. Not set: `continue`."""
    tokenizer: str = ""
    """The path of a `tokenizer.json` to count tokens with. Empty: the model's `tokenizer`; if that is empty too, four
    bytes count as one token."""


class ModelSettings(Section, frozen=True):
    """How the replies of a model, or of all models whose name matches, are read, and how the model is asked."""

    upstream: str = ""
    """The name of the upstream that serves it. Empty: found by the upstreams' `models`, or by what they list."""
    name: str = ""
    """The model's name on the upstream. Empty: the name that the client sends."""
    format: str = ""
    """The model's format, such as `qwen3` (`asides formats` lists them). Empty: found by the model's name or its chat
    template, else `auto`. `none`: replies are not split."""
    tags: dict[str, str] = {}
    """Your own markers in place of a format: each opening marker with its closing one."""
    start: Start | None = None
    """Where replies begin. Not set: found by the request, the chat template or the format. With `undecided` a stream is
    held back until the first marker."""
    reasoning: ReasoningField | None = None
    """Where clients find thinking. `raw`, `summary`, `both` and `drop` apply to every API; the others name the field of
    chat replies. Not set: `summary` for the Responses API, `reasoning_content` for chat."""
    pass_reply_fields: tuple[str, ...] = ()
    """Fields of an upstream's replies that reach clients of the same API though thinking is dropped. Any field that is
    not known may repeat the thought, so with `reasoning: drop` no other of a message passes but `extra_content` of a
    tool call."""
    extra_body: dict[str, Any] = {}
    """Fields that are added to every request for this model; they replace the client's own."""
    calls: Literal["auto", "always", "never"] | None = None
    """Whether tool calls are read from the text. `auto`, the default: if the request or an earlier turn has tools."""
    calls_in_thinking: CallsInThinking | None = None
    """How a tool call inside a thought is read. `never`: as part of the thought; `always`: as a call; `resolve`: as a
    call if the reply ends with it. Not set: as the format says, mostly `resolve`."""
    mentions: Mentions | None = None
    """How a marker in quotes or in a code block is read: as `literal` text, or as a `marker`. Not set: `literal`."""
    whitespace: Whitespace | None = None
    """Whether whitespace beside markers is removed (`tidy`) or left in the reply (`exact`). Not set: `tidy`."""
    repair: bool | None = None
    """Whether the closing brackets that a cut-off call lacks are added. Not set: `false`."""
    empty_answer: Literal["leave", "thinking"] | None = None
    """What an empty answer becomes after a thought that was never closed: `leave` leaves it empty, `thinking` puts the
    thought there. Not set: `leave`."""
    switch: str = ""
    """The keyword of the chat template that turns thinking on and off, such as `enable_thinking`. Empty: found in the
    template, or that of the model family."""
    tokenizer: str = ""
    """The path of the model's `tokenizer.json`, for `token_ids` and to count tokens."""
    token_ids: bool | None = None
    """Whether vLLM and SGLang are asked for the ids of the tokens that they write, so that markers are known by their
    ids; needs `tokenizer`. A server that splits replies by itself is not asked. Not set: `true`."""
    budget: BudgetSettings = BudgetSettings()
    """How many tokens the model may think: a section of its own, below."""
    replay: Literal["auto", "reasoning_content", "reasoning", "tags", "drop"] = "auto"
    """How thinking of earlier turns is sent to the upstream: in this field, as `tags` in the text, or not at all
    (`drop`). `auto`: in the field that the chat template or the upstream uses."""
    keep_thinking: Literal["all", "tool_turns", "none"] | None = None
    """Which thinking of earlier turns is sent to the upstream: `all`, that of turns with tool calls
    (`tool_turns`), or `none`. Not set: `all`."""


class Limits(Section, frozen=True):
    """Limits that protect the gateway. All times are in seconds."""

    body: Positive = 64 * 1024 * 1024
    """The most bytes of a request, and of a whole reply."""
    header: Positive = 64 * 1024
    """The most bytes of a request's headers."""
    upload: Seconds = 30.0
    """Seconds in which a request's body must arrive, plus one second for each `upload_rate` bytes of it."""
    upload_rate: Positive = 16 * 1024
    """Bytes a second at which a body must arrive after `upload` seconds."""
    messages: Positive = 10_000
    """The most messages, and the most tools, in one request."""
    choices: Positive = 128
    """The most choices of one request: `n`, or `best_of`; of several prompts those of all together."""
    values: Positive = 1_000_000
    """The most JSON values (strings, numbers, lists, objects and others) in one request or in a whole reply."""
    concurrency: Positive = 2000
    """The most requests at the same time; further ones are answered with 429."""
    frame: Positive = 16 * 1024 * 1024
    """The most bytes of one frame of an upstream's stream; a larger one ends the reply with an error."""
    calls: Positive = 1000
    """The most tool calls in one reply; a further one ends the reply with an error."""
    capsule: Positive = 256 * 1024
    """The most characters of a sealed proof that a client is given to carry; the replay cache has larger ones."""
    held: Positive = DEFAULTS.limit
    """The most characters that the parser holds back until it is clear what they are."""
    connect: Seconds = 10.0
    """Seconds in which a connection to an upstream must be made."""
    idle: Seconds = 600.0
    """Seconds that the gateway waits for the next byte of an upstream. The whole reply has no time limit."""
    keep_alive: Seconds = 15.0
    """Seconds without data after which a stream gets keep-alive bytes."""
    shutdown: Seconds = 30.0
    """Seconds that open streams have to finish when the gateway stops."""


class ReplayCacheSettings(Section, frozen=True):
    """The replay cache: thoughts that clients drop between tool turns, stored to be put back. Formerly `cache`."""

    store: Literal["memory", "history"] = "memory"
    """Where thoughts are stored: in `memory`, or also in the store of `history.store`, where other workers and gateways
    find them."""
    entries: Annotated[int, msgspec.Meta(ge=0)] = 1000
    """The most turns whose thoughts are stored; the oldest of the key that has most are deleted first. 0: no cache."""
    characters: Positive = 16 * 1024 * 1024
    """The most characters of all entries together."""


class ContinuitySettings(Section, frozen=True):
    """What hosted providers want back with thoughts, and how clients carry it (docs/how-to/hosted.md)."""

    keys: tuple[Annotated[str, msgspec.Meta(min_length=32)], ...] = ()
    """Keys of at least 32 characters for what clients carry: the first seals, all open. Not set: one is made in the
    user's state folder when it is first needed; several machines must be given the same. `$NAME` and `${NAME}` are
    taken from the environment."""
    carry: bool = True
    """Whether clients are given sealed proofs to carry. If not, only the replay cache has them."""
    foreign_thoughts: Literal["text", "drop"] = "drop"
    """What a provider that takes thoughts only with its own proof is sent of others: their text between tags, or
    nothing."""


class ResponsesSettings(Section, frozen=True):
    """Stored replies of the Responses API, to which clients refer by id (`previous_response_id`)."""

    store: Literal["memory", "history"] = "memory"
    """Where replies are stored: in `memory`, or in the store of `history.store`, where they survive a restart and other
    workers find them."""
    entries: Annotated[int, msgspec.Meta(ge=0)] = 10_000
    """The most replies that are stored; of the key that has most, those unused for the longest time are deleted first.
    0: none is stored."""
    size: Positive = 64 * 1024 * 1024
    """The most bytes of all of them together, as JSON. In memory each takes about 700 bytes more."""
    keep_days: Annotated[float, msgspec.Meta(gt=0, le=36500)] = 30.0
    """Days without use after which a reply is deleted."""


class Log(Section, frozen=True):
    """What the gateway logs, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is logged. A request is logged as `info`, one that failed with a status of 500 or more as
    `warning`."""
    form: Literal["auto", "json", "text"] = "auto"
    """Lines of text or of JSON. `auto`: text on a terminal, else JSON."""
    bodies: bool = False
    """Whether the text of requests and replies is logged too."""


class HistorySettings(Section, frozen=True):
    """Saved replies with their thoughts. Off by default."""

    save: bool = False
    """Whether the gateway saves replies with their thoughts."""
    store: str = ""
    """Where replies are saved: a file or a `postgresql://` address. Empty: `~/.local/share/asides/history.db`."""
    keep_days: Annotated[int, msgspec.Meta(ge=0, le=36500)] = 0
    """Days after which a gateway that saves deletes replies from the store, also those that other commands saved; it
    looks at its start and every hour. 0: never."""


class PageSettings(Section, frozen=True):
    """The web page of the gateway. In place of the section, `on` or `off` is taken as `show`."""

    SHORTHAND: ClassVar[str] = "show"
    show: bool = True
    """Whether the gateway serves the web page and the paths that it reads (docs/how-to/page.md)."""
    watch: Literal["off", "own", "all"] = "off"
    """Whether the page shows running requests of other clients. `own`: those with the same key; `all`: those of every
    key, to a key with `operator`. The texts of the last requests are then held in memory."""


class KeySettings(Section, frozen=True):
    """A key that clients may send. In place of the section, a text is taken as `key`."""

    key: str
    """The key itself; `$NAME` and `${NAME}` are taken from the environment."""
    operator: bool = False
    """Whether this key may see on the page what other keys requested, and what was requested without a key."""
    page: bool = True
    """Whether this key may read on the page what was requested with it. If no key may, the start token does that
    (docs/how-to/page.md)."""
    name: str = ""
    """The name of its client on the page."""


class Telemetry(Section, frozen=True):
    """Spans of OpenTelemetry, by its GenAI conventions. Its own variables (`OTEL_...`) set where they are sent."""

    spans: bool = False
    """Whether each request is reported as a span. Needs the extra `otel`."""
    content: bool = False
    """Whether spans contain the text of requests and replies."""


class RunSettings(Section, frozen=True):
    """Defaults of `asides run`."""

    url: str = ""
    """The address of the server. Empty: see `asides run --help`."""
    key: str = ""
    """The API key that is sent to it; `$NAME` and `${NAME}` are taken from the environment."""
    model: str = ""
    """The model for commands that name none. Empty: the server's only model."""
    think: bool | Literal["low", "medium", "high", "max"] | None = None
    """Whether the model is asked to think, and how much. Not set: the model's own default."""
    hide_thinking: bool = False
    """Whether thoughts are hidden, as with `--hidethinking`."""


class Terminal(Section, frozen=True):
    """How thoughts and answers look on a terminal."""

    heading: str = "bold"
    """The colour of the line above a thought: a name such as `blue`, a number below 256 or `#8899aa`; also `bold`,
    `dim`, `italic`, `underline`, joined by `+`."""
    text: str = "dim"
    """The colour of the thought itself, written likewise."""
    wrap: bool = True
    """Whether long lines are wrapped at words."""


class ThinkTagsSection(Section, frozen=True):
    """The section of SelfAI, as its documents describe it. The settings above win over it."""

    enabled: bool = True
    """`false`: outputs are not split, as with `format: none` of `defaults`."""
    display_in_ui: bool = True
    """`false`: thoughts are hidden, by the filter and by `asides run` (as with `hide_thinking`)."""
    save_to_memory: bool = False
    """`true`: replies are saved with their thoughts, by the filter, `asides run` and the gateway (as with `save` of
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
    """The model servers. Not set: the gateway plays its recordings."""
    models: dict[str, ModelSettings] = {}
    """Settings for models by name; `*` and `?` are wildcards. An exact name wins, then the first pattern that
    matches."""
    defaults: ModelSettings = ModelSettings()
    """Settings for all other models, and what a model's own settings leave open."""
    keys: tuple[str | KeySettings, ...] = ()
    """Keys of which clients must send one: texts, or sections of their own, below. Not set: no key is needed."""
    cors: tuple[str, ...] = ()
    """Origins whose web pages may call the gateway, such as `https://chat.example`; `vscode-webview://*` with a
    wildcard; `*` for all."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names by which the gateway may be called besides its usual ones (docs/explanation/gateway.md):
    `chat.example`, `chat.example:80`; `*` for any."""
    pass_on: tuple[str, ...] = ()
    """Further paths that are forwarded to the upstream unchanged: `/v1/files`, `DELETE /v1/files/*`; `all` for any."""
    forward_headers: tuple[str, ...] = ()
    """Further headers of clients that are forwarded to upstreams."""
    return_headers: tuple[str, ...] = ()
    """Further headers of upstreams that are returned to clients."""
    forward_user: bool = False
    """Whether `user` and `metadata.user_id` of requests are forwarded to upstreams."""
    strict: bool = False
    """Whether a request is refused if it has a tool that only the API's own server could run (`web_search` and others).
    If not, the tool is removed, and the log and the header `X-Asides-Left-Out` name it."""
    keep_alive: Literal["comment", "empty", "off"] = "comment"
    """What is sent on a chat stream that has no data: an SSE comment, an empty delta, or nothing."""
    limits: Limits = Limits()
    replay_cache: ReplayCacheSettings = ReplayCacheSettings()
    continuity: ContinuitySettings = ContinuitySettings()
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
