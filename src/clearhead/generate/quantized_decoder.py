"""Decoding with an int8 network: prefill as usual, then compiled code for each token."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clearhead.generate.decoder import TransformerDecoder
from clearhead.model.block import Block
from clearhead.model.config import Config
from clearhead.model.norm import Norm
from clearhead.model.transformer import Transformer
from clearhead.runtime.quantization import QuantizedLinear

EMPTY: NDArray[np.float32] = np.zeros(0, np.float32)
NO_MATRIX = np.zeros((0, 0), np.int8), np.zeros((0, 0), np.float32), EMPTY


class QuantizedDecoder(TransformerDecoder):
    """Decodes one sample: single tokens within the context with `quantized_step`, all else with PyTorch."""

    def __init__(self, network: Transformer, max_length: int | None = None) -> None:
        from clearhead.generate import quantized_step
        from clearhead.runtime.quantized_kernel import KernelLock

        super().__init__(network, 1, max_length)
        self.step, self.lock = quantized_step, KernelLock()
        self.blocks = [_block_arrays(block) for block in network.blocks if isinstance(block, Block)]
        positions = torch.arange(self.cache.size)[None]
        none = np.zeros((0, 0), np.float32)
        self.rotations = [
            (none, none) if rotation is None else tuple(part[0].numpy() for part in rotation)
            for rotation in network.rotations(positions)
        ]
        self.caches = [tuple(data[:, 0].numpy()) for data in self.cache.data]
        assert isinstance(network.unembedding, QuantizedLinear)
        self.unembedding = network.unembedding.matrix

    @torch.inference_mode()
    def decode_one(self, ids: Tensor) -> Tensor:
        position = self.cache.length
        if position == 0 or self.ids.shape[1] >= self.n_context:
            return self.prefill(ids)
        config: Config = self.network.config
        self.ids = torch.cat((self.ids, ids), dim=1)
        stream = self.network.embed(ids, torch.tensor([[position]]))[0].contiguous()
        logits = torch.empty(1, config.n_vocab)
        activation = self.step.ACTIVATIONS[config.feedforward]
        scale = 1 / math.sqrt(config.d_k)
        x = stream.numpy()
        with self.lock:
            for (norms, projections, gains, output, feedforward), rotation, cache in zip(
                self.blocks, self.rotations, self.caches, strict=True
            ):
                self.step.decode_block(
                    x,
                    norms,
                    projections,
                    gains,
                    rotation,
                    cache,
                    position,
                    output,
                    feedforward,
                    activation,
                    config.norm_epsilon,
                    scale,
                )
            final = _norm_arrays(self.network.final_norm)
            self.step.unembed(x, final, config.norm_epsilon, self.unembedding, logits.numpy())
        self.cache.length += 1
        return logits


def supports(network: Transformer) -> bool:
    """Whether a network is in int8 and has the blocks that `quantized_step` implements."""
    config = network.config
    unusual = config.parallel or config.post_norm or not config.pre_norm or config.qk_norm_joint
    plain = config.causal and not (unusual or config.local_blocks or config.capped)
    return plain and isinstance(network.unembedding, QuantizedLinear)


def _block_arrays(block: Block) -> tuple[Any, ...]:
    attention, feedforward = block.attention, block.feedforward
    assert isinstance(block.norm, Norm)
    assert isinstance(block.norm2, Norm)
    parts: tuple[Any, ...] = attention.query, attention.key, attention.value
    norms = attention.query_norm, attention.key_norm
    gate: Any = feedforward.gate
    second: Any = feedforward.second
    first: Any = feedforward.first
    output: Any = attention.output
    return (
        (_norm_arrays(block.norm), _norm_arrays(block.norm2)),
        tuple(part.matrix for part in parts),
        tuple(EMPTY if norm is None else _norm_arrays(norm)[0] for norm in norms),
        output.matrix,
        (first.matrix, NO_MATRIX if gate is None else gate.matrix, second.matrix),
    )


def _norm_arrays(norm: Norm) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    return norm.gain.detach().numpy(), EMPTY if norm.shift is None else norm.shift.detach().numpy()
