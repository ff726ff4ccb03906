"""Which markers act now: the format, as far as it is settled, and the table of the state that is being read.

Only here the format changes while reading: `auto` settles on the family whose marker it met, and a format with headers
goes on without them when the server has left them out. Knows no text and no part.
"""

from __future__ import annotations

from ..policies import CallsInThinking
from .bare_headers import bare_format
from .calls.syntax import CallSyntax
from .format import OUTSIDE, THINKING, Format, State
from .markers import Table, Tables, compile_tables
from .suffixes import split_suffix


class ActiveMarkers:
    """The format and the tables in effect."""

    __slots__ = ("_reads_calls", "calls_in_thinking", "format", "runs_calls", "table", "tables", "watching")

    def __init__(
        self,
        format: Format,
        *,
        calls_in_thinking: CallsInThinking | None = None,
        reads_calls: bool = True,
        bare_lines: bool = False,
    ) -> None:
        self._reads_calls = reads_calls
        self.calls_in_thinking: CallsInThinking = calls_in_thinking or format.calls_in_thinking
        self.format = format
        self.tables: Tables = compile_tables(format, self.calls_in_thinking, reads_calls, bare_lines)
        self.runs_calls = True
        """Whether calls may stand in this message: not in one that its header addresses to no tool."""
        self.watching = False
        """Whether a joined header may show that what is held back is no text."""
        self.table: Table = self.tables.text
        """What acts now. `table.state` is the state: text or thinking."""

    def restart(self, state: State) -> None:
        """Begin at the first character, in this state. What the format has settled on stays settled."""
        self.runs_calls = True
        self.watching = False
        self.enter(state)

    def enter(self, state: State, met: str | CallSyntax | None = None) -> None:
        """What follows is in this state, and in the format of the marker or call syntax that was met.

        In a message that its header addresses to no tool, calls are only talked about.
        """
        if met is not None and (self.format.settle is not None or self.format.suffixed is not None):
            self.settle_on(met)
        self.runs_calls = self.runs_calls or state == OUTSIDE
        tables = self.tables
        if self.watching and state != THINKING:
            self.table = tables.watching
        elif self.runs_calls:
            self.table = tables.thinking if state == THINKING else tables.text
        else:
            self.table = tables.thinking_without_calls if state == THINKING else tables.text_without_calls

    def let_calls(self, run: bool) -> None:
        """Say whether calls run in the message that begins. `enter` comes next."""
        self.runs_calls = run

    def settle_on(self, met: str | CallSyntax) -> None:
        """Go on with the format that this marker or call syntax belongs to: in `auto`, or where it has a suffix."""
        settle, suffixed = self.format.settle, self.format.suffixed
        if settle is not None and (format := settle(met)) is not self.format:
            self._change(format)
        elif suffixed is not None and (suffix := split_suffix(met if isinstance(met, str) else met.openers[0])[1]):
            self._change(suffixed(suffix))

    def _change(self, format: Format) -> None:
        self.format = format
        # Without bare calls behind prose: these are read only in a format that the caller named, never in one `auto`
        # settled on.
        self.tables = compile_tables(format, self.calls_in_thinking, self._reads_calls)
        self.enter(self.table.state)

    def read_bare_headers(self) -> bool:
        """From here on headers are read by their words alone; whether that is new."""
        header = self.format.header
        if self.tables.bare_headers or header is None:
            return False
        self.settle_on(header.channel_marker)
        self._change(bare_format(self.format))
        return True

    def watch(self) -> None:
        """Read on as text, until a joined header shows that the first word was one too."""
        self.watching = True
        self.table = self.tables.watching

    def stop_watching(self) -> None:
        """What was read is text after all."""
        if self.watching:
            self.watching = False
            self.enter(self.table.state)

    @property
    def reads_calls(self) -> bool:
        """Whether calls are read at all."""
        return self._reads_calls
