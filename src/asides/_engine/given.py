"""What callers give by mistake, refused in a sentence that says what to do: Python's own error would name something
inside the library, and some mistakes would be no error at all."""

from __future__ import annotations

from ..errors import UsageError


def check_text(value: object) -> None:
    """Refuse what is no text."""
    if not isinstance(value, str):
        hint = ""
        if isinstance(value, bytes | bytearray | memoryview):
            hint = "; decode it first"
        elif isinstance(value, dict) or hasattr(value, "model_dump"):
            hint = "; asides.openai, asides.anthropic and asides.ollama read what SDKs give"
        elif value is None:
            hint = "; a server that separates calls sends no content beside them: asides.openai.read(response) has both"
        raise UsageError(f"a model's output is text (str), not {type(value).__name__}{hint}")


def check_stream(value: object, function: str) -> None:
    """Refuse what this function cannot read piece by piece: `split` what is no stream, `asplit` what is no asynchronous
    one."""
    kind = type(value).__name__
    wanted, other = ("__aiter__", "split") if function == "asplit" else ("__iter__", "asplit")
    if isinstance(value, dict) or hasattr(value, "model_dump"):
        raise UsageError(f"{kind} is a whole reply and no stream: read() of the SDK's module reads it")
    if hasattr(value, wanted):
        return
    if hasattr(value, "__await__"):
        raise UsageError(f"{kind} has to be awaited first: {function}(await ...)")
    if hasattr(value, "__enter__") or hasattr(value, "__aenter__"):
        raise UsageError(f"{kind} has to be entered first: `with ... as stream`, or `async with`")
    if hasattr(value, "__iter__") or hasattr(value, "__aiter__"):
        raise UsageError(f"{kind} is {'no' if function == 'asplit' else 'an'} asynchronous stream: {other}() reads it")
    raise UsageError(f"{kind} is no stream: {function}() reads the pieces of one, as they come")
