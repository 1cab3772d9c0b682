"""Decoding on CUDA: tokens are sampled on the device, and a step is one CUDA graph.

The CPU takes no part in a step; it reads the tokens of a few steps while the next few run. Captured graphs and the
weights in the kernels' layout are kept for the next request with the same network. What the kernels do not
support is decoded by `generation.py` without them: `why_not` says why.

Shapes: B samples of one prompt.
"""

from __future__ import annotations

import importlib.util
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor, nn

from clearhead.errors import UserError
from clearhead.generate.cuda_step import (
    COLUMNS,
    UNIFORM,
    CudaStep,
    CudaWeights,
    Tuning,
    describe_row,
    is_filtered,
    make_cache,
)
from clearhead.generate.sampler import SampledToken, Sampler
from clearhead.generate.sampling import Sampling
from clearhead.model.block import Block
from clearhead.model.config import Config
from clearhead.model.kv_cache import KVCache
from clearhead.model.norm import Norm
from clearhead.model.transformer import Transformer
from clearhead.runtime.cuda_graph import CudaGraph
from clearhead.runtime.device import can_compile, memory_of

MIN_TOKENS = 64  # capturing a graph does not pay off for fewer
MAX_BATCH = 256
MAX_VOCAB = 2**17  # a program holds the highest logits of all chunks
MAX_WIDTH = 2**14  # a program holds a whole row of a matrix
MOST_KEPT = 4  # decoders
KEPT_SHARE = 8  # KV caches of kept decoders may take up to the device's memory divided by this
SMALLEST = (
    512  # positions of a KV cache; more in powers of two, so that prompts of similar length share a graph
)
SYNC_EVERY = 16  # tokens between two reads by the CPU
Replay = Callable[[], None]
NOT_A_TRANSFORMER = "the model is not a single transformer"
BROKEN = "a logit is infinite or not a number, so no token can be sampled: load the model in float32"


def cannot_run(device: torch.device) -> str | None:
    """Why no network can be decoded by the kernels on a device; None if they can."""
    if device.type != "cuda":
        return "the model is not on a CUDA GPU"
    if device.index not in (None, 0):
        return "the model is not on the first GPU"
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed"
    if not can_compile(device):
        return "no C compiler was found, which Triton needs"
    if torch.cuda.get_device_capability(device) < (8, 0):
        return "the GPU is too old for the kernels, which require compute capability 8.0"
    return None


def cannot_decode_config(config: object) -> str | None:
    """Why the kernels cannot decode with networks of this config; None if they can."""
    if not isinstance(config, Config):
        return NOT_A_TRANSFORMER
    if not config.causal:
        return "the model is bidirectional"
    if config.capped:
        return "the model caps its scores or logits"
    if not config.pre_norm or config.qk_norm_joint:
        return (
            "the model has no norms before attention and feed-forward, or a QK-norm over all heads together"
        )
    if max(config.d_model, config.d_hidden, config.n_head * config.d_head) > MAX_WIDTH or config.d_head > 256:
        return "the model is too wide"
    if config.n_vocab > MAX_VOCAB:
        return f"the vocabulary has more than {MAX_VOCAB:,} tokens"
    return None


def cannot_decode(network: object) -> str | None:
    """Why the kernels cannot decode with a network, wherever it is; None if they can."""
    if type(network) is not Transformer:
        return NOT_A_TRANSFORMER
    reason = cannot_decode_config(network.config)
    if reason is not None:
        return reason
    if network.training:
        return "the model is being trained"
    known = (Transformer, Block, Norm, nn.Linear, nn.Embedding, nn.ModuleList, nn.Dropout, nn.Identity)
    for module in network.modules():
        plain = type(module) in known or type(module).__module__.startswith("clearhead.model.")
        if not plain:
            return f"some weights are stored differently ({type(module).__name__})"
        if module._forward_hooks or module._forward_pre_hooks:
            return "a hook watches or changes what the model computes"
    dtypes = {parameter.dtype for parameter in network.parameters()}
    if len(dtypes) > 1 or not dtypes <= {torch.float32, torch.bfloat16, torch.float16}:
        return "the weights are not all float32, bfloat16 or float16"
    return None


def why_not(network: object, sampling: Sampling, samples: int = 1) -> str | None:
    """Why a request cannot be decoded here; None if it can."""
    if not is_plain(sampling):
        return "penalties, logit_bias, constraints and log_probabilities are applied on the CPU"
    if samples > MAX_BATCH:
        return f"more than {MAX_BATCH} samples"
    return cannot_decode(network) or (
        cannot_run(network.embedding.weight.device) if isinstance(network, Transformer) else None
    )


