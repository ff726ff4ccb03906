"""The model provider `asides` of inspect_ai: another provider's model, its output taken apart.

Inspect imports this module by the entry point `asides` of the group `inspect_ai`; the model `asides/vllm/Qwen/Qwen3-8B`
is then `vllm/Qwen/Qwen3-8B` with thoughts as `ContentReasoning`, the answer as `ContentText` and calls as `ToolCall`.
All that is not the output (retries, connections, counting tokens, history of reasoning) is the wrapped provider's.

Providers that speak OpenAI's chat API take one pair of `<think>` tags out by themselves, and where nothing is left
they give the whole reply, tags and all, as the answer. What the model wrote is still in the provider's record of the
call; where the provider has split so, that is read instead.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import (
    ChatCompletionChoice,
    Content,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelAPI,
    ModelCall,
    ModelOutput,
    get_model,
    modelapi,
)
from inspect_ai.tool import ToolCall, ToolChoice, ToolInfo

from ..errors import Error
from ..events import ThinkingDelta
from ..parts import Text, Thinking
from ..parts import ToolCall as Call
from ..policies import DEFAULTS, SharedPolicyOptions
from ..reading import Reading
from ..reply import Chunk, Ended, Fold, RawText, Reply, ReplyEvent, Splitter, ThinkingChunk
from ..reply._call_ids import CallIds
from ._hosts import require_host
from ._wrapping import delegate

_OPTIONS = SharedPolicyOptions.__annotations__.keys() - {"calls", "seed"}
"""The policies that may be arguments of the model (`-M start=thinking`). Calls are read where there are tools, and ids
differ from reply to reply."""

UNNAMED = "unreadable_call"
"""The name of a call whose name could not be read: servers refuse a turn with a call that has none."""


class AsidesAPI(ModelAPI):
    """A provider that wraps another: `model_name` is that provider's name, a slash and its model."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008, as every provider of inspect has it
        format: str = "auto",
        **model_args: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        options = {name: model_args.pop(name) for name in _OPTIONS & model_args.keys()}
        self._wrapped: ModelAPI = get_model(
            model_name, config=config, base_url=base_url, api_key=api_key, memoize=False, **model_args
        ).api
        self.base_url = self._wrapped.base_url  # inspect writes it into its log
        try:
            policies = DEFAULTS.but(**options)
            self._reading = Reading.of(self._wrapped.service_model_name(), format=format, policies=policies)
        except (Error, TypeError) as error:
            raise PrerequisiteError(f"ERROR: asides/{model_name}: {error}") from error

    async def generate(
        self, input: list[Any], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> Any:
        """Generate with the wrapped model, and take apart what comes."""
        result = await self._wrapped.generate(input, tools, tool_choice, config)
        output, call = result if isinstance(result, tuple) else (result, None)
        # An error of the server comes as an exception beside the record of its call.
        if isinstance(output, ModelOutput) and output.choices:
            output = self._split(output, call, [] if tool_choice == "none" else tools)
        return output if call is None else (output, call)

    def _split(self, output: ModelOutput, call: ModelCall | None, tools: list[ToolInfo]) -> ModelOutput:
        definitions = [{"type": "function", "function": tool.model_dump(exclude_none=True)} for tool in tools]
        reading = self._reading.but(tools=definitions, calls=bool(tools))
        choices, answers = [], []
        for number, choice in enumerate(output.choices):
            # A server that reads calls itself has read them all: what it left in the text must not be run twice.
            own = reading.but(calls=False) if choice.message.tool_calls else reading
            items = _written(choice, number, call)
            reply, known = _read(items, own.splitter(whole=True), choice.stop_reason)
            changed = _is_changed(reply, known, items, choice)
            choices.append(_rebuilt(choice, items, reply, known) if changed else choice)
            answers.append(reply.text if changed else choice.message.text)
        # Inspect would join several texts with a line break each; the answer has the whitespace that the model wrote.
        return output.model_copy(update={"choices": choices, "completion": answers[0]})


# All but generating is the wrapped one's: retries, connections, counts of tokens, what of reasoning goes back.
delegate(AsidesAPI, ModelAPI)


@modelapi(name="asides")
def asides() -> type[ModelAPI]:
    """What inspect calls when a model's name begins with `asides/`."""
    require_host("inspect-ai")
    return AsidesAPI


def _written(choice: ChatCompletionChoice, number: int, call: ModelCall | None) -> list[Content]:
    """What the model wrote: the content of the choice, or as it was before the provider looked for tags in it."""
    items: list[Content] = choice.message.content_list
    split = any(isinstance(item, ContentReasoning) and item.internal == "think" for item in items)
    if split and call is not None:
        try:
            return [ContentText(text=call.response["choices"][number]["message"]["content"])]
        except (LookupError, TypeError, ValueError):
            pass  # a provider that keeps another record, or none: what it gave is still all there
    return items


def _read(items: list[Content], splitter: Splitter, stop_reason: str) -> tuple[Reply, dict[int, ContentReasoning]]:
    """What stands in the content, and by part the thoughts that the server had split off itself."""
    fold = Fold()
    known: dict[int, ContentReasoning] = {}
    chunks: list[Chunk] = []
    for item in items:
        if isinstance(item, ContentReasoning) and item.reasoning:
            chunks.append(ThinkingChunk(0, item.reasoning, details=({"item": item},), begins=True))
        elif _is_text(item):
            # As lines, which is how inspect joins texts that follow one another.
            follows = bool(chunks) and isinstance(chunks[-1], RawText)
            chunks.append(RawText(0, f"\n{item.text}" if follows else item.text))
    cut = stop_reason in ("max_tokens", "model_length")
    for chunk in (*chunks, Ended(0, "length" if cut else "stop")):
        for found in splitter.feed(chunk):
            fold.add(found)
            if isinstance(found, ReplyEvent) and isinstance(found.event, ThinkingDelta) and found.details:
                known[found.event.index] = found.details[0]["item"]
    return fold.reply, known


def _is_text(item: Content) -> bool:
    """Whether an item of the content is text that the model wrote."""
    return isinstance(item, ContentText) and not item.refusal


def _is_changed(
    reply: Reply, known: dict[int, ContentReasoning], items: list[Content], choice: ChatCompletionChoice
) -> bool:
    """Whether anything was found in the content of a choice. If not, it stays as it is, citations and all."""
    texts = "\n".join(item.text for item in items if _is_text(item))
    return (
        items != choice.message.content_list
        or len(reply.thoughts) > len(known)
        or bool(reply.tool_calls or reply.notices)
        or reply.text != texts
    )


def _rebuilt(
    choice: ChatCompletionChoice, items: list[Content], reply: Reply, known: dict[int, ContentReasoning]
) -> ChatCompletionChoice:
    """The choice with its parts where inspect has a place for each."""
    content: list[Content] = []
    for index, part in enumerate(reply.parts):
        if isinstance(part, Thinking):
            content.append(known.get(index) or ContentReasoning(reasoning=part.text))
        elif isinstance(part, Text):
            content.append(ContentText(text=part.text))
    # Images, refusals, thoughts of which the server shows nothing.
    content += [item for item in items if not _is_text(item) and item not in content]
    message, ids = choice.message, CallIds()
    calls = [_tool_call(call, ids.give(call.id, number)) for number, call in enumerate(reply.tool_calls)]
    update: dict[str, Any] = {"content": content}
    if calls:
        update["tool_calls"] = [*(message.tool_calls or []), *calls]
    if reply.notices:
        notices = [msgspec.to_builtins(notice) for notice in reply.notices]
        update["metadata"] = {**(message.metadata or {}), "asides": {"notices": notices}}
    stop_reason = "tool_calls" if calls and choice.stop_reason == "stop" else choice.stop_reason
    return choice.model_copy(update={"message": message.model_copy(update=update), "stop_reason": stop_reason})


def _tool_call(call: Call, id: str) -> ToolCall:
    """A call as inspect has it. One that may not be run carries what is wrong with it, and inspect tells the model."""
    problem = None
    arguments: dict[str, Any] = {}
    if call.error is None:
        try:
            arguments = json.loads(call.arguments)
        except RecursionError:
            problem = "the arguments are nested too deeply"
    else:
        problem = call.error_message or call.error
    written = call.raw or call.arguments
    error = f"Error parsing the tool call: {problem}\n\n{written}" if problem is not None else None
    return ToolCall(id=id, function=call.name or UNNAMED, arguments=arguments, parse_error=error)
