"""SmolLM3: a Llama in which every fourth block has no positions (NoPE)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clearhead.errors import UserError
from clearhead.formats.families import llama
from clearhead.formats.families.family import Family, read_local, write_local
from clearhead.formats.families.llama import read_tensors, write_tensors
from clearhead.model.config import Config

INTERVAL = 4  # blocks


def holds(config: Config) -> bool:
    everywhere = replace(config, unrotated_blocks=(), local_blocks=())
    return llama.holds(everywhere)


def write_config(config: Config) -> dict[str, Any]:
    return {
        **llama.write_config(config),
        "architectures": ["SmolLM3ForCausalLM"],
        "no_rope_layers": [int(i not in config.unrotated_blocks) for i in range(config.n_block)],
        "use_sliding_window": bool(config.local_blocks),
        **write_local(config),
    }


def read_config(settings: dict[str, Any]) -> Config:
    config = llama.read_config({"rope_theta": 2_000_000.0, "tie_word_embeddings": True, **settings})
    rotated, n_block = settings.get("no_rope_layers"), config.n_block
    interval = settings.get("no_rope_layer_interval", INTERVAL)
    if type(interval) is not int or interval < 1:
        raise UserError(f"no_rope_layer_interval = {interval!r} in config.json: expected a number of blocks")
    if rotated is None:
        rotated = [(i + 1) % interval != 0 for i in range(n_block)]
    if (
        not isinstance(rotated, list)
        or len(rotated) != n_block
        or any(each not in (0, 1) for each in rotated)
    ):
        raise UserError(f"no_rope_layers in config.json: expected 0 or 1 for each of {n_block} blocks")
    unrotated = [i for i, each in enumerate(rotated) if not each]
    local = read_local(settings, lambda i: i in unrotated) if settings.get("use_sliding_window") else {}
    return Config.from_json({**config.to_json(), **local, "unrotated_blocks": unrotated})


FAMILY = Family("smollm3", "model.", holds, write_config, read_config, write_tensors, read_tensors)