def is_plain(sampling: Sampling) -> bool:
    """Whether only the temperature, `top_k`, `top_p` and `min_p` are set."""
    return sampling == Sampling(sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p)


class CudaDecoder:
    """A network's weights and a KV cache for `samples` sequences of `size` tokens."""

    def __init__(self, weights: CudaWeights, samples: int, size: int, tuning: Tuning | None = None) -> None:
        like = weights.embedding
        self.weights, self.samples, self.size, self.device = weights, samples, size, like.device
        self.cache = make_cache(weights.config, samples, size, like)
        self.rows = torch.zeros(samples, COLUMNS, dtype=torch.float64, device=self.device)
        self.uniforms = torch.zeros(samples, size, dtype=torch.float64, device=self.device)
        self.sampled = torch.zeros(samples, size, dtype=torch.long, device=self.device)
        self.step = CudaStep(weights, self.rows, self.cache, self.uniforms, self.sampled, tuning or Tuning())
        self.graph = CudaGraph(self.device) if self.device.type == "cuda" else None
        self.replays: dict[bool, Replay] = {}  # with and without filters
        self.decode_one: Replay = lambda: None

    @property
    def bytes(self) -> int:
        return self.cache.nbytes

    @torch.inference_mode()
    def prepare(self, filtered: bool) -> None:
        """Compile the kernels and capture a step. Raises any error that occurs; nothing has been sampled yet."""

        def work() -> None:
            self.step.run(filtered)

        if filtered not in self.replays:
            self._write_rows(0, Sampling(temperature=0))  # the warm-up runs from there
            if self.graph is None:
                self.replays[filtered] = work
            else:
                self.replays[filtered] = self.graph.capture(work, warm_up=work, error_mode="thread_local")
                torch.cuda.synchronize(self.device)
        self.decode_one = self.replays[filtered]

    @torch.inference_mode()
    def prefill(
        self, network: Transformer, prompt: Sequence[int], sampling: Sampling, uniforms: Tensor
    ) -> None:
        """Process the prompt and sample the first tokens; `uniforms` (B steps) are the random numbers."""
        first, config = len(prompt), self.weights.config
        self.weights.refresh()
        self.uniforms[:, : uniforms.shape[1]] = uniforms.to(self.device)
        cache = KVCache(config, 1, first, self.device, self.cache.dtype)
        final = network.hidden_states(torch.tensor([list(prompt)], device=self.device), cache=cache)
        self.cache[:, :, :, :, :first] = cache.data
        self.step.logits.copy_(network.unembed(final[0, -1:]).float().expand_as(self.step.logits))
        self._write_rows(first - 1, sampling)
        self.step.sample(is_filtered(sampling))

    def _write_rows(self, position: int, sampling: Sampling) -> None:
        """Put every sample at this position, with no tokens sampled yet."""
        unused = [0.0] * (COLUMNS - UNIFORM)
        rows = [[0, position, b, 0, *describe_row(sampling), *unused] for b in range(self.samples)]
        self.rows.copy_(torch.tensor(rows, dtype=torch.float64))

    def fetch(self, start: int, count: int) -> Callable[[], list[list[int]]]:
        """Start copying `count` tokens of every sample; calling the result waits for them and returns count × B ids."""
        return read_later(self.sampled[:, start : start + count].T)


def read_later(tokens: Tensor) -> Callable[[], list[list[int]]]:
    """Start copying sampled tokens to the CPU; calling the result waits for them, but not for work started later."""
    if tokens.device.type != "cuda":
        copy = tokens.clone()
        return copy.tolist
    copy = tokens.contiguous().to("cpu", non_blocking=True)
    copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
    copied.record(torch.cuda.current_stream(tokens.device))

    def read() -> list[list[int]]:
        copied.synchronize()
        return copy.tolist()

    return read


