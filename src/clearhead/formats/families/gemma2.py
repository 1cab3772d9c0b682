"""Gemma 2: like Gemma 3, but with soft-capping of scores and logits instead of QK-norm, every other block local, and
one RoPE base.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from clearhead.formats.families import gemma3, llama
from clearhead.formats.families.family import Family, read_local, refuse_unless, write_local
from clearhead.model.config import Config

SCORE_CAP, LOGIT_CAP, WINDOW = 50.0, 30.0, 4096  # defaults for a file that omits them


def holds(config: Config) -> bool:
    uncapped = replace(config, score_cap=None, logit_cap=None, qk_norm=True)
    return not config.qk_norm and config.local_rotary_base == 0 and gemma3.holds(uncapped)


def write_config(config: Config) -> dict[str, Any]:
    shared = llama.write_shared(config, "Gemma2ForCausalLM")
    del shared["hidden_act"]
    return {
        **shared,
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": config.d_k,
        **write_local(config),
        # A file must specify a window even if no block is local.
        "sliding_window": config.window or config.n_context,
        "attention_bias": config.qkv_bias,
        "attn_logit_softcapping": config.score_cap,
        "final_logit_softcapping": config.logit_cap,
    }


def read_config(settings: dict[str, Any]) -> Config:
    refuse_unless(settings, "hidden_activation", "gelu_pytorch_tanh")
    refuse_unless(settings, "use_bidirectional_attention", None, False)
    bias = settings.get("attention_bias", False)
    return Config.from_json(
        {
            **llama.read_shared(settings),
            **read_local({"sliding_window": WINDOW, **settings}, lambda i: i % 2 == 0),
            "d_head": settings.get("head_dim", 256),
            "d_k": settings.get("query_pre_attn_scalar", 256),
            "score_cap": settings.get("attn_logit_softcapping", SCORE_CAP),
            "feedforward": "geglu",
            "qkv_bias": bias,
            "output_bias": bias,
            "post_norm": True,
            "embedding_scale": math.sqrt(gemma3.read_width(settings)),
            "logit_cap": settings.get("final_logit_softcapping", LOGIT_CAP),
            "tied": settings.get("tie_word_embeddings", True),
        }
    )


FAMILY = Family(
    "gemma2", "model.", holds, write_config, read_config, gemma3.write_tensors, gemma3.read_tensors
)
