"""Loading: which file is read, what wins over what, and what a file may say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from asides._config import Config, ConfigError, load, load_all, resolve_model, show
from asides._config.schema import PageSettings, keys_of
from asides._config.values import Origin
from asides.errors import UsageError


def written(folder: Path, text: str, name: str = "asides.yaml") -> Path:
    """A file with this text."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file of the person who runs the tests is found."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def home(tmp_path: Path, **others: str) -> dict[str, str]:
    """An environment whose configuration folder is empty."""
    return {"HOME": str(tmp_path / "home"), **others}


def test_nothing_at_all_is_the_built_in_configuration(tmp_path: Path) -> None:
    """Without a file, variables and flags, every setting has its default."""
    assert load(environ=home(tmp_path)) == Config()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("localhost:8000", "http://localhost:8000"),
        ("gpu-1.lan:8000/v1", "http://gpu-1.lan:8000/v1"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("https://a:1", "https://a:1"),
    ],
)
def test_an_address_may_be_host_and_port(tmp_path: Path, typed: str, meant: str) -> None:
    """In a flag, a variable or a file; what follows knows whole addresses alone."""
    path = written(tmp_path, f"upstreams: [{{url: '{typed}'}}]\nrun: {{url: '{typed}'}}")
    config = load(path, environ=home(tmp_path))
    assert (config.upstreams[0].url, config.run.url) == (meant, meant)
    variable = load(environ=home(tmp_path, ASIDES_UPSTREAM=typed))
    flag = load_all(environ=home(tmp_path), flags={"upstreams": [typed]}).config
    assert [variable.upstreams[0].url, flag.upstreams[0].url] == [meant, meant]
    assert flag.upstreams[0].name == meant.partition("://")[2].removesuffix("/v1")


@pytest.mark.parametrize("typed", ["gpu", "http:/gpu:8000", "localhost:", "localhost:http", "ftp://a:1"])
def test_a_word_is_no_address(tmp_path: Path, typed: str) -> None:
    with pytest.raises(ConfigError, match=r"http://127\.0\.0\.1:8000/v1"):
        load_all(environ=home(tmp_path), flags={"upstreams": [typed]})


def test_the_file_is_looked_for_in_order(tmp_path: Path) -> None:
    """An explicit path wins over ASIDES_CONFIG, that over the user's folder; the current one counts where asked for."""
    places = {
        "explicit": written(tmp_path, "listen: {port: 1}", "explicit.yaml"),
        "variable": written(tmp_path, "listen: {port: 2}", "variable.yaml"),
        "here": written(tmp_path / "here", "listen: {port: 3}"),
        "xdg": written(tmp_path / "xdg" / "asides", "listen: {port: 4}"),
        "home": written(tmp_path / "home" / ".config" / "asides", "listen: {port: 5}"),
    }
    environ = home(tmp_path, ASIDES_CONFIG=str(places["variable"]), XDG_CONFIG_HOME=str(tmp_path / "xdg"))
    assert load(places["explicit"], environ=environ).listen.port == 1
    assert load(environ=environ).listen.port == 2
    del environ["ASIDES_CONFIG"]
    assert load(environ=environ).listen.port == 4
    assert load_all(environ=environ, here=True).config.listen.port == 3
    places["here"].unlink()
    assert load_all(environ=environ, here=True).config.listen.port == 4
    del environ["XDG_CONFIG_HOME"]
    assert load(environ=environ).listen.port == 5


HOSTILE = """\
upstreams: [{url: http://elsewhere/v1}]
history: {save: true, store: /tmp/theirs.db}
responses: {store: history}
"""


