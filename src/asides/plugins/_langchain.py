"""What the LangChain plug-in does with one message: a reply into standard blocks, an earlier turn back into a request.

`ReplySplitter` takes the messages or chunks of a wrapped model and returns `AIMessageChunk`s whose content is a list of
standard blocks, one index per part, so that LangChain's own `+` joins them in their order. `with_broken_calls` restores
what that loses. `SentBack` writes an earlier message as the wrapped model takes it.

Three facts about the host decide the shape. With `output_version` "v1" the blocks of a message are its content and
nothing else, so calls stand in the content too; the chunk at the last position makes `tool_call`s of them. Adding
chunks reads arguments leniently (`{"city": "Pa` becomes a call that may be run), so a broken call is ended with a
bracket that closes nothing. And adding chunks builds `invalid_tool_calls` anew, without their errors, so the error and
what the model wrote stand in the block as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.content import KNOWN_BLOCK_TYPES
from langchain_core.messages.tool import invalid_tool_call, tool_call_chunk

from .._engine.format import thinking_pair
from .._engine.parser import Parser, format_of
from ..dialects._thought_fields import retyped_field
from ..dialects.openai_chat._reader import ChoiceReader
from ..dialects.openai_chat._request import REASONING
from ..events import Notice, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta, ToolCallDelta
from ..reading import Reading
from ..reply._call_ids import CallIds
from ..reply._items import Chunk, ReplyEvent, ThinkingChunk

EarlierThinking = Literal["drop", "text", "field"]
"""What becomes of thinking in messages that are sent back: left out, written into the text with its markers, or written
into `additional_kwargs["reasoning_content"]`."""
Block = dict[str, Any]

METADATA = "asides"
"""Where in `response_metadata` stands how a reply was read."""
_THINKING = ("reasoning", "thinking")
_NO_THOUGHT = object()
"""No index of a block."""
_CALLS = frozenset(
    {"tool_call", "tool_call_chunk", "invalid_tool_call", "tool_use", "input_json_delta", "function_call"}
)
"""Blocks that stand for calls, which a message has in `tool_calls` too."""
_TEXT_FIELDS = frozenset({"type", "text", "index", "id"})
_GROWTH: dict[type, tuple[str, str]] = {
    ThinkingDelta: ("reasoning", "reasoning"),
    TextDelta: ("text", "text"),
    ToolCallDelta: ("tool_call_chunk", "args"),
}
"""By event: the type of the block that grows, and its field."""
_AGAIN = -1
"""The index of the block with the words of a thought that was the answer: no part has it."""


class ReplySplitter:
    """Takes one reply apart: `feed` what the wrapped model gives, then `finish`."""

    def __init__(self, reading: Reading, *, whole: bool) -> None:
        """`whole`: the reply comes in one piece, so that a lone closing marker can make all before it thinking."""
        self._format = reading.format
        self._whole = whole
        self._parser: Parser | None = None
        self._reader = ChoiceReader(0)
        self._splitter = reading.splitter(whole=whole, on_parser=self._remember)
        self._thought: object = _NO_THOUGHT
        """The index that the wrapped model gave to the block of the thought that is open."""
        self._reason = "stop"
        self._gaps: dict[int, str] = {}
        self._calls: dict[int, list[str]] = {}
        """The argument text of calls that have not ended."""
        self._call_ids = CallIds()
        self._notices: list[dict[str, Any]] = []
        self._retyped = 0
        """How many characters of text turned out to be a thought."""
        self._apart = False
        """Whether such a text came last."""

    def _remember(self, parser: Parser) -> None:
        self._parser = parser

    def feed(self, message: AIMessage, info: Mapping[str, Any] | None = None) -> AIMessageChunk:
        """Read a message or a chunk of one; `info` is its `generation_info`."""
        self._reason = str({**message.response_metadata, **(info or {})}.get("finish_reason") or self._reason)
        blocks = _GrownBlocks()
        for piece in self._pieces(message):
            if isinstance(piece, dict):
                blocks.add(piece)
            else:
                self._write(piece, blocks)
        left_out = {"tool_calls", *(name for name in REASONING if isinstance(message.additional_kwargs.get(name), str))}
        return AIMessageChunk(
            content=blocks.content(),
            tool_call_chunks=blocks.calls(),
            additional_kwargs={
                name: value for name, value in message.additional_kwargs.items() if name not in left_out
            },
            response_metadata={**message.response_metadata, "output_version": "v1"},
            usage_metadata=message.usage_metadata,
            id=message.id,
            name=message.name,
        )

    def finish(self, *, cut: bool = False) -> AIMessageChunk:
        """The reply is over, or was `cut` off by an error: what was held back, and how the reply was read."""
        chunks: list[Chunk] = []
        self._reader.read({"finish_reason": "length" if cut else self._reason}, None, chunks)
        blocks = _GrownBlocks()
        for chunk in chunks:
            self._write(chunk, blocks)
        settled = self._format if self._parser is None else format_of(self._parser)
        found: dict[str, Any] = {"format": settled.name}
        # `auto` has markers of many formats until the first that is met settles them.
        if settled.settle is None or settled is not self._format:
            found |= {"markers": list(filter(None, thinking_pair(settled)))}
        if self._notices:
            found["notices"] = self._notices
        found |= retyped_field(self._retyped)
        return AIMessageChunk(
            content=blocks.content(),
            tool_call_chunks=blocks.calls(),
            response_metadata={"output_version": "v1", METADATA: found},
            chunk_position="last",
        )

    # What the wrapped model gives.

    def _pieces(self, message: AIMessage) -> Iterator[Chunk | Block]:
        """Its thinking, text and calls as chunks of a reply, and other blocks as they are."""
        chunks: list[Chunk] = []
        content = message.content
        if isinstance(content, str):
            fields = {name: message.additional_kwargs.get(name) for name in REASONING}
            self._reader.read({}, {"content": content, **fields}, chunks)
        else:
            if not any(isinstance(block, dict) and block.get("type") in _THINKING for block in content):
                self._reader.read({}, {name: message.additional_kwargs.get(name) for name in REASONING}, chunks)
            yield from chunks
            chunks = []
            calls = message.tool_calls or message.invalid_tool_calls
            for block in content:
                yield from self._block(
                    {"type": "text", "text": block} if isinstance(block, str) else block, bool(calls)
                )
        self._reader.read({}, {"tool_calls": list(_native_calls(message))}, chunks)
        yield from chunks

    def _block(self, block: Block, has_calls: bool) -> Iterator[Chunk | Block]:
        kind = block.get("type")
        text = _text_of_thought(block) if kind in _THINKING else ""
        signature = str(block.get("signature") or (block.get("extras") or {}).get("signature") or "")
        # A block of a whole message is a thought of its own; one of a stream is, if it has another index.
        begins = self._whole or block.get("index") != self._thought
        # In a stream a signature follows the text that it is of.
        if text or (kind in _THINKING and signature and not begins):
            yield ThinkingChunk(0, text, begins=begins, signature=signature)
            self._thought = block.get("index")
        elif kind == "text" and isinstance(block.get("text"), str):
            chunks: list[Chunk] = []
            self._reader.read({}, {"content": block["text"]}, chunks)
            yield from chunks
            beside = {name: value for name, value in block.items() if name not in _TEXT_FIELDS and value}
            if beside:
                yield {"type": "non_standard", "value": beside}  # citations, say: they are the server's, not lost here
        elif not (has_calls and kind in _CALLS):
            yield _as_standard(block)

    # What goes out.

    def _write(self, chunk: Chunk, blocks: _GrownBlocks) -> None:
        self._thought = _NO_THOUGHT  # `_block` sets it anew behind one of a thought
        for item in self._splitter.feed(chunk):
            if isinstance(item, ReplyEvent):
                self._event(item, blocks)

    def _event(self, item: ReplyEvent, blocks: _GrownBlocks) -> None:
        event = item.event
        if isinstance(event, TextDelta | ThinkingDelta):
            blocks.grow(event.index, *_GROWTH[type(event)], self._gaps.pop(event.index, "") + event.text)
            if item.signature:
                blocks.block(event.index)["extras"] = {"signature": item.signature}
        elif isinstance(event, ToolCallDelta):
            self._calls[event.index].append(event.text)
            blocks.grow(event.index, *_GROWTH[ToolCallDelta], event.text)
        elif isinstance(event, PartStart):
            if event.kind == "tool_call":
                self._calls[event.index] = []
                blocks.grow(event.index, *_GROWTH[ToolCallDelta], "")
                blocks.block(event.index).update(id=self._call_ids.give(event.id, event.index), name=event.name)
            elif event.kind == "text":
                self._gaps[event.index] = event.gap or "\n\n" * self._apart  # `message.text` joins the texts
                self._apart = False
        elif isinstance(event, Notice):
            self._notices.append({"code": event.code, "message": event.message, "offset": event.offset})
        elif isinstance(event, Retyped):
            # Words cannot be taken back: those of a thought stay, and those of an answer are a text besides.
            if event.kind == "thinking":
                self._retyped, self._apart = item.characters, True
            else:
                blocks.grow(_AGAIN, *_GROWTH[TextDelta], item.raw)
        elif isinstance(event, PartEnd) and event.index in self._calls:
            texts = self._calls.pop(event.index)
            if event.error is not None:
                error = f"{event.error}: {event.error_message}" if event.error_message else event.error
                blocks.grow(event.index, *_GROWTH[ToolCallDelta], unreadable_end("".join(texts)))
                blocks.block(event.index).update(error=error, extras={"raw": item.raw})


class _GrownBlocks:
    """The blocks of one chunk: one for each part, since the host joins those of different chunks only."""

    def __init__(self) -> None:
        self._blocks: dict[object, Block] = {}
        self._texts: dict[int, tuple[str, list[str]]] = {}

    def grow(self, index: int, kind: str, field: str, text: str) -> None:
        """More of a part."""
        if index not in self._texts:
            self._texts[index] = (field, [])
            self._blocks[index] = {"type": kind, "index": index}
            if kind == "tool_call_chunk":
                self._blocks[index].update(id=None, name=None)
        self._texts[index][1].append(text)

    def block(self, index: int) -> Block:
        """The block of a part that has grown."""
        return self._blocks[index]

    def add(self, block: Block) -> None:
        """A block as the wrapped model gave it."""
        self._blocks[object()] = block

    def content(self) -> list[str | dict[Any, Any]]:
        """The blocks, in their order."""
        for index, (field, texts) in self._texts.items():
            self._blocks[index][field] = "".join(texts)
        return list(self._blocks.values())

    def calls(self) -> list[Any]:
        """Those of calls once more, as LangChain has them beside the content."""
        return [
            tool_call_chunk(name=block["name"], args=block["args"], id=block["id"], index=block["index"])
            for block in (self._blocks[index] for index in self._texts)
            if block["type"] == "tool_call_chunk"
        ]


def with_broken_calls(message: BaseMessage) -> BaseMessage:
    """A whole message, with what adding chunks cannot keep of broken calls taken from their blocks."""
    if not isinstance(message, AIMessage) or isinstance(message.content, str):
        return message
    broken = {
        block["id"]: {
            "name": block.get("name"),
            "args": block["extras"]["raw"],
            "id": block["id"],
            "error": block["error"],
        }
        for block in message.content
        if isinstance(block, dict) and block.get("type") == "tool_call_chunk" and "error" in block
    }
    if not broken:
        return message
    calls = [call for call in message.invalid_tool_calls if call["id"] not in broken]
    content = [
        {"type": "invalid_tool_call", "index": block["index"], **broken[block["id"]]}
        if isinstance(block, dict) and block.get("type") == "tool_call_chunk" and block["id"] in broken
        else block
        for block in message.content
    ]
    calls += [invalid_tool_call(**call) for call in broken.values()]
    return message.model_copy(update={"content": content, "invalid_tool_calls": calls})


def unreadable_end(arguments: str) -> str:
    """What has to follow the arguments of a broken call, so that the host takes them for no object, however lenient.

    It completes what was cut off, unless a closing bracket matches none that is open: one of these is the end.
    """
    open_brackets: list[str] = []
    quoted = escaped = False
    for character in arguments:
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character in "{[":
            open_brackets.append(character)
        elif character in "}]" and (not open_brackets or open_brackets.pop() + character not in ("{}", "[]")):
            return ""
    bracket = "}" if open_brackets and open_brackets[-1] == "[" else "]"
    return ("\\" if escaped else "") + ('"' if quoted else "") + bracket


def _native_calls(message: AIMessage) -> Iterator[dict[str, Any]]:
    """The calls that the wrapped model has read itself, in OpenAI's shape."""
    if isinstance(message, AIMessageChunk):
        for piece in message.tool_call_chunks:
            function = {"name": piece["name"], "arguments": piece["args"]}
            yield {"index": piece["index"], "id": piece["id"], "function": function}
        return
    for call in (*message.tool_calls, *message.invalid_tool_calls):
        yield {"id": call["id"], "function": {"name": call["name"] or "", "arguments": call["args"]}}


