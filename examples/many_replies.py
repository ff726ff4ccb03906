"""Many questions at once, asynchronously: the answers, and which of them are none.

    pip install . openai
    export OPENAI_BASE_URL=http://127.0.0.1:8000/v1 OPENAI_API_KEY=none      # vLLM, llama.cpp, Ollama...
    python examples/many_replies.py

With a model that answers like this, and a server that fails once, it prints:

    2+2: It is 4.
    3+3: no answer, it was cut off while thinking
    4+4: no answer, the server says: no memory left
    5+5: It is 10.
"""

import asyncio
from typing import Any

import openai

import asides
import asides.openai

AT_ONCE = 8


async def answer(client: openai.AsyncOpenAI, model: str, question: str, room: asyncio.Semaphore) -> str:
    """The answer to one question, or why there is none: thoughts are not mistaken for it."""
    messages: Any = [{"role": "user", "content": f"What is {question}?"}]
    try:
        async with room:
            response = await client.chat.completions.create(model=model, messages=messages, max_tokens=2048)
        reply = asides.openai.read(response)
    except openai.APIStatusError as error:
        return f"no answer, the server says: {error.body['message'] if isinstance(error.body, dict) else error}"
    except (openai.APIConnectionError, asides.Error) as error:
        return f"no answer, {error}"
    if not reply.complete:
        return f"no answer, it was cut off while {'answering' if reply.text else 'thinking'}"
    return reply.text


async def main() -> None:
    """Ask them all."""
    questions = ["2+2", "3+3", "4+4", "5+5"]
    async with openai.AsyncOpenAI(max_retries=2) as client:
        model = (await client.models.list()).data[0].id  # or the name of yours
        room = asyncio.Semaphore(AT_ONCE)
        answers = await asyncio.gather(*(answer(client, model, question, room) for question in questions))
    for question, found in zip(questions, answers, strict=True):
        print(f"{question}: {found}")


if __name__ == "__main__":
    asyncio.run(main())
