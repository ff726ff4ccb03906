"""The conversation of `asides run`: reads, asks, obeys commands that begin with a slash, until Ctrl-D or /bye."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from ...client.client import Client, Reply
from ...errors import Error, UsageError
from .. import OK
from ..streams import Streams
from .input import Reader, unseen_keys
from .reply import Choices, ask
from .save import Saving
from .talk import Talk
from .think import read_think, think_in_words

HELP = """\
  /think [LEVEL]  think from now on; LEVEL is low, medium, high or max
  /nothink        do not think
  /hide, /show    hide thoughts, or show them
  /retry          ask the last question again
  /save [FILE]    write the talk, without thoughts, to a file: JSON where its
                  name ends in .json, else Markdown
  /clear          forget the talk and begin anew
  /bye            end (so does Ctrl-D)
  /?              this help

  Alt-Enter begins a new line; so does Enter between \"\"\" and \"\"\".
  Ctrl-C stops a reply. What had come of it stays in the talk.
  To send a message that begins with a slash, put a space before it."""
COMMAND = re.compile(r"/([a-z]+|\?)(?:\s+(.*))?\s*", re.DOTALL | re.IGNORECASE)
"""A word behind a slash. `/usr/bin/env` is none, and is sent."""


class Conversation:
    """One talk with one model."""

    def __init__(
        self,
        client: Client,
        choices: Choices,
        reader: Reader,
        streams: Streams,
        *,
        system: str = "",
        saving: Saving | None = None,
    ) -> None:
        self._client = client
        self._choices = choices
        self._reader = reader
        self._streams = streams
        self._system = [{"role": "system", "content": system}] if system else []
        self._talk = Talk(self._system)
        self._saving = saving
        self._unkept: list[dict[str, Any]] = [*self._system]
        """What was asked since the last reply that is kept in the history."""
        self._saved: set[Path] = set()
        self._commands: dict[str, Callable[[str], None]] = {
            "think": self._think,
            "nothink": self._no_think,
            "hide": self._hide,
            "show": self._show,
            "retry": self._retry,
            "save": self._save,
            "clear": self._clear,
            "help": self._help,
            "?": self._help,
        }

    def run(self) -> int:
        """Talk until the person ends it."""
        self._say(f"{self._choices.model} at {self._client}; /? tells what can be done here")
        while True:
            try:
                text = self._reader.read()
            except KeyboardInterrupt:
                self._say("Ctrl-D or /bye ends the talk")
                continue
            except EOFError:
                return OK
            if not text.strip():
                continue
            command = COMMAND.fullmatch(text)
            if command is None:
                self._unkept.append(self._talk.ask(text.strip()))
                self._answer()
            elif command[1].lower() in ("bye", "exit", "quit"):
                return OK
            else:
                self._obey(command[1].lower(), (command[2] or "").strip())

    def _obey(self, name: str, rest: str) -> None:
        act = self._commands.get(name)
        if act is None:
            self._say(f"there is no command /{name}; /? lists them, and a space before it sends it")
            return
        try:
            act(rest)
        except Error as error:
            self._say(str(error))
        except OSError as error:
            self._say(f"{error.filename}: {error.strerror}" if error.filename else str(error))

    def _say(self, words: str) -> None:
        self._streams.aside().write_line(words)
        self._streams.flush()

    # Asking.

    def _answer(self) -> None:
        """Ask until the model calls nothing more."""
        while self._talk.waits:
            with unseen_keys():
                outcome = ask(self._client, self._talk.messages, self._choices, self._streams)
            reply = outcome.reply
            if self._saving is not None and reply.parts:
                self._saving.keep(self._unkept, outcome, self._choices)
                self._unkept = []
            results = self._results(reply) if not outcome.stopped and outcome.error is None else []
            self._unkept += results
            self._talk.answer(reply, results)
            if outcome.error is not None:
                self._say(f"asides: {outcome.error}")
            if outcome.stopped:
                self._say("(stopped)")
            if outcome.error is not None and not reply.text:
                self._talk.give_up()
            self._streams.err.write("\n")
            self._streams.flush()
            if not results:
                return

    def _results(self, reply: Reply) -> list[dict[str, Any]]:
        """What the calls gave, where there are tools: the person is asked. Without an answer they count as not made."""
        results: list[dict[str, Any]] = []
        calls = [call for call in reply.tool_calls if call.error is None] if self._choices.policies.tools else []
        for call in calls:
            try:
                result = self._reader.read(f"{call.name} gives> ")
            except (KeyboardInterrupt, EOFError):
                self._say("the calls are left without results")
                return []
            results.append({"role": "tool", "tool_call_id": call.id, "content": result})
        return results

    # Commands.

    def _think(self, level: str) -> None:
        self._choices.think = read_think(level, "/think")
        self._say(f"thinking: {think_in_words(self._choices.think)}")

    def _no_think(self, rest: str) -> None:
        self._choices.think = False
        self._say(f"thinking: {think_in_words(False)}")

    def _hide(self, rest: str) -> None:
        self._choices.hide = True
        self._say("thoughts are hidden")

    def _show(self, rest: str) -> None:
        self._choices.hide = False
        self._say("thoughts are shown")

    def _retry(self, rest: str) -> None:
        if not self._talk.retry():
            raise UsageError("there is no question to ask again")
        self._answer()

    def _clear(self, rest: str) -> None:
        self._talk.clear()
        self._unkept = [*self._system]
        if self._saving is not None:
            self._saving.begin()
        self._say("the talk is forgotten")

    def _help(self, rest: str) -> None:
        self._say(HELP)

    def _save(self, name: str) -> None:
        if self._talk.empty:
            raise UsageError("there is nothing to save yet")
        now = datetime.now()
        path = Path(name or f"talk-{now:%Y%m%d-%H%M%S}.md").expanduser().absolute()
        model = self._choices.model
        json = path.suffix == ".json"
        data = self._talk.as_json(model) if json else self._talk.as_markdown(model, now).encode("utf-8", "replace")
        try:
            # A file of someone else's is not overwritten; one that this talk was saved to is.
            with open(path, "wb" if path in self._saved else "xb") as file:
                file.write(data)
        except FileExistsError as error:
            raise UsageError(f"{name}: is there already; name another file") from error
        self._saved.add(path)
        self._say(f"saved to {name or path.name}")
