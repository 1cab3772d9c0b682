"""The network sizes that a plan chooses from, combined with the requested settings."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from clearhead.classics.recurrent_cell import CellKind
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.errors import UserError
from clearhead.model.config import preset
from clearhead.networks import LearnerConfig
from clearhead.runs.request import TrainingRequest
from clearhead.text.tokens import Tokens

Size = tuple[int, int, int]  # blocks, width, heads

# Heads of 32 or 64 features are supported everywhere.
LADDER: tuple[Size, ...] = (
    (2, 32, 1),
    (2, 64, 2),
    (3, 64, 2),
    (4, 64, 2),
    (4, 96, 3),
    (4, 128, 4),
    (6, 128, 4),
    (6, 192, 6),
    (6, 256, 8),
    (6, 384, 6),
    (8, 512, 8),
    (12, 768, 12),
)
DEFAULT_SIZE: Size = (4, 128, 4)

# With an embedding this small compared to the blocks, a model whose embedding and unembedding are untied
# learns more in the same number of steps (see docs/experiments.md).
SMALL_TABLE = 0.1

# For recurrent networks, which have no heads.
RECURRENT_LADDER: tuple[Size, ...] = (
    (1, 64, 0),
    (1, 96, 0),
    (1, 128, 0),
    (1, 192, 0),
    (1, 256, 0),
    (1, 384, 0),
    (2, 384, 0),
    (2, 512, 0),
    (2, 768, 0),
    (2, 1024, 0),
)
RECURRENT_SIZE: Size = (1, 256, 0)


def list_sizes(request: TrainingRequest, tokens: Tokens, n_vocab: int) -> list[LearnerConfig]:
    """The valid sizes, smallest first; if none is valid, raise the largest one's error."""
    sizes: list[LearnerConfig] = []
    ladder = LADDER if request.kind == "transformer" else RECURRENT_LADDER
    for rung in ladder:
        try:
            config = _config(request, tokens, n_vocab, rung)
        except UserError as error:
            if rung == ladder[-1] and not sizes:
                raise error from None
            continue  # such as three heads that cannot share two key-value heads
        if config not in sizes:
            sizes.append(config)
    return sizes


def usual_size(request: TrainingRequest, tokens: Tokens, n_vocab: int) -> LearnerConfig:
    """The default size of a run without a time limit."""
    size = DEFAULT_SIZE if request.kind == "transformer" else RECURRENT_SIZE
    return _config(request, tokens, n_vocab, size)


def fitting_context(tokens: Tokens) -> int:
    """A power of two that fits into the text at least eight times."""
    return max(8, 2 ** int(np.log2(max(8, len(tokens) / 8))))


def _config(request: TrainingRequest, tokens: Tokens, n_vocab: int, size: Size) -> LearnerConfig:
    blocks, width, heads = size
    width = request.width or (_round(width, request.heads) if request.heads else width)
    context = request.context or min(128 if width < 256 else 256, fitting_context(tokens))
    if request.kind != "transformer":
        return RecurrentConfig(
            cast("CellKind", request.kind),
            n_vocab=n_vocab,
            n_context=request.context or min(128, context),
            n_block=request.blocks or blocks,
            d_model=width,
            dropout=request.dropout or 0.0,
        )
    heads = request.heads or (heads if width % heads == 0 and not request.width else _heads(width))
    config = preset(
        request.preset,
        n_vocab=n_vocab,
        n_context=context,
        n_block=request.blocks or blocks,
        n_head=heads,
        n_kv_head=request.kv_heads or 0,
        d_model=width,
        dropout=request.dropout or 0.0,
        causal=not request.bidirectional,
    )
    small = n_vocab * width <= SMALL_TABLE * config.n_block * config.n_parameter_per_block
    return replace(config, tied=False) if small and request.preset == "modern" else config


def _heads(width: int) -> int:
    """The number of heads of 32 features, or of 64 in a wide model; 1 if that does not divide the width."""
    size = 32 if width < 384 else 64
    return width // size if width % size == 0 else 1


def _round(width: int, multiple: int) -> int:
    return max(1, round(width / multiple)) * multiple