def test_a_file_that_is_only_found_gets_no_secret(tmp_path: Path) -> None:
    """One in the current folder looks up no variable, wherever one may stand."""
    environ = home(tmp_path, OPENAI_API_KEY="sk-own")
    for text in (
        "upstreams: [{url: http://a, key: $OPENAI_API_KEY}]",
        "upstreams: [{url: http://a, headers: {x: '${OPENAI_API_KEY}'}}]",
        "keys: [$OPENAI_API_KEY]",
    ):
        path = written(tmp_path / "here", text)
        with pytest.raises(ConfigError, match=r"OPENAI_API_KEY is not looked up .* --config asides\.yaml") as caught:
            load_all(environ=environ, here=True)
        assert "sk-own" not in str(caught.value)
        assert "sk-own" in repr(load_all(path, environ=environ).config)
    written(tmp_path / "here", "upstreams: [{url: http://a, key: a$$b}]")
    assert load_all(environ=environ, here=True).config.upstreams[0].key == "a$b"


def test_a_file_that_is_only_found_gets_no_key_and_keeps_nothing(tmp_path: Path) -> None:
    """Variables that hold a key, or turn history on, do not go with addresses that such a file names."""
    path = written(tmp_path / "here", HOSTILE)
    own = {"ASIDES_SAVE": "1", "ASIDES_HISTORY_STORE": "own.db", "ASIDES_RESPONSES_STORE": "history"}
    environ = home(tmp_path, ASIDES_UPSTREAM_KEY="sk-own", **own)
    found = load_all(environ=environ, here=True)
    assert not found.trusted
    assert found.config.upstreams[0].key == ""
    assert found.config.history == Config().history
    assert found.config.responses == Config().responses
    for name in ("history is", "responses is", "ASIDES_UPSTREAM_KEY", *own):
        assert [warning for warning in found.warnings if name in warning and "--config asides.yaml" in warning], name

    named = load_all(path, environ=environ)
    assert (named.trusted, named.warnings) == (True, ())
    assert (named.config.upstreams[0].key, named.config.history.store) == ("sk-own", "own.db")


def test_a_file_that_is_only_found_chooses_no_key_of_what_clients_carry(tmp_path: Path) -> None:
    """Who wrote it would know the key, and could read every thought in every conversation that a client has saved."""
    path = written(tmp_path / "here", f"continuity: {{keys: [{'k' * 40}]}}")
    found = load_all(environ=home(tmp_path), here=True)
    assert found.config.continuity == Config().continuity
    assert [warning for warning in found.warnings if "continuity is not taken" in warning]
    assert load_all(path, environ=home(tmp_path)).config.continuity.keys == ("k" * 40,)


def test_keys_go_to_upstreams_that_the_user_names(tmp_path: Path) -> None:
    """With --upstream the file's addresses are not used, so the key is sent; the file's history never counts."""
    written(tmp_path / "here", HOSTILE)
    environ = home(tmp_path, ASIDES_UPSTREAM_KEY="sk-own", ASIDES_SAVE="1")
    config = load_all(environ=environ, here=True, flags={"upstreams": ["http://mine/v1"]}).config
    assert [(upstream.url, upstream.key) for upstream in config.upstreams] == [("http://mine/v1", "sk-own")]
    assert (config.history.save, config.history.store) == (True, "")
    config = load_all(environ=home(tmp_path), here=True, flags={"upstreams.key": "typed", "history.save": True}).config
    assert (config.upstreams[0].key, config.history.save, config.history.store) == ("typed", True, "")


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    """A path that somebody named and that cannot be read is an error that says who named it."""
    with pytest.raises(ConfigError, match=r"missing\.yaml: No such file or directory \(--config\)"):
        load("missing.yaml", environ=home(tmp_path))
    with pytest.raises(ConfigError, match="ASIDES_CONFIG"):
        load(environ=home(tmp_path, ASIDES_CONFIG=str(tmp_path)))


@pytest.mark.parametrize("text", ["", "# only words\n", "---\n", "upstreams:\nmodels:\nlisten:\n"])
def test_an_empty_file_and_empty_keys_say_nothing(tmp_path: Path, text: str) -> None:
    """A key with nothing behind it is as good as left out."""
    assert load(written(tmp_path, text), environ={}) == Config()


