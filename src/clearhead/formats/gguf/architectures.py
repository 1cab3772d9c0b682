"""Families in llama.cpp's terms: its names, and where its tensor layout differs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import gguf
import numpy as np
import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.formats.families import gemma2, gemma3, gpt2, gpt_neox, llama, olmo2, qwen2, qwen3, smollm3
from clearhead.formats.families.family import Family
from clearhead.model.config import Config, RopeScaling
from clearhead.model.position import scale_frequencies

FREQUENCIES = "rope_freqs.weight"
GEMMA_PATTERN = {"gemma2": 2, "gemma3": 6}  # every second or sixth block is global
# The numbers of blocks by which llama.cpp recognizes the 27B models, which scale their scores differently.
GEMMA_27B_BLOCKS = {"gemma2": 46, "gemma3": 62}

# The names of settings in GGUF (after the architecture's name) and in config.json.
LLAMA = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta",
}
GEMMA2 = {
    **LLAMA,
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
}
NEOX = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.layer_norm_epsilon": "layer_norm_eps",
    "rope.freq_base": "rope_theta",
    "use_parallel_residual": "use_parallel_residual",
}
GPT2 = {
    "context_length": "n_positions",
    "embedding_length": "n_embd",
    "block_count": "n_layer",
    "feed_forward_length": "n_inner",
    "attention.head_count": "n_head",
    "attention.layer_norm_epsilon": "layer_norm_epsilon",
}

# llama.cpp's defaults for settings that a file does not specify.
YARN = {
    "rope.scaling.yarn_beta_slow": 1.0,
    "rope.scaling.yarn_beta_fast": 32.0,
    "rope.scaling.yarn_ext_factor": 1.0,
    "rope.scaling.yarn_attn_factor": 1.0,
    "rope.scaling.attn_factor": 1.0,
}

# Further settings that are read.
OTHERS = {
    "rope.dimension_count",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    *YARN,
    "attention.sliding_window",
    "rope.freq_base_swa",
}

SEES_ALL = "in llama.cpp, all blocks of this architecture are global, but some blocks of this model are local"
TRANSPOSED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")

Turn = Callable[[str, Tensor, Config], Tensor]


def _same(name: str, tensor: Tensor, config: Config) -> Tensor:  # noqa: ARG001
    return tensor


def _transpose(name: str, tensor: Tensor, config: Config) -> Tensor:  # noqa: ARG001
    """GPT-2's folders store matrices [in, out]."""
    return tensor.T if name.endswith(TRANSPOSED) else tensor


def _interleave(name: str, tensor: Tensor, config: Config, back: bool = False) -> Tensor:
    """Llama files rotate adjacent features together; folders rotate feature i with i + D/2."""
    part = name.split(".")[-2]
    if part not in ("q_proj", "k_proj"):
        return tensor
    n, half = config.n_head if part == "q_proj" else config.n_kv_head, config.d_head // 2
    shape = (n, half, 2) if back else (n, 2, half)
    return tensor.reshape(*shape, *tensor.shape[1:]).transpose(1, 2).reshape(tensor.shape)


def _by_role(name: str, tensor: Tensor, config: Config, back: bool = False) -> Tensor:
    """GPT-NeoX folders store q, k and v per head; GGUF files store all queries, then all keys, then all values."""
    if ".query_key_value." not in name:
        return tensor
    shape = (3, config.n_head) if back else (config.n_head, 3)
    split = tensor.reshape(*shape, config.d_head, *tensor.shape[1:])
    return split.transpose(0, 1).reshape(tensor.shape)


def _plus_one(name: str, tensor: Tensor, config: Config, back: bool = False) -> Tensor:  # noqa: ARG001
    """Gemma's folders store gains minus one."""
    if not name.endswith("norm.weight"):
        return tensor
    return tensor - 1 if back else tensor + 1


@dataclass(frozen=True)
class Architecture:
    """A family in llama.cpp's terms. `write` converts a tensor to the file's layout, and `read` converts it back."""

    family: Family
    keys: dict[str, str]
    write: Turn = _same
    read: Turn = _same


ARCHITECTURES = {
    "gpt2": Architecture(gpt2.FAMILY, GPT2, _transpose, _transpose),
    "llama": Architecture(llama.FAMILY, LLAMA, _interleave, partial(_interleave, back=True)),
    "qwen2": Architecture(qwen2.FAMILY, LLAMA),
    "qwen3": Architecture(qwen3.FAMILY, LLAMA),
    "gptneox": Architecture(gpt_neox.FAMILY, NEOX, _by_role, partial(_by_role, back=True)),
    "olmo2": Architecture(olmo2.FAMILY, LLAMA),
    "smollm3": Architecture(smollm3.FAMILY, LLAMA, _interleave, partial(_interleave, back=True)),
    "gemma3": Architecture(gemma3.FAMILY, LLAMA, _plus_one, partial(_plus_one, back=True)),
    "gemma2": Architecture(gemma2.FAMILY, GEMMA2, _plus_one, partial(_plus_one, back=True)),
}


