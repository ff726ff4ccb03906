"""A server of a small real model in this process, which says how many tokens of each prompt it had to evaluate.

It keeps what it has evaluated and begins behind the longest common beginning, as servers with a prefix cache do. The
model writes a thought of its own, token by token; the end of the thought and a call are then put in its mouth, in the
tokens that a model trained on them would write. (A grammar would make it write them letter by letter, and no prompt
would ever begin with that.)
"""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2.sandbox import ImmutableSandboxedEnvironment

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.reasoning_content %}<think>\n{{ message.reasoning_content }}\n</think>\n\n{% endif %}"
    "{{ message.content or '' }}{% for call in message.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments }}}\n</tool_call>{% endfor %}'
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)
"""In the manner of Qwen's: the prompt opens the thought."""
CALL = '\n</think>\n\n<tool_call>\n{"name": "find", "arguments": {"query":  "it"}}\n</tool_call>'
THOUGHT_TOKENS = 60
_EVALUATED = re.compile(r"remaining (\d+) prompt tokens to eval")


class Engine:
    """The model, and what it has evaluated."""

    name = f"llama-cpp-python {version('llama-cpp-python')}, in process"

    def __init__(self, weights: Path) -> None:
        # Only the environment of `make test-model` has it.
        self._model: Any = import_module("llama_cpp").Llama(
            str(weights), n_ctx=2048, n_threads=1, n_threads_batch=1, verbose=False
        )
        self.evaluated: list[int] = []
        """Tokens of each prompt that were not known from the one before."""

    def answer(self, body: dict[str, Any]) -> str:
        """What the model writes."""
        template = ImmutableSandboxedEnvironment().from_string(TEMPLATE)
        prompt = self._tokens(template.render(messages=body["messages"], add_generation_prompt=True))
        written: list[int] = []
        self._model.verbose = True  # the one place where it says what it could use again
        with redirect_stderr(io.StringIO()) as printed:
            for token in self._model.generate(prompt, temp=0.0):
                written.append(token)
                if len(written) == THOUGHT_TOKENS or token == self._model.token_eos():
                    break
        self._model.verbose = False
        found = _EVALUATED.search(printed.getvalue())
        self.evaluated.append(int(found[1]) if found is not None else len(prompt))
        # The last token has not been evaluated yet: the next step would have done that.
        self._model.eval([*written[-1:], *self._tokens(CALL)])
        thought: bytes = self._model.detokenize(written)
        return thought.decode("utf-8", "replace") + CALL

    def _tokens(self, text: str) -> list[int]:
        found: list[int] = self._model.tokenize(text.encode(), add_bos=False, special=True)
        return found


@contextmanager
def serving(engine: Engine) -> Iterator[str]:
    """The engine behind an OpenAI-compatible API as long as the block, and its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers = {
                "/props": {"chat_template": TEMPLATE},
                "/v1/models": {"data": [{"id": "m", "owned_by": "llamacpp"}]},
            }
            self._send(answers.get(self.path.partition("?")[0], {}))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            message = {"role": "assistant", "content": engine.answer(body)}
            self._send({"id": "1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

        def _send(self, body: Any) -> None:
            content = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
