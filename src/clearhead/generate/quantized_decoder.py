"""Reading a growing text with a network in eight bits: after the prompt, word by word in compiled code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clearhead.generate.continuation import Reader
from clearhead.model.block import Block
from clearhead.model.config import Config
from clearhead.model.norm import Norm
from clearhead.model.transformer import Transformer
from clearhead.runtime.quantization import QuantizedLinear

NOTHING: NDArray[np.float32] = np.zeros(0, np.float32)
NO_MATRIX = np.zeros((0, 0), np.int8), np.zeros((0, 0), np.float32), NOTHING


class QuantizedReader(Reader):
    """For one text. A word within the context goes through `quantized_step`, all else as in `Reader`."""

    def __init__(self, network: Transformer, longest: int | None = None) -> None:
        from clearhead.generate import quantized_step
        from clearhead.runtime.quantized_kernel import KernelLock

        super().__init__(network, 1, longest)
        self.step, self.turn = quantized_step, KernelLock()
        self.blocks = [_arrays(block) for block in network.blocks if isinstance(block, Block)]
        places = torch.arange(self.cache.size)[None]
        rotation = network.rotations(places)[0]
        none = np.zeros((0, 0), np.float32)
        self.rotation = (none, none) if rotation is None else tuple(part[0].numpy() for part in rotation)
        self.kept = [tuple(data[:, 0].numpy()) for data in self.cache.data]
        assert isinstance(network.unembedding, QuantizedLinear)
        self.unembedding = network.unembedding.matrix

    @torch.inference_mode()
    def read(self, ids: Tensor) -> Tensor:
        position = self.cache.length
        if ids.shape != (1, 1) or position == 0 or self.ids.shape[1] >= self.n_context:
            return super().read(ids)
        config: Config = self.network.config
        self.ids = torch.cat((self.ids, ids), dim=1)
        stream = self.network.embed(ids, torch.tensor([[position]]))[0].contiguous()
        logits = torch.empty(1, config.n_vocab)
        activation = self.step.ACTIVATIONS[config.feedforward]
        scale = 1 / math.sqrt(config.d_k)
        x = stream.numpy()
        with self.turn:
            for (norms, projections, gains, output, feedforward), kept in zip(
                self.blocks, self.kept, strict=True
            ):
                self.step.read_block(
                    x,
                    norms,
                    projections,
                    gains,
                    self.rotation,
                    kept,
                    position,
                    output,
                    feedforward,
                    activation,
                    config.norm_epsilon,
                    scale,
                )
            final = _norm(self.network.final_norm)
            self.step.unembed(x, final, config.norm_epsilon, self.unembedding, logits.numpy())
        self.cache.length += 1
        return logits


def reads_by_word(network: Transformer) -> bool:
    """Whether a network in eight bits has the blocks that `quantized_step` knows."""
    config = network.config
    usual = not (config.parallel or config.post_norm or config.local_blocks) and config.causal
    return usual and isinstance(network.unembedding, QuantizedLinear)


def _arrays(block: Block) -> tuple[Any, ...]:
    attention, feedforward = block.attention, block.feedforward
    parts: tuple[Any, ...] = attention.query, attention.key, attention.value
    norms = attention.query_norm, attention.key_norm
    gate: Any = feedforward.gate
    second: Any = feedforward.second
    first: Any = feedforward.first
    output: Any = attention.output
    return (
        (_norm(block.norm), _norm(block.norm2)),
        tuple(part.matrix for part in parts),
        tuple(NOTHING if norm is None else _norm(norm)[0] for norm in norms),
        output.matrix,
        (first.matrix, NO_MATRIX if gate is None else gate.matrix, second.matrix),
    )


def _norm(norm: Norm) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    return norm.gain.detach().numpy(), NOTHING if norm.shift is None else norm.shift.detach().numpy()
