"""One decoding step on CUDA: a token for each of a few sequences, from the last token to the sampled next one.

A `CudaStep` launches the Triton kernels on the weights of a network and the slots of a KV cache. One sequence and
several take different kernels: a product with a vector is bound by latency, one with a few rows by how well it
streams the weights.

Shapes: B sequences of a step, C features, H heads, G key-value heads, D features per head, N chunks of V tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from clearhead.generate.sampling import Sampling
from clearhead.model.block import Block
from clearhead.model.config import Config
from clearhead.model.norm import Norm
from clearhead.model.position import Rotation
from clearhead.model.transformer import Transformer

# Of the table of rows: `cuda_kernels.py` names the first; the last are random numbers for the next steps.
COLUMNS, UNIFORM = 12, 8
FEW_ROWS, MANY_ROWS = 16, 64  # of a tile of a product; tensor cores need 16
MOST_PARTS = 8  # of a product
WeightAndBias = tuple[Tensor, Tensor | None]  # a weight, outputs × inputs, and a bias


@dataclass(frozen=True)
class Tuning:
    """How the work is divided among programs; `bench.gpu` compares choices."""

    # For one sequence.
    outputs: int = 4  # rows of a matrix per program
    head_outputs: int = 4  # of the unembedding
    warps: int = 1
    parts: int = 4  # of the past, for attention
    tile_of_one: tuple[int, int] = (64, 4)  # positions of the past at once, and warps, for attention
    # For several.
    products: Literal["library", "own"] = "own"  # which kernels multiply matrices
    inputs: int = 768  # per part of a product with few outputs
    stages: int = 4  # of the pipeline of a product
    programs: int = 192  # for attention, if these divide the past into more parts than one
    tile: tuple[int, int] = (32, 2)
    # For both.
    chunk: int = 1024  # tokens of the vocabulary per program that scans logits
    scan_warps: int = 4
    early: bool = True  # start a kernel before the previous one ends (Hopper and later)


class CudaWeights:
    """A network's weights in the kernels' layout. Matrices with the same input are concatenated, as copies."""

    def __init__(self, network: Transformer) -> None:
        # The network itself is not kept, so that it can be freed.
        self.config = network.config
        self.embedding = network.embedding.weight.detach()
        self.unembedding = network.unembedding.weight.detach()
        self.final_norm = network.final_norm
        self.blocks = [_BlockWeights(block) for block in network.blocks if isinstance(block, Block)]
        self.addresses = _addresses(network)
        positions = torch.arange(self.config.n_context, device=network.embedding.weight.device)[None]
        learned = network.position
        vectors = network.position_vectors(positions) if learned is None else learned.weight.detach()[None]
        self.position_vectors = vectors
        seen: dict[int, Rotation | None] = {}
        rotations = network.rotations(positions)
        for each in rotations:
            if id(each) not in seen:
                seen[id(each)] = each and (each[0][0].float().contiguous(), each[1][0].float().contiguous())
        # For each block, positions × pairs of features.
        self.rotations = [seen[id(each)] for each in rotations]

    def belong_to(self, network: Transformer) -> bool:
        """Whether the network's parameters are still at the same addresses; their contents may have changed."""
        return self.addresses == _addresses(network)

    @torch.inference_mode()
    def refresh(self) -> None:
        """Copy the weights again: training or an assignment may have changed them."""
        for block in self.blocks:
            block.projections.refresh()
            block.first.refresh()


