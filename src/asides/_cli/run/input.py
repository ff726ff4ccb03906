"""What the person types: a line, or several; with a history where the terminal library is there. Knows no commands."""

from __future__ import annotations

import os
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..streams import STDIN

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

PROMPT = ">>> "
MORE = "... "
BLOCK = '"""'
"""Opens and closes a message of several lines."""
PLACEHOLDER = "a message, or /? for help"
LOCAL_FLAGS = 3
"""Where they stand in what `termios` knows of a terminal."""


class MessageReader(Protocol):
    """Reads what is typed. Ctrl-C is a `KeyboardInterrupt`, Ctrl-D an `EOFError`."""

    def read(self, prompt: str = PROMPT) -> str:
        """The next message or command."""


def choose() -> MessageReader:
    """With the terminal library where it is there and the terminal is no dumb one, else plain."""
    if os.environ.get("TERM", "dumb") != "dumb":
        with suppress(ImportError):
            return Edited(history_file())
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


@contextmanager
def unseen_keys() -> Iterator[None]:
    """Keys that are pressed meanwhile do not stand in what is written; they wait for the next prompt."""
    before = termios.tcgetattr(STDIN)
    quiet = [*before]
    quiet[LOCAL_FLAGS] &= ~termios.ECHO
    termios.tcsetattr(STDIN, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal may have gone
            termios.tcsetattr(STDIN, termios.TCSANOW, before)


class Plain:
    """Lines as Python reads them; edited and recalled by readline where Python has it, and not kept."""

    def __init__(self) -> None:
        with suppress(ImportError):
            import readline  # noqa: F401  # to import it is to use it

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
    """Lines with keys, several lines, and a history that is kept."""

    def __init__(self, history: Path) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory, InMemoryHistory

        self._session: PromptSession[str] = PromptSession(
            history=FileHistory(str(history)) if prepare(history) else InMemoryHistory(),
            key_bindings=_keys(),
            multiline=True,
            prompt_continuation=MORE,
        )

    def read(self, prompt: str = PROMPT) -> str:
        """The next message or command."""
        hint: StyleAndTextTuples = [("ansibrightblack", PLACEHOLDER)] if prompt == PROMPT else []
        return unwrap(self._session.prompt(prompt, placeholder=hint))


def _keys() -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings

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

    return keys
