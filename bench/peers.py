"""Peers to measure beside, where they are installed."""

from __future__ import annotations

from typing import Any


def transformers_gpt2(sizes: dict[str, int]) -> Any:
    """transformers' own GPT-2 of these sizes, random and without dropout; None where it is not installed."""
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