def file_names(kind: str, theirs: list[str], n_block: int) -> dict[str, str]:
    """Map a folder's tensor names to llama.cpp's."""
    architecture = next(number for number, name in gguf.MODEL_ARCH_NAMES.items() if name == kind)
    known = gguf.get_tensor_name_map(architecture, n_block)
    names = {}
    for name in theirs:
        found = known.get_name(name, try_suffixes=(".weight", ".bias"))
        assert found is not None, f"llama.cpp has no name for {name}"
        names[name] = found
    return names


def read_settings(kind: str, values: dict[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """A file's settings in the form of the family's config.json."""
    settings = {theirs: values[ours] for ours, theirs in ARCHITECTURES[kind].keys.items() if ours in values}
    for name in OTHERS & values.keys():
        if not isinstance(values[name], int | float | str):
            raise UserError(
                f"its setting {name} has type {type(values[name]).__name__}, expected a single value"
            )
    for name, value in settings.items():
        if not isinstance(value, int | float):
            raise UserError(f"its setting {name} has type {type(value).__name__}, expected a single number")
        if isinstance(value, float):
            with np.errstate(
                over="ignore"
            ):  # values beyond float32's range become infinite, and the config rejects them
                settings[name] = float(str(np.float32(value)))  # 1e-6, which a file stores as 9.99999997e-07
    if "token_embd.weight" not in shapes:
        raise UserError("it has no token_embd.weight; is it a language model?")
    settings["vocab_size"] = shapes["token_embd.weight"][0]
    settings["tie_word_embeddings"] = "output.weight" not in shapes
    if kind == "gpt2":
        return {**settings, "activation_function": "gelu_new"}
    heads, width = settings.get("num_attention_heads"), settings.get("hidden_size")
    if not isinstance(heads, int) or not isinstance(width, int) or heads < 1:
        raise UserError(f"it has {heads!r} heads and a width of {width!r}, expected integers")
    if kind == "gptneox":
        rotated = values.get("rope.dimension_count", width // heads)
        share = rotated / (width // heads) if isinstance(rotated, int) and width >= heads else rotated
        return {**settings, "hidden_act": "gelu", "rotary_pct": share}
    settings["head_dim"] = settings.get("head_dim") or width // heads
    scaling = values.get("rope.scaling.type", "none")
    if scaling == "yarn" and (
        changed := [name for name in YARN if values.get(name, YARN[name]) != YARN[name]]
    ):
        raise UserError(f"its {changed[0]} is {values[changed[0]]!r}, expected {YARN[changed[0]]}")
    if scaling in ("linear", "yarn"):
        settings["rope_scaling"] = {
            "rope_type": scaling,
            "factor": values.get("rope.scaling.factor"),
            "original_max_position_embeddings": values.get("rope.scaling.original_context_length"),
        }
    elif scaling != "none":
        raise UserError(f"its rope.scaling.type is {scaling!r}, expected none, linear or yarn")
    if kind == "olmo2" and values.get("attention.sliding_window"):
        raise UserError("its architecture is OLMo 3, which is not supported: it has local blocks")
    if kind == "llama":
        settings["attention_bias"] = "blk.0.attn_q.bias" in shapes
        settings["mlp_bias"] = "blk.0.ffn_up.bias" in shapes
    if kind in GEMMA_PATTERN:
        by_head = settings.get("num_hidden_layers") == GEMMA_27B_BLOCKS[kind]
        settings["query_pre_attn_scalar"] = width // heads if by_head else settings["head_dim"]
    if kind == "gemma2":
        settings["sliding_window"] = values.get("attention.sliding_window", gemma2.WINDOW)
    if kind == "gemma3":
        settings["sliding_window"] = values.get("attention.sliding_window")
        settings["sliding_window_pattern"] = GEMMA_PATTERN[kind]
        settings["rope_local_base_freq"] = values.get("rope.freq_base_swa", gemma3.LOCAL_BASE)
    return settings


def write_settings(kind: str, config: Config) -> dict[str, Any]:
    """The reverse of `read_settings`: a file's settings for this model."""
    architecture = ARCHITECTURES[kind]
    theirs = architecture.family.write_config(config)
    values = {ours: theirs[name] for ours, name in architecture.keys.items()}
    if kind == "gpt2":
        return values
    values["rope.dimension_count"] = config.rotary_dim
    if kind == "gptneox":
        return values
    if kind == "gemma2":
        values |= {
            name: float(values[name]) for name in ("attn_logit_softcapping", "final_logit_softcapping")
        }
    values |= {"attention.value_length": config.d_head, "vocab_size": config.n_vocab}
    scaling = config.rope_scaling
    if scaling is not None and scaling.kind != "llama3":
        values |= {"rope.scaling.type": scaling.kind, "rope.scaling.factor": float(scaling.factor)}
    if scaling is not None and scaling.kind != "linear":
        values["rope.scaling.original_context_length"] = scaling.original_context
    if kind in GEMMA_PATTERN:
        values["attention.sliding_window"] = config.window or config.n_context
    if kind == "gemma3":
        values["rope.freq_base_swa"] = float(config.local_rotary_base or config.rotary_base)
    return values


def find_architecture(config: Config) -> str:
    """The architecture with which llama.cpp computes this model as we do. Raises an error if there is none."""
    for kind, architecture in ARCHITECTURES.items():
        if architecture.family.holds(config):
            if reason := _difference(kind, config):
                raise UserError(
                    f"llama.cpp would compute this model differently: {reason}; export to huggingface"
                )
            return kind
    if config.local_blocks and config.feedforward == "swiglu":
        raise UserError(f"llama.cpp would compute this model differently: {SEES_ALL}; export to huggingface")
    raise UserError("llama.cpp has no architecture that computes this model; export to huggingface")


def _difference(kind: str, config: Config) -> str | None:
    """What llama.cpp would compute differently, regardless of the settings in the file."""
    usual = {"gpt2": "gelu_tanh", "gptneox": "gelu"}.get(kind, config.feedforward)
    if config.feedforward != usual:
        return (
            f"llama.cpp's {kind} uses {usual} in the feed-forward network, but this model uses "
            f"{config.feedforward}"
        )
    if kind == "gptneox" and config.rope_scaling is not None:
        return "llama.cpp's gptneox has no RoPE scaling"
    scaling = config.rope_scaling
    if (
        scaling is not None
        and scaling.kind == "llama3"
        and (scaling.low_freq_factor, scaling.high_freq_factor) != (1, 4)
    ):
        low, high = scaling.low_freq_factor, scaling.high_freq_factor
        return f"llama.cpp's rope_scaling goes from 1 to 4, but this model's goes from {low} to {high}"
    if (
        scaling is not None
        and scaling.kind == "yarn"
        and (kind in GEMMA_PATTERN or not _is_usual_yarn(scaling))
    ):
        return "llama.cpp's YaRN has different factors, or is not supported in this architecture"
    if kind in ("olmo2", "smollm3", "gemma2") and (config.qkv_bias or config.feedforward_bias):
        return f"llama.cpp's {kind} has no biases"
    if kind == "gemma2" and (reason := _gemma2_difference(config)):
        return reason
    if kind == "olmo2" and config.tied:
        return "llama.cpp's olmo2 has a separate unembedding"
    if kind == "smollm3":
        unrotated = tuple(range(smollm3.INTERVAL - 1, config.n_block, smollm3.INTERVAL))
        if config.unrotated_blocks != unrotated:
            return (
                f"llama.cpp's blocks without positions are {unrotated}, but this model's are "
                f"{config.unrotated_blocks}"
            )
    if kind not in GEMMA_PATTERN:
        return SEES_ALL if config.local_blocks else None
    local = tuple(i for i in range(config.n_block) if (i + 1) % GEMMA_PATTERN[kind])
    if config.local_blocks != local:
        return f"llama.cpp's local blocks are {local}, but this model's are {config.local_blocks}"
    divided = config.d_model // config.n_head if config.n_block == GEMMA_27B_BLOCKS[kind] else config.d_head
    different = f"llama.cpp divides scores by √{divided}, but this model divides by √{config.d_k}"
    return different if config.d_k != divided else None


def _gemma2_difference(config: Config) -> str | None:
    if config.score_cap is None or config.logit_cap is None:
        return "llama.cpp's gemma2 caps both scores and logits, but this model does not"
    if not config.tied:
        return "llama.cpp's gemma2 has no separate unembedding"
    if config.rope_scaling is not None:
        return "llama.cpp's gemma2 has no RoPE scaling in local blocks"
    return None


def _is_usual_yarn(scaling: RopeScaling) -> bool:
    usual = 1 + max(0.0, math.log(scaling.factor)) / 10
    bounds = (scaling.low_freq_factor, scaling.high_freq_factor) == (1, 32)
    return bounds and math.isclose(scaling.attention_factor, usual, rel_tol=1e-6)


def write_frequencies(config: Config) -> Tensor | None:
    """The factor by which Llama 3 lowers each frequency, which a file stores as a tensor."""
    if config.rope_scaling is None or config.rope_scaling.kind != "llama3":
        return None
    frequencies = _frequencies(config)
    return frequencies / scale_frequencies(frequencies, config.rope_scaling, config.rotary_base)


def read_frequencies(factors: Tensor, config: Config, context: object) -> RopeScaling:
    """Recover the scaling parameters from the tensor that `write_frequencies` returns."""
    if factors.shape != (config.rotary_dim // 2,) or type(context) is not int:
        raise UserError(f"its {FREQUENCIES} does not fit its heads")
    scaling = RopeScaling("llama3", float(factors.max()), original_context=context)
    frequencies = _frequencies(config)
    if not torch.allclose(
        frequencies / scale_frequencies(frequencies, scaling, config.rotary_base), factors, rtol=1e-3
    ):
        raise UserError(f"its {FREQUENCIES} scales positions differently from Llama 3")
    return scaling


def _frequencies(config: Config) -> Tensor:
    exponents = -torch.arange(0, config.rotary_dim, 2, dtype=torch.float) / config.rotary_dim
    return torch.exp(exponents * math.log(config.rotary_base))
