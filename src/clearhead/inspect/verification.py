"""Whether the parts are the whole: every block and the logits put together again, and compared."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from clearhead.inspect.block_steps import BlockSteps
from clearhead.inspect.choice import as_index, in_chunks
from clearhead.inspect.sites import Site
from clearhead.model.block import Block

if TYPE_CHECKING:
    from clearhead.inspect.trace import Trace


def verify(trace: Trace) -> float:
    """The largest ‖difference‖/‖value‖ of any token, from what the model itself computed."""
    stream, padding_mask, n_block = trace.stream, trace.padding_mask, trace.config.n_block
    found = [_distance(trace.start(), stream.inputs[0], padding_mask)]
    for i in range(n_block):
        steps = _steps(trace, i)
        found.append(_distance(steps.middle, stream.middles[i], padding_mask))
        found.append(
            _distance(steps.output, stream.inputs[i + 1] if i + 1 < n_block else stream.last, padding_mask)
        )
    final, logits = (trace.read(name) for name in ("final", "logits"))
    again = final @ trace.network.unembedding.weight.T
    if trace.single:
        again, logits = again[None], logits[None]
    found.append(_distance(trace.edits.apply(Site("logits"), again), logits, padding_mask))
    return math.nan if any(map(math.isnan, found)) else max(found)


def _steps(trace: Trace, i: int) -> BlockSteps:
    """A block's steps from its input alone. The T×T matrices of all heads are never there whole."""
    module, x, edits = trace.network.blocks[i], trace.stream.inputs[i], trace.edits.of(i)
    assert isinstance(module, Block)
    steps = BlockSteps(module, i, trace.config, x, trace.masks[i], trace.rotations[i], edits)
    if not edits.made:
        parts = [
            BlockSteps(
                module, i, trace.config, x, trace.masks[i], trace.rotations[i], rows=as_index(rows, x.device)
            ).attention
            for rows in in_chunks(list(range(len(trace))))
        ]
        steps.attention = torch.cat(parts, dim=1)
    return steps


def _distance(found: Tensor, expected: Tensor, padding_mask: Tensor | None) -> float:
    """The largest ‖difference‖/‖value‖ of any token that is not padding."""
    ratio = (found - expected).norm(dim=-1) / expected.norm(dim=-1).clamp(min=1e-30)
    return (ratio if padding_mask is None else ratio[padding_mask]).max().item()
