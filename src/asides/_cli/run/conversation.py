"""The conversation of `asides run`: reads, asks, obeys commands that begin with a slash, until Ctrl-D or /bye.

`Talk` is what the model is reminded of: clean text, without thoughts but for those of turns with calls, which models
expect back. A question that was refused, or whose reply broke off before any answer, is taken out of it, and `/retry`
can ask it again. `Conversation` holds the talk, reads what is typed and asks until the model calls nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from ...client.client import Client, Reply
from ...errors import Error, UsageError
from ...terminal import Mode
from .. import OK
from ..streams import Streams
from .command import read_think, think_in_words
from .folds import ScreenFolds
from .input import PROMPT, MessageReader, ReplyKeys
from .reply import Choices, ReplySaver, ask, display_reply

HELP = """\
  /think [LEVEL]  think from now on; LEVEL is low, medium, high or max
  /nothink        do not think
  /hide, /show    make a line of each thought, or show them; so does /collapse
  /thought [N]    write the last thought, or the one of this number
  /view           the talk on the whole screen; thoughts open with a click
  /retry          ask the last question again
  /save [FILE]    write the talk, without thoughts, to a file: JSON where its
                  name ends in .json, else Markdown
  /clear          forget the talk and begin anew
  /bye            end (so does Ctrl-D)
  /?              this help

  Alt-Enter begins a new line; so does Enter between \"\"\" and \"\"\".
  Ctrl-T unfolds the last thought, and folds it again.
  Ctrl-C stops a reply. What had come of it stays in the talk.
  To send a message that begins with a slash, put a space before it."""
UNFOLD_KEY, UNFOLD_HINT = "\x14", "(Ctrl-T shows it)"
COMMAND = re.compile(r"/([a-z]+|\?)(?:\s+(.*))?\s*", re.DOTALL | re.IGNORECASE)
"""A word behind a slash. `/usr/bin/env` is none, and is sent."""


class Conversation:
    """One talk with one model."""

    def __init__(
        self,
        client: Client,
        choices: Choices,
        reader: MessageReader,
        streams: Streams,
        folds: ScreenFolds,
        *,
        system: str = "",
        saving: ReplySaver | None = None,
    ) -> None:
        self._client = client
        self._choices = choices
        self._reader = reader
        self._streams = streams
        self._folds = folds
        self._exchanges: list[tuple[str, Reply]] = []
        """What was asked and what came, thoughts included, for the viewer."""
        self._system = [{"role": "system", "content": system}] if system else []
        self._talk = Talk(self._system)
        self._saving = saving
        self._unkept: list[dict[str, Any]] = [*self._system]
        """What was asked since the last reply that is kept in the history."""
        self._saved: set[Path] = set()
        self._commands: dict[str, Callable[[str], None]] = {
            "think": self._think,
            "nothink": lambda rest: self._think("false"),
            "hide": lambda rest: self._set_mode("hide"),
            "collapse": lambda rest: self._set_mode("collapse"),
            "show": lambda rest: self._set_mode("show"),
            "thought": self._thought,
            "view": self._view,
            "retry": self._retry,
            "save": self._save,
            "clear": self._clear,
            "help": lambda rest: self._write(HELP),
            "?": lambda rest: self._write(HELP),
        }

    def run(self) -> int:
        """Talk until the person ends it."""
        self._write(f"{self._choices.model} at {self._client}; /? tells what can be done here")
        while True:
            try:
                text = self._read()
            except KeyboardInterrupt:
                self._write("Ctrl-D or /bye ends the talk")
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
            self._write(f"there is no command /{name}; /? lists them, and a space before it sends it")
            return
        try:
            act(rest)
        except Error as error:
            self._write(str(error))
        except OSError as error:
            self._write(f"{error.filename}: {error.strerror}" if error.filename else str(error))

    def _write(self, text: str) -> None:
        self._streams.aside().write_line(text)
        self._streams.flush()

    def _read(self, prompt: str = PROMPT) -> str:
        try:
            return self._reader.read(prompt)
        finally:
            self._folds.typed(self._reader.echo)

    # Asking.

    def _answer(self) -> None:
        """Ask until the model calls nothing more."""
        while self._talk.waits:
            messages = self._talk.messages
            display = display_reply(
                self._streams, self._choices, self._folds, UNFOLD_HINT if self._reader.edits else ""
            )
            with ReplyKeys(self._reader, {UNFOLD_KEY: display.unfold}) as keys:
                outcome = ask(self._client, messages, self._choices, self._streams, display, keys)
            reply = outcome.reply
            self._exchanges.append((messages[-1]["content"], reply))
            if self._saving is not None and reply.parts:
                self._saving.save(self._unkept, outcome, self._choices)
                self._unkept = []
            results = self._results(reply) if not outcome.stopped and outcome.error is None else []
            self._unkept += results
            self._talk.answer(reply, results)
            if outcome.error is not None:
                self._write(f"asides: {outcome.error}")
            if outcome.stopped:
                self._write("(stopped)")
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
                result = self._read(f"{call.name} gives> ")
            except (KeyboardInterrupt, EOFError):
                self._write("the calls are left without results")
                return []
            results.append({"role": "tool", "tool_call_id": call.id, "content": result})
        return results

    # Commands.

    def _think(self, level: str) -> None:
        self._choices.think = read_think(level, "/think")
        self._write(f"thinking: {think_in_words(self._choices.think)}")

    def _set_mode(self, mode: Mode) -> None:
        self._choices.mode = mode
        self._write("thoughts are shown" if mode == "show" else "a line tells of each thought; Ctrl-T unfolds the last")

    def _thought(self, rest: str) -> None:
        thoughts = self._folds.thoughts
        if not thoughts:
            raise UsageError("there is no thought yet")
        if rest and not (rest.isascii() and rest.isdigit() and 0 < int(rest) <= len(thoughts)):
            raise UsageError(f"thoughts are counted from 1; the last is {len(thoughts)}")
        self._folds.write_below(thoughts[int(rest or 0) - 1])

    def _view(self, rest: str) -> None:
        from ...terminal.document import Document
        from ..view import view_document

        if not self._exchanges:
            raise UsageError("there is nothing to see yet")
        document = Document()
        for asked, reply in self._exchanges:
            document.add(f"{PROMPT}{asked}")
            document.add_parts(reply.parts)
        view_document(document, self._choices.model, self._choices.style)

    def _retry(self, rest: str) -> None:
        if not self._talk.retry():
            raise UsageError("there is no question to ask again")
        self._answer()

    def _clear(self, rest: str) -> None:
        self._talk.clear()
        self._unkept = [*self._system]
        if self._saving is not None:
            self._saving.begin()
        self._write("the talk is forgotten")

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
        self._write(f"saved to {name or path.name}")


class Talk:
    """The messages so far. Thoughts are not part of them, but for those of turns with calls."""

    def __init__(self, system: Sequence[dict[str, Any]] = ()) -> None:
        self._system = system
        self._turns: list[dict[str, Any]] = []
        self._given_up = ""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What is sent. A question without an answer goes together with the next: many models want turns to change."""
        found = [*self._system]
        for turn in self._turns:
            if turn["role"] == "user" and found and found[-1]["role"] == "user":
                found[-1] = {"role": "user", "content": f"{found[-1]['content']}\n\n{turn['content']}"}
            else:
                found.append(turn)
        return found

    @property
    def waits(self) -> bool:
        """Whether something was asked that has no answer yet."""
        return bool(self._turns) and self._turns[-1]["role"] in ("user", "tool")

    def ask(self, text: str) -> dict[str, Any]:
        """The person says something; the message that this makes."""
        self._given_up = ""
        self._turns.append({"role": "user", "content": text})
        return self._turns[-1]

    def answer(self, reply: Reply, results: Sequence[dict[str, Any]] = ()) -> None:
        """The model has said something, perhaps not to its end. Calls count only with the messages of their results."""
        if results:
            self._turns += [reply.to_message(), *results]
        elif reply.text:
            self._turns.append({"role": "assistant", "content": reply.text})

    def give_up(self) -> None:
        """The last question was refused: it is not sent again, unless `retry` asks for it."""
        if self._turns and self._turns[-1]["role"] == "user":
            self._given_up = self._turns.pop()["content"]

    def retry(self) -> bool:
        """Forget all that came after the last question, so that it can be asked again. False if there is none."""
        if self._given_up:
            self.ask(self._given_up)
            return True
        if not any(turn["role"] == "user" for turn in self._turns):
            return False
        while self._turns[-1]["role"] != "user":
            self._turns.pop()
        return True

    def clear(self) -> None:
        """Forget all but the system prompt."""
        self._turns.clear()
        self._given_up = ""

    @property
    def empty(self) -> bool:
        """Whether there is no turn yet."""
        return not self._turns

    def as_json(self, model: str) -> bytes:
        """The messages, as the next program wants them, without the thinking of turns with calls."""
        messages = [
            {name: value for name, value in message.items() if name != "reasoning_content"} for message in self.messages
        ]
        return msgspec.json.format(msgspec.json.encode({"model": model, "messages": messages}), indent=2) + b"\n"

    def as_markdown(self, model: str, time: datetime) -> str:
        """The conversation for a reader."""
        lines = [f"# A talk with {model}", "", f"{time:%Y-%m-%d %H:%M}", ""]
        names = {"system": "System", "user": "You", "assistant": model, "tool": "Tool"}
        for message in self.messages:
            calls = [call["function"] for call in message.get("tool_calls", ())]
            texts = [message["content"], *(f"`{call['name']} {call['arguments']}`" for call in calls)]
            lines += [f"## {names[message['role']]}", "", "\n\n".join(text for text in texts if text), ""]
        return "\n".join(lines)
