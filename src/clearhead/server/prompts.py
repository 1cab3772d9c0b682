"""Prompts as OpenAI's clients send them: a text, token ids, or a list of either."""

from __future__ import annotations

from typing import Any

from clearhead.language_model import LanguageModel
from clearhead.server.errors import APIError
from clearhead.text.inputs import encode_prompt


def list_prompts(prompt: Any) -> list[Any]:
    """Return the prompts as a list."""
    return [prompt] if isinstance(prompt, str) or isinstance(prompt[0], int) else prompt


def prompt_ids(model: LanguageModel, prompt: str | list[int]) -> list[int]:
    if isinstance(prompt, list):
        return prompt
    return encode_prompt(prompt or None, model.tokenizer, model.config.n_vocab)


def check_length(model: LanguageModel, count: int, tools: int = 0) -> None:
    """Raise an error if a prompt of `count` tokens, of which `tools` describe tools, exceeds the context."""
    most = model.config.n_context
    if count > most:
        part = f", {tools} of them for the tools" if tools else ""
        message = f"the prompt has {count} tokens{part}; the model's context is {most}"
        raise APIError(400, "context_length_exceeded", message, "prompt", count=count, most=most)


def prompt_text(model: LanguageModel, prompt: str | list[int]) -> str:
    return model.tokenizer.decode(prompt) if isinstance(prompt, list) else prompt
