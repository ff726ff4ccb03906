"""Templates and files that mean harm end in our own error, soon, and without eating the machine."""

from __future__ import annotations

import json
import os
import resource
import struct
import time
from pathlib import Path

import pytest

import asides
from asides.detect import _sandbox as sandbox
from asides.detect import detect
from asides.detect._from_gguf import MAGIC
from tests.waiting import PATIENCE

TEMPLATES = {
    "an endless loop": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "endless output": "{% for a in range(99999) %}{% for b in range(99999) %}words {% endfor %}{% endfor %}",
    "a huge string": "{{ 'a' * 10 ** 12 }}",
    "a huge number": "{{ 9 ** (9 ** 9) }}",
    "a wide filter": "{{ 'a' | center(10 ** 10) }}",
    "a list that doubles": "{% set l = [1] %}{% for i in range(99) %}{% set _ = l.extend(l) %}{% endfor %}",
    "endless recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "growing recursion": "{% macro m(x) %}{{ m(x + x) }}{% endmacro %}{{ m('a') }}",
    "deep brackets": "{{ " + "(" * 20000 + "1" + ")" * 20000 + " }}",
    "deep blocks": "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "the class of a string": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "globals of a function": "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "attributes in a format string": "{{ '{0.__class__.__init__.__globals__}'.format(messages) }}",
    "a template of two million characters": "{{ 1 }}" + "x" * (2 << 20),
    "half a character": "{{ 1 }}\ud800",
    "unfinished Jinja": "{% for message in messages %}",
}


@pytest.fixture
def _half_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One test waits until all the time is over that a template has; the others need not."""
    monkeypatch.setattr(sandbox, "SECONDS", sandbox.SECONDS // 2)


def test_a_template_has_its_time() -> None:
    with pytest.raises(asides.UsageError, match=f"more than {sandbox.SECONDS} seconds"):
        detect(chat_template=TEMPLATES["an endless loop"])


@pytest.mark.usefixtures("_half_the_time")
@pytest.mark.parametrize("name", TEMPLATES)
def test_hostile_templates(name: str) -> None:
    before = time.monotonic()
    with pytest.raises(asides.UsageError):
        detect(chat_template=TEMPLATES[name])
    assert time.monotonic() - before < PATIENCE


def test_hostile_templates_take_no_memory_of_ours() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(asides.UsageError, match="memory"):
        detect(chat_template="{{ 'a' * 10 ** 9 }}")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10  # in KiB


@pytest.mark.parametrize(
    "template",
    [
        "{{ nothing() }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}{{ os }}",
        "{% set l = [] %}{% set _ = l.append(l) %}{{ l | tojson }}",
        "{{ raise_exception('no') }}",
        "{{ self }}{{ loop }}{{ caller }}",
        "{{ 1 }}\0",
        "{{ messages | pprint }}",
        "{{ messages | attr('__class__') }}{{ [].__class__ }}",  # an undefined value, as Jinja has it
    ],
)
def test_templates_that_only_fail(template: str) -> None:
    found = detect(chat_template=template)
    assert not found.thinks
    assert "root:" not in str(found.reasons)


def test_turns_of_great_length_are_cut() -> None:
    template = "{% for m in messages %}{{ m.role }}{{ m.content }}{{ '<' * 20000 }}{% endfor %}"
    before = time.monotonic()
    detect(chat_template=template)
    assert time.monotonic() - before < PATIENCE


BROKEN_JSON = {
    "empty": b"",
    "cut off": b'{"added_tokens": [{"id": 1, "content": "<th',
    "not UTF-8": b'{"added_tokens": [{"id": 1, "content": "\xff\xfe"}]}',
    "a list": b"[]",
    "numbers for strings": b'{"added_tokens": [{"id": "x", "content": 3}]}',
    "deep": b'{"model": ' + b"[" * 200000 + b"]" * 200000 + b"}",
    "something else": b'{"a": 1}',
    "binary": bytes(range(256)) * 100,
}


@pytest.mark.parametrize("name", BROKEN_JSON)
def test_broken_tokenizer_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(BROKEN_JSON[name])
    with pytest.raises(asides.UsageError, match=r"tokenizer\.json"):
        detect(tokenizer=path)


def test_a_file_of_two_gigabytes(tmp_path: Path) -> None:
    for name in ("tokenizer.json", "template.jinja", "model.gguf"):
        path = tmp_path / name
        with path.open("wb") as file:
            file.truncate(2 << 30)
        before = time.monotonic()
        with pytest.raises(asides.UsageError, match=name):
            detect(tokenizer=path)
        assert time.monotonic() - before < PATIENCE


def test_what_is_no_file(tmp_path: Path) -> None:
    pipe = tmp_path / "tokenizer.json"
    os.mkfifo(pipe)
    with pytest.raises(asides.UsageError, match="not a regular file"):
        detect(tokenizer=pipe)
    with pytest.raises(asides.UsageError, match="no such file"):
        detect(tokenizer=tmp_path / "nothing")
    pipe.unlink()
    with pytest.raises(asides.UsageError, match="holds neither"):
        detect(tokenizer=tmp_path)
    with pytest.raises(asides.UsageError):
        detect(tokenizer="/dev/zero")
    with pytest.raises(asides.UsageError):
        detect(tokenizer="a\0b")


def test_templates_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "chat_template.jinja"
    path.write_bytes(b"{{ messages }}\xff")
    with pytest.raises(asides.UsageError, match="not UTF-8"):
        detect(chat_template=path)


def _gguf(*fields: bytes, count: int | None = None, version: int = 3) -> bytes:
    return MAGIC + struct.pack("<IQQ", version, 0, len(fields) if count is None else count) + b"".join(fields)


def _string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def _array(kind: int, count: int, data: bytes = b"") -> bytes:
    return _string(b"tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, kind, count) + data


BROKEN_GGUF = {
    "cut off": _gguf(_string(b"a"))[:30],
    "another version": _gguf(version=1),
    "the other byte order": _gguf(version=3 << 24),
    "many fields": _gguf(count=1 << 60),
    "a long key": _gguf(struct.pack("<Q", 1 << 62)),
    "an array without end": _gguf(_array(8, 1 << 60)),
    "an array that is not there": _gguf(_array(8, 1 << 20)),
    "a long string in an array": _gguf(_array(8, 2, _string(b"a") + struct.pack("<Q", 1 << 63))),
    "arrays in arrays": _gguf(_array(9, 3)),
    "an unknown kind": _gguf(_string(b"a") + struct.pack("<I", 77)),
    "numbers without end": _gguf(_array(12, 1 << 21)),
}


@pytest.mark.parametrize("name", BROKEN_GGUF)
def test_broken_gguf_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(BROKEN_GGUF[name])
    before = time.monotonic()
    with pytest.raises(asides.UsageError, match=r"model\.gguf"):
        detect(tokenizer=path)
    assert time.monotonic() - before < PATIENCE


def test_a_gguf_of_empty_strings(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    count = 1 << 20
    path.write_bytes(_gguf(_array(8, count, bytes(8) * count)))
    before = time.monotonic()
    assert detect(tokenizer=path).thinks is False
    assert time.monotonic() - before < PATIENCE


@pytest.mark.usefixtures("_half_the_time")
def test_a_template_in_a_folder_is_no_safer(tmp_path: Path) -> None:
    config = {"chat_template": TEMPLATES["an endless loop"]}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(asides.UsageError, match="given up"):
        detect(tokenizer=tmp_path)
