"""Continuous batching on CUDA: a step is one of a few captured graphs, for 1, 2, 4, … sequences.

A step runs the smallest graph that holds the running sequences. Its remaining rows work on a slot that belongs to no
sequence. Tokens are sampled on the device; where a request needs its logits on the CPU, they are fetched. While the CPU
handles the tokens of a step, the device is already working on the next; if a sequence joins, that work is repeated.
Short prompts that are waiting at the same time are prefilled in one forward pass; a step then processes their last
tokens again, and samples the first new ones.

A product of a different width rounds differently, so unlike on the CPU, the last bits of a sequence's logits may
depend on how many others run alongside it.

Shapes: B rows of a step, V tokens in the vocabulary.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from clearhead.generate.batch_decoder import GPU_CHUNK, BatchDecoder, ChunkedPrefill, TransformerPrefill
from clearhead.generate.cuda_decoder import cannot_decode, cannot_run, read_later
from clearhead.generate.cuda_step import (
    COLUMNS,
    CudaStep,
    CudaWeights,
    Tuning,
    describe_row,
    make_cache,
)
from clearhead.generate.sampler import Sampler
from clearhead.model.kv_cache import KVCache
from clearhead.model.transformer import Transformer
from clearhead.runtime.cuda_graph import CudaGraph
from clearhead.runtime.device import free_memory

CACHE_SHARE = 2  # the KV cache may take up to the free memory divided by this
MOST_SLOTS = 256
AHEAD = 32  # steps that the rows have random numbers for
MOST_TOGETHER = 2048  # tokens of prompts in one forward pass
SMALLEST = 16  # positions of a context, for the warm-up
WARM_UP = 32  # tokens of a prompt


class CudaBatchDecoder(BatchDecoder):
    """A transformer, a KV cache with a slot per sequence, and a captured graph for each number of rows."""

    def __init__(self, network: Transformer, slots: int, tuning: Tuning | None = None) -> None:
        """Compile and capture everything. Raises any error that occurs."""
        self.network, self.config, self.n_slot = network, network.config, slots
        self.chunk_size, self.max_length, self.full_width = GPU_CHUNK, network.config.n_context, False
        self.most_together = MOST_TOGETHER
        self.weights = CudaWeights(network)
        like = self.weights.embedding
        self.device = like.device
        self.cache = make_cache(network.config, slots + 1, network.config.n_context, like)
        self.widths = [*(2**i for i in range(slots.bit_length()) if 2**i < slots), slots]
        pinned = self.device.type == "cuda"
        self.staged = torch.zeros(slots, COLUMNS, dtype=torch.float64, pin_memory=pinned)
        self.staged[:, 2] = slots  # until a step is requested, rows work on the slot without a sequence
        self.staged_uniforms = torch.zeros(slots, AHEAD, dtype=torch.float64, pin_memory=pinned)
        self.rows, self.uniforms = self.staged.to(self.device), self.staged_uniforms.to(self.device)
        self.sampled = torch.zeros(slots, AHEAD, dtype=torch.long, device=self.device)
        graph = _make_graph(self.device)
        self.batch: _Batch | None = None
        self.steps: dict[int, CudaStep] = {}
        self.replays: dict[int, Callable[[], None]] = {}
        for width in self.widths[::-1]:  # the others fit into the memory that the largest reserves
            self._capture(width, graph, tuning or Tuning())
        if self.device.type == "cuda":  # load the kernels of a prefill, for one prompt and for many
            length = min(WARM_UP, network.config.n_context)
            for count in (1, min(slots, self.most_together // length)):
                self.prefill_together([[0] * length] * count)
            torch.cuda.synchronize(self.device)

    @torch.inference_mode()
    def _capture(self, width: int, graph: CudaGraph | None, tuning: Tuning) -> None:
        self.rows.copy_(self.staged)  # the warm-up starts from there
        rows, uniforms, sampled = self.rows[:width], self.uniforms[:width], self.sampled[:width]
        step = CudaStep(self.weights, rows, self.cache, uniforms, sampled, tuning)

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
    def prefill_together(self, prompts: Sequence[Sequence[int]]) -> list[PrefilledRow]:
        width = max(len(ids) for ids in prompts)
        # A prompt is padded on the right, which no earlier token sees, and with its own last token.
        rows = [[*ids, *[ids[-1]] * (width - len(ids))] for ids in prompts]
        cache = KVCache(self.network.config, len(prompts), width, self.device, self.cache.dtype)
        self.network.hidden_states(torch.tensor(rows, device=self.device), cache=cache)
        return [PrefilledRow(cache, row, len(ids)) for row, ids in enumerate(prompts)]

    @torch.inference_mode()
    def insert(self, slot: int, prefill: ChunkedPrefill) -> None:
        self.batch = None  # what the device does ahead must not reach the new sequence
        if isinstance(prefill, PrefilledRow):
            row, length = prefill.row, prefill.length
        else:
            assert isinstance(prefill, TransformerPrefill)
            row, length = 0, prefill.cache.length
        self.cache[:, :, slot, :, :length] = prefill.cache.data[:, :, row, :, :length]

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
        batch = self.batch
        rows = None if batch is None else batch.find_rows(slots, ids, positions, samplers)
        if batch is None or rows is None:
            rows = list(range(len(slots)))
            batch = self.batch = self._start(slots, ids, positions, samplers)
        if batch.launched == batch.read:
            self._launch(batch)
        reading = read_later(self.sampled[: batch.width, batch.read, None].T)
        if batch.can_continue:
            self._launch(batch)
        [column] = reading()
        batch.take(column)
        found: list[int | Tensor] = []
        for row in rows:
            token, sampler = column[row], batch.samplers[row]
            if sampler is None or token < 0:  # a sampler on the CPU says what is wrong with the logits
                found.append(self.steps[batch.width].logits[row].cpu())
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
        plain = [each if each is not None and each.is_plain else None for each in samplers]
        steps = AHEAD if None not in plain else 1  # otherwise each step waits for a token sampled on the CPU
        greedy, unused = [0.0, 0, 0, 0], [0.0] * steps
        rows = [
            [i, position, slot, 0, *(greedy if sampler is None else describe_row(sampler.sampling))]
            for i, position, slot, sampler in zip(ids, positions, slots, plain, strict=True)
        ]
        rows += [[0, 0, self.n_slot, 0, *greedy]] * (width - len(slots))
        uniforms = [
            unused if sampler is None or sampler.sampling.temperature == 0 else sampler.peek(steps)
            for sampler in plain
        ]
        self.staged.numpy()[:width, : len(rows[0])] = rows
        self.staged_uniforms.numpy()[: len(uniforms), :steps] = uniforms
        self.rows[:width].copy_(self.staged[:width], non_blocking=True)
        self.uniforms[:width].copy_(self.staged_uniforms[:width], non_blocking=True)
        steps = min(steps, int(self.max_length) - max(positions))
        return _Batch(width, slots, ids, positions, plain, steps)


class PrefilledRow:
    """A `ChunkedPrefill` that was completed together with others: its row of their KV cache."""

    logits: Tensor | None = None  # the next step computes them

    def __init__(self, cache: KVCache, row: int, length: int) -> None:
        self.cache, self.row, self.length = cache, row, length

    def run_chunk(self) -> int:
        return 0


class _Batch:
    """The rows that the device is working on: it may be a few steps ahead of what has been read."""

    def __init__(
        self,
        width: int,
        slots: Sequence[int],
        ids: Sequence[int],
        positions: Sequence[int],
        samplers: Sequence[Sampler | None],
        steps: int,
    ) -> None:
        """`samplers` has None for a row whose token is sampled on the CPU; `steps` is how many may be started."""
        self.width, self.steps, self.launched, self.read = width, steps, 0, 0
        self.rows = {slot: row for row, slot in enumerate(slots)}
        self.ids, self.positions, self.samplers = list(ids), list(positions), list(samplers)

    def find_rows(
        self,
        slots: Sequence[int],
        ids: Sequence[int],
        positions: Sequence[int],
        samplers: Sequence[Sampler | None],
    ) -> list[int] | None:
        """The rows of these sequences, which need not be all of the batch; None if the next step is not theirs."""
        if self.read >= self.steps or not self.rows.keys() >= set(slots):
            return None
        rows = [self.rows[slot] for slot in slots]
        same = [self.samplers[row] for row in rows] == list(samplers) and None not in samplers
        same = same and [self.ids[row] for row in rows] == list(ids)
        same = same and [self.positions[row] + self.read for row in rows] == list(positions)
        return rows if same else None

    @property
    def can_continue(self) -> bool:
        """Whether one more step may be started before the last one is read."""
        return self.launched < self.steps

    def take(self, tokens: Sequence[int]) -> None:
        """Note the tokens of all rows."""
        self.ids[:] = tokens[: len(self.ids)]
        self.read += 1


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
