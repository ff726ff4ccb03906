"""Drivers of the programs: Codex, Claude Code and opencode, as they are started in a script, with homes of their own.

Each question is one run of the program. What it shows is read off the events that it prints as JSON. No account is
needed and nothing but the gateway is asked: updates, telemetry and lists of models are switched off.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.clients.driving import CITY, KEY, Shown
from tests.clients.model import MODEL, found, question

SECONDS = 120.0
"""For one run of a program."""
FILES = {"rome.txt": "Rome", "oslo.txt": "Oslo"}
"""What lies in the folder that a program works in: the results of its calls."""


class ProgramError(Exception):
    """A program reported that it failed."""


class Program:
    """Runs of one program, bounded in time, in a folder with the files that it is to read."""

    def __init__(self, folder: str, command: str, variables: Mapping[str, str]) -> None:
        self._path = str(Path(os.environ["ASIDES_CLIENTS"], folder, "node_modules", ".bin", command))
        self._variables = {**os.environ, **variables}
        self.folder = Path.home() / "work"
        self.folder.mkdir(exist_ok=True)
        for name, city in FILES.items():
            self.folder.joinpath(name).write_text(found(city) + "\n", encoding="utf-8")

    def run(self, *arguments: str) -> list[dict[str, Any]]:
        """The events of a run. One that ends badly has events too; one without any is an error."""
        done = subprocess.run(
            [self._path, *arguments],
            cwd=self.folder,
            env=self._variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
        )
        output, errors = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        if path := os.environ.get("ASIDES_CLIENTS_LOG"):
            with Path(path).open("a", encoding="utf-8") as log:
                log.write(f"{self._path} {arguments}\n{output}\n{errors}\n")
        events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        if not events:
            raise ProgramError(f"ended with {done.returncode}: {errors[-500:]}")
        return events


class Codex:
    """`codex exec`: items of reasoning, messages and commands that were run."""

    def __init__(self, url: str) -> None:
        self._program = Program("codex", "codex", {"GATEWAY_KEY": KEY, "CODEX_HOME": str(Path.home())})
        provider = f'name="gateway",base_url="{url}/v1",wire_api="responses",env_key="GATEWAY_KEY"'
        self._settings = (
            "model_provider=gateway",
            f"model_providers.gateway={{{provider},request_max_retries=0,stream_max_retries=0}}",
            "check_for_update_on_startup=false",
            "analytics.enabled=false",
        )

    def _run(self, case: str, *arguments: str) -> Shown:
        settings = [argument for each in self._settings for argument in ("-c", each)]
        # What it runs is what the model of these tests calls: `cat`.
        freely = ("--ephemeral", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
        events = self._program.run("exec", "--json", *freely, *settings, "-m", MODEL, *arguments, question(case))
        shown = Shown()
        for event in events:
            if event["type"] == "turn.failed":
                raise ProgramError(event["error"]["message"])
            item = event.get("item", {}) if event["type"] == "item.completed" else {}
            if item.get("type") == "reasoning":
                shown.thinking += item["text"]
            elif item.get("type") == "agent_message":
                shown.text = item["text"]
            elif item.get("type") == "command_execution":
                # Shown as its shell was started: `/bin/bash -lc 'cat rome.txt'`.
                command = item["command"].partition("-lc ")[2].strip("'\"")
                shown.calls.append(("exec_command", {"cmd": command}))
        return shown

    def plain(self) -> Iterable[Shown]:
        yield self._run("plain")

    def calls(self) -> Shown:
        shown = self._run("calls")
        shown.calls.sort(key=str, reverse=True)  # reported as they finish
        return shown

    def structured(self) -> Shown:
        schema = self._program.folder / "schema.json"
        schema.write_text(json.dumps(CITY), encoding="utf-8")
        return Shown(value=json.loads(self._run("structured", "--output-schema", str(schema)).text))

    def ask(self, case: str) -> Shown:
        return self._run(case)


class ClaudeCode:
    """`claude -p`: messages of Anthropic's, and a result."""

    def __init__(self, url: str) -> None:
        variables = {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_AUTH_TOKEN": KEY,
            "ANTHROPIC_MODEL": MODEL,
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": MODEL,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "DISABLE_AUTOUPDATER": "1",
        }
        self._program = Program("claude-code", "claude", variables)

    def _run(self, case: str, *arguments: str) -> Shown:
        printed = ("-p", "--output-format", "stream-json", "--verbose", "--no-session-persistence")
        events = self._program.run(*printed, "--allowedTools=Bash(cat *)", *arguments, question(case))
        shown = Shown()
        for event in events:
            for block in event["message"]["content"] if event["type"] == "assistant" else ():
                if block["type"] == "thinking":
                    shown.thinking += block["thinking"]
                elif block["type"] == "tool_use":
                    shown.calls.append((block["name"], block["input"]))
        result = events[-1]
        if result.get("is_error"):
            raise ProgramError(result["result"])
        shown.text, shown.value = result["result"], result.get("structured_output")
        return shown

    def plain(self) -> Iterable[Shown]:
        yield self._run("plain")

    def calls(self) -> Shown:
        return self._run("calls")

    def structured(self) -> Shown:
        return self._run("structured", "--json-schema", json.dumps(CITY))

    def ask(self, case: str) -> Shown:
        return self._run(case)


class _Opencode:
    """`opencode run`: parts of reasoning, text and tools, and errors. The API is that of the provider's package."""

    def __init__(self, url: str, package: str) -> None:
        models = {MODEL: {"name": MODEL, "reasoning": True, "tool_call": True}}
        options = {"baseURL": f"{url}/v1", "apiKey": KEY}
        provider = {"npm": package, "name": "gateway", "options": options, "models": models}
        config = {
            "autoupdate": False,
            "share": "disabled",
            "model": f"gateway/{MODEL}",
            "small_model": f"gateway/{MODEL}",
            "enabled_providers": ["gateway"],
            "provider": {"gateway": provider},
        }
        switched_off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
        variables = {f"OPENCODE_DISABLE_{name}": "1" for name in switched_off}
        self._program = Program("opencode", "opencode", {**variables, "OPENCODE_CONFIG_CONTENT": json.dumps(config)})

    def _run(self, case: str) -> Shown:
        shown = Shown()
        for event in self._program.run("run", "--format", "json", "--thinking", "--title", case, question(case)):
            part = event.get("part", {})
            if event["type"] == "error":
                raise ProgramError(json.dumps(event["error"], ensure_ascii=False))
            if event["type"] == "reasoning":
                shown.thinking += part["text"]
            elif event["type"] == "text":
                shown.text = part["text"]
            elif event["type"] == "tool_use":
                shown.calls.append((part["tool"], part["state"]["input"]))
        return shown

    def plain(self) -> Iterable[Shown]:
        yield self._run("plain")

    def calls(self) -> Shown:
        shown = self._run("calls")
        shown.calls.sort(key=str, reverse=True)  # reported as they finish
        return shown

    def structured(self) -> Shown:
        raise NotImplementedError("opencode run takes no schema")

    def ask(self, case: str) -> Shown:
        return self._run(case)


def opencode_chat(url: str) -> _Opencode:
    """Over `@ai-sdk/openai-compatible`."""
    return _Opencode(url, "@ai-sdk/openai-compatible")


def opencode_responses(url: str) -> _Opencode:
    """Over `@ai-sdk/openai`."""
    return _Opencode(url, "@ai-sdk/openai")


def opencode_messages(url: str) -> _Opencode:
    """Over `@ai-sdk/anthropic`."""
    return _Opencode(url, "@ai-sdk/anthropic")
