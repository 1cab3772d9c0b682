"""Reading word by word with the trace kept, or with edits in force: what generation reads with when asked.

Shapes: N samples, T positions, C features of the stream, V words.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.edits import Edits
from clearhead.inspect.trace import Stream, Trace
from clearhead.model.block import Block
from clearhead.model.cache import Cache
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer


class EditedReader:
    """Reads the whole window again for each word, with the edits made in it."""

    def __init__(self, network: Transformer, edits: Edits, samples: int = 1) -> None:
        self.network, self.edits = network, edits
        self.ids = torch.empty(samples, 0, dtype=torch.long, device=network.embedding.weight.device)

    @torch.no_grad()
    def read(self, ids: Tensor) -> Tensor:
        self.ids = torch.cat((self.ids, ids.to(self.ids.device)), dim=1)
        window = self.ids[:, -self.network.config.n_context :]
        trace = Trace(self.network, window, [[]] * len(window), single=False, edits=self.edits)
        logits = trace.logits[:, -1]
        if not (logits < float("inf")).all():
            raise UserError("with these edits a logit is infinite or not a number: no word can be drawn")
        return logits

    @torch.no_grad()
    def trace(self, tokenizer: Tokenizer) -> Trace:
        """Over the last window of all that was read, with the edits made in it."""
        window = self.ids[:1, -self.network.config.n_context :]
        pieces = [tokenizer.pieces(window[0].tolist())]
        return Trace(self.network, window, pieces, edits=self.edits, tokenizer=tokenizer)


class TracedReader:
    """Reads with the cache on and keeps the stream as it goes by, so that a trace costs nothing more."""

    def __init__(self, network: Transformer) -> None:
        parameter = network.embedding.weight
        self.network = network
        self.ids = torch.empty(1, 0, dtype=torch.long, device=parameter.device)
        self.cache = Cache(network.config, device=parameter.device, dtype=parameter.dtype)
        # For each block its inputs, then its middles, then what leaves the last one.
        self.kept: list[list[Tensor]] = [[] for _ in range(2 * network.config.n_block + 1)]
        self.logits: list[Tensor] = []

    @torch.no_grad()
    def read(self, ids: Tensor) -> Tensor:
        ids = ids.to(self.ids.device)
        self.ids = torch.cat((self.ids, ids), dim=1)
        if self.ids.shape[1] > self.network.config.n_context:
            return self.network(self.ids[:, -self.network.config.n_context :])[:, -1]
        positions = self.network.positions(ids, cache=self.cache)
        sights = self.network.sights(positions, cache=self.cache)
        caches = self.cache.blocks
        x = self.network.embed(ids, positions)
        for i, block in enumerate(self.network.blocks):
            assert isinstance(block, Block)
            self.kept[2 * i].append(x)
            middle = block.first_half(x, sights[i], caches[i])
            self.kept[2 * i + 1].append(middle)
            x = block.second_half(middle, x)
        self.kept[-1].append(x)
        self.cache.length += ids.shape[1]
        self.logits.append(self.network.unembedding(self.network.final_norm(x)))
        return self.logits[-1][:, -1]

    @torch.no_grad()
    def trace(self, tokenizer: Tokenizer) -> Trace:
        """Over all that was read; once the window has slid, over the last window."""
        n = self.network.config.n_context
        if self.ids.shape[1] > n:
            window = self.ids[:, -n:]
            return Trace(self.network, window, [tokenizer.pieces(window[0].tolist())], tokenizer=tokenizer)
        whole = [torch.cat(parts, dim=1) for parts in self.kept]
        stream = Stream(whole[:-1:2], whole[1:-1:2], whole[-1])
        pieces = [tokenizer.pieces(self.ids[0].tolist())]
        logits = torch.cat(self.logits, dim=1)
        return Trace(
            self.network,
            self.ids,
            pieces,
            tokenizer=tokenizer,
            stream=stream,
            first=self.network.config.n_block,
            logits=logits,
        )
