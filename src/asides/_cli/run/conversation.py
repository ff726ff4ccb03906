"""The conversation of `asides run`: reads, asks, obeys commands that begin with a slash, until Ctrl-D or /bye.

`Talk` is what the model is reminded of: clean text, without thoughts but for those of turns with calls, which models
expect back. A question that was refused, or whose reply broke off before any answer, is taken out of it, and `/retry`
can ask it again. `RunSession` holds the talk, reads what is typed and asks until the model calls nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import msgspec

from ...client._client import Client, Reply, UpstreamError, name_some
from ...errors import Error, UsageError
from ...terminal import Mode, Screen
from ...terminal._answer import definitions
from ...terminal._layout import PROMPT, summary
from ...terminal._screen import COLUMNS
from .. import OK
from ..streams import STDOUT, Streams
from .command import read_option, read_think, think_in_words
from .folds import ScreenFolds
from .input import MessageReader, ReplyKeys
from .reply import Choices, ReplySaver, ask, display_reply

if TYPE_CHECKING:
    from .continued import LastTalk

COMMANDS = (
    ("/model [NAME]", "list the models, or switch to another"),
    ("/think [LEVEL]", "turn thinking on; LEVEL is low, medium, high, max or off"),
    ("/nothink", "turn thinking off"),
    ("/system [TEXT]", "show or set the system prompt; `none` removes it"),
    ("/set [KEY VALUE]", "list or set parameters, such as temperature 0.2"),
    ("/unset KEY", "remove a parameter"),
    ("/verbose", "print tokens and times after each reply, on or off"),
    ("/hide, /show", "show thoughts as one line each, or in full; /collapse is /hide"),
    ("/thought [N]", "print the last thought, or thought number N"),
    ("/view", "read the conversation on the full screen; a click opens a thought"),
    ("/retry", "ask the last question again"),
    ("/save [FILE]", "write the conversation without thoughts, as JSON or Markdown"),
    ("/clear", "start a new conversation"),
    ("/bye, Ctrl-D", "quit"),
)
KEYS = (
    ("Ctrl-T", "open or close the last thought"),
    ("Ctrl-N", "during a thought: let the model answer now, if the server can do that"),
    ("Ctrl-C", "stop a reply; what has arrived stays in the conversation"),
    ("Alt-Enter", 'begin a new line; so does Enter between """ and """'),
)
NOTE = "To send a message that begins with a slash, put a space before it."
UNFOLD_KEY, ANSWER_KEY = "\x14", "\x0e"
COMMAND = re.compile(r"/([a-z]+|\?)(?:\s+(.*))?\s*", re.DOTALL | re.IGNORECASE)
"""A word behind a slash. `/usr/bin/env` is none, and is sent."""


class RunSession:
    """One talk with one model."""

    def __init__(
        self,
        client: Client,
        choices: Choices,
        reader: MessageReader,
        streams: Streams,
        folds: ScreenFolds,
        *,
        choices_for: Callable[[str], Choices],
        system: str = "",
        saving: ReplySaver | None = None,
    ) -> None:
        """`choices_for`: how another model is asked and read, by its name."""
        self._client = client
        client.may_end_thoughts = True
        self._choices = choices
        self._choices_for = choices_for
        self._reader = reader
        self._streams = streams
        self._folds = folds
        self._exchanges: list[tuple[str, Reply]] = []
        """What was asked and what came, thoughts included, for the viewer."""
        self._unsaid: list[str] = []
        """Messages of other threads, written when the main one comes to it."""
        self._talk = Talk(system)
        self._saving = saving
        self._unkept: list[dict[str, Any]] = self._talk.messages
        """What was asked since the last reply that is kept in the history."""
        self._saved: set[Path] = set()
        self._commands: dict[str, Callable[[str], None]] = {
            "model": self._model,
            "system": self._set_system,
            "set": self._set,
            "unset": self._unset,
            "verbose": self._verbose,
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
            "help": self._help,
            "?": self._help,
        }

    def go_on(self, before: LastTalk) -> None:
        """Begin with a conversation of the history."""
        if self._talk.go_on(before.messages):
            self._unkept = []
        for kept in before.replies:
            asked = "\n\n".join(turn.text for turn in kept.asked if turn.role != "system")
            self._exchanges.append((asked, kept.reply))
            for thought in kept.thoughts:
                self._folds.add(thought.text, summary(thought.text, thought.seconds, complete=thought.complete))
        count = len(before.replies)
        self._write(f"goes on with a talk of {count} {'reply' if count == 1 else 'replies'}; /view shows it")

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

    def _help(self, rest: str) -> None:
        width = min(Screen(STDOUT).width(), COLUMNS) - 1
        self._write("\n".join([*definitions([*COMMANDS, *KEYS], width, "  "), f"  {NOTE}"]))

    # Asking.

    def _answer(self) -> None:
        """Ask until the model calls nothing more."""
        while self._talk.waits:
            messages = self._talk.messages
            display = display_reply(self._streams, self._choices, self._folds, self._hint())
            actions = {UNFOLD_KEY: display.unfold, ANSWER_KEY: self._answer_now}
            with ReplyKeys(self._reader, actions, self._write_unsaid) as keys:
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

    def _hint(self) -> str:
        if not self._reader.edits:
            return ""
        return f"(Ctrl-T shows it{', Ctrl-N answers now' if self._client.ends_thoughts else ''})"

    def _answer_now(self) -> bool:
        """End the thought, in a thread: the server may take its time, and the reply comes on meanwhile."""

        def order() -> None:
            try:
                self._client.answer_now()
            except Error as error:
                self._unsaid.append(str(error))

        Thread(target=order, daemon=True).start()
        return True

    def _write_unsaid(self) -> None:
        while self._unsaid:
            self._streams.message(self._unsaid.pop(0))

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

    def _model(self, name: str) -> None:
        try:
            names = self._client.models()
        except UpstreamError as error:
            names = []
            if not name:
                raise UsageError(f"the model is {self._choices.model}; {error}") from error
        if not name:
            for each in names or [self._choices.model]:
                self._write(f"{'*' if each == self._choices.model else ' '} {each}")
            return
        if names and name not in names and f"{name}:latest" not in names:
            raise UsageError(f"there is no model {name!r}; {self._client} has {name_some(names)}")
        found = self._choices_for(name)
        for field in ("model", "format", "policies", "extra"):
            setattr(self._choices, field, getattr(found, field))
        self._write(f"talking with {name} from now on")

    def _set_system(self, text: str) -> None:
        if text:
            prompt = self._talk.set_system("" if text.lower() == "none" else text)
            self._unkept = [*prompt, *(message for message in self._unkept if message["role"] != "system")]
        self._write(f"system prompt: {self._talk.system}" if self._talk.system else "there is no system prompt")

    def _set(self, rest: str) -> None:
        name, _, value = rest.partition(" ")
        if name and not value.strip():
            raise UsageError("/set takes a name and a value, such as: /set temperature 0.2")
        if name:
            self._choices.options = self._choices.options | read_option(name, value)
        options = self._choices.extra | self._choices.options
        set_to = ", ".join(f"{name} {msgspec.json.encode(value).decode()}" for name, value in options.items())
        self._write(set_to or "no parameter is set")

    def _unset(self, name: str) -> None:
        if name not in self._choices.options:
            raise UsageError(f"{name or 'nothing'} is not set here; /set lists what is")
        self._choices.options = {each: value for each, value in self._choices.options.items() if each != name}
        self._set("")

    def _verbose(self, rest: str) -> None:
        self._choices.verbose = not self._choices.verbose
        self._write(f"tokens and times are {'written' if self._choices.verbose else 'not written any more'}")

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
        from ...terminal._document import Document
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
        self._unkept = self._talk.messages
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
            raise UsageError(f"{name}: exists already; name another file") from error
        self._saved.add(path)
        self._write(f"saved to {name or path.name}")


class Talk:
    """The messages so far. Thoughts are not part of them, but for those of turns with calls."""

    def __init__(self, system: str = "") -> None:
        self.system = system
        """The system prompt."""
        self._turns: list[dict[str, Any]] = []
        self._given_up = ""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What is sent. A question without an answer goes together with the next: many models want turns to change."""
        found = self._prompt()
        for turn in self._turns:
            if turn["role"] == "user" and found and found[-1]["role"] == "user":
                found[-1] = {"role": "user", "content": f"{found[-1]['content']}\n\n{turn['content']}"}
            else:
                found.append(turn)
        return found

    def _prompt(self) -> list[dict[str, Any]]:
        return [{"role": "system", "content": self.system}] if self.system else []

    def set_system(self, text: str) -> list[dict[str, Any]]:
        """Another system prompt holds from now on, or none; its message."""
        self.system = text
        return self._prompt()

    def go_on(self, messages: Sequence[dict[str, Any]]) -> bool:
        """Begin with these messages. False where they had another system prompt than the one that holds."""
        before = next((message["content"] for message in messages if message["role"] == "system"), "")
        self._turns += [message for message in messages if message["role"] != "system"]
        same = not self.system or self.system == before
        self.system = self.system or before
        return same

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
