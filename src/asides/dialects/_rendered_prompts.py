"""The prompt that a server makes of a request: how each engine is asked for it, and how its answer is read.

Where a prompt ends says where the reply begins, for any model, version and template keyword. The question is a fixed
one-word message, never the client's words, with what decides about thinking in the body that the client's request
becomes: the template's keywords, the effort, whether there are tools.

    question = PromptQuestion.about(body)
    asking = ask_end(PROMPT_ENDPOINTS["vllm"], question)
    path, body = next(asking)                          # what to post, and where
    asking.send(answer)                                # the next of these, or StopIteration with the end:
                                                       # "<|im_end|>\n<|im_start|>assistant\n<think>\n"

Sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from typing import Any

import msgspec

from .._engine.vocabulary import read_token_strings
from ..families import Switch
from ..families._family import EFFORT, EFFORTS
from ._fields import as_object

MOST_SECONDS = 1.0
"""Seconds after the first question for which requests wait for its answer."""
MOST_QUESTIONS = 16
"""Questions about a model: its users choose efforts."""
MOST_BYTES = 1024 * 1024
"""Bytes of an answer."""
WORD = "heliotrope"
"""The message. A word that no chat template writes by itself, so that what follows it is the prompt's end."""
MOST_IDS = 32
"""Ids from the end of a prompt that a server is asked to decode."""
MOST_CHARACTERS = 4096
"""Characters after the message that a prompt may have."""
_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}},
}
_OTHER_PROMPTS = ("chat_template", "continue_final_message", "add_generation_prompt", "documents")
"""Fields of requests that change the prompt in ways that are not asked about."""
_SWITCH_KEYWORDS = ("enable_thinking", "thinking", EFFORT)
_WORDS = frozenset({*EFFORTS, "none"})
_Value = bool | str
_Values = tuple[tuple[str, _Value], ...]


class PromptQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What of a request decides where its reply begins."""

    model: str
    """The server's name of the model."""
    keywords: _Values = ()
    """The template's keywords."""
    effort: str = ""
    """The request field `reasoning_effort`; empty where there is none."""
    reasoning: _Values = ()
    """Of the request field `reasoning`, which SGLang turns into keywords."""
    tools: bool = False
    """Whether there are tools."""

    @staticmethod
    def about(
        body: dict[str, Any], switch: Switch | None = None, ignored: Collection[str] = ()
    ) -> PromptQuestion | None:
        """The question for a body of chat completions; None where the fixed message would not be answered alike.

        `switch`: how the model's thinking is switched; `ignored`: keywords that say nothing of where a reply begins.
        """
        messages = body.get("messages")
        if not isinstance(messages, list) or as_object(messages[-1] if messages else None).get("role") in (
            None,
            "assistant",
        ):
            return None
        if any(body.get(name) is not None for name in _OTHER_PROMPTS):
            return None
        names, words = set(_SWITCH_KEYWORDS), set(_WORDS)
        if switch is not None:
            names |= {switch.keyword, switch.effort}
            words |= {value for value in (switch.on, switch.off, *switch.efforts) if isinstance(value, str)}
        keywords = as_object(body.get("chat_template_kwargs"))
        asked = {name: value for name, value in keywords.items() if name not in ignored and value is not None}
        effort, reasoning = body.get(EFFORT) or "", as_object(body.get("reasoning"))
        sent = {name: reasoning[name] for name in ("effort", "enabled") if reasoning.get(name) is not None}
        # Another keyword, or a value that a client has made up, is not passed on: what it does is not known.
        if not names.issuperset(asked) or not all(_is_plain(each, words) for each in (*asked.values(), *sent.values())):
            return None
        if effort and not _is_plain(effort, words):
            return None
        return PromptQuestion(
            model=body["model"] if isinstance(body.get("model"), str) else "",
            keywords=tuple(sorted(asked.items())),
            effort=str(effort),
            reasoning=tuple(sorted(sent.items())),
            tools=bool(body.get("tools")) and body.get("tool_choice") != "none",
        )

    def body(self) -> dict[str, Any]:
        """The question as a body of chat completions."""
        found: dict[str, Any] = {"messages": [{"role": "user", "content": WORD}]}
        if self.model:
            found["model"] = self.model
        if self.keywords:
            found["chat_template_kwargs"] = dict(self.keywords)
        if self.effort:
            found[EFFORT] = self.effort
        if self.reasoning:
            found["reasoning"] = dict(self.reasoning)
        if self.tools:
            found["tools"] = [_TOOL]
        return found


