"""Decoding on CUDA: tokens are sampled on the device, and a step is one CUDA graph.

The CPU takes no part in a step and only fetches the tokens from time to time. `LanguageModel.generate` does not
use this decoder yet: tests check that it matches the plain loop, and `bench.generate` measures it. It supports
plain sampling only; penalties, constraints and log-probabilities need `generation.py`.

Shapes: B samples of one prompt, C features, H heads, G key-value heads, D features per head, V tokens in the
vocabulary.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.generate.sampler import SampledToken, Sampler
from clearhead.generate.sampling import Sampling
from clearhead.model.block import Block
from clearhead.model.config import Config
from clearhead.model.kv_cache import KVCache
from clearhead.model.norm import Norm
from clearhead.model.transformer import Transformer
from clearhead.runtime.cuda_graph import CudaGraph

MIN_TOKENS = 64  # capturing a graph does not pay off for fewer
MAX_BATCH = 256
MAX_VOCAB = 2**17  # a program holds all logits of a sample at once
MANY_OUTPUTS = 4096  # with more output features than this, each program computes more of them
SYNC_EVERY = 32  # tokens generated between two reads by the CPU


def supports(network: object, sampling: Sampling, length: int, tokens: int, samples: int) -> bool:
    """Whether this decoder can generate `tokens` after a prompt of this length, and is worth its setup."""
    if not isinstance(network, Transformer) or importlib.util.find_spec("triton") is None:
        return False
    config, device = network.config, network.embedding.weight.device
    plain = not (config.parallel or config.post_norm or config.local_blocks) and config.causal
    fits = length + tokens <= config.n_context and samples <= MAX_BATCH and config.n_vocab <= MAX_VOCAB
    return device.type == "cuda" and tokens >= MIN_TOKENS and is_plain(sampling) and plain and fits


def is_plain(sampling: Sampling) -> bool:
    """Whether only the temperature, `top_k` and `min_p` are set."""
    return sampling == Sampling(sampling.temperature, sampling.top_k, None, sampling.min_p)


def generate_tokens(
    network: Transformer, prompt: Sequence[int], sampling: Sampling, samplers: Sequence[Sampler], tokens: int
) -> Iterator[list[SampledToken]]:
    """Yield the next token of every sample, `tokens` times, sampled with the samplers' random numbers."""
    uniforms = torch.stack([sampler.uniforms(tokens) for sampler in samplers])
    decoder = CudaDecoder(network, len(samplers), len(prompt) + tokens, sampling)
    decoder.prefill(prompt, uniforms)
    for start in range(0, tokens, SYNC_EVERY):
        count = min(SYNC_EVERY, tokens - start)
        for _ in range(count if start else count - 1):
            decoder.decode_one()
        decoder.check()
        for column in decoder.sampled[:, start : start + count].T.tolist():
            yield [sampler.accept(i) for sampler, i in zip(samplers, column, strict=True)]


