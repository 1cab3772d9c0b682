"""Load an n-gram model from a folder's tensors: sorted integer keys, log-probabilities, backoff weights."""

from __future__ import annotations

import torch

from clearhead.classics.ngram import NGram
from clearhead.classics.ngram_config import NGramConfig
from clearhead.errors import UserError
from clearhead.formats.shards import Shards
from clearhead.runtime.device import memory_of


def read_ngram(shards: Shards, config: NGramConfig) -> NGram:
    """Read an n-gram model. Checks names, types and shapes before reading, and consistency afterward."""
    if shards.n_bytes < config.n_byte:
        raise UserError(
            f"{shards.described} has {shards.n_bytes} bytes, too few for the {config.n_ngram} n-grams in "
            "its settings: copy it again from its source"
        )
    memory = memory_of(torch.device("cpu"))
    if memory is not None and config.n_byte > memory:
        raise UserError(
            f"{shards.described} needs {config.n_byte / 1e9:.1f} GB of memory, but this machine has "
            f"{memory / 1e9:.1f}: use a smaller model"
        )
    with torch.device("meta"):
        network = NGram(config)
    tensors = {}
    for name, expected in network.state_dict().items():
        whole = expected.dtype == torch.int64
        shape = (shards.integers if whole else shards.shapes()).get(name)
        if shape != tuple(expected.shape):
            raise UserError(
                f"{shards.described}: {name} is missing, or its shape or type does not match the settings; "
                "the weights and the settings belong to different models"
            )
        # Never in half precision: there are no products to speed up.
        tensors[name] = shards.read(name, expected.dtype)
    network.load_state_dict(tensors, assign=True)
    try:
        network.check()
    except UserError as error:
        raise UserError(f"{shards.described}: {error}") from None
    return network.eval()