def _is_plain(value: Any, words: Collection[str]) -> bool:
    return isinstance(value, bool) or (isinstance(value, str) and value in words)


class PromptEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """How an engine is asked for a prompt."""

    path: str
    bodies: Callable[[PromptQuestion], list[dict[str, Any]]]
    """What is posted there. Where these are several, the prompt is known only if all their ends are equal."""
    read: Callable[[dict[str, Any]], str | list[int] | None]
    """Reads an answer: the prompt, its ids where these must be decoded by `decode_path`, None where it is neither."""
    decode_path: str = ""
    """Where ids are posted to be decoded."""


class UnusableAnswer(Exception):
    """An answer that does not say how prompts end."""


def ask_end(endpoint: PromptEndpoint, question: PromptQuestion) -> Generator[tuple[str, dict[str, Any]], Any, str]:
    """Yields what to post, a path and a body; is sent the JSON of each answer; returns how the prompt ends.

    Raises `UnusableAnswer`.
    """
    ends: set[str | None] = set()
    for body in endpoint.bodies(question):
        prompt = endpoint.read(as_object((yield endpoint.path, body)))
        if isinstance(prompt, list):
            prompt = read_decoded(as_object((yield endpoint.decode_path, decode_body(question, prompt))))
        ends.add(end_of(prompt))
    end = ends.pop()
    if end is None or None in ends:
        raise UnusableAnswer("its answer is no prompt with the message that was sent")
    if ends:
        raise UnusableAnswer("it depends on the server's version")
    return end


def decode_body(question: PromptQuestion, ids: list[int]) -> dict[str, Any]:
    """What is posted to `decode_path`."""
    return {**({"model": question.model} if question.model else {}), "tokens": ids, "skip_special_tokens": False}


def read_decoded(answer: dict[str, Any]) -> str | None:
    """The text in the answer from `decode_path`."""
    text = answer.get("text")
    return text if isinstance(text, str) else None


def end_of(prompt: str | None) -> str | None:
    """What follows the message in a prompt; None where that is no prompt of ours."""
    _, found, end = (prompt or "").rpartition(WORD)
    return end if found and len(end) <= MOST_CHARACTERS else None


def _vllm_bodies(question: PromptQuestion) -> list[dict[str, Any]]:
    """Its `/tokenize` has no field for the effort, which its chat completions hand to the template as a keyword.

    Newer ones make a switch of it too. So both are asked for, where the request does not set the switch itself.
    """
    body = {**question.body(), "add_generation_prompt": True, "return_token_strs": True}
    body.pop("reasoning", None)
    effort = body.pop(EFFORT, None)
    if effort is None:
        return [body]
    keywords = {EFFORT: effort, **dict(question.keywords)}
    switched = {"enable_thinking": effort != "none", **keywords}
    both = [keywords] if keywords == switched else [keywords, switched]
    return [{**body, "chat_template_kwargs": each} for each in both]


def _read_token_strings(answer: dict[str, Any]) -> str | None:
    tokens = answer.get("token_strs")
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        return None
    return read_token_strings(tokens)


def _read_ids(answer: dict[str, Any]) -> list[int] | None:
    ids = answer.get("tokens")
    last = ids[-MOST_IDS:] if isinstance(ids, list) else []
    return last if last and all(type(id) is int for id in last) else None


def _read_prompt(answer: dict[str, Any]) -> str | None:
    prompt = answer.get("prompt")
    return prompt if isinstance(prompt, str) else None


PROMPT_ENDPOINTS: dict[str, PromptEndpoint] = {
    "vllm": PromptEndpoint(path="/tokenize", bodies=_vllm_bodies, read=_read_token_strings),
    "sglang": PromptEndpoint(
        path="/tokenize", bodies=lambda question: [question.body()], read=_read_ids, decode_path="/detokenize"
    ),
    "llamacpp": PromptEndpoint(path="/apply-template", bodies=lambda question: [question.body()], read=_read_prompt),
}
"""By the name of the engine."""