class CudaDecoder:
    """A network's weights in the kernels' layout, and a KV cache for `samples` sequences of `size` tokens."""

    def __init__(self, network: Transformer, samples: int, size: int, sampling: Sampling) -> None:
        from clearhead.generate import cuda_kernels as kernels

        self.kernels, self.network, self.sampling = kernels, network, sampling
        self.config: Config = network.config
        self.samples, self.size = samples, size
        weight = network.embedding.weight
        self.device, self.dtype = weight.device, weight.dtype
        self.cache = KVCache(self.config, samples, size, self.device, self.dtype)
        self.blocks = [_BlockWeights(block) for block in network.blocks if isinstance(block, Block)]
        positions = torch.arange(size, device=self.device)[None]
        self.position_vectors = network.position_vectors(positions)
        rotation = network.rotations(positions)[0]
        self.rotation = None if rotation is None else [part[0].float().contiguous() for part in rotation]
        config = self.config
        self.stream, self.logits = self._empty(config.d_model), self._empty(config.n_vocab)
        self.projected = self._empty((config.n_head + 2 * config.n_kv_head) * config.d_head)
        # Inputs of a matrix product have the precision of its weights.
        self.mixed = self._empty(config.n_head * config.d_head, self.dtype)
        self.hidden = self._empty(config.d_hidden, self.dtype)
        # Programmatic dependent launch, on Hopper and later: a kernel starts before the previous one has ended.
        self.early = self.device.type == "cuda" and torch.cuda.get_device_capability(self.device) >= (9, 0)
        self.ids, self.positions = (
            torch.zeros(samples, dtype=torch.long, device=self.device) for _ in range(2)
        )
        self.rows = min(64, max(16, _power(samples)))  # per program, if there are several samples
        self.first, self.steps = 0, 0
        self.sampled, self.uniforms = torch.empty(0), torch.empty(0)
        self.decode_one: Callable[[], None] = self._step

    def _empty(self, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(self.samples, width, dtype=dtype, device=self.device)

    def _options(self, warps: int = 4) -> dict[str, Any]:
        """Launch options of a kernel; Triton's interpreter, used without CUDA, takes none."""
        return {"num_warps": warps, "launch_pdl": self.early} if self.device.type == "cuda" else {}

    @torch.inference_mode()
    def prefill(self, prompt: Sequence[int], uniforms: Tensor) -> None:
        """Process the prompt and sample the first tokens; `uniforms` (B steps) are the random numbers."""
        self.first, self.steps = len(prompt), uniforms.shape[1]
        self.uniforms = uniforms.to(self.device)
        self.sampled = torch.zeros(uniforms.shape, dtype=torch.long, device=self.device)
        cache = KVCache(self.config, 1, self.first, self.device, self.dtype)
        final = self.network.hidden_states(torch.tensor([list(prompt)], device=self.device), cache=cache)
        self.cache.data[:, :, :, :, : self.first] = cache.data
        self.logits.copy_(self.network.unembedding(final[0, -1:]).float().expand_as(self.logits))
        self.positions.fill_(self.first - 1)
        self._sample()
        if self.device.type == "cuda":
            ids, positions = self.ids.clone(), self.positions.clone()
            replay = CudaGraph(self.device).capture(self._step, warm_up=self._step)
            self.ids.copy_(ids)  # the warm-up has sampled tokens too
            self.positions.copy_(positions)
            self.decode_one = replay

    def check(self) -> None:
        """Raise UserError if the last tokens were sampled from logits that are not finite."""
        if not self.logits.isfinite().all():
            raise UserError(
                "a logit is infinite or not a number, so no token can be sampled: load the model in float32"
            )

    def _step(self) -> None:
        """Process the last sampled tokens and sample the next."""
        config, network = self.config, self.network
        block = _power(config.d_model)
        self.kernels.embed[(self.samples,)](
            self.ids,
            self.positions,
            network.embedding.weight,
            network.embedding.weight if self.position_vectors is None else self.position_vectors[0],
            self.stream,
            config.embedding_scale,
            config.d_model,
            self.position_vectors is not None,
            self.early,
            block,
            **self._options(),
        )
        for i, weights in enumerate(self.blocks):
            self._linear(self.stream, weights.projections, self.projected, weights.norm)
            self._attend(i, weights)
            self._linear(self.mixed, weights.output, self.stream, add=True)
            self._linear(self.stream, weights.first, self.hidden, weights.norm2, config.feedforward)
            self._linear(self.hidden, weights.second, self.stream, add=True)
        self._linear(self.stream, (network.unembedding.weight, None), self.logits, network.final_norm)
        self._sample()

    def _linear(
        self,
        x: Tensor,
        matrix: tuple[Tensor, Tensor | None],
        out: Tensor,
        norm: Norm | None = None,
        activation: str = "none",
        add: bool = False,
    ) -> None:
        weight, bias = matrix
        N, K = out.shape[1], x.shape[1]
        vectors = (
            weight if bias is None else bias,
            weight if norm is None else norm.gain,
            weight if norm is None or norm.shift is None else norm.shift,
        )
        chosen = (
            K,
            self.config.norm_epsilon,
            self.kernels.NORMS["none" if norm is None else self.config.norm],
            self.kernels.ACTIVATIONS[activation],
            bias is not None,
            add,
            self.early,
        )
        if self.samples == 1:
            outputs = _outputs_per_program(N, K)
            self.kernels.linear[(-(-N // outputs),)](
                x, weight, *vectors, out, N, *chosen, outputs, _power(K), **self._options()
            )
        else:
            rows, outputs = self.rows, 16 if N <= MANY_OUTPUTS else 64
            self.kernels.linear_many[(-(-N // outputs), -(-self.samples // rows))](
                x,
                weight,
                *vectors,
                out,
                self.samples,
                N,
                *chosen,
                rows,
                outputs,
                64,
                **self._options(8 if rows == 64 else 4),
            )

    def _attend(self, i: int, weights: _BlockWeights) -> None:
        config, (keys, values) = self.config, self.cache.data[i]
        cosines, sines = self.rotation or (self.stream, self.stream)
        gains = weights.gains or (self.stream, self.stream)
        span, warps = (256, 16) if self.samples == 1 else (64, 4)  # few programs, or many
        self.kernels.attend[(self.samples, config.n_head)](
            self.projected,
            keys,
            values,
            self.positions,
            *gains,
            cosines,
            sines,
            self.mixed,
            1 / math.sqrt(config.d_k),
            self.size,
            config.norm_epsilon,
            config.n_head,
            config.n_kv_head,
            config.d_head,
            cosines.shape[1] if self.rotation else 0,
            weights.gains is not None,
            self.early,
            _power(config.d_head),
            min(_power(self.size), span),
            **self._options(warps),
        )

    def _sample(self) -> None:
        sampling, V = self.sampling, self.config.n_vocab
        block = _power(V)
        self.kernels.sample[(self.samples,)](
            self.logits,
            self.uniforms,
            self.ids,
            self.positions,
            self.sampled,
            self.first,
            self.steps,
            V,
            min(sampling.top_k or V, V),
            max(sampling.temperature, 1e-30),
            math.log(sampling.min_p) if sampling.min_p else -math.inf,
            sampling.temperature == 0,
            sampling.top_k is not None,
            bool(sampling.min_p),
            self.early,
            block,
            min(block, 4096),
            **self._options(32),
        )


class _BlockWeights:
    """A block's matrices in the kernels' layout: those of one product concatenated."""

    def __init__(self, block: Block) -> None:
        attention, feedforward = block.attention, block.feedforward
        self.norm, self.norm2 = block.norm, block.norm2
        self.projections = _concatenate(attention.query, attention.key, attention.value)
        self.output = _concatenate(attention.output)
        gate = feedforward.gate
        self.first = (
            _concatenate(feedforward.first) if gate is None else _concatenate(feedforward.first, gate)
        )
        self.second = _concatenate(feedforward.second)
        norms = attention.query_norm, attention.key_norm
        self.gains = None if norms[0] is None or norms[1] is None else (norms[0].gain, norms[1].gain)


def _concatenate(*parts: Any) -> tuple[Tensor, Tensor | None]:
    weights, biases = [part.weight.detach() for part in parts], [part.bias for part in parts]
    weight = weights[0] if len(weights) == 1 else torch.cat(weights)
    return weight, None if biases[0] is None else torch.cat([bias.detach() for bias in biases])


def _power(count: int) -> int:
    """Return the smallest power of two that is at least `count`."""
    return 2 ** math.ceil(math.log2(count))


def _outputs_per_program(N: int, K: int) -> int:
    """Return how many rows of a matrix a program takes: few enough that all multiprocessors are occupied."""
    return 4 if K > 2048 else 8 if N <= 1024 else 16