def test_flags_win_over_variables_over_the_file(tmp_path: Path) -> None:
    """Each setting comes from the strongest that gives it, and it is known from which."""
    path = written(tmp_path, "listen:\n  host: a\n  port: 1\nlog: {level: debug}\nkeep_alive: off\n")
    environ = {"ASIDES_PORT": "2", "ASIDES_LOG_LEVEL": "error", "ASIDES_LIMITS_IDLE": "5"}
    loaded = load_all(path, flags={"listen.port": "3", "listen.host": None}, environ=environ)
    config = loaded.config
    assert (config.listen.host, config.listen.port) == ("a", 3)
    assert (config.log.level, config.limits.idle, config.keep_alive) == ("error", 5.0, "off")
    assert loaded.origins["listen", "host"] == Origin(str(path), 2)
    assert loaded.origins["listen", "port"] == Origin("--port")
    assert loaded.origins["log", "level"] == Origin("ASIDES_LOG_LEVEL")
    assert ("log", "bodies") not in loaded.origins


def test_a_format_by_flag_is_for_models_that_the_file_does_not_name(tmp_path: Path) -> None:
    """`--format` and `--start` replace the file's defaults; a model in the file keeps what the file says."""
    path = written(
        tmp_path,
        "defaults: {format: kimi, start: text}\n"
        "models:\n  own: {format: glm45, start: undecided}\n  named: {name: other}\n",
    )
    config = load(path, flags={"defaults.format": "qwen3", "defaults.start": "thinking"}, environ={})
    assert (config.defaults.format, config.defaults.start) == ("qwen3", "thinking")
    assert (config.models["own"].format, config.models["own"].start) == ("glm45", "undecided")
    assert (config.models["named"].format, config.models["named"].start) == ("kimi", "text")


def test_a_reasoning_field_by_flag_is_for_every_model(tmp_path: Path) -> None:
    """Flags other than the format and the start win over what the file says of a model."""
    path = written(tmp_path, "models:\n  a: {reasoning: tags, format: qwen3}\n")
    config = load(path, environ={"ASIDES_REASONING": "both"})
    assert config.models["a"].reasoning is None
    assert config.defaults.reasoning == "both"


def test_upstreams_by_flag_replace_those_of_the_file(tmp_path: Path) -> None:
    """The list is replaced as a whole, so that no key of the file goes to another server."""
    path = written(tmp_path, "upstreams:\n  - {url: 'http://a', key: secret}\n")
    config = load(path, flags={"upstreams": ["http://b:1/v1", "http://c"]}, environ={})
    assert [(upstream.url, upstream.name, upstream.key) for upstream in config.upstreams] == [
        ("http://b:1/v1", "b:1", ""),
        ("http://c", "c", ""),
    ]
    config = load(path, environ={"ASIDES_UPSTREAM": "http://d, http://e", "ASIDES_KIND": ""})
    assert [upstream.name for upstream in config.upstreams] == ["d", "e"]


def test_an_upstream_key_goes_to_one_upstream_only(tmp_path: Path) -> None:
    """With one upstream it is that one's; with several nobody knows whose it is."""
    path = written(tmp_path, "upstreams: [{url: 'http://a', key: old}]")
    environ = {"ASIDES_UPSTREAM_KEY": "new$1", "ASIDES_KIND": "ollama"}
    (upstream,) = load(path, environ=environ).upstreams
    assert (upstream.key, upstream.kind) == ("new$1", "ollama")
    with pytest.raises(ConfigError, match="--upstream-key: is for one upstream, but there are 2"):
        load(flags={"upstreams": ["http://a", "http://b"], "upstreams.key": "k"}, environ=home(tmp_path))
    with pytest.raises(ConfigError, match="there is no upstream"):
        load(flags={"upstreams.key": "k"}, environ=home(tmp_path))
    assert load(environ=home(tmp_path, ASIDES_UPSTREAM_KEY="k")) == Config()


