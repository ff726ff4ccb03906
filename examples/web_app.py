"""A web application that streams a reply to a browser as server-sent events, thoughts and answer apart (FastAPI).

    pip install . openai fastapi uvicorn
    export OPENAI_BASE_URL=http://127.0.0.1:8000/v1 OPENAI_API_KEY=none      # vLLM, llama.cpp, Ollama...
    uvicorn --app-dir examples web_app:app --port 8080
    curl -N --json '{"messages": [{"role": "user", "content": "2+2?"}]}' http://127.0.0.1:8080/chat

With a model that answers like this, and the pieces of each kind joined, it prints:

    thinking "Two and two."
    text "It is 4."
    done {"reason":"stop","message":{"role":"assistant","content":"It is 4."}}

When the browser goes away, the request to the model's server ends too. What is in `done` goes into the browser's list
of messages, for its next question.
"""

from collections.abc import AsyncIterator
from typing import Any

import openai
from fastapi import FastAPI
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel

import asides
import asides.openai

app = FastAPI()
client = openai.AsyncOpenAI()


class Conversation(BaseModel):
    """What the browser sends."""

    messages: list[dict[str, Any]]


@app.post("/chat", response_class=EventSourceResponse)
async def chat(conversation: Conversation) -> AsyncIterator[ServerSentEvent]:
    """The next reply, piece by piece."""
    try:
        model = (await client.models.list()).data[0].id  # or the name of yours
        messages: Any = conversation.messages
        async with await client.chat.completions.create(model=model, messages=messages, stream=True) as stream:
            events = asides.openai.asplit(stream)
            async for event in events:
                match event:
                    case asides.ThinkingDelta(text=text):
                        yield ServerSentEvent(event="thinking", data=text)
                    case asides.PartStart(kind="text", gap=text) | asides.TextDelta(text=text) if text:
                        yield ServerSentEvent(event="text", data=text)
                    case asides.Retyped(kind=kind):  # what the browser has shown so far is of this kind
                        yield ServerSentEvent(event="retyped", data=kind)
        message = events.reply.message.to_openai(model=model)
        yield ServerSentEvent(event="done", data={"reason": events.reply.reason, "message": message})
    except (openai.OpenAIError, asides.Error) as error:
        yield ServerSentEvent(event="error", data=str(error))
