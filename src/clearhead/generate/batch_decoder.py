"""Decoding many sequences in one batch, each row independent of the others to the last bit.

A sequence's logits must not depend on what else is in the batch. A prompt is therefore prefilled on its own,
in chunks of a fixed size, and in a decoding step each token attends to the KV cache of its own slot only.

A step has one row per slot. On the CPU, it may also be narrower (the slots in use plus padding), because matrix
products there usually give a row the same numbers at any width. The constructor measures whether they do,
and whether all rows of a step are treated alike; it discards the widths for which either check fails.

Shapes: B rows of a step, V tokens in the vocabulary.
"""

from __future__ import annotations

import copy
import platform
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from clearhead.errors import UserError
from clearhead.generate.sampler import Sampler
from clearhead.model.config import Config
from clearhead.model.kv_cache import KVCache
from clearhead.model.transformer import Transformer
from clearhead.networks import AnyConfig, need_causal
from clearhead.runtime.batched_attention import BatchedMask, find_spans
from clearhead.runtime.batched_kv_cache import BatchedKVCache
from clearhead.runtime.quantization import is_quantized

# Prompt tokens processed between two decoding steps. On the CPU, a chunk takes as long as a step with as many
# rows; on other devices, it takes little longer than a decoding step.
CPU_CHUNK, GPU_CHUNK = 32, 512
PROBES = 16  # block evaluations that test whether all rows of a step are treated alike


class ChunkedPrefill(Protocol):
    """A prompt that is prefilled chunk by chunk. The last chunk sets `logits` (V), those of the next token."""

    logits: Tensor | None

    def run_chunk(self) -> int:
        """Process the next chunk, if any, and return its number of tokens."""
        ...


