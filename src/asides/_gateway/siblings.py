"""What the workers of one gateway ask each other: their metrics, and whose reply is being streamed.

Each worker listens on a socket of its own in a folder that only their user may enter. A question is one line of JSON, a
list whose first item names it; the answer is everything up to the end of the connection. Any worker can so answer for
all of them, and none has to be the first among them.

    siblings = Siblings("/run/x", 0, {"metrics": lambda: metrics.render()[0]})
    await siblings.open()
    await siblings.ask("metrics")          # the answers of the others, without those that gave none
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

log = logging.getLogger("asides.gateway")

LONGEST_WAIT = 2.0
"""Seconds that a sibling has to answer."""
SUFFIX = ".sock"


class Siblings:
    """This worker's socket, and those of the others."""

    def __init__(self, folder: str, number: int, answers: Mapping[str, Callable[..., bytes]]) -> None:
        self.number = number
        self._folder = Path(folder)
        self._own = self._folder / f"{number}{SUFFIX}"
        self._answers = answers
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Answer the others from now on. The file's existence shows that this worker is ready."""
        if sys.platform == "win32":
            raise NotImplementedError  # see `workers.refusal`
        self._own.unlink(missing_ok=True)  # of a worker of this number that was killed
        self._server = await asyncio.start_unix_server(self._answer, self._own)

    async def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()
            self._own.unlink(missing_ok=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            name, *arguments = msgspec.json.decode(await reader.readline(), type=list[str])
            writer.write(self._answers[name](*arguments))
            await writer.drain()
        except (OSError, msgspec.MsgspecError, ValueError, KeyError) as error:
            log.warning("a sibling's question was not answered: %r", error)
        finally:
            writer.close()

    async def ask(self, name: str, *arguments: str) -> list[bytes]:
        """What each of the others answers. One that gives no answer in time is left out, with a line in the log."""
        others = [path for path in self._folder.glob(f"*{SUFFIX}") if path != self._own]
        found = await asyncio.gather(*(self._ask(path, [name, *arguments]) for path in others))
        return [answer for answer in found if answer is not None]

    async def _ask(self, path: Path, question: list[str]) -> bytes | None:
        if sys.platform == "win32":
            raise NotImplementedError
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                reader, writer = await asyncio.open_unix_connection(path)
                try:
                    writer.write(msgspec.json.encode(question) + b"\n")
                    return await reader.read()
                finally:
                    writer.close()
        except (OSError, TimeoutError) as error:
            log.warning("the worker %s does not answer: %r", path.stem, error)
            return None
