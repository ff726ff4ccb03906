"""A whole reply of any OpenAI-compatible server: what the model thought, what it said, and how it ended.

    pip install . openai
    export OPENAI_BASE_URL=http://127.0.0.1:8000/v1 OPENAI_API_KEY=none      # vLLM, llama.cpp, Ollama...
    python examples/whole_reply.py

With a model that answers like this it prints the same whether the server separates thoughts or not. It prints:

    thought: Two and two.
    answer: It is 4.
    ended by stop, 22 tokens written
    goes back: {'role': 'assistant', 'content': 'It is 4.'}
"""

from typing import Any

import openai

import asides.openai


def main() -> None:
    """Ask one question."""
    with openai.OpenAI() as client:
        model = client.models.list().data[0].id  # or the name of yours
        messages: list[Any] = [{"role": "user", "content": "What is 2+2?"}]
        response = client.chat.completions.create(model=model, messages=messages)
        reply = asides.openai.read(response)
        print("thought:", reply.thinking)
        print("answer:", reply.text)
        print(f"ended by {reply.reason}, {reply.usage.output_tokens if reply.usage else 'unknown'} tokens written")
        messages.append(reply.message.to_openai(model=model))  # thoughts go back only to models that want them
        print("goes back:", messages[-1])


if __name__ == "__main__":
    main()