def _as_standard(block: Block) -> Block:
    """A block that is none of ours, as a standard one; `SentBack` undoes it."""
    found = {name: value for name, value in block.items() if name != "index"}
    # One of thinking comes here only if it has no text: a signature alone, or the beginning of a streamed one.
    if block.get("type") not in KNOWN_BLOCK_TYPES or block.get("type") in _THINKING:
        found = {"type": "non_standard", "value": found}
    # Ours are counted in whole numbers; the host joins blocks with such indexes too.
    return found if block.get("index") is None else {**found, "index": f"lc_other_{block['index']}"}


def _text_of_thought(block: Block) -> str:
    """The text of a block of thinking, in whichever of its shapes."""
    found = next((block[name] for name in (*_THINKING, "summary", "content") if block.get(name)), "")
    if isinstance(found, list):
        return "\n\n".join(str(part.get("text") or "") for part in found if isinstance(part, dict))
    return found if isinstance(found, str) else ""


class SentBack(NamedTuple):
    """How earlier messages of the assistant are sent back to the wrapped model."""

    thinking: EarlierThinking
    markers: tuple[str, str]
    """Those around a thought of a message that does not say what stood around it."""
    exact: bool
    """Whether the whitespace beside markers is in the parts."""

    def message(self, message: AIMessage, answered: Collection[str]) -> AIMessage:
        """The message with its text as a string, as every server takes it; `answered` are ids of calls with results.

        A broken call without a result is sent as what the model wrote, not as a call: a server refuses a call that has
        no result, or whose arguments are no JSON.
        """
        kept = [call for call in message.invalid_tool_calls if call["id"] in answered]
        fields = {name: value for name, value in message.additional_kwargs.items() if name in REASONING}
        fields = {name: value for name, value in fields.items() if isinstance(value, str)}
        if isinstance(message.content, str) and not fields and len(kept) == len(message.invalid_tool_calls):
            return message
        thoughts: list[str] = []
        content = list(self._content(message, thoughts, {call["id"] for call in kept}))
        if not thoughts and fields:
            thoughts = [next(filter(None, fields.values()), "")]
            if self.thinking == "text":
                content.insert(0, self._written(thoughts[0], message))
        more = {name: value for name, value in message.additional_kwargs.items() if name not in fields}
        if self.thinking == "field" and any(thoughts):
            more["reasoning_content"] = "\n\n".join(thoughts)
        metadata = {
            name: value for name, value in message.response_metadata.items() if name not in (METADATA, "output_version")
        }
        texts = [block for block in content if isinstance(block, str)]
        plain = len(texts) == len(content)
        return message.model_copy(
            update={
                "content": "".join(texts) if plain else [_as_block(block) for block in content],
                "additional_kwargs": more,
                "invalid_tool_calls": kept,
                "response_metadata": metadata,
            }
        )

    def _content(self, message: AIMessage, thoughts: list[str], kept: Collection[str | None]) -> Iterator[str | Block]:
        broken = {call["id"]: call["args"] for call in message.invalid_tool_calls if call["id"] not in kept}
        behind_thought = False
        for block in [message.content] if isinstance(message.content, str) else message.content:
            kind = "" if isinstance(block, str) else block.get("type")
            if isinstance(block, str):
                yield block
            elif kind == "text":
                # The gap to the text before, which the blank line behind the thought takes the place of.
                yield block["text"].lstrip() if behind_thought and not self.exact else block["text"]
            elif kind in _THINKING:
                thoughts.append(_text_of_thought(block))
                if self.thinking == "text":
                    yield self._written(thoughts[-1], message)
            elif kind in _CALLS:
                if block.get("id") in broken:
                    args = broken.pop(block.get("id"))
                    yield (block.get("extras") or {}).get("raw") or args or ""
            elif kind == "non_standard":
                # As the wrapped model gave it. What stood beside a text is no block, and cannot be sent.
                if isinstance(block["value"], dict) and "type" in block["value"]:
                    yield block["value"]
            else:
                yield {name: value for name, value in block.items() if name != "index"}
            behind_thought = kind in _THINKING and self.thinking == "text"
        yield from (args for args in broken.values() if args)

    def _written(self, thought: str, message: AIMessage) -> str:
        known = (message.response_metadata.get(METADATA) or {}).get("markers")
        opening, closing = known if known and len(known) == 2 else self.markers
        return f"{opening}{thought}{closing}" if self.exact else f"{opening}\n{thought}\n{closing}\n\n"


def _as_block(block: str | Block) -> Block:
    return {"type": "text", "text": block} if isinstance(block, str) else block