class BatchDecoder(ABC):
    """A network and its slots, one sequence in each. With `full_width`, every step computes all slots."""

    max_length: float  # tokens a slot can hold; a longer sequence is prefilled again from its last tokens
    most_together = 0  # tokens, with padding, of prompts that can be prefilled together; at 0, none can

    def __init__(self, config: AnyConfig, n_slot: int, device: torch.device, full_width: bool | None) -> None:
        """Measure the usable widths. Subclasses call this once `_step` works."""
        self.config, self.n_slot = config, n_slot
        self.chunk_size = CPU_CHUNK if device.type == "cpu" else GPU_CHUNK
        self.full_width = device.type != "cpu" if full_width is None else full_width
        self.widths = [n_slot]
        self.widths = self._find_widths()

    @abstractmethod
    def prefill(self, ids: Sequence[int]) -> ChunkedPrefill:
        """Start prefilling a prompt on its own."""

    def prefill_together(self, prompts: Sequence[Sequence[int]]) -> Sequence[ChunkedPrefill]:
        """Prefill several prompts in one forward pass, without logits: the next step processes their last tokens."""
        raise NotImplementedError("this decoder prefills each prompt on its own")

    @abstractmethod
    def insert(self, slot: int, prefill: ChunkedPrefill) -> None:
        """Copy a prefilled prompt into a slot."""

    @abstractmethod
    def extend(self, slot: int, position: int) -> None:
        """Make room for a token at this position, the next in the slot's sequence."""

    @abstractmethod
    def _step(self, slots: Sequence[int], ids: Sequence[int], positions: Sequence[int], width: int) -> Tensor:
        """Process one token per slot in a step of `width` rows: B V logits."""

    def decode_one(self, slots: Sequence[int], ids: Sequence[int], positions: Sequence[int]) -> Tensor:
        """Process the next token of each of these slots, given in ascending order: B V logits on the CPU.

        A slot that is left out may lose its sequence.
        """
        if self.full_width:
            # Unused slots have rows too; the next sequence overwrites what they store.
            tokens = dict(zip(slots, zip(ids, positions, strict=True), strict=True))
            ids, positions = zip(*(tokens.get(slot, (0, 0)) for slot in range(self.n_slot)), strict=True)
            return self._step(range(self.n_slot), ids, positions, self.n_slot)[list(slots)].float().cpu()
        width = next(width for width in self.widths if width >= min(len(slots), self.widths[-1]))
        parts = [slice(i, i + width) for i in range(0, len(slots), width)]
        logits = torch.cat([self._step(slots[part], ids[part], positions[part], width) for part in parts])
        return logits.float().cpu()

    def decode(
        self,
        slots: Sequence[int],
        ids: Sequence[int],
        positions: Sequence[int],
        samplers: Sequence[Sampler | None],  # noqa: ARG002
    ) -> Sequence[int | Tensor]:
        """Like `decode_one`. A decoder that samples on its device returns the next token in place of the logits."""
        return list(self.decode_one(slots, ids, positions))

    def _find_widths(self) -> list[int]:
        """Return the widths at which every row gets the same numbers as at full width.

        The widths are tested with the same sequence in every row. If the rows differ even at full width, each
        row is decoded in a separate step.
        """
        expected = self._probe(self.n_slot)
        if expected is None:
            self.full_width = False
            return [1]
        if self.full_width:
            return [self.n_slot]
        narrower = [2**i for i in range(1, self.n_slot.bit_length()) if 2**i < self.n_slot]
        rows = [self._probe(width) for width in narrower]
        equal = [w for w, row in zip(narrower, rows, strict=True) if row is not None and row.equal(expected)]
        return [*equal, self.n_slot]

    def _probe(self, width: int) -> Tensor | None:
        """Feed the same tokens to every row and return the logits of one row, or None if the rows differ."""
        config, rows = self.config, list(range(width))
        steps = min(config.n_context, -(-PROBES // getattr(config, "n_block", 1)))
        logits = []
        for position in range(steps):
            for slot in rows:
                self.extend(slot, position)
            token = position * config.n_vocab // steps
            logits.append(self._step(rows, [token] * width, [position] * width, width))
        stacked = torch.stack(logits, dim=1)
        return stacked[0] if stacked.equal(stacked[:1].expand_as(stacked)) else None


class TransformerPrefill:
    """A `ChunkedPrefill` with its own KV cache."""

    def __init__(self, network: Transformer, ids: Sequence[int], chunk_size: int) -> None:
        parameter = network.embedding.weight
        self.network, self.chunk_size = network, chunk_size
        self.ids = torch.tensor([ids], device=parameter.device)
        self.cache = KVCache(network.config, 1, len(ids), parameter.device, parameter.dtype)
        self.logits: Tensor | None = None

    @torch.inference_mode()
    def run_chunk(self) -> int:
        if self.logits is not None:
            return 0
        chunk = self.ids[:, self.cache.length : self.cache.length + self.chunk_size]
        final = self.network.hidden_states(chunk, cache=self.cache)
        if self.cache.length == self.ids.shape[1]:
            self.logits = self.network.unembed(final[0, -1:])[0].float().cpu()
        return chunk.shape[1]


class TransformerBatchDecoder(BatchDecoder):
    """A transformer with a batched KV cache."""

    def __init__(self, network: Transformer, slots: int, full_width: bool | None = None) -> None:
        config, weight = network.config, network.embedding.weight
        need_causal(config)
        if slots < 1:
            raise UserError(f"slots = {slots}: expected at least 1")
        self.network = transpose_weights(network) if _prefers_columns(network) else network
        self.cache = BatchedKVCache(config, slots, weight.device, weight.dtype)
        # Computed once for all positions: the last bit of a sine may depend on how many are computed at once.
        positions = torch.arange(config.n_context, device=weight.device)[:, None]
        with torch.inference_mode():
            self.position_vectors = network.position_vectors(positions)
            self.rotations = network.rotations(positions)
        self.max_length = config.n_context
        super().__init__(config, slots, weight.device, full_width)

    def prefill(self, ids: Sequence[int]) -> TransformerPrefill:
        """Use only the last `n_context` tokens of a prompt longer than the context."""
        return TransformerPrefill(self.network, ids[-self.network.config.n_context :], self.chunk_size)

    def insert(self, slot: int, prefill: ChunkedPrefill) -> None:
        assert isinstance(prefill, TransformerPrefill)
        self.cache.insert(slot, prefill.cache)

    def extend(self, slot: int, position: int) -> None:
        self.cache.extend(slot, position)

    @torch.inference_mode()
    def _step(self, slots: Sequence[int], ids: Sequence[int], positions: Sequence[int], width: int) -> Tensor:
        network, device = self.network, self.cache.data.device
        padding = [0] * (width - len(slots))
        index = torch.tensor([*positions, *padding], device=device)
        x = network.token_vectors(torch.tensor([*ids, *padding], device=device)[:, None])
        if self.position_vectors is not None:
            x = x + self.position_vectors[index]
        self.cache.set_positions(slots, positions)
        masks = self._masks(slots, positions)
        rotations = [rotation and (rotation[0][index], rotation[1][index]) for rotation in self.rotations]
        x = network.run_blocks(x, masks, rotations, self.cache.blocks)
        return network.unembed(network.final_norm(x))[: len(slots), 0]

    def _masks(self, slots: Sequence[int], positions: Sequence[int]) -> list[BatchedMask]:
        """Return the mask of each block: local blocks attend within a window."""
        config: Config = self.network.config
        masks: dict[bool, BatchedMask] = {}
        for i in range(config.n_block):
            local = i in config.local_blocks
            if local not in masks:
                window = config.window if local else None
                spans = find_spans(slots, positions, self.cache.data, window, self.full_width)
                masks[local] = BatchedMask(spans=spans)
        return [masks[i in config.local_blocks] for i in range(config.n_block)]


def transpose_weights(network: Transformer) -> Transformer:
    """Return the same network with a copy of its matrices stored in column-major order."""
    shared = {id(tensor): tensor for tensor in (*network.parameters(), *network.buffers())}
    other = copy.deepcopy(network, shared)
    for module in other.modules():
        if isinstance(module, nn.Linear):
            weight = module.weight.detach().t().contiguous().t()
            module.weight = nn.Parameter(weight, requires_grad=False)
    return other


def _prefers_columns(network: Transformer) -> bool:
    """Whether column-major weights are faster.

    With row-major weights, narrow matrix products spend most of their time repacking them.
    """
    arm = platform.system() == "Linux" and platform.machine() == "aarch64"
    weight = network.embedding.weight
    return arm and weight.device.type == "cpu" and weight.dtype == torch.float32 and not is_quantized(network)
