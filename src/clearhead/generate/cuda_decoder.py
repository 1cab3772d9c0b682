"""The quick way of writing on, for CUDA: words are drawn on the device, and a step is one recorded graph.

The CPU takes no part in a step, and only now and then asks what was written. Not yet what `generate` uses: it
is held to the plain way by tests, and still to be measured (`bench.generate`). For plain draws alone: what
looks at more than the logits of a word (penalties, grammars, log-probabilities) is for `continuation.py`.

Shapes: B samples of one prompt, C features, H heads, G shared heads, D features a head, V words.
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

LEAST_TOKENS = 64  # fewer are drawn before a graph is recorded
MOST_SAMPLES = 256
MOST_WORDS = 2**17  # of a vocabulary, of which a text's logits are held at once
MANY_WORDS = 4096  # of which a program takes more at a time, since there are programs enough
GLIMPSE = 32  # words are written between two looks


def supports(network: object, sampling: Sampling, length: int, tokens: int, samples: int) -> bool:
    """Whether so many words after a prompt so long can be written this way, and are worth it."""
    if not isinstance(network, Transformer) or importlib.util.find_spec("triton") is None:
        return False
    config, device = network.config, network.embedding.weight.device
    usual = not (config.parallel or config.post_norm or config.local_blocks) and config.causal
    fits = length + tokens <= config.n_context and samples <= MOST_SAMPLES and config.n_vocab <= MOST_WORDS
    return device.type == "cuda" and tokens >= LEAST_TOKENS and is_plain(sampling) and usual and fits


def is_plain(sampling: Sampling) -> bool:
    """Whether a word's logits, the temperature, `top_k` and `min_p` are all that counts."""
    return sampling == Sampling(sampling.temperature, sampling.top_k, None, sampling.min_p)


def quick_continuations(
    network: Transformer, prompt: Sequence[int], sampling: Sampling, drawers: Sequence[Sampler], tokens: int
) -> Iterator[list[SampledToken]]:
    """The next word of every sample, `tokens` times; the drawers' chance decides, as it would elsewhere."""
    numbers = torch.stack([drawer.numbers(tokens) for drawer in drawers])
    quick = QuickSteps(network, len(drawers), len(prompt) + tokens, sampling)
    quick.begin(prompt, numbers)
    for start in range(0, tokens, GLIMPSE):
        count = min(GLIMPSE, tokens - start)
        for _ in range(count if start else count - 1):
            quick.step()
        quick.check()
        for column in quick.written[:, start : start + count].T.tolist():
            yield [drawer.take(i) for drawer, i in zip(drawers, column, strict=True)]


