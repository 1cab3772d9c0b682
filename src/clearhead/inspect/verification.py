"""The check that blocks and logits, recomposed from their steps, match what the model computed."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from clearhead.inspect.block_steps import BlockSteps
from clearhead.inspect.indexing import chunk_rows, index_tensor
from clearhead.inspect.residual_trace import ResidualTrace
from clearhead.inspect.sites import Site
from clearhead.model.attention_steps import cap
from clearhead.model.block import Block


def verify(trace: ResidualTrace) -> float:
    """Return the largest relative error ‖difference‖/‖value‖ of any token against what the model computed."""
    stream, padding_mask, n_block = trace.stream, trace.padding_mask, trace.config.n_block
    errors = [_relative_error(trace.first_input(), stream.inputs[0], padding_mask)]
    for i in range(n_block):
        steps = _steps(trace, i)
        errors.append(_relative_error(steps.middle, stream.middles[i], padding_mask))
        errors.append(
            _relative_error(
                steps.output, stream.inputs[i + 1] if i + 1 < n_block else stream.last, padding_mask
            )
        )
    final, logits = (trace.read(name) for name in ("final", "logits"))
    recomposed = final @ trace.network.unembedding.weight.T
    if trace.single:
        recomposed, logits = recomposed[None], logits[None]
    if (limit := trace.config.logit_cap) is not None:
        recomposed = cap(trace.edits.apply(Site("logits_raw"), recomposed), limit)
    errors.append(_relative_error(trace.edits.apply(Site("logits"), recomposed), logits, padding_mask))
    return math.nan if any(map(math.isnan, errors)) else max(errors)


def _steps(trace: ResidualTrace, i: int) -> BlockSteps:
    """Return the steps of a block from its input alone, in chunks of rows to bound the T×T matrices."""
    module, x, edits = trace.network.blocks[i], trace.stream.inputs[i], trace.edits.of(i)
    assert isinstance(module, Block)
    steps = BlockSteps(module, i, trace.config, x, trace.masks[i], trace.rotations[i], edits)
    if not edits.made:
        parts = [
            BlockSteps(
                module,
                i,
                trace.config,
                x,
                trace.masks[i],
                trace.rotations[i],
                rows=index_tensor(rows, x.device),
            ).attention
            for rows in chunk_rows(list(range(len(trace))))
        ]
        steps.attention = torch.cat(parts, dim=1)
    return steps


def _relative_error(actual: Tensor, expected: Tensor, padding_mask: Tensor | None) -> float:
    """Return the largest ‖difference‖/‖value‖ of any token that is not padding."""
    ratio = (actual - expected).norm(dim=-1) / expected.norm(dim=-1).clamp(min=1e-30)
    return (ratio if padding_mask is None else ratio[padding_mask]).max().item()
