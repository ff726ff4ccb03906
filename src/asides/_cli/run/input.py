"""What the person types: a line, or several; with a history where the terminal library is there. Knows no commands.

`choose` gives a reader with the library (`Edited`) or without (`Plain`). While a reply comes the terminal belongs to
`ReplyKeys`: nothing that is typed shows in the reply, a few keys act at once, and all others wait for the next prompt,
where the reader is given them as if they were typed then.
"""

from __future__ import annotations

import os
import re
import select
import sys
import termios
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from ...terminal._layout import PROMPT
from ..streams import READ_SIZE, STDIN

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from .folds import ScreenFolds

MORE = "... "
BLOCK = '"""'
"""Opens and closes a message of several lines."""
PLACEHOLDER = "a message, or /? for help"
LOCAL_FLAGS = 3
"""Where they stand in what `termios` knows of a terminal."""
UNFOLD = "c-t"
CLICK = re.compile(r"\x1b\[<0;\d+;(\d+)m")
"""The left button is let go: the row, counted from 1."""


class MessageReader(Protocol):
    """Reads what is typed. Ctrl-C is a `KeyboardInterrupt`, Ctrl-D an `EOFError`."""

    echo: str | None
    """What the last message left on the screen, line by line; None where nobody knows."""
    edits: bool
    """Whether it takes keys one by one, so that some may act while a reply comes."""

    def add_keys(self, keys: str) -> None:
        """These were pressed before; the next `read` finds them."""

    def read(self, prompt: str = PROMPT) -> str:
        """The next message or command."""


def choose(folds: ScreenFolds, *, mouse: bool = False) -> MessageReader:
    """With the terminal library where it is there and the terminal is no dumb one, else plain."""
    if os.environ.get("TERM", "dumb") != "dumb":
        with suppress(ImportError):
            return Edited(history_file(), folds, mouse=mouse)
    return Plain()


def history_file() -> Path:
    """Where typed lines are kept."""
    home = os.environ.get("XDG_STATE_HOME", "")
    state = Path(home) if os.path.isabs(home) else Path.home() / ".local" / "state"
    return state / "asides" / "run_history"


