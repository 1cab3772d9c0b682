"""Decoders for one prompt: the network, with its cache or state for the samples that continue the prompt.

`prefill` processes the prompt and `decode_one` each new token; both return the logits of the next token.
`batch_decoder` does the same for many sequences that come and go.

Shapes: N samples of one prompt, T positions, V tokens in the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.model.kv_cache import KVCache
from clearhead.model.position import rotate
from clearhead.model.transformer import Transformer

# The first tokens stay in the cache as attention sinks (https://arxiv.org/abs/2309.17453).
ATTENTION_SINKS = 4


class Decoder(Protocol):
    """Computes the logits of the next token of a growing sequence."""

    def prefill(self, ids: Tensor) -> Tensor:
        """Process the next T tokens of every sample at once: N T → N V."""
        ...

    def decode_one(self, ids: Tensor) -> Tensor:
        """Process the next token of every sample: N 1 → N V."""
        ...


class ReorderableDecoder(Decoder, Protocol):
    """A decoder whose samples can branch off one another, as beam search requires."""

    def reorder(self, rows: Sequence[int]) -> None:
        """Make sample n continue from what sample rows[n] has processed."""
        ...


class TransformerDecoder:
    """Decodes with a transformer and a KV cache.

    Once the context is full, the window slides: every new token costs a forward pass over the last
    `n_context` tokens, because their positions change.
    """

    def __init__(self, network: Transformer, samples: int = 1, max_length: int | None = None) -> None:
        parameter = next(network.parameters())
        self.network = network
        self.n_context = network.config.n_context
        self.ids = torch.empty(samples, 0, dtype=torch.long, device=parameter.device)
        size = self.n_context if max_length is None else min(self.n_context, max_length)
        self.cache = KVCache(network.config, samples, size, parameter.device, parameter.dtype)

    @torch.inference_mode()
    def prefill(self, ids: Tensor) -> Tensor:
        ids = ids.to(self.ids.device)
        self.ids = torch.cat((self.ids, ids), dim=1)
        if self.ids.shape[1] <= self.n_context:
            return self.network(ids, cache=self.cache)[:, -1]
        return self.network(self.ids[:, -self.n_context :])[:, -1]

    def decode_one(self, ids: Tensor) -> Tensor:
        return self.prefill(ids)

    @torch.inference_mode()
    def check(self, ids: Tensor) -> Tensor:
        """Process the next T tokens of one sample and return the logits after each: 1 T → T V."""
        ids = ids.to(self.ids.device)
        self.ids = torch.cat((self.ids, ids), dim=1)
        return self.network(ids, cache=self.cache)[0]

    def rewind(self, count: int) -> None:
        """Forget the last `count` tokens."""
        self.ids = self.ids[:, : self.ids.shape[1] - count]
        self.cache.length -= count

    @torch.inference_mode()
    def reorder(self, rows: Sequence[int]) -> None:
        index = torch.tensor(rows, device=self.ids.device)
        self.ids = self.ids[index]
        for block in self.cache.blocks:
            for data in (block.key, block.value):
                data[:, :, : self.cache.length] = data[index, :, : self.cache.length]


class ShiftingDecoder(TransformerDecoder):
    """Drops the older half of a full KV cache instead of processing the window again for every token.

    Much faster than `TransformerDecoder`, but an approximation. The keys of the remaining tokens are rotated
    back to earlier positions, but in all blocks except the first, these tokens have attended to the
    dropped ones. Between half of the context and all of it remains visible.
    """

    def __init__(self, network: Transformer, samples: int = 1, max_length: int | None = None) -> None:
        if network.config.position not in ("rotary", "none"):
            raise UserError(
                f"`shift` requires rotary positions; this model has {network.config.position} positions: "
                "omit `shift`"
            )
        super().__init__(network, samples, max_length)
        self.n_sink = min(ATTENTION_SINKS, self.n_context // 4)

    @torch.inference_mode()
    def prefill(self, ids: Tensor) -> Tensor:
        ids = ids.to(self.ids.device)[:, -self.n_context :]
        self.ids = torch.cat((self.ids, ids), dim=1)[:, -self.n_context :]
        excess = self.cache.length + ids.shape[1] - self.cache.size
        if excess > self.cache.length - self.n_sink:
            self.cache.length = 0  # the new tokens fill the context on their own
        elif excess > 0:
            self._drop(max(excess, (self.cache.length - self.n_sink) // 2))
        return self.network(ids, cache=self.cache)[:, -1]

    def _drop(self, count: int) -> None:
        """Drop the `count` oldest tokens after the attention sinks and move the rest back `count` positions."""
        start, length = self.n_sink, self.cache.length
        back = torch.tensor([[-count]], device=self.ids.device)
        for block, rotation in zip(self.cache.blocks, self.network.rotations(back), strict=True):
            keys, values = (data[:, :, start + count : length].clone() for data in (block.key, block.value))
            if rotation is not None:
                factor = torch.hypot(*rotation)  # YaRN's, by which keys must be multiplied only once
                angle = rotation[0] / factor, rotation[1] / factor
                keys = rotate(keys.float(), angle).to(keys.dtype)
            block.key[:, :, start : length - count] = keys
            block.value[:, :, start : length - count] = values
        self.cache.length = length - count
