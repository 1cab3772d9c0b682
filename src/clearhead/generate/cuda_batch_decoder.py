"""Continuous batching on CUDA: a step is one of a few captured graphs, for 1, 2, 4, … sequences.

A step runs the smallest graph that holds the running sequences. Its remaining rows work on a slot that belongs to no
sequence. Tokens are sampled on the device; where a request needs its logits on the CPU, they are fetched. While the CPU
handles the tokens of a step, the device already works on the next; if a sequence ends or joins, that work is repeated.

A product of a different width rounds differently, so unlike on the CPU, the last bits of a sequence's logits may
depend on how many others run beside it.

Shapes: B rows of a step, V tokens in the vocabulary.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from clearhead.generate.batch_decoder import GPU_CHUNK, BatchDecoder, ChunkedPrefill, TransformerPrefill
from clearhead.generate.cuda_decoder import cannot_decode, cannot_run, is_plain, read_later
from clearhead.generate.cuda_step import (
    COLUMNS,
    UNIFORM,
    CudaStep,
    CudaWeights,
    Tuning,
    describe_row,
    make_cache,
)
from clearhead.generate.sampler import Sampler
from clearhead.model.transformer import Transformer
from clearhead.runtime.cuda_graph import CudaGraph
from clearhead.runtime.device import free_memory

CACHE_SHARE = 2  # of the free memory, one part in this many for the KV cache
MOST_SLOTS = 256
AHEAD = COLUMNS - UNIFORM  # steps that the rows have random numbers for
SMALLEST = 16  # positions of a context, for the warm-up


class CudaBatchDecoder(BatchDecoder):
    """A transformer, a KV cache with a slot per sequence, and a captured graph for each number of rows."""

    def __init__(self, network: Transformer, slots: int, tuning: Tuning | None = None) -> None:
        """Compile and capture everything. Raises any error that occurs."""
        self.network, self.config, self.n_slot = network, network.config, slots
        self.chunk_size, self.max_length, self.full_width = GPU_CHUNK, network.config.n_context, False
        self.weights = CudaWeights(network)
        like = self.weights.embedding
        self.device = like.device
        self.cache = make_cache(network.config, slots + 1, network.config.n_context, like)
        self.widths = [*(2**i for i in range(slots.bit_length()) if 2**i < slots), slots]
        self.staged = torch.zeros(slots, COLUMNS, dtype=torch.float64, pin_memory=self.device.type == "cuda")
        self.staged[:, 2] = slots  # until a step is requested, rows work on the slot without a sequence
        self.rows = self.staged.to(self.device)
        self.sampled = torch.zeros(slots, COLUMNS, dtype=torch.long, device=self.device)
        graph = _make_graph(self.device)
        self.batch: _Batch | None = None
        self.steps: dict[int, CudaStep] = {}
        self.replays: dict[int, Callable[[], None]] = {}
        for width in self.widths[::-1]:  # the others fit into the memory that the largest reserves
            self._capture(width, graph, tuning or Tuning())

    @torch.inference_mode()
    def _capture(self, width: int, graph: CudaGraph | None, tuning: Tuning) -> None:
        self.rows.copy_(self.staged)  # the warm-up starts from there
        rows, sampled = self.rows[:width], self.sampled[:width]
        step = CudaStep(self.weights, rows, self.cache, rows[:, UNIFORM:], sampled, tuning)

        def work() -> None:
            step.run(filtered=True)

        self.steps[width] = step
        if graph is None:
            self.replays[width] = work
        else:
            self.replays[width] = graph.capture(work, warm_up=work, error_mode="thread_local")
            if self.device.type == "cuda":  # not so in tests
                torch.cuda.synchronize(self.device)

    def prefill(self, ids: Sequence[int]) -> TransformerPrefill:
        """Use only the last `n_context` tokens of a prompt longer than the context."""
        return TransformerPrefill(self.network, ids[-self.network.config.n_context :], self.chunk_size)

    @torch.inference_mode()
    def insert(self, slot: int, prefill: ChunkedPrefill) -> None:
        assert isinstance(prefill, TransformerPrefill)
        self.batch = None  # what the device does ahead must not reach the new sequence
        length = prefill.cache.length
        self.cache[:, :, slot, :, :length] = prefill.cache.data[:, :, 0, :, :length]

    def extend(self, slot: int, position: int) -> None:
        """There is room for the whole context in every slot."""

    @torch.inference_mode()
    def decode(
        self,
        slots: Sequence[int],
        ids: Sequence[int],
        positions: Sequence[int],
        samplers: Sequence[Sampler | None],
    ) -> Sequence[int | Tensor]:
        """Sample on the device what can be sampled there, and start the next step before these tokens are read."""
        plain = [each if each is not None and is_plain(each.sampling) else None for each in samplers]
        batch = self.batch
        if batch is None or not batch.expects(slots, ids, positions, plain):
            batch = self.batch = self._start(slots, ids, positions, plain)
        if batch.launched == batch.read:
            self._launch(batch)
        reading = read_later(self.sampled[: batch.width, batch.read, None].T)
        if batch.can_continue(self.max_length):
            self._launch(batch)
        [column] = reading()
        tokens = batch.take(column, slots)
        logits = self.steps[batch.width].logits
        found: list[int | Tensor] = []
        for i, (token, sampler) in enumerate(zip(tokens, plain, strict=True)):
            if sampler is None or token < 0:  # a sampler on the CPU says what is wrong with the logits
                found.append(logits[batch.rows[slots[i]]].cpu())
            else:
                found.append(token)
                if sampler.sampling.temperature > 0:
                    sampler.draw()
        return found

    @torch.inference_mode()
    def decode_one(self, slots: Sequence[int], ids: Sequence[int], positions: Sequence[int]) -> Tensor:
        batch = self._start(slots, ids, positions, [None] * len(slots))
        self._launch(batch)
        self.batch = None
        return self.steps[batch.width].logits[: len(slots)].cpu()

    def _step(self, slots: Sequence[int], ids: Sequence[int], positions: Sequence[int], width: int) -> Tensor:
        raise NotImplementedError("each captured step has a fixed width")

    def _launch(self, batch: _Batch) -> None:
        self.replays[batch.width]()
        batch.launched += 1

    def _start(
        self,
        slots: Sequence[int],
        ids: Sequence[int],
        positions: Sequence[int],
        samplers: Sequence[Sampler | None],
    ) -> _Batch:
        """Describe the rows of the smallest step with enough of them, and those of the steps that may follow."""
        width = next(width for width in self.widths if width >= len(slots))
        rows = [
            [i, position, slot, 0, *([0.0] * (COLUMNS - 4) if sampler is None else _describe(sampler))]
            for i, position, slot, sampler in zip(ids, positions, slots, samplers, strict=True)
        ]
        rows += [[0, 0, self.n_slot, 0, *[0.0] * (COLUMNS - 4)]] * (width - len(slots))
        self.staged[:width] = torch.tensor(rows, dtype=torch.float64)
        self.rows[:width].copy_(self.staged[:width], non_blocking=True)
        return _Batch(width, slots, ids, positions, samplers)


class _Batch:
    """The rows that the device works on: it may be a few steps ahead of what has been read."""

    def __init__(
        self,
        width: int,
        slots: Sequence[int],
        ids: Sequence[int],
        positions: Sequence[int],
        samplers: Sequence[Sampler | None],
    ) -> None:
        self.width, self.launched, self.read = width, 0, 0
        self.rows = {slot: i for i, slot in enumerate(slots)}
        self.ids, self.positions, self.samplers = list(ids), list(positions), list(samplers)

    def expects(
        self,
        slots: Sequence[int],
        ids: Sequence[int],
        positions: Sequence[int],
        samplers: Sequence[Sampler | None],
    ) -> bool:
        """Whether the next step of these rows is that of the given sequences, or of more."""
        if self.read == AHEAD:
            return False
        for slot, i, position, sampler in zip(slots, ids, positions, samplers, strict=True):
            row = self.rows.get(slot, -1)
            if row < 0 or sampler is None or self.samplers[row] is not sampler:
                return False
            if self.ids[row] != i or self.positions[row] + self.read != position:
                return False
        return True

    def can_continue(self, max_length: float) -> bool:
        """Whether a step after the one to be read may be started: no row ends, and none needs its logits."""
        fits = max(self.positions, default=0) + self.launched < max_length
        return self.launched < AHEAD and fits and None not in self.samplers

    def take(self, tokens: Sequence[int], slots: Sequence[int]) -> list[int]:
        """The tokens of these slots, from those of all rows."""
        self.ids[:] = tokens[: len(self.ids)]
        self.read += 1
        return [tokens[self.rows[slot]] for slot in slots]


def _describe(sampler: Sampler) -> list[float]:
    drawn = sampler.peek(AHEAD) if sampler.sampling.temperature > 0 else [0.0] * AHEAD
    return [*describe_row(sampler.sampling), *drawn]


def _make_graph(device: torch.device) -> CudaGraph | None:
    return CudaGraph(device) if device.type == "cuda" else None


def make_cuda_batch_decoder(network: Transformer, slots: int) -> CudaBatchDecoder | None:
    """None if the kernels do not apply or, after a warning, if they cannot be set up on the device."""
    weight, config = network.embedding.weight, network.config
    if (
        cannot_run(weight.device)
        or cannot_decode(network)
        or slots > MOST_SLOTS
        or config.n_context < SMALLEST
    ):
        return None
    size = 2 * config.n_block * (slots + 1) * config.n_kv_head * config.n_context * config.d_head
    if size * weight.element_size() > free_memory(weight.device) / CACHE_SHARE:
        return None
    try:
        return CudaBatchDecoder(network, slots)
    except Exception as error:  # compiling and capturing depend on drivers and libraries
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        warnings.warn(f"generating slowly, without CUDA graphs: {reason}", stacklevel=2)
        return None