def test_secrets_come_from_the_environment(tmp_path: Path) -> None:
    """`$NAME` and `${NAME}` are looked up in keys, headers and stores; `$$` is a dollar sign."""
    path = written(
        tmp_path,
        "upstreams:\n  - url: http://a\n    key: $ONE\n    headers: {X-A: 'Bearer ${TWO}', X-B: 5$$}\n"
        "keys: [$ONE, plain]\nrun: {key: $TWO}\nhistory: {store: 'postgresql://me:${ONE}@db'}\n",
    )
    config = load(path, environ={"ONE": "1", "TWO": "2"})
    assert config.upstreams[0].key == "1"
    assert config.upstreams[0].headers == {"X-A": "Bearer 2", "X-B": "5$"}
    assert (config.keys, config.run.key, config.history.store) == (("1", "plain"), "2", "postgresql://me:1@db")


def test_secrets_of_what_was_replaced_are_not_needed(tmp_path: Path) -> None:
    """A flag that replaces an upstream or its key replaces the variable that the file names for it."""
    path = written(tmp_path, "upstreams: [{url: 'http://a', key: $GONE}]\nkeys: $GONE\n")
    environ = {"ASIDES_KEYS": "$one"}
    assert load(path, flags={"upstreams": ["http://b"]}, environ=environ).upstreams[0].key == ""
    config = load(path, flags={"upstreams.key": "$two"}, environ=environ)
    assert (config.upstreams[0].key, config.keys) == ("$two", ("$one",))
    with pytest.raises(ConfigError, match=r"keys.*GONE is not set"):
        load(path, flags={"upstreams": ["http://b"]}, environ={})


def test_a_command_needs_no_secrets_but_its_own(tmp_path: Path) -> None:
    """In sections that a command does not use, a variable that is missing is no error."""
    path = written(tmp_path, "upstreams: [{url: 'http://a', key: $GATEWAY}]\nrun: {key: $MINE}\n")
    assert load(path, environ={"MINE": "m"}, without=("upstreams", "keys")).run.key == "m"
    with pytest.raises(ConfigError, match="GATEWAY is not set"):
        load(path, environ={"MINE": "m"}, without=("run",))


def test_the_reasoning_parser_of_nexrl_is_the_default_format(tmp_path: Path) -> None:
    """Its section may say other things too; an own default wins, and so does a flag."""
    text = 'inference_service:\n  reasoning_parser: "think_tag"\n  replicas: {many: [1, 2]}\n'
    path = written(tmp_path, text)
    assert load(path, environ={}).defaults.format == "think_tag"
    assert load(path, environ={}, flags={"defaults.format": "kimi"}).defaults.format == "kimi"
    named = load(written(tmp_path, text + "models: {a: }\n"), environ={}, flags={"defaults.format": "kimi"})
    assert resolve_model(named, "a").format == "think_tag"
    written(tmp_path, text)
    assert load(written(tmp_path, text + "defaults: {format: qwen3}\n"), environ={}).defaults.format == "qwen3"


def test_words_that_yaml_takes_for_something_else_stay_words(tmp_path: Path) -> None:
    """`off`, numbers and dates are text where text is wanted, and what they say in `extra_body`."""
    path = written(
        tmp_path,
        "keep_alive: off\nkeys: [0123, 2024-01-01, yes]\nrun: {think: off, model: 1.0}\n"
        "models:\n  1.5: {name: on, extra_body: {a: off, b: 1_0, c: 1.5, d: ~, e: [2024-01-01, 1:30], f: {g: 0}}}\n",
    )
    config = load(path, environ={})
    assert (config.keep_alive, config.keys) == ("off", ("0123", "2024-01-01", "yes"))
    assert (config.run.think, config.run.model) == (False, "1.0")
    assert config.models["1.5"].name == "on"
    assert config.models["1.5"].extra_body == {
        "a": False,
        "b": 10,
        "c": 1.5,
        "d": None,
        "e": ["2024-01-01", "1:30"],
        "f": {"g": 0},
    }


