"""Peer libraries to benchmark against, if they are installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def transformers_gpt2(sizes: dict[str, int]) -> Any:
    """Return transformers' GPT-2 with random weights and no dropout, or None if transformers is not installed."""
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        return None
    config = GPT2Config(
        vocab_size=sizes["n_vocab"],
        n_positions=sizes["n_context"],
        n_embd=sizes["d_model"],
        n_layer=sizes["n_block"],
        n_head=sizes["n_head"],
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=None,
    )
    return GPT2LMHeadModel(config)  # type: ignore[no-untyped-call]


def llama_cpp(path: str, prompt: list[int], tokens: int) -> Callable[[], object] | None:
    """Return a function that generates tokens with llama.cpp, or None if it is not installed."""
    try:
        import xllamacpp
    except ImportError:
        return None
    settings = xllamacpp.CommonParams()
    settings.model.path = path
    settings.n_ctx, settings.n_parallel = len(prompt) + tokens + 1, 1
    settings.cpuparams.n_threads = torch.get_num_threads()
    server = xllamacpp.Server(settings)
    request = {"prompt": prompt, "n_predict": tokens, "temperature": 1.0, "top_k": 50, "ignore_eos": True}
    request |= {"top_p": 1.0, "min_p": 0.0, "cache_prompt": False}

    def generate() -> None:
        answers: list[Any] = []
        server.handle_completions(request, answers.append)
        assert answers[0]["usage"]["completion_tokens"] == tokens, answers[0]

    return generate