class CudaStep:
    """The buffers of a step of B sequences and the kernels that fill them. `rows` (B 12) describes the sequences."""

    def __init__(
        self,
        weights: CudaWeights,
        rows: Tensor,
        cache: Tensor,
        uniforms: Tensor,
        sampled: Tensor,
        tuning: Tuning,
    ) -> None:
        """`cache` is blocks 2 slots G positions D; `uniforms` and `sampled` are B × steps."""
        from clearhead.generate import cuda_attention, cuda_kernels, cuda_sampling

        self.kernels, self.attention, self.sampling = cuda_kernels, cuda_attention, cuda_sampling
        self.weights, self.config, self.tuning = weights, weights.config, tuning
        self.rows, self.cache, self.uniforms, self.sampled = rows, cache, uniforms, sampled
        config, self.B = self.config, len(rows)
        self.device, self.dtype = cache.device, cache.dtype
        self.one = self.B == 1 and not config.post_norm
        programs = self.B * config.n_head
        self.parts = tuning.parts if self.B == 1 else min(8, _power(max(1, tuning.programs // programs)))
        # The inputs of a matrix product have the precision of its weights, and so do the outputs of the library.
        library = self.dtype if tuning.products == "library" and not self.one else torch.float32
        self.stream, self.logits = self._empty(config.d_model), self._empty(config.n_vocab)
        self.normed = self._empty(config.d_model, self.dtype)
        # What attention and feed-forward write into the stream, in parts that are still to be added.
        self.branches = [
            torch.zeros(self._count_parts(width), self.B, config.d_model, dtype=library, device=self.device)
            for width in (config.n_head * config.d_head, config.d_hidden)
        ]
        self.projected = self._empty((config.n_head + 2 * config.n_kv_head) * config.d_head, library)
        self.mixed = self._empty(config.n_head * config.d_head, self.dtype)
        self.divided = self._empty(config.n_head * self.parts * (config.d_head + 2))
        self.wide = self._empty(config.d_hidden * (2 if config.gated else 1), self.dtype)
        self.hidden = self._empty(config.d_hidden, self.dtype)
        self.n_chunk = -(-config.n_vocab // tuning.chunk)
        self.highest, self.masses = self._empty(self.n_chunk), self._empty(self.n_chunk, torch.float64)
        self.candidates = self._empty(self.n_chunk * cuda_sampling.KEPT)
        # Programmatic dependent launch, on Hopper and later.
        on_cuda = self.device.type == "cuda"
        self.early = tuning.early and on_cuda and torch.cuda.get_device_capability(self.device) >= (9, 0)

    def _empty(self, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.zeros(self.B, width, dtype=dtype, device=self.device)

    def _options(self, warps: int = 4, **more: int) -> dict[str, Any]:
        """Launch options of a kernel; Triton's interpreter, used without CUDA, takes none."""
        return {"num_warps": warps, "launch_pdl": self.early, **more} if self.device.type == "cuda" else {}

    def run(self, filtered: bool) -> None:
        """Process the last tokens and sample the next; `filtered` applies top_k, top_p and min_p."""
        head, norm, blocks = self.weights.unembedding, self.weights.final_norm, self.weights.blocks
        self._embed()
        if self.one:
            for i, block in enumerate(blocks):
                self._run_block_one(i, block)
            self._linear(self.stream, (head, None), self.logits, norm, outputs=self.tuning.head_outputs)
        else:
            norms = [*(block.norm for block in blocks), norm]
            self._normalize(norms[0])
            for i, block in enumerate(blocks):
                self._run_block(i, block, norms[i + 1])
            self._multiply(self.normed, (head, None), self.logits)
        self.sample(filtered)

    def _embed(self) -> None:
        weights, config = self.weights, self.config
        table, vectors = weights.embedding, weights.position_vectors
        self.kernels.embed[(self.B,)](
            self.rows, table, table if vectors is None else vectors[0], self.stream, config.embedding_scale,
            config.d_model, vectors is not None, self.early, _power(config.d_model), **self._options(),
        )  # fmt: skip

    def _run_block_one(self, i: int, block: _BlockWeights) -> None:
        """One sequence: five kernels, with every norm and addition fused into a product."""
        kind = self.config.feedforward
        self._linear(self.stream, block.projections.matrix, self.projected, block.norm)
        self._attend(i, block)
        if self.config.parallel:  # the feed-forward network reads the stream before the attention is added
            self._linear(self.stream, block.first.matrix, self.hidden, block.norm2, kind)
        self._linear(self.mixed, block.output.matrix, self.stream, add=True, divided=True)
        if not self.config.parallel:
            self._linear(self.stream, block.first.matrix, self.hidden, block.norm2, kind)
        self._linear(self.hidden, block.second.matrix, self.stream, add=True)

    def _run_block(self, i: int, block: _BlockWeights, following: Norm | None) -> None:
        """Several sequences. `normed` already holds the block's norm; in the end, it holds `following`."""
        parallel = self.config.parallel
        self._multiply(self.normed, block.projections.matrix, self.projected)
        self._attend(i, block)
        if parallel:
            self._normalize(block.norm2)
            self._feed_forward(block)
        by_attention, by_feedforward = self.branches
        self._multiply(self.mixed, block.output.matrix, by_attention)
        self._normalize(None if parallel else block.norm2, by_attention, block.attention_norm)
        if not parallel:
            self._feed_forward(block)
        self._multiply(self.hidden, block.second.matrix, by_feedforward)
        self._normalize(following, by_feedforward, block.feedforward_norm)

    def _feed_forward(self, block: _BlockWeights) -> None:
        """The first half of the feed-forward network."""
        if self.tuning.products == "own":
            self._multiply(self.normed, block.first.matrix, self.hidden, self.config.feedforward)
            return
        self._multiply(self.normed, block.first.matrix, self.wide)
        width, kind = self.config.d_hidden, self.kernels.ACTIVATIONS[self.config.feedforward]
        self.kernels.activate_many[(-(-width // 1024), self.B)](
            self.wide, self.hidden, width, kind, self.early, 1024, **self._options()
        )

    def _normalize(
        self, norm: Norm | None, branch: Tensor | None = None, branch_norm: Norm | None = None
    ) -> None:
        """Add a branch (parts B C) to the stream, if there is one, and write the stream's norm, if one is given."""
        C, like = self.config.d_model, self.stream
        kind = self.kernels.NORMS[self.config.norm]
        own = (like, like) if branch_norm is None else _vectors(branch_norm)
        others = (like, like) if norm is None else _vectors(norm)
        self.kernels.normalize[(self.B,)](
            self.stream, like if branch is None else branch, *own, *others, self.normed, self.B, C,
            self.config.norm_epsilon, 0 if branch is None else len(branch), 0 if branch_norm is None else kind,
            0 if norm is None else kind, self.early, _power(C), **self._options(),
        )  # fmt: skip

    def _linear(
        self, x: Tensor, matrix: WeightAndBias, out: Tensor, norm: Norm | None = None, activation: str = "none",
        add: bool = False, divided: bool = False, outputs: int = 0,
    ) -> None:  # fmt: skip
        """out = f(norm(x) Wᵀ + b), or out += …, for one sequence; a `divided` x is the attention's parts."""
        weight, bias = matrix
        N, K, config = out.shape[1], x.shape[1], self.config
        gain, shift = (weight, weight) if norm is None else _vectors(norm)
        outputs = outputs or max(1, self.tuning.outputs // (1 if K <= 2048 else 2 if K <= 4096 else 4))
        if activation in ("swiglu", "geglu"):
            outputs = max(1, outputs // 2)
        self.kernels.linear[(-(-N // outputs),)](
            x, self.divided, weight, weight if bias is None else bias, gain, shift, out, N, K, config.norm_epsilon,
            self.kernels.NORMS["none" if norm is None else config.norm], self.kernels.ACTIVATIONS[activation],
            bias is not None, add, self.parts if divided else 1, config.d_head, self.early, outputs, _power(K),
            **self._options(self.tuning.warps),
        )  # fmt: skip

    def _count_parts(self, K: int) -> int:
        """Into how many parts a product with few outputs and K inputs is divided."""
        return 1 if self.tuning.products == "library" else min(MOST_PARTS, -(-K // self.tuning.inputs))

    def _multiply(self, x: Tensor, matrix: WeightAndBias, out: Tensor, activation: str = "none") -> None:
        """out = f(x Wᵀ + b) for several sequences; `out` may have parts that are still to be added (parts B N)."""
        weight, bias = matrix
        parts = len(out) if out.ndim == 3 else 1
        if self.tuning.products == "library" and out is not self.logits:
            to = out.view(out.shape[-2:])
            if bias is None:
                torch.mm(x, weight.t(), out=to)
            else:
                torch.addmm(bias, x, weight.t(), out=to)
            return
        N, K = out.shape[-1], x.shape[1]
        rows = FEW_ROWS if self.B <= FEW_ROWS else 32 if self.B <= 32 else MANY_ROWS
        outputs = 64 if N > 16384 else 32 if N > 4096 else 16
        self.kernels.linear_many[(-(-N // outputs), -(-self.B // rows), parts)](
            x, weight, weight if bias is None else bias, out, self.B, N, K, self.kernels.ACTIVATIONS[activation],
            bias is not None, parts, self.early, rows, outputs, 64 if self.dtype == torch.float32 else 128,
            **self._options(8 if rows * outputs >= 4096 else 4, num_stages=self.tuning.stages),
        )  # fmt: skip

    def _attend(self, i: int, block: _BlockWeights) -> None:
        config, (keys, values), rotation = self.config, self.cache[i], self.weights.rotations[i]
        cosines, sines = rotation or (self.stream, self.stream)
        gains = block.gains or (self.stream, self.stream)
        window = config.window if i in config.local_blocks else 2**30
        D = _power(config.d_head)
        positions, warps = self.tuning.tile_of_one if self.B == 1 else self.tuning.tile
        self.attention.attend[(self.B, config.n_head, self.parts)](
            self.rows, self.projected, keys, values, *gains, cosines, sines, self.mixed, self.divided,
            1 / math.sqrt(config.d_k), keys.shape[2], window, config.norm_epsilon, config.n_head, config.n_kv_head,
            config.d_head, cosines.shape[1] if rotation else 0, block.gains is not None, self.parts, self.early, D,
            positions // (1 if D <= 64 else 2), **self._options(warps),
        )  # fmt: skip
        if self.parts > 1 and not self.one:
            self.attention.combine[(self.B, config.n_head)](
                self.divided, self.mixed, config.n_head, config.d_head, self.parts, self.early, D,
                **self._options(1),
            )  # fmt: skip

    def sample(self, filtered: bool) -> None:
        """Sample the next tokens from `logits`, and write them to `rows` and `sampled`; -1 stands for broken logits."""
        V, N, early, kernels = self.config.n_vocab, self.n_chunk, self.early, self.sampling
        size, best = self.tuning.chunk, kernels.KEPT
        shared = self.logits, self.rows, self.highest, self.masses, self.candidates
        kernels.scan_logits[(N, self.B)](
            *shared, V, N, filtered, early, size, best, **self._options(self.tuning.scan_warps)
        )
        kernels.pick[(self.B,)](
            *shared, self.uniforms, self.sampled, V, self.sampled.stride(0), N, filtered, early, _power(N), best,
            size, 8192, **self._options(8 if filtered else 4),
        )  # fmt: skip


class _Concatenated:
    """The matrices of a product, one below the other; a single one is the network's own."""

    def __init__(self, *parts: nn.Linear) -> None:
        self.parts = parts
        weights = [part.weight.detach() for part in parts]
        biases = [part.bias.detach() for part in parts if part.bias is not None]
        self.matrix: WeightAndBias = (
            weights[0] if len(parts) == 1 else torch.cat(weights),
            None if not biases else biases[0] if len(parts) == 1 else torch.cat(biases),
        )

    def refresh(self) -> None:
        if len(self.parts) > 1:
            weight, bias = self.matrix
            torch.cat([part.weight for part in self.parts], out=weight)
            if bias is not None:
                torch.cat([part.bias for part in self.parts], out=bias)


class _BlockWeights:
    def __init__(self, block: Block) -> None:
        attention, feedforward = block.attention, block.feedforward
        self.norm, self.norm2, self.attention_norm, self.feedforward_norm = (
            each if isinstance(each, Norm) else None
            for each in (block.norm, block.norm2, block.attention_norm, block.feedforward_norm)
        )
        self.projections = _Concatenated(attention.query, attention.key, attention.value)
        self.output, self.second = _Concatenated(attention.output), _Concatenated(feedforward.second)
        gates = [] if feedforward.gate is None else [feedforward.gate]
        self.first = _Concatenated(feedforward.first, *gates)
        norms = attention.query_norm, attention.key_norm
        self.gains = None if norms[0] is None or norms[1] is None else (norms[0].gain, norms[1].gain)


def describe_row(sampling: Sampling) -> list[float]:
    """The columns of a row from the fifth to the eighth: temperature, top_k, top_p, min_p."""
    return [sampling.temperature, sampling.top_k or 0, sampling.top_p or 0, sampling.min_p or 0]


def is_filtered(sampling: Sampling) -> bool:
    return sampling.temperature > 0 and any(describe_row(sampling)[1:])


def make_cache(config: Config, slots: int, size: int, like: Tensor) -> Tensor:
    """A KV cache: blocks 2 slots G positions D."""
    shape = (config.n_block, 2, slots, config.n_kv_head, size, config.d_head)
    return torch.zeros(shape, dtype=like.dtype, device=like.device)


def _vectors(norm: Norm) -> tuple[Tensor, Tensor]:
    return norm.gain.detach(), (norm.gain if norm.shift is None else norm.shift).detach()


def _addresses(network: nn.Module) -> tuple[object, ...]:
    return tuple((each.data_ptr(), each.dtype, each.device, each.shape) for each in network.parameters())


def _power(count: int) -> int:
    """The smallest power of two that is at least `count`."""
    return 1 << (count - 1).bit_length()