def test_anchors_and_merges_are_followed(tmp_path: Path) -> None:
    """`<<` brings the keys of another section; its own keys win and are not called duplicates."""
    path = written(
        tmp_path,
        "models:\n  a: &a {format: qwen3, start: thinking}\n  b: {<<: *a, start: text}\n  c: *a\n"
        "  d: {<<: [*a, {name: n, start: undecided}]}\n",
    )
    models = load(path, environ={}).models
    assert (models["b"].format, models["b"].start) == ("qwen3", "text")
    assert models["c"] == models["a"]
    assert (models["d"].name, models["d"].start) == ("n", "thinking")


def test_one_word_is_a_list_of_one(tmp_path: Path) -> None:
    """`cors: "*"` needs no list."""
    config = load(written(tmp_path, "cors: '*'\nupstreams: [{url: 'http://a', models: qwen*}]"), environ={})
    assert (config.cors, config.upstreams[0].models) == (("*",), ("qwen*",))


def test_unknown_variables_are_warned_of(tmp_path: Path) -> None:
    """A variable that is nearly ours is named with what it may have meant; others of the project are left alone."""
    environ = home(
        tmp_path, ASIDES_FROMAT="qwen3", ASIDES_LAWS="long", ASIDES_BROWSER="1", ASIDES_HISTORY="x", ASIDES_X="1"
    )
    warnings = load_all(environ=environ).warnings
    assert len(warnings) == 2
    assert "ASIDES_FROMAT" in warnings[0]
    assert "did you mean ASIDES_FORMAT?" in warnings[0]
    assert "ASIDES_X is not known" in warnings[1]


def test_what_kubernetes_sets_is_not_taken_for_ours(tmp_path: Path) -> None:
    """Beside a service that is named asides, every pod has ASIDES_PORT=tcp://... and more."""
    environ = home(tmp_path, ASIDES_PORT="tcp://10.0.0.1:8777", ASIDES_SERVICE_HOST="10.0.0.1", ASIDES_PORT_1_TCP="x")
    loaded = load_all(environ=environ)
    assert loaded.config.listen.port == 8777
    assert [("Kubernetes" in warning) for warning in loaded.warnings] == [True]


def test_a_section_by_its_former_name(tmp_path: Path) -> None:
    """`cache` was the name of `replay_cache`: in a file and in a variable it still counts, with a warning."""
    file = tmp_path / "asides.yaml"
    file.write_text("listen:\n  port: 1\ncache:\n  entries: 7\n  characters: 9\n")
    loaded = load_all(file, environ={"ASIDES_CACHE_ENTRIES": "5"})
    assert (loaded.config.replay_cache.entries, loaded.config.replay_cache.characters) == (5, 9)
    assert loaded.warnings == (
        f"{file}:3: cache is called replay_cache now",
        "ASIDES_CACHE_ENTRIES is called ASIDES_REPLAY_CACHE_ENTRIES now",
    )


def test_variables_say_yes_and_no_as_variables_do(tmp_path: Path) -> None:
    """1 and 0 count as well as true and false; an empty variable says nothing."""
    environ = home(tmp_path, ASIDES_LOG_BODIES="1", ASIDES_SAVE="true", ASIDES_TERMINAL_WRAP="0", ASIDES_HOST="")
    config = load(environ=environ)
    assert (config.log.bodies, config.history.save, config.terminal.wrap) == (True, True, False)
    assert config.listen.host == "127.0.0.1"


