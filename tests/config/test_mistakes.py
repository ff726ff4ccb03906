"""Mistakes in a configuration: each is told with its file, line and key, and all of them at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides._config import Config, ConfigError, load

CASES = [
    ("listen: {prot: 1}", 1, "listen.prot", "unknown key; did you mean port?"),
    ("listen:\n  port: 1\nlimit: {}", 3, "limit", "unknown key; did you mean limits?"),
    ("upstreams: [{url: http://me@a, key: k}]", 1, "upstreams[0].key", "the address holds a user already"),
    (
        "upstreams: [{url: http://me@a, headers: {Authorization: k}}]",
        1,
        "upstreams[0].headers.Authorization",
        "the address holds a user already",
    ),
    ("replay_cache:\n  zzz: 1", 2, "replay_cache.zzz", "unknown key; there are: store, entries, characters"),
    ("listen:\n  port: 70000", 2, "listen.port", 'must be a whole number from 0 to 65535, not "70000"'),
    ("listen:\n  port: eighty", 2, "listen.port", 'must be a whole number from 0 to 65535, not "eighty"'),
    ('listen:\n  port: "80"', 2, "listen.port", "without quotes"),
    ("listen: 8777", 1, "listen", "must be a section with keys of its own, not a single value"),
    ("limits: {idle: 0}", 1, "limits.idle", 'must be a number above 0, not "0"'),
    ("limits: {idle: .inf}", 1, "limits.idle", 'must be a number above 0, not ".inf"'),
    ("limits: {body: 99999999999999999999}", 1, "limits.body", "must be a whole number, 1 or more"),
    ("limits: {body: [1]}", 1, "limits.body", "must be a whole number, 1 or more, not a list"),
    ("log:\n  bodies: maybe", 2, "log.bodies", 'must be true or false, not "maybe"'),
    ("log:\n  bodies: 1", 2, "log.bodies", 'must be true or false, not "1"'),
    ("run: {think: hard}", 1, "run.think", 'must be true, false, high, low, max or medium, not "hard"'),
    ("defaults:\n  start: think", 2, "defaults.start", 'must be text, thinking or undecided, not "think"'),
    ("defaults:\n  format: qwenn3", 2, "defaults.format", 'there is no format "qwenn3"; did you mean qwen3'),
    ("inference_service:\n  reasoning_parser: nope", 2, "inference_service.reasoning_parser", "there is no format"),
    ("models:\n  a.b:\n    format: kimmi", 3, 'models."a.b".format', "did you mean kimi"),
    ("models: [a]", 1, "models", "must be a section with keys of its own, not a list"),
    ("models:\n  a: {upstream: gpu}", 2, "models.a.upstream", 'there is no upstream "gpu"; none is configured'),
    (
        "models:\n  a: {upstream: gpu}\nupstreams:\n - {url: 'http://a', name: gpu1}",
        2,
        "models.a.upstream",
        'there is no upstream "gpu"; did you mean gpu1?',
    ),
    ("upstreams:\n - {url: 'http://a:1'}\n - {url: 'http://a:1/v1'}", 3, "upstreams[1]", "two upstreams are at"),
    (
        "upstreams:\n - {url: 'http://a', name: x}\n - {url: 'http://b', name: x}",
        3,
        "upstreams[1].name",
        "two upstreams have this name",
    ),
    ("upstreams:\n - key: k", 2, "upstreams[0]", "has no url"),
    ("upstreams:\n - url:\n   kind: ollama", 2, "upstreams[0].url", "is empty"),
    ("upstreams:\n - url: 127.0.0.1", 2, "upstreams[0].url", "must be an http or https address"),
    ("upstreams:\n - url: http://", 2, "upstreams[0].url", "must be an http or https address"),
    ("upstreams:\n - url: 'http://a b'", 2, "upstreams[0].url", "must be an http or https address"),
    ("upstreams:\n - url: http://[::1", 2, "upstreams[0].url", "not an address"),
    ("upstreams:\n - url: http://a:99999", 2, "upstreams[0].url", "not an address"),
    ("upstreams:\n - url: http://a/v1?x=1", 2, "upstreams[0].url", "must end with its path"),
    ("upstreams: http://a", 1, "upstreams", "must be a list, not a single value"),
    ("upstreams:\n - http://a", 2, "upstreams[0]", "must be a section with keys of its own, not a single value"),
    ("upstreams:\n - url: http://a\n   key: $NOT_THERE", 3, "upstreams[0].key", "NOT_THERE is not set"),
    ("upstreams:\n - url: http://a\n   key: ${EMPTY}", 3, "upstreams[0].key", "EMPTY is set but empty"),
    ('upstreams:\n - url: http://a\n   key: "a\\nb"', 3, "upstreams[0].key", "a header cannot carry"),
    ("upstreams:\n - url: http://a\n   headers: {a b: c}", 3, 'upstreams[0].headers."a b"', "not a name"),
    ("keys: [a, ~]", 1, "keys[1]", "is empty"),
    ("keys: [' ']", 1, "keys[0]", "is empty"),
    ("keys: [{key: ' '}]", 1, "keys[0]", "is empty"),
    ("keys: [{operator: true}]", 1, "keys[0]", "has no key"),
    ("keys: [{key: a, operater: true}]", 1, "keys[0].operater", "unknown key"),
    ('models: {m: {tags: {"<a>": " "}}}', 1, "models.m.tags", "it is blank"),
    ("models:\n m:\n  format: kimi\n  tags: {<a>: </a>}", 4, "models.m.tags", "in place of a format"),
    ("page: maybe", 1, "page", "must be true or false"),
    ("page: {watch: some}", 1, "page.watch", "must be all, off or own"),
    ("keys: {a: b}", 1, "keys", "must be a list, not a section"),
    ("cors: [https://a/]", 1, "cors[0]", "not an origin"),
    ("listen: {host: 'http://a'}", 1, "listen.host", "not a host"),
    ("listen: {host: '[::1]'}", 1, "listen.host", "not a host"),
    ("log: {level: info}\nlog: {level: debug}", 2, "log", "stands here twice; first on line 1"),
    ("listen:\n  port: 1\n  port: 2", 3, "listen.port", "stands here twice; first on line 2"),
    ("models:\n  a: !!python/object:os.system x", 2, "models.a", "the tag"),
    ("listen: !mine {port: 1}", 1, "listen", "the tag"),
    ("? [a, b]\n: 1", 1, "", "a key must be text, not a list"),
    ("defaults: &a {extra_body: {x: *a}}", 1, "defaults.extra_body.x", "an alias of something"),
    ("defaults: {<<: 3}", 1, "defaults", "`<<` takes a section"),
    ('run: {model: "\\ud800"}', 1, "run.model", "half a character"),
    ("defaults: {extra_body: {x: .nan}}", 1, "defaults.extra_body.x", "must be a number"),
    ("- a\n- b", 1, "", "must be a section with keys of its own, not a list"),
    ("listen:\n\tport: 1", 2, "", "a tab; YAML is indented with spaces"),
    ("listen: {port: 1\n", 2, "", "not YAML: while parsing a flow mapping"),
    ("a: b: c", 1, "", "a `:` where no key can stand"),
    ("listen: {}\n---\nlisten: {}", 2, "", "a second document begins here"),
    ("models: *gone", 1, "", "undefined alias"),
    ("models:\n  a: {name: \x01}", 2, "", "U+0001"),
]


@pytest.mark.parametrize(("text", "line", "key", "words"), CASES, ids=[case[0][:40] for case in CASES])
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, line: int, key: str, words: str) -> None:
    """The error is one, on this line, of this key, in these words."""
    path = tmp_path / "asides.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(path, environ={"EMPTY": ""})
    (problem,) = caught.value.problems
    assert (problem.origin.source, problem.origin.line, problem.key) == (str(path), line, key)
    assert words in problem.message
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    """Those of types, of names, of the environment, of variables and of flags come in one error."""
    path = tmp_path / "asides.yaml"
    path.write_text("defaults: {format: nope1}\nlisten: {port: x}\nkeys: [$NONE]\nlog: {levle: info}\n")
    with pytest.raises(ConfigError) as caught:
        load(path, environ={"ASIDES_LIMITS_BODY": "much"}, flags={"defaults.start": "middle"})
    assert [str(problem.origin) for problem in caught.value.problems] == [
        "ASIDES_LIMITS_BODY",
        "--start",
        *(f"{path}:{line}" for line in (1, 2, 3, 4)),
    ]
    assert str(caught.value).startswith("the configuration has 6 mistakes:\n  ")


@pytest.mark.parametrize(
    "text",
    [
        "upstreams: [{url: 'ftp://me:hunter2@host'}]",
        "upstreams: [{url: 'http://me:hunter2@host:99999'}]",
        "upstreams: [{url: 'http://host/?key=hunter2'}]",
        'upstreams: [{url: http://a, key: "hunter2\\n"}]',
        "upstreams: [{url: http://a, key: [hunter2]}]",
        "upstreams: [{url: http://a, headers: {A: {hunter2: b}}}]",
        'keys: ["hunter2 "]',
        "run: {key: !tag hunter2}",
    ],
)
def test_no_mistake_repeats_a_secret(tmp_path: Path, text: str) -> None:
    """A key or a password that is part of a mistake is not in its words."""
    path = tmp_path / "asides.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path, environ={})
    assert "hunter2" not in str(caught.value)


def test_a_file_that_is_not_utf_8_says_where(tmp_path: Path) -> None:
    """The line of the first byte that is not UTF-8 is told; a byte order mark is no mistake."""
    path = tmp_path / "asides.yaml"
    path.write_bytes(b"listen:\n  host: \xff\n")
    with pytest.raises(ConfigError, match=r"asides\.yaml:2: not UTF-8"):
        load(path, environ={})
    path.write_bytes(b"\xef\xbb\xbflisten: {port: 5}")
    assert load(path, environ={}).listen.port == 5


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5000,
        "a: " * 3000,
        'a: "\\UFFFFFFFF"',
        "%YAML " + "1" * 5000 + ".1\n---\na: b",
        "defaults:\n extra_body:\n"
        + "  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)),
        "models:\n  m0: &m0 {name: a}\n"
        + "".join(f"  m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 10)}]}}\n" for n in range(1, 12)),
        "x: " + "y" * (4 * 1024 * 1024 + 1),
        "keys: [" + "~, " * 2_000 + "]",
    ],
    ids=["deep", "colons", "escape", "directive", "laughs", "merges", "large", "many"],
)
def test_hostile_files_are_refused(tmp_path: Path, text: str) -> None:
    """What would take the stack, the memory or the machine is a mistake like any other."""
    path = tmp_path / "asides.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path, environ={})
    assert len(str(caught.value)) < 20_000


LINES = st.lists(
    st.sampled_from(
        [
            *(case[0] for case in CASES),
            *(
                "listen: {port: 1}",
                "keys: [a]",
                "models:",
                "  a:",
                "    format: qwen3",
                "- b",
                "<<: *a",
                "x: &a {b: c}",
            ),
            *(
                "'",
                '"',
                "|",
                ">",
                "{",
                "}",
                "[",
                "]",
                "? ",
                "!",
                "!!int 3",
                "&",
                "*",
                "%",
                "@",
                "`",
                "\t",
                "---",
                "...",
            ),
        ]
    ),
    max_size=6,
)


def loads_or_complains(path: Path, environ: dict[str, str]) -> bool:
    """Whether there is a configuration or an error that says something. Any other exception goes through."""
    try:
        return isinstance(load(path, environ=environ), Config)
    except ConfigError as error:
        return bool(error.problems)


@settings(deadline=None)
@given(st.one_of(st.text(), LINES.map("\n".join), LINES.map("".join)))
def test_any_text_is_a_configuration_or_a_mistake(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """No text gives an exception of another kind."""
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert loads_or_complains(path, {})


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["PORT", "KEYS", "FORMAT", "UPSTREAM", "CORS", "LOG_BODIES", "RUN_URL", "RUN_MODEL"]),
        st.text(st.characters()),
    )
)
def test_any_variables_are_a_configuration_or_a_mistake(said: dict[str, str]) -> None:
    """The same holds for what the environment says."""
    environ = {"HOME": "/nonexistent", **{f"ASIDES_{name}": text for name, text in said.items()}}
    assert loads_or_complains(Path("/dev/null"), environ)
