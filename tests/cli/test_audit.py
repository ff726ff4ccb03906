"""`asides audit URL`: what it prints, writes and returns, on a scripted server and on the real gateway before it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from asides.audit._audit import run_audit
from asides.audit._wire import AuditLimits, Sender
from asides.client._http import read_address
from tests.audit.wrong_server import SCRIPTS, ParrotServer, manifest
from tests.cli.running import run
from tests.gateway.running import gateway
from tests.gateway.upstream import Hang, Reply, Upstream, upstream


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    """A server that says scripts."""
    with upstream() as running:
        yield running


@pytest.fixture
def parrot(tmp_path: Path) -> str:
    """A folder with a manifest of one script."""
    (tmp_path / "manifest.json").write_bytes(msgspec.json.encode(manifest(SCRIPTS[:1])))
    return str(tmp_path)


def test_a_report(server: Upstream, parrot: str, tmp_path: Path) -> None:
    """JSON on standard output, JUnit and a page in files, exit code 1 for a failure."""
    ParrotServer(server)
    xml, html = tmp_path / "a.xml", tmp_path / "a.html"
    arguments = ("--manifest", parrot, "--api", "chat", "--requests", "8")
    done = run("audit", server.url, *arguments, "--json", "--junit", str(xml), "--html", str(html))
    assert done.returncode == 2, "it ended early, so it is no pass"
    assert b"at most 8 requests" in done.stderr
    report = json.loads(done.stdout)
    assert report["requests"] == 8
    assert [each["result"] for each in report["results"] if each["check"] == "plain"] == ["pass", "pass"]
    assert int(ElementTree.fromstring(xml.read_text()).attrib["tests"]) == len(report["results"])
    assert "audit of a model server" in html.read_text()


def test_a_table(server: Upstream, parrot: str) -> None:
    """Failures by group, with the command that shows each again; control characters do not act."""
    ParrotServer(server, wrong=lambda said, speech: replace(speech, words="\x1b[2Jno"))
    done = run("audit", server.url, "--manifest", parrot, "--api", "chat", "--requests", "4")
    assert done.returncode == 1
    assert b"LOST TEXT" in done.stdout
    assert f"curl -sN {server.url}/v1/chat/completions".encode() in done.stdout
    assert b"\x1b" not in done.stdout


def test_mistakes(server: Upstream, tmp_path: Path) -> None:
    """Each is one line, and exit code 2."""
    (tmp_path / "manifest.json").write_text('{"version": 1}')
    for arguments, message in (
        (("8.8.8.8",), b"--remote"),
        ((server.url, "--script", "parrot"), b"--manifest"),
        ((server.url, "--api", "chat,foo"), b"chat, responses, messages, ollama"),
        ((server.url, "--requests", "0"), b"1 to 100000"),
        ((server.url, "--timeout", "nan"), b"seconds"),
        ((server.url, "--manifest", str(tmp_path)), b"no manifest of a parrot"),
        (("http://user:secret@127.0.0.1",), b"no user name"),
        ((), b"URL"),
    ):
        done = run("audit", *arguments)
        assert done.returncode == 2, arguments
        assert message in done.stderr, arguments
        assert b"Traceback" not in done.stderr
        assert b"secret" not in done.stderr


def test_ctrl_c_keeps_what_was_found(server: Upstream) -> None:
    """The reply that is being read ends at once, and the report is printed."""
    parrot = ParrotServer(server)
    first = parrot.answer
    server.asked.clear()
    server.send(lambda asked: first(asked) if len(server.questions) < 2 else Reply(before=[Hang()]))
    command = [sys.executable, "-m", "asides", "audit", server.url, "--model", "m", "--api", "chat", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    server.wait_for(lambda: True if len(server.questions) >= 2 else None)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    report = json.loads(out)
    assert report["stopped"] == "it was interrupted"
    assert report["results"]


def test_our_own_gateway(server: Upstream) -> None:
    """`asides serve` before a server that sends raw text: nothing is wrong in any API."""
    server.replies.clear()
    server.say("<think>hm, it is four</think>It is 4.")
    with gateway({"defaults": {"format": "qwen3"}}, "--upstream", f"{server.url}/v1") as running:
        sender = Sender(read_address(running.url), limits=AuditLimits(per_second=1e9))
        report = run_audit(sender, "m", ["chat", "responses", "messages", "ollama"])
    # The scripted server behind it counts no thoughts, obeys no switch and cuts nothing: these are its own.
    own = {"thought put back", "thinking off", "cut"}
    assert not [
        (each.check, each.api, each.code, each.detail)
        for each in report.results
        if each.result == "fail" and each.check not in own
    ]
    assert report.count("pass") > 40