def test_keys_that_are_set_but_empty_do_not_open_the_gateway(tmp_path: Path) -> None:
    """An operator who sets ASIDES_KEYS means to lock the gateway."""
    assert load(environ=home(tmp_path, ASIDES_KEYS="a, b")).keys == ("a", "b")
    for value in ("", " , ", "\n"):
        with pytest.raises(ConfigError, match="ASIDES_KEYS: is set but holds no key"):
            load(environ=home(tmp_path, ASIDES_KEYS=value))
    with pytest.raises(ConfigError, match=r"--key: .* is empty"):
        load(flags={"keys": [""]}, environ=home(tmp_path))


def test_a_flag_for_a_setting_that_is_not_there_is_the_callers_mistake(tmp_path: Path) -> None:
    """Paths of flags are checked."""
    with pytest.raises(UsageError, match="there is no setting"):
        load(flags={"listen.prot": 1}, environ=home(tmp_path))


def test_without_pyyaml_the_error_names_the_extra(tmp_path: Path) -> None:
    """A file cannot be read without PyYAML, and nothing else needs it."""
    written(tmp_path / "here", "listen: {port: 1}")
    script = (
        "import sys\n"
        "sys.modules['yaml'] = None\n"
        "from asides._config import Config, load\n"
        "from asides.errors import Error\n"
        "assert load(environ={'HOME': '/nonexistent', 'ASIDES_CONFIG': ''}, path=None) == Config()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    script += "try:\n    load('here/asides.yaml')\nexcept Error as error:\n    print(error)\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert "pip install pyyaml" in done.stdout


def test_importing_the_room_imports_nothing_heavy() -> None:
    """`asides._config` alone costs neither the schema nor YAML."""
    script = (
        "import sys, asides\n"
        "before = set(sys.modules)\n"
        "import asides._config\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["asides._config"]


def test_a_text_in_place_of_a_budget_is_its_field(tmp_path: Path) -> None:
    """The section's older form; and a model's own budget adds to that of the defaults."""
    text = "defaults: {budget: {tokens: 500, enforce: cut}}\nmodels: {a: {budget: mine}, b: {budget: {tokens: 7}}}"
    config = load(written(tmp_path, text), environ=home(tmp_path))
    budget = resolve_model(config, "a").budget
    assert (budget.field, budget.tokens, budget.enforce) == ("mine", 500, "cut")
    assert resolve_model(config, "b").budget.tokens == 7


def test_a_file_that_is_only_found_names_nobody_who_reads(tmp_path: Path) -> None:
    """Neither an operator nor what is watched: who made the folder could open the page with a key of their own."""
    text = "keys: [{key: theirs, operator: true}]\npage: {watch: all}\n"
    path = written(tmp_path / "here", text)
    environ = home(tmp_path, ASIDES_SAVE="1")
    found = load_all(environ=environ, here=True)
    assert [entry.operator for entry in keys_of(found.config)] == [False]
    assert found.config.page == PageSettings()
    for name in ("page is", "no operator"):
        assert [warning for warning in found.warnings if name in warning and "--config asides.yaml" in warning], name
    assert [entry.operator for entry in keys_of(load_all(path, environ=environ).config)] == [True]


def test_keys_of_operators(tmp_path: Path) -> None:
    """A key is a text, or a section that says whose it is; `$NAME` counts in both."""
    text = "keys: [one, {key: $TWO, operator: true, name: ops}]\npage: off\n"
    config = load(written(tmp_path, text), environ={"TWO": "2"})
    assert [(entry.key, entry.operator, entry.name) for entry in keys_of(config)] == [
        ("one", False, ""),
        ("2", True, "ops"),
    ]
    assert not config.page.show
    assert load(written(tmp_path, "page: {watch: off}"), environ={}).page == PageSettings()
    assert load(written(tmp_path, "page: {watch: all}"), environ={}).page == PageSettings(watch="all")
    assert load(environ=home(tmp_path, ASIDES_PAGE_SHOW="0")).page == PageSettings(show=False)
    shown = show(config)
    assert "operator: true" in shown
    assert '"2"' not in shown
