"""What people get wrong at the command line: each mistake is one clear line that says what to do, and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import run

FILES = {
    "reply.txt": b"<think>2+2</think>\n\nIt is 4.",
    "empty.txt": b"",
    "binary.dat": bytes(range(256)) * 4,
    "broken.json": b'{"a":',
    "object.json": b'{"name": "f"}',
    "text.jsonl": b"no JSON at all\n",
    "no_output.jsonl": b'{"x": 1}\n',
    "plain.db": b"this is no database, but a text that is long enough to be read as one" * 10,
    "wrong_key.yaml": b"listen: {prot: 1}\n",
    "wrong_yaml.yaml": b"listen: [1\n",
    "wrong_format.yaml": b"defaults: {format: qwne3}\n",
}
NOWHERE = "http://127.0.0.1:9/v1"

MISTAKES = [
    ("nosuch.txt", "neither a command nor a file that exists"),
    ("splitt reply.txt", "did you mean asides split?"),
    ("split folder", "folder: Is a directory"),
    ("split nosuch.txt", "nosuch.txt: No such file"),
    ("-f qwne3 reply.txt", "did you mean qwen3"),
    ("--formt qwen3 reply.txt", "did you mean --format?"),
    ("--start thinkng reply.txt", "did you mean thinking?"),
    ("--limit 0 reply.txt", "at least 1"),
    ("--tools broken.json reply.txt", "not a JSON list of tool definitions"),
    ("--tools object.json reply.txt", '[{"type": "function"'),
    ("--style glitter reply.txt", "a look is made of"),
    ("--store h.db reply.txt", "add --save"),
    ("history delete 3fa9c1d2", "did you mean asides history purge?"),
    ("history ls", "did you mean asides history list?"),
    ("formats qwne3", "did you mean qwen3"),
    ("formats <zzz>", "no format has the marker '<zzz>'"),
    ("probe", "name one thing to probe"),
    ("probe nosuch.json", "no such file or folder"),
    ("probe empty.txt", "empty.txt: empty"),
    ("probe binary.dat", "binary.dat: binary data"),
    ("lint-template broken.json", "not valid JSON"),
    ("view nosuch.txt", "No such file"),
    ("run qwen3 hi --url ftp://host", "begins with http:// or https://"),
    (f"run qwen3 hi --url {NOWHERE}", "no model server answers"),
    ("run qwen3 hi --think=much", "must be true, false"),
    ("run qwen3 hi -o temperature", "-o takes key=value"),
    (f"run --url {NOWHERE} --format qwne3", "did you mean qwen3"),
    ("run qwen3 hi --config nosuch.yaml", "nosuch.yaml: No such file"),
    ("run qwen3 hi --config wrong_key.yaml", "did you mean port?"),
    ("serve --config wrong_yaml.yaml", "wrong_yaml.yaml:2: not YAML"),
    ("serve --config wrong_format.yaml", "did you mean qwen3"),
    ("serve --port http", "must be a whole number"),
    ("serve --upstream nonsense", "as http://127.0.0.1:8000/v1"),
    ("serve --prot 1", "did you mean --port?"),
    ("history lst", "did you mean list?"),
    ("history list --store none.db", "`asides --save` makes it"),
    ("history list --store plain.db", "not a SQLite database"),
    ("history list --store none.db --since soon", "write 90s, 30m"),
    ("history import text.jsonl --store new.db", "text.jsonl, line 1: not valid JSON"),
    ("history import no_output.jsonl --store new.db", "--field names its field"),
    ("stats nosuch.txt", "nosuch.txt: no such file"),
    ("stats no_output.jsonl", "the first has x; --field names the field"),
    ("stats no_output.jsonl --field y", "there are: x"),
    ("stats reply.txt --since 2d", "need --history"),
    ("batch text.jsonl -o out.xyz", "must end in one of .parquet"),
    ("batch no_output.jsonl -o out.jsonl", "--field names the field"),
    ("batch nosuch.jsonl -o out.jsonl", "nosuch.jsonl: no such file"),
    ("completion tcsh", "choose from"),
]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    for name, content in FILES.items():
        Path(name).write_bytes(content)


@pytest.mark.parametrize(("line", "words"), MISTAKES)
def test_a_mistake_is_a_line_that_helps(line: str, words: str) -> None:
    """At most the reason, where to read more, and for a server that does not answer what was tried."""
    done = run(*line.split())
    printed = done.stderr.decode()
    assert done.returncode == 2
    assert words in printed
    assert "Traceback" not in printed
    assert printed.startswith("asides: ")
    assert printed.count("\n") <= (4 if "--url" in line else 2)
