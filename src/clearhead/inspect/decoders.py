"""Decoders for generation that record a trace or apply edits at every step.

Shapes: N samples, T positions, C features of the stream, V tokens in the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.base_trace import UNNAMED
from clearhead.inspect.block_steps import BlockSteps
from clearhead.inspect.edits import Edits
from clearhead.inspect.residual_trace import ResidualStream
from clearhead.inspect.trace import Trace
from clearhead.model.block import Block
from clearhead.model.kv_cache import BlockKVCache, KVCache
from clearhead.model.mask import AttentionMask
from clearhead.model.position import Rotation
from clearhead.model.transformer import Transformer
from clearhead.runtime.quantization import need_exact
from clearhead.text.tokenizer import Tokenizer


class EditedDecoder:
    """A decoder that applies edits; it recomputes the whole context window at each step."""

    def __init__(self, network: Transformer, edits: Edits, samples: int = 1) -> None:
        self.network, self.edits = network, edits
        self.ids = torch.empty(samples, 0, dtype=torch.long, device=network.embedding.weight.device)

    @torch.no_grad()
    def prefill(self, ids: Tensor) -> Tensor:
        self.ids = torch.cat((self.ids, ids.to(self.ids.device)), dim=1)
        window = self.ids[:, -self.network.config.n_context :]
        trace = Trace(self.network, window, [[]] * len(window), single=False, edits=self.edits)
        logits = trace.logits[:, -1]
        if not (logits < float("inf")).all():
            raise UserError("with these edits, a logit is infinite or NaN: no token can be sampled")
        return logits

    def decode_one(self, ids: Tensor) -> Tensor:
        return self.prefill(ids)

    def trace(self, tokenizer: Tokenizer, model_name: str = UNNAMED) -> Trace:
        """Return the trace of the last context window, with the edits applied."""
        return trace_window(self.network, self.ids[:1], tokenizer, model_name, self.edits)


class TracingDecoder:
    """A decoder with a KV cache that records the residual stream, so that a trace needs no further
    computation.
    """

    def __init__(self, network: Transformer, length: int | None = None) -> None:
        """Allocate the cache for `length` tokens, or for the whole context."""
        need_exact(network, "inspecting a model")
        parameter = network.embedding.weight
        self.network = network
        self.ids = torch.empty(1, 0, dtype=torch.long, device=parameter.device)
        self.cache = KVCache(network.config, 1, length, parameter.device, parameter.dtype)
        # For each block, its inputs and middles; then, the output of the last block.
        self.stored: list[list[Tensor]] = [[] for _ in range(2 * network.config.n_block + 1)]
        self.logits: list[Tensor] = []

    @classmethod
    def after(cls, trace: Trace, count: int, length: int) -> TracingDecoder:
        """Return a decoder in the state it would have after the first `count` tokens of a trace."""
        network, config = trace.network, trace.config
        decoder = cls(network, length)
        decoder.ids = trace.ids[:, :count]
        stream = trace.stream.map(lambda x: x[:, :count])
        halves = (x for pair in zip(stream.inputs, stream.middles, strict=True) for x in pair)
        decoder.stored = [[x] for x in (*halves, stream.last)]
        positions = network.positions(decoder.ids)
        masks, rotations = network.masks(positions), network.rotations(positions)
        heads = range(0, config.n_head, config.n_head // config.n_kv_head)  # one per key-value head
        for i, (block, cache) in enumerate(zip(network.blocks, decoder.cache.blocks, strict=True)):
            assert isinstance(block, Block)
            steps = BlockSteps(block, i, config, stream.inputs[i], masks[i], rotations[i], heads=heads)
            cache.append(steps.key, steps.value)
        decoder.cache.length = count
        return decoder

    @torch.no_grad()
    def prefill(self, ids: Tensor) -> Tensor:
        ids = ids.to(self.ids.device)
        if self.ids.shape[1] + ids.shape[1] > self.network.config.n_context:
            self.ids = torch.cat((self.ids, ids), dim=1)
            return self.network(self.ids[:, -self.network.config.n_context :])[:, -1]
        self.logits.append(self.network.unembed(self.network.final_norm(self.run_blocks(ids))))
        return self.logits[-1][:, -1]

    def decode_one(self, ids: Tensor) -> Tensor:
        return self.prefill(ids)

    def run_blocks(self, ids: Tensor, watch: Callable[[], object] = lambda: None) -> Tensor:
        """Run all blocks on the next tokens and return the stream after the last one: B T C."""
        self.ids = torch.cat((self.ids, ids), dim=1)
        positions = self.network.positions(ids, cache=self.cache)
        masks = self.network.masks(positions, cache=self.cache)
        rotations = self.network.rotations(positions)

        def run_block(
            i: int,
            block: Block,
            x: Tensor,
            mask: AttentionMask,
            rotation: Rotation | None,
            cache: BlockKVCache | None,
        ) -> Tensor:
            watch()
            self.stored[2 * i].append(x)
            return block(x, mask, rotation, cache, on_middle=self.stored[2 * i + 1].append)

        x = self.network.embed(ids, positions)
        x = self.network.run_blocks(x, masks, rotations, self.cache.blocks, run_block=run_block)
        self.stored[-1].append(x)
        self.cache.length += ids.shape[1]
        return x

    @torch.no_grad()
    def trace(self, tokenizer: Tokenizer, model_name: str = UNNAMED) -> Trace:
        """Return the trace of all tokens so far; if they exceed the context, of the last window."""
        if self.ids.shape[1] > self.network.config.n_context:
            return trace_window(self.network, self.ids, tokenizer, model_name)
        whole = [torch.cat(parts, dim=1) for parts in self.stored]
        stream = ResidualStream(whole[:-1:2], whole[1:-1:2], whole[-1])
        pieces = [tokenizer.pieces(self.ids[0].tolist())]
        known = sum(logits.shape[1] for logits in self.logits) == self.ids.shape[1]
        logits = torch.cat(self.logits, dim=1) if known else None
        return Trace(
            self.network,
            self.ids,
            pieces,
            tokenizer=tokenizer,
            stream=stream,
            first=self.network.config.n_block,
            logits=logits,
            model_name=model_name,
        )


@torch.no_grad()
def trace_window(
    network: Transformer,
    ids: Tensor,
    tokenizer: Tokenizer,
    model_name: str = UNNAMED,
    edits: Edits | None = None,
) -> Trace:
    """Return the trace of the last context window of these ids (1 T)."""
    window = ids[:, -network.config.n_context :]
    pieces = [tokenizer.pieces(window[0].tolist())]
    return Trace(network, window, pieces, edits=edits, tokenizer=tokenizer, model_name=model_name)


@torch.no_grad()
def trace_after(
    before: Trace, ids: list[int], same: int, watch: Callable[[], object] = lambda: None
) -> Trace:
    """Return the trace of a text that shares its first `same` tokens with `before`; they are not recomputed.

    Requires a causal model, where later tokens do not affect earlier ones, and a trace without edits.
    """
    assert before.config.causal
    assert before.tokenizer is not None
    assert not before.edits.made
    decoder = TracingDecoder.after(before, same, len(ids))
    decoder.run_blocks(torch.tensor([ids[same:]], device=before.ids.device), watch)
    return decoder.trace(before.tokenizer, before.model_name)