class QuickSteps:
    """A network's weights laid out for it, and room for `samples` texts of `size` words."""

    def __init__(self, network: Transformer, samples: int, size: int, sampling: Sampling) -> None:
        from clearhead.generate import cuda_kernels as kernels

        self.kernels, self.network, self.sampling = kernels, network, sampling
        self.config: Config = network.config
        self.samples, self.size = samples, size
        weight = network.embedding.weight
        self.device, self.dtype = weight.device, weight.dtype
        self.cache = KVCache(self.config, samples, size, self.device, self.dtype)
        self.blocks = [_BlockWeights(block) for block in network.blocks if isinstance(block, Block)]
        everywhere = torch.arange(size, device=self.device)[None]
        self.places = network.position_vectors(everywhere)
        rotation = network.rotations(everywhere)[0]
        self.rotation = None if rotation is None else [part[0].float().contiguous() for part in rotation]
        config = self.config
        self.stream, self.logits = self._room(config.d_model), self._room(config.n_vocab)
        self.projected = self._room((config.n_head + 2 * config.n_kv_head) * config.d_head)
        # What only a product reads is as exact as its weights.
        self.mixed = self._room(config.n_head * config.d_head, self.dtype)
        self.hidden = self._room(config.d_hidden, self.dtype)
        # From Hopper on a kernel may start before the one that it waits for has ended.
        self.early = self.device.type == "cuda" and torch.cuda.get_device_capability(self.device) >= (9, 0)
        self.ids, self.positions = (
            torch.zeros(samples, dtype=torch.long, device=self.device) for _ in range(2)
        )
        self.rows = min(64, max(16, _power(samples)))  # a program takes, where there are many texts
        self.first, self.steps = 0, 0
        self.written, self.numbers = torch.empty(0), torch.empty(0)
        self.step: Callable[[], None] = self._step

    def _room(self, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(self.samples, width, dtype=dtype, device=self.device)

    def _options(self, warps: int = 4) -> dict[str, Any]:
        """How a kernel is started; the interpreter, which there is without CUDA, takes none."""
        return {"num_warps": warps, "launch_pdl": self.early} if self.device.type == "cuda" else {}

    @torch.inference_mode()
    def begin(self, prompt: Sequence[int], numbers: Tensor) -> None:
        """Read the prompt and draw the first words; `numbers` (B steps) are what chance has for each."""
        self.first, self.steps = len(prompt), numbers.shape[1]
        self.numbers = numbers.to(self.device)
        self.written = torch.zeros(numbers.shape, dtype=torch.long, device=self.device)
        read = KVCache(self.config, 1, self.first, self.device, self.dtype)
        final = self.network.hidden_states(torch.tensor([list(prompt)], device=self.device), cache=read)
        self.cache.data[:, :, :, :, : self.first] = read.data
        self.logits.copy_(self.network.unembedding(final[0, -1:]).float().expand_as(self.logits))
        self.positions.fill_(self.first - 1)
        self._draw()
        if self.device.type == "cuda":
            kept = self.ids.clone(), self.positions.clone()
            recording = CudaGraph(self.device)
            replay = recording.capture(self._step, warm_up=self._step)
            self.ids.copy_(kept[0])  # warming up drew words too
            self.positions.copy_(kept[1])
            self.step = replay

    def check(self) -> None:
        """Whether the last words were drawn from numbers."""
        if not self.logits.isfinite().all():
            raise UserError("a logit is infinite or not a number: no word can be drawn; load it in float32")

    def _step(self) -> None:
        """Read the last words drawn, and draw the next."""
        config, network = self.config, self.network
        block = _power(config.d_model)
        self.kernels.embed[(self.samples,)](
            self.ids,
            self.positions,
            network.embedding.weight,
            network.embedding.weight if self.places is None else self.places[0],
            self.stream,
            config.embedding_scale,
            config.d_model,
            self.places is not None,
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
        self._draw()

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
            words = _words_a_program(N, K)
            self.kernels.linear[(-(-N // words),)](
                x, weight, *vectors, out, N, *chosen, words, _power(K), **self._options()
            )
        else:
            rows, words = self.rows, 16 if N <= MANY_WORDS else 64
            self.kernels.linear_many[(-(-N // words), -(-self.samples // rows))](
                x,
                weight,
                *vectors,
                out,
                self.samples,
                N,
                *chosen,
                rows,
                words,
                64,
                **self._options(8 if rows == 64 else 4),
            )

    def _attend(self, i: int, weights: _BlockWeights) -> None:
        config, room = self.config, self.cache.data[i]
        cosines, sines = self.rotation or (self.stream, self.stream)
        gains = weights.gains or (self.stream, self.stream)
        reach, warps = (256, 16) if self.samples == 1 else (64, 4)  # few programs, or many
        self.kernels.attend[(self.samples, config.n_head)](
            self.projected,
            room[0],
            room[1],
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
            min(_power(self.size), reach),
            **self._options(warps),
        )

    def _draw(self) -> None:
        sampling, V = self.sampling, self.config.n_vocab
        block = _power(V)
        self.kernels.draw[(self.samples,)](
            self.logits,
            self.numbers,
            self.ids,
            self.positions,
            self.written,
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
    """A block's matrices as the kernels want them: those of one product in one piece."""

    def __init__(self, block: Block) -> None:
        attention, feedforward = block.attention, block.feedforward
        self.norm, self.norm2 = block.norm, block.norm2
        self.projections = _joined(attention.query, attention.key, attention.value)
        self.output = _joined(attention.output)
        gate = feedforward.gate
        self.first = _joined(feedforward.first) if gate is None else _joined(feedforward.first, gate)
        self.second = _joined(feedforward.second)
        norms = attention.query_norm, attention.key_norm
        self.gains = None if norms[0] is None or norms[1] is None else (norms[0].gain, norms[1].gain)


def _joined(*parts: Any) -> tuple[Tensor, Tensor | None]:
    weights, biases = [part.weight.detach() for part in parts], [part.bias for part in parts]
    weight = weights[0] if len(weights) == 1 else torch.cat(weights)
    return weight, None if biases[0] is None else torch.cat([bias.detach() for bias in biases])


def _power(count: int) -> int:
    """The power of two that holds so many."""
    return 2 ** math.ceil(math.log2(count))


def _words_a_program(N: int, K: int) -> int:
    """Rows of a matrix: programs enough for all processors, and of long rows few."""
    return 4 if K > 2048 else 8 if N <= 1024 else 16