class DecoderPool:
    """Decoders that are kept for the next request: at most `most`, with KV caches of at most `most_bytes`."""

    def __init__(
        self,
        make: Callable[[CudaWeights, int, int], CudaDecoder] = CudaDecoder,
        lay_out: Callable[[Transformer], CudaWeights] = CudaWeights,
        most: int = MOST_KEPT,
        most_bytes: int | None = None,
    ) -> None:
        self.make, self.lay_out, self.most, self.most_bytes = make, lay_out, most, most_bytes
        self.weights: WeakKeyDictionary[Transformer, CudaWeights] = WeakKeyDictionary()
        self.failures: WeakKeyDictionary[Transformer, str] = WeakKeyDictionary()
        self.idle: list[tuple[ref[Transformer], CudaDecoder]] = []  # the least recently used first
        self.lock = threading.Lock()

    def holds(self, network: Transformer, samples: int, size: int) -> bool:
        """Whether a decoder of this shape is ready."""
        with self.lock:
            return self._find(network, samples, size) is not None

    @contextmanager
    def borrow(
        self, network: Transformer, samples: int, size: int, filtered: bool
    ) -> Iterator[CudaDecoder | None]:
        """Lend a decoder that is ready to run; None, after one warning, if the device cannot run one."""
        decoder = self._take(network, samples, size, filtered)
        try:
            yield decoder
        finally:
            if decoder is not None:
                with self.lock:
                    self.idle.append((ref(network), decoder))
                    self._trim()

    def _take(self, network: Transformer, samples: int, size: int, filtered: bool) -> CudaDecoder | None:
        with self.lock:
            if network in self.failures:
                return None
            try:
                weights = self.weights.get(network)
                if weights is None or not weights.belong_to(network):
                    weights = self.weights[network] = self.lay_out(network)
                self._trim()
                i = self._find(network, samples, size)
                decoder = self.make(weights, samples, size) if i is None else self.idle.pop(i)[1]
                decoder.prepare(filtered)
            except Exception as error:  # compiling and capturing depend on drivers and libraries
                reason = (str(error) or type(error).__name__).splitlines()[0][:200]
                self.failures[network] = reason
                warnings.warn(f"generating slowly, without CUDA graphs: {reason}", stacklevel=2)
                return None
            return decoder

    def _find(self, network: Transformer, samples: int, size: int) -> int | None:
        for i, (owner, decoder) in enumerate(self.idle):
            fits = decoder.samples == samples and decoder.size == size
            if owner() is network and fits and decoder.weights.belong_to(network):
                return i
        return None

    def _trim(self) -> None:
        """Drop the decoders of networks that are gone or have new weights, and then the least recently used."""
        self.idle = [
            (owner, decoder)
            for owner, decoder in self.idle
            if (network := owner()) is not None and decoder.weights is self.weights.get(network)
        ]
        while self.idle and (len(self.idle) > self.most or self._used() > self._limit()):
            self.idle.pop(0)

    def _used(self) -> int:
        return sum(decoder.bytes for _, decoder in self.idle)

    def _limit(self) -> int:
        if self.most_bytes is not None:
            return self.most_bytes
        return (memory_of(self.idle[0][1].device) or 0) // KEPT_SHARE


POOL = DecoderPool()


def cache_size(network: Transformer, length: int) -> int:
    """The positions of a KV cache for this many tokens, rounded up."""
    return min(network.config.n_context, max(SMALLEST, 1 << (length - 1).bit_length()))


def generate_tokens(
    network: Transformer,
    prompt: Sequence[int],
    sampling: Sampling,
    samplers: Sequence[Sampler],
    tokens: int,
    pool: DecoderPool = POOL,
) -> Iterator[list[SampledToken]]:
    """Yield the next token of every sample, `tokens` times, sampled with the samplers' random numbers.

    Yields nothing if the device cannot run the kernels; in that case, nothing has been drawn from the samplers.
    """
    size = cache_size(network, len(prompt) + tokens)
    with pool.borrow(network, len(samplers), size, is_filtered(sampling)) as decoder:
        if decoder is None:
            return
        uniforms = torch.stack([sampler.uniforms(tokens) for sampler in samplers])
        decoder.prefill(network, prompt, sampling, uniforms)
        ready, start = decoder.fetch(0, 1), 1
        while True:
            count = min(SYNC_EVERY, tokens - start)
            for _ in range(count):  # the device works on these while the CPU reads the previous ones
                decoder.decode_one()
            following = decoder.fetch(start, count) if count else None
            for column in ready():
                if -1 in column:
                    raise UserError(BROKEN)
                yield [sampler.accept(i) for sampler, i in zip(samplers, column, strict=True)]
            if following is None:
                return
            ready, start = following, start + count


def can_generate(
    network: object, sampling: Sampling, length: int, tokens: int, samples: int, pool: DecoderPool = POOL
) -> bool:
    """Whether to decode here: the kernels can, and a graph is ready or worth capturing."""
    if why_not(network, sampling, samples) is not None or not isinstance(network, Transformer):
        return False
    tokens = min(tokens, network.config.n_context - length)
    return tokens >= MIN_TOKENS or (
        tokens > 0 and pool.holds(network, samples, cache_size(network, length + tokens))
    )
