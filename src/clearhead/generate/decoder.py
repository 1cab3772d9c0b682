"""The decoder: what may come next in many texts at once, each number by its own text alone.

A text's numbers must not depend on what else is in the batch, to the last bit. So a prompt is read by itself,
in pieces of a fixed size; and in a step, which has one row a slot, a word is compared with its own text's
past alone.

Shapes: B rows of a step, C features of the stream, V words.
"""

from __future__ import annotations

import copy
import platform
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from clearhead.errors import UserError
from clearhead.generate.batch_decoder import ReadsOn, Rows
from clearhead.model.config import Config
from clearhead.model.kv_cache import KVCache
from clearhead.model.transformer import Transformer
from clearhead.networks import need_causal
from clearhead.runtime.batched_attention import BatchedMask, find_spans
from clearhead.runtime.batched_kv_cache import BatchedKVCache
from clearhead.runtime.quantization import is_quantized


class Reading:
    """A text that is read by itself, a piece at a time; `logits` (V) are of the word after it, once read."""

    def __init__(self, network: Transformer, ids: Sequence[int], size: int) -> None:
        parameter = network.embedding.weight
        self.network, self.size = network, size
        self.ids = torch.tensor([ids], device=parameter.device)
        self.cache = KVCache(network.config, 1, len(ids), parameter.device, parameter.dtype)
        self.logits: Tensor | None = None

    @torch.inference_mode()
    def read_on(self) -> int:
        if self.logits is not None:
            return 0
        piece = self.ids[:, self.cache.length : self.cache.length + self.size]
        final = self.network.hidden_states(piece, cache=self.cache)
        if self.cache.length == self.ids.shape[1]:
            self.logits = self.network.unembedding(final[0, -1:])[0].float().cpu()
        return piece.shape[1]


class Decoder(Rows):
    """A transformer and its slots."""

    def __init__(self, network: Transformer, slots: int, whole: bool | None = None) -> None:
        config, weight = network.config, network.embedding.weight
        need_causal(config)
        if slots < 1:
            raise UserError(f"slots = {slots}: expected at least 1")
        self.network = turned(network) if _packs_anew(network) else network
        self.slots = BatchedKVCache(config, slots, weight.device, weight.dtype)
        # Of every position. Sines of many numbers at once may differ from those of few in their last bit.
        everywhere = torch.arange(config.n_context, device=weight.device)[:, None]
        with torch.inference_mode():
            self.places = network.position_vectors(everywhere)
            self.rotations = network.rotations(everywhere)
        self.longest = config.n_context
        super().__init__(config, slots, weight.device, whole)

    def read(self, ids: Sequence[int]) -> Reading:
        """One longer than the context counts by its end."""
        return Reading(self.network, ids[-self.network.config.n_context :], self.piece)

    def place(self, slot: int, reading: ReadsOn) -> None:
        assert isinstance(reading, Reading)
        self.slots.insert(slot, reading.cache)

    def extend(self, slot: int, position: int) -> None:
        self.slots.extend(slot, position)

    @torch.inference_mode()
    def _step(self, slots: Sequence[int], ids: Sequence[int], positions: Sequence[int], width: int) -> Tensor:
        network, device = self.network, self.slots.data.device
        padding = [0] * (width - len(slots))
        places = torch.tensor([*positions, *padding], device=device)
        x = network.token_vectors(torch.tensor([*ids, *padding], device=device)[:, None])
        if self.places is not None:
            x = x + self.places[places]
        self.slots.set_positions(slots, positions)
        masks = self._masks(slots, positions)
        rotations = [each and (each[0][places], each[1][places]) for each in self.rotations]
        x = network.run_blocks(x, masks, rotations, self.slots.blocks)
        return network.unembedding(network.final_norm(x))[: len(slots), 0]

    def _masks(self, slots: Sequence[int], positions: Sequence[int]) -> list[BatchedMask]:
        """The mask of each block: local blocks see a window."""
        config: Config = self.network.config
        made: dict[bool, BatchedMask] = {}
        for i in range(config.n_block):
            local = i in config.local_blocks
            if local not in made:
                window = config.window if local else None
                spans = find_spans(slots, positions, self.slots.data, window, self.whole)
                made[local] = BatchedMask(spans=spans)
        return [made[i in config.local_blocks] for i in range(config.n_block)]


def turned(network: Transformer) -> Transformer:
    """The same network, but with a copy of its matrices that lies in memory column by column."""
    shared = {id(tensor): tensor for tensor in (*network.parameters(), *network.buffers())}
    other = copy.deepcopy(network, shared)
    for module in other.modules():
        if isinstance(module, nn.Linear):
            weight = module.weight.detach().t().contiguous().t()
            module.weight = nn.Parameter(weight, requires_grad=False)
    return other


def _packs_anew(network: Transformer) -> bool:
    """Whether products with a narrow batch mostly rearrange the matrix, which goes faster by columns."""
    arm = platform.system() == "Linux" and platform.machine() == "aarch64"
    weight = network.embedding.weight
    return arm and weight.device.type == "cpu" and weight.dtype == torch.float32 and not is_quantized(network)
