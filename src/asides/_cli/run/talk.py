"""A conversation as it is remembered: clean text, and calls with their thinking once they have results."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from ...client.client import Reply


class Talk:
    """What was said so far. Thoughts are not part of it, but for those of turns with calls."""

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
        """Forget all but what the system was told."""
        self._turns.clear()
        self._given_up = ""

    @property
    def empty(self) -> bool:
        """Whether nothing was said."""
        return not self._turns

    def as_json(self, model: str) -> bytes:
        """The messages, as the next program wants them, without the thinking of turns with calls."""
        said = [
            {name: value for name, value in message.items() if name != "reasoning_content"} for message in self.messages
        ]
        return msgspec.json.format(msgspec.json.encode({"model": model, "messages": said}), indent=2) + b"\n"

    def as_markdown(self, model: str, time: datetime) -> str:
        """The conversation for a reader."""
        lines = [f"# A talk with {model}", "", f"{time:%Y-%m-%d %H:%M}", ""]
        names = {"system": "System", "user": "You", "assistant": model, "tool": "Tool"}
        for message in self.messages:
            calls = [call["function"] for call in message.get("tool_calls", ())]
            said = [message["content"], *(f"`{call['name']} {call['arguments']}`" for call in calls)]
            lines += [f"## {names[message['role']]}", "", "\n\n".join(text for text in said if text), ""]
        return "\n".join(lines)