def prepare(path: Path) -> bool:
    """Make the file, for its owner's eyes alone. False where that cannot be."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        os.chmod(path, 0o600)
    except OSError:
        return False
    return True


def is_open(text: str) -> bool:
    """Whether a block was begun that has not ended."""
    begun = text.lstrip()
    return begun.startswith(BLOCK) and not (len(begun) >= 2 * len(BLOCK) and begun.rstrip().endswith(BLOCK))


def unwrap(text: str) -> str:
    """The message without the marks of a block."""
    stripped = text.strip()
    if not stripped.startswith(BLOCK):
        return text
    return stripped.removeprefix(BLOCK).removesuffix(BLOCK).strip("\n")


class ReplyKeys:
    """The keyboard while a reply comes. Nothing that is typed stands in what is written."""

    def __init__(
        self, reader: MessageReader, actions: Mapping[str, Callable[[], bool]], idle: Callable[[], object]
    ) -> None:
        """`actions`: what keys do at once; False where there was nothing to do. `idle` is called with every `poll`."""
        self._reader = reader
        self._actions = actions
        self._idle = idle
        self._held: list[str] = []

    def __enter__(self) -> Self:
        if sys.platform == "win32":
            raise NotImplementedError  # nor has it a termios to import
        self._before = termios.tcgetattr(STDIN)
        changed = [*self._before]
        # Where keys are not read one by one, they wait in the terminal itself.
        changed[LOCAL_FLAGS] &= ~(termios.ECHO | (termios.ICANON if self._reader.edits else 0))
        termios.tcsetattr(STDIN, termios.TCSANOW, changed)
        return self

    def __exit__(self, *error: object) -> None:
        self.poll()
        if sys.platform == "win32":
            raise NotImplementedError
        with suppress(termios.error):  # the terminal may have gone
            termios.tcsetattr(STDIN, termios.TCSANOW, self._before)
        if self._held:
            self._reader.add_keys("".join(self._held))

    def drop(self) -> None:
        """Forget what was typed, as a terminal does at Ctrl-C."""
        self.poll()
        self._held.clear()

    def poll(self) -> None:
        """Do what the keys ask for that were pressed since the last time."""
        self._idle()
        while self._reader.edits and select.select([STDIN], [], [], 0)[0]:
            data = os.read(STDIN, READ_SIZE)
            if not data:
                return
            for key in data.decode("utf-8", "surrogateescape"):
                act = self._actions.get(key)
                if act is None or not act():
                    self._held.append(key)


class Plain:
    """Lines as Python reads them; edited and recalled by readline where Python has it, and not kept."""

    echo: str | None = None
    edits = False

    def __init__(self) -> None:
        with suppress(ImportError):
            import readline  # noqa: F401  # to import it is to use it

    def add_keys(self, keys: str) -> None:
        """Not called: keys are left in the terminal."""

    def read(self, prompt: str = PROMPT) -> str:
        """The next message or command."""
        try:
            text = input(prompt)
            while is_open(text):
                text += "\n" + input(MORE)
        except (EOFError, KeyboardInterrupt):
            print()  # what follows begins a line
            raise
        return unwrap(text)


class Edited:
    """Lines with keys, several lines, and a history that is kept. Ctrl-T, or a click, folds and unfolds thoughts."""

    edits = True

    def __init__(self, history: Path, folds: ScreenFolds, *, mouse: bool = False) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory, InMemoryHistory

        self.echo: str | None = None
        self._session: PromptSession[str] = PromptSession(
            history=FileHistory(str(history)) if prepare(history) else InMemoryHistory(),
            key_bindings=_keys(folds),
            multiline=True,
            prompt_continuation=MORE,
            mouse_support=mouse,
        )
        self._session.app.after_render += lambda app: folds.prompt_drawn(_rows(app))

    def add_keys(self, keys: str) -> None:
        """These were pressed before; the next `read` finds them."""
        from prompt_toolkit.input.typeahead import store_typeahead
        from prompt_toolkit.input.vt100_parser import Vt100Parser
        from prompt_toolkit.key_binding.key_processor import KeyPress

        pressed: list[KeyPress] = []
        parser = Vt100Parser(pressed.append)
        # A terminal that is not in raw mode makes line feeds of Enter.
        parser.feed_and_flush(keys.replace("\n", "\r"))
        store_typeahead(self._session.input, pressed)

    def read(self, prompt: str = PROMPT) -> str:
        """The next message or command."""
        from wcwidth import wcswidth

        hint: StyleAndTextTuples = [("ansibrightblack", PLACEHOLDER)] if prompt == PROMPT else []
        self.echo = None
        text = self._session.prompt(prompt, placeholder=hint)
        columns = self._session.output.get_size().columns
        lines = f"{prompt}{text}".replace("\n", f"\n{MORE}").split("\n")
        # What the library breaks into rows, or shows in its own way, is not known here.
        if text and all(line.isprintable() and 0 < wcswidth(line) < columns for line in lines):
            self.echo = "".join(f"{line}\n" for line in lines)
        return unwrap(text)


def _rows(app: Application[str]) -> int:
    """The height of the prompt."""
    screen = app.renderer.last_rendered_screen
    return screen.height if screen is not None else 1


def _keys(folds: ScreenFolds) -> KeyBindings:
    from prompt_toolkit.application import run_in_terminal
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.keys import Keys
    from prompt_toolkit.renderer import HeightIsUnknownError

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer: Buffer = event.current_buffer
        if is_open(buffer.text):
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add(UNFOLD)
    def _(event: KeyPressEvent) -> None:
        run_in_terminal(folds.toggle_last)

    @keys.add("c-l")
    def _(event: KeyPressEvent) -> None:
        event.app.renderer.clear()
        folds.forget()

    @keys.add(Keys.Vt100MouseEvent)
    def _(event: KeyPressEvent) -> None:
        click = CLICK.fullmatch(event.data)
        if click is not None:
            with suppress(HeightIsUnknownError):  # the terminal does not say where its cursor stands
                distance = event.app.renderer.rows_above_layout - (int(click[1]) - 1)
                run_in_terminal(lambda: folds.toggle_at(distance))

    return keys
