"""`make test-peers`: turns read by the parsers of the newest vLLM and SGLang and by ours; lists new disagreements.

    python -m tests.peers [--recorded FOLDER] [--only FORMAT] [--write]
    python -m tests.peers --scripts      the scripts of the scoreboard, a JSON line for each reading

What `known.txt` has is known; anything else that a peer reads otherwise is printed, and the exit code is 1. `--write`
takes all that was found into `known.txt` and the page of the comparison. Without `--recorded` the table of
recorded outputs stays as it is.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from asides import UnknownFormatError, get_format
from asides.audit._judge import judge_script
from asides.audit._wire import Answer
from tests.peers.page import PAGE, Found, write_page
from tests.peers.parsers import PEERS, Flags, Peer, Turn, answer_of, flags_known, version_of
from tests.peers.turns import ours, script_turns, turns_of

KNOWN = Path(__file__).with_name("known.txt")
OURS = "asides"
DOCUMENTED: dict[str, dict[str, Flags]] = {
    "vllm": {
        "deepseek_r1": Flags("deepseek_r1", "deepseek_v3"),
        "deepseek_v31": Flags("deepseek_v3", "deepseek_v31"),
        "deepseek_v32": Flags("deepseek_v3", "deepseek_v32"),
        "kimi_k25": Flags("kimi_k2", "kimi_k2"),
        "nemotron_v3": Flags("nemotron_v3", "qwen3_coder"),
        "olmo3_think": Flags("olmo3", "olmo3"),
        "qwen3": Flags("qwen3", "hermes"),
        "qwen3.5": Flags("qwen3", "qwen3_coder"),
        "qwen3_thinking": Flags("qwen3", "hermes"),
    },
    "sglang": {
        "deepseek_r1": Flags("deepseek-r1", "deepseekv3"),
        "deepseek_v31": Flags("deepseek-v3", "deepseekv31"),
        "deepseek_v32": Flags("deepseek-v3", "deepseekv32"),
        "glm47": Flags("glm45", "glm47"),
        "kimi_k25": Flags("kimi_k2", "kimi_k2"),
        "nemotron_v3": Flags("nemotron_3", "qwen3_coder"),
        "qwen3": Flags("qwen3", "qwen25"),
        "qwen3.5": Flags("qwen3", "qwen3_coder"),
        "qwen3_coder": Flags("", "qwen3_coder"),
        "qwen3_thinking": Flags("qwen3-thinking", "qwen25"),
    },
}
"""Parsers that go together though their names are not those of one format. All others are found by their names."""


def pairs(peer: Peer) -> dict[str, Flags]:
    """The formats that a peer has a parser for."""
    found: dict[str, list[str]] = {}
    for place, names in enumerate(flags_known(peer)):
        for name in names:
            try:
                format = get_format(name).name
            except UnknownFormatError:  # `make peer-names` tells those
                continue
            flags = found.setdefault(format, ["", ""])
            flags[place] = flags[place] or name
    return {name: Flags(*flags) for name, flags in found.items()} | DOCUMENTED[peer.package]


def fits(flags: Flags, turn: Turn) -> bool:
    """Whether the peer claims to read such a turn: it has a parser for every kind of part in it."""
    thinks = any("thinking" in part for part in turn.script.parts)
    calls = any("call" in part for part in turn.script.parts)
    return (not thinks or bool(flags.reasoning)) and (not calls or bool(flags.calls))


def verdict(turn: Turn, answer: Answer) -> tuple[str, str]:
    """A code, empty where the reading is the known one, and what was seen."""
    found = judge_script(turn.script, answer)
    return found[0] if found else ("", "")


def our_answer(turn: Turn, streamed: bool) -> Answer:
    """What asides makes of it."""
    message = ours(turn, streamed)
    calls = [(call.name, call.arguments) for call in message.tool_calls if call.error is None]
    return answer_of(message.thinking, message.text, calls, streamed)


def compare(formats: dict[str, dict[str, Flags]], folder: Path | None) -> Iterator[Found]:
    """Every turn of every format, by each who reads it, whole and streamed."""
    names = sorted({name for compared in formats.values() for name in compared})
    taken: set[str] = set()
    for name in names:
        began = time.monotonic()
        turns = [known for known in turns_of(name, folder) if known.source != "written" or known.name not in taken]
        taken |= {known.name for known in turns if known.source == "written"}
        count = 0
        for known in turns:
            for streamed in (False, True):
                how = "streamed" if streamed else "whole"
                code, detail = verdict(known.turn, our_answer(known.turn, streamed))
                yield Found(OURS, name, known.source, known.name, known.shape, how, code, detail)
                for peer in PEERS:
                    flags = formats[peer.package].get(name)
                    if flags is not None and fits(flags, known.turn):
                        code, detail = verdict(known.turn, peer.read(flags, known.turn, streamed))
                        yield Found(peer.package, name, known.source, known.name, known.shape, how, code, detail)
                        count += 1
        print(f"test-peers: {name}: {count} readings, {time.monotonic() - began:.0f} s", flush=True)


def unusable(peer: Peer, formats: dict[str, Flags]) -> dict[str, str]:
    """The formats whose parsers do not take the stand-in tokenizer, or do not start, and what they say."""
    found = {}
    for name, flags in formats.items():
        known = next((each for each in turns_of(name, None) if fits(flags, each.turn)), None)
        if known is None:
            found[name] = "there is no turn that both its parsers read"
            continue
        answers = [peer.read(flags, known.turn, streamed) for streamed in (False, True)]
        if all(answer.arrival.status != 200 for answer in answers):
            found[name] = answers[0].arrival.error
    return found


def read_known() -> set[str]:
    """The lines of disagreements that are known."""
    return set(KNOWN.read_text(encoding="utf-8").splitlines()) if KNOWN.exists() else set()


def line_of(found: Found) -> str:
    """One disagreement in one line."""
    return f"{found.reader} {found.format} {found.source} {found.how} {found.code or 'same'} {found.name}"


def scripts() -> int:
    """The scripts of the scoreboard through both parser layers, for `tools.scoreboard`."""
    for peer in PEERS:
        flags = pairs(peer)["qwen3"]
        for turn in script_turns():
            for streamed in (False, True):
                code, detail = verdict(turn, peer.read(flags, turn, streamed))
                how = "streamed" if streamed else "whole"
                row = {"peer": peer.name, "version": version_of(peer), "flags": flags, "how": how}
                print(json.dumps(row | {"check": turn.script.name, "code": code, "detail": detail}))
    return 0


def main(arguments: list[str]) -> int:
    """Read everything; the exit code says whether there is a disagreement that was not known."""
    parser = argparse.ArgumentParser(prog="python -m tests.peers", description=__doc__)
    parser.add_argument("--recorded", type=Path, metavar="FOLDER")
    parser.add_argument("--only", metavar="FORMAT", default="")
    parser.add_argument("--scripts", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # what the peers import is not ours
    if options.scripts:
        return scripts()
    formats = {peer.package: pairs(peer) for peer in PEERS}
    if options.only:
        formats = {
            each: {options.only: flags[options.only]} for each, flags in formats.items() if options.only in flags
        }
        formats = {peer.package: formats.get(peer.package, {}) for peer in PEERS}
    gone: dict[str, dict[str, str]] = {}
    for peer in PEERS:
        gone[peer.package] = unusable(peer, formats[peer.package])
        formats[peer.package] = {n: f for n, f in formats[peer.package].items() if n not in gone[peer.package]}
        for name, why in sorted(gone[peer.package].items()):
            print(f"test-peers: {peer.name} {name}: not compared: {why}")
    found = list(compare(formats, options.recorded))
    # Outputs that were recorded stand beside the repository, so what is known of them would be known here alone.
    lasting = [each for each in found if each.source != "recorded" and each.code]
    now = {line_of(each): each for each in lasting}
    known = read_known()
    if options.only:
        known = {line for line in known if line.split(" ")[1] == options.only}
    new, mended = now.keys() - known, known - now.keys()
    counts = Counter((each.reader, each.source, "otherwise" if each.code else "same") for each in found)
    for (reader, source, kind), count in sorted(counts.items()):
        print(f"test-peers: {reader}, {source}: {count} {kind}")
    if options.write:
        KNOWN.write_text("".join(f"{line}\n" for line in sorted(now)), encoding="utf-8")
        versions = {peer.package: version_of(peer) for peer in PEERS}
        PAGE.write_text(write_page(found, versions, formats, gone, PAGE), encoding="utf-8")
        print(f"test-peers: wrote {KNOWN.name} ({len(now)} lines) and {PAGE.name}")
        return 0
    for line in sorted(new):
        print(f"NEW  {line}\n     raw {_raw(now[line], formats)}\n     {now[line].detail}")
    for line in sorted(mended):
        print(f"GONE {line}")
    print(f"test-peers: {len(new)} new, {len(mended)} gone; `--write` takes them for known")
    return 1 if new or mended else 0


def _raw(found: Found, formats: dict[str, dict[str, Flags]]) -> str:
    """The turn again, with the command's flags, so that it can be tried."""
    known = next((each for each in turns_of(found.format, None) if each.name == found.name), None)
    flags = formats.get(found.reader, {}).get(found.format)
    return f"{known.turn.script.raw[:300]!r} after {known.turn.prompt!r}, {flags}" if known is not None else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
