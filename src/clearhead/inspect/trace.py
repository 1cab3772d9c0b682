"""A trace: a model's whole computation over a text, to be read, checked and changed.

It keeps the residual stream alone, before each block and in its middle; all else is computed when asked for.
Shapes, seen from one sequence: T positions, C features, V words; a batch has B in front.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from textwrap import shorten
from typing import Any

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.attribution import Attribution, attribute
from clearhead.inspect.block_steps import BlockSteps, apply_norm, norm_mean, norm_scale
from clearhead.inspect.choice import Choice, as_index, check_index, choose, in_chunks
from clearhead.inspect.comparison import Comparison, align
from clearhead.inspect.edits import Edit, Edits, Value
from clearhead.inspect.lens import Lens
from clearhead.inspect.paths import read_back
from clearhead.inspect.read_text import UNNAMED, ReadText
from clearhead.inspect.sites import MATRICES, Site, SiteError, all_sites, end_names, parse_site
from clearhead.inspect.sweep import sweep
from clearhead.inspect.verification import verify
from clearhead.inspect.views import BlockView, Parts, dotted
from clearhead.model.block import Block
from clearhead.model.config import Config
from clearhead.model.kv_cache import BlockKVCache
from clearhead.model.mask import AttentionMask
from clearhead.model.position import Rotation, sinusoids
from clearhead.model.transformer import Transformer
from clearhead.runtime.quantization import need_exact
from clearhead.text.tokenizer import Tokenizer

BY_ROW = (*MATRICES, "mixed")  # computed for the rows asked for alone


@dataclass(frozen=True)
class Stream:
    """The residual stream: entering each block, in its middle, and after the last. B T C each."""

    inputs: list[Tensor]
    middles: list[Tensor]
    last: Tensor

    def map(self, change: Callable[[Tensor], Tensor]) -> Stream:
        return Stream([change(x) for x in self.inputs], [change(x) for x in self.middles], change(self.last))


class Trace(ReadText):
    """What `inspect` returns of a transformer."""

    config: Config

    def __init__(
        self,
        network: Transformer,
        ids: Tensor,
        tokens: list[list[str]],
        padding_mask: Tensor | None = None,
        single: bool = True,
        edits: Edits | None = None,
        tokenizer: Tokenizer | None = None,
        stream: Stream | None = None,
        first: int = 0,
        logits: Tensor | None = None,
        watch: Callable[[], object] = lambda: None,
        model_name: str = UNNAMED,
    ) -> None:
        """Run the model, from block `first` on where the `stream` before it is known already.

        `watch` is called before each block: what it raises ends the run.
        """
        need_exact(network, "looking inside")
        self.network, self.config, self.ids, self.padding_mask = network, network.config, ids, padding_mask
        self.pieces, self.single = tokens, single
        self.edits = replace(edits or Edits(), spans=None if padding_mask is None else _spans(padding_mask))
        self.grad = torch.is_grad_enabled()
        self.tokenizer, self.model_name = tokenizer, model_name
        self.positions = network.positions(ids, padding_mask)
        self.masks = network.masks(self.positions, padding_mask)
        self.rotations = network.rotations(self.positions)
        self.stream = self._run(stream or Stream([], [], ids), first if stream else 0, watch)
        if logits is not None:
            self._logits = logits

    @cached_property
    def _logits(self) -> Tensor:
        with torch.set_grad_enabled(self.grad):
            return self._edited("logits", self.network.unembedding(self._end("final")))

    def _run(self, known: Stream, first: int, watch: Callable[[], object]) -> Stream:
        inputs, middles = known.inputs[:first], known.middles[:first]
        if first == 0:
            x = self.start()
        elif first < self.config.n_block:
            x = known.inputs[first]
        else:
            x = known.last

        def run_block(
            i: int,
            block: Block,
            x: Tensor,
            mask: AttentionMask,
            rotation: Rotation | None,
            cache: BlockKVCache | None,
        ) -> Tensor:
            watch()
            inputs.append(x)
            if not self.edits.of(i).made:
                return block(x, mask, rotation, cache, on_middle=middles.append)
            steps = BlockSteps(block, i, self.config, x, mask, rotation, self.edits.of(i))
            middles.append(steps.middle)
            return steps.output

        x = self.network.run_blocks(x, self.masks, self.rotations, first=first, run_block=run_block)
        return Stream(inputs, middles, x)

    def start(self) -> Tensor:
        """What enters the first block."""
        if not self.edits.of(None).made:
            return self.network.embed(self.ids, self.positions)
        x = self._end("embedding")
        return x if self.config.position in ("rotary", "none") else x + self._end("position")

    def __repr__(self) -> str:
        what = shorten("".join(self.pieces[0]), 60, placeholder=" …")
        what = repr(what) if self.single else f"{len(self.ids)} texts"
        edited = f", {len(self.edits.made)} edits" if self.edits.made else ""
        return f"Trace({what}: {len(self)} positions, {len(self.sites())} sites{edited})"

    @property
    def block(self) -> Parts[BlockView]:
        return Parts("block", (BlockView(self, i) for i in range(self.config.n_block)))

    @property
    def logits(self) -> Tensor:
        return self.read("logits")

    def __getattr__(self, name: str) -> Tensor:
        """The sites at the ends, as attributes."""
        if name.startswith("_") or "config" not in vars(self) or dotted(name) not in end_names(self.config):
            raise AttributeError(f"a trace has no {name!r}")
        return self.read(dotted(name))

    def __getitem__(self, name: str) -> Tensor:
        return self.read(name)

    def __contains__(self, name: object) -> bool:
        try:
            return bool(parse_site(name, self.config))  # type: ignore[arg-type]
        except SiteError:
            return False

    def sites(self) -> list[str]:
        """The names of all that can be read."""
        return [str(site) for site in all_sites(self.config)]

    def read(self, name: str, rows: Choice = None, columns: Choice = None) -> Tensor:
        """A site by name. `rows` are positions (that look); `columns` what is looked at, or features."""
        with torch.set_grad_enabled(self.grad):
            return self._pick(name, rows, columns)

    def _pick(self, name: str, rows: Choice, columns: Choice) -> Tensor:
        site, device = parse_site(name, self.config), self.ids.device
        down = choose(rows, len(self), "row")
        if columns is not None and site.name in MATRICES and site.head is not None:
            # A few columns of a large matrix: some rows of it at a time, so that it is never there whole.
            across = as_index(choose(columns, len(self), "column"), device)
            parts = [
                self._read(site, as_index(some, device))[..., across]
                for some in in_chunks(list(range(len(self))) if down is None else down)
            ]
            tensor = torch.cat(parts, dim=1)
        else:
            tensor = self._read(site, as_index(down, device))
            across = as_index(choose(columns, tensor.shape[-1], "column"), device)
            tensor = tensor if across is None else tensor[..., across]
        return tensor[0] if self.single else tensor

    def _read(self, site: Site, rows: Tensor | None) -> Tensor:
        if site.block is None:
            untouched = "_logits" not in vars(self) and not self.edits.of(None).made
            if site.name == "logits" and rows is not None and untouched:
                # Of a large vocabulary, a few rows cost far less than all.
                return self.network.unembedding(self._end("final")[:, rows])
            tensor = self._end(site.name)
            return tensor if rows is None else tensor[:, rows]
        if site.head is None and site.kv_head is None:
            if rows is not None and self._stays_in_rows(site):
                return self._steps_of_rows(site.block, rows).read(site)
            tensor = self.steps(site.block).read(site)
            return tensor if rows is None else tensor[:, rows]
        # One head alone is computed, and of its matrices only the rows asked for.
        group = self.config.n_head // self.config.n_kv_head
        head = site.head if site.head is not None else (site.kv_head or 0) * group
        early = rows if site.name in BY_ROW and not self.edits.of(site.block).made else None
        tensor = self.steps(site.block, [head], early).read(site)[:, 0]
        return tensor if rows is None or early is not None else tensor[:, rows]

    def weights(self, block: int) -> Tensor:
        """Where all heads of a block look: H T T, and for a batch B H T T."""
        with torch.set_grad_enabled(self.grad):
            weights = self.steps(check_index(block, self.config.n_block, "block")).weights
        return weights[0] if self.single else weights

    def steps(self, block: int, heads: Sequence[int] | None = None, rows: Tensor | None = None) -> BlockSteps:
        """A block's steps, each computed as it is asked for."""
        module, edits = self.network.blocks[block], self.edits.of(block)
        assert isinstance(module, Block)
        middle = None if edits.made else self.stream.middles[block]
        x = self.stream.inputs[block]
        return BlockSteps(
            module,
            block,
            self.config,
            x,
            self.masks[block],
            self.rotations[block],
            edits,
            middle,
            heads,
            rows,
        )

    def _stays_in_rows(self, site: Site) -> bool:
        """Whether a row of it is made of the same row of the stream alone: a few rows cost less than all."""
        crosses = site.name.startswith("attention") or (site.name == "output" and self.config.parallel)
        return not crosses and not self.edits.of(site.block).made

    def _steps_of_rows(self, block: int, rows: Tensor) -> BlockSteps:
        module = self.network.blocks[block]
        assert isinstance(module, Block)
        x, middle = self.stream.inputs[block][:, rows], self.stream.middles[block][:, rows]
        return BlockSteps(
            module, block, self.config, x, self.masks[block], self.rotations[block], middle=middle
        )

    def _end(self, name: str) -> Tensor:
        """A site outside the blocks: B T …."""
        norm, last = self.network.final_norm, None if name in ("embedding", "position") else self.stream.last
        if name == "embedding":
            return self._edited(name, self.network.token_vectors(self.ids))
        if name == "position":
            return self._edited(name, self._places())
        assert last is not None
        if name == "final.mean":
            return self._edited(name, norm_mean(last))
        if name == "final.scale":
            return self._edited(name, norm_scale(norm, last))
        if name == "final":
            return self._final(last)
        if name == "probabilities":
            return self._edited(name, self._logits.softmax(-1))
        return self._logits

    def _final(self, last: Tensor) -> Tensor:
        norm = self.network.final_norm
        if not self.edits.of(None).made:
            return norm(last)
        mean = self._edited("final.mean", norm_mean(last)) if norm.shift is not None else 0.0
        scale = self._edited("final.scale", norm_scale(norm, last))
        return self._edited("final", apply_norm(norm, last, mean, scale))

    def read_out(self, stream: Tensor) -> Tensor:
        """The logits, if this were the stream after the last block: B T C → B T V."""
        return self._edited("logits", self.network.unembedding(self._final(stream)))

    def _places(self) -> Tensor:
        if self.network.position is not None:
            places = self.network.position(self.positions)
        else:
            places = sinusoids(self.positions, self.config.d_model).to(self.network.embedding.weight.dtype)
        return places.expand(len(self.ids), -1, -1)

    def _edited(self, name: str, tensor: Tensor) -> Tensor:
        return self.edits.apply(Site(name), tensor)

    def edit(self, changes: Mapping[str, Value | Edit]) -> Trace:
        """A new trace with these values put there; blocks before the first of them are not run again."""
        return self.edit_more(Edits.parse(changes, self.config))

    def edit_more(self, more: Edits, watch: Callable[[], object] = lambda: None) -> Trace:
        first = more.first_block(self.config.n_block)
        with torch.set_grad_enabled(self.grad or more.wants_grad):
            return self._again(edits=self.edits + more, stream=self.stream, first=first, watch=watch)

    def _again(self, **changed: Any) -> Trace:
        """This trace made anew, but for what is changed."""
        same = {
            "ids": self.ids,
            "tokens": self.pieces,
            "padding_mask": self.padding_mask,
            "single": self.single,
            "edits": self.edits,
            "tokenizer": self.tokenizer,
            "model_name": self.model_name,
        }
        return Trace(self.network, **{**same, **changed})

    def repeat(self, count: int) -> Trace:
        """The same text so many times, as a batch to be edited row by row. Nothing is run or copied."""
        self.check_single()
        with torch.set_grad_enabled(self.grad):
            return self._again(
                ids=self.ids.expand(count, -1),
                padding_mask=None if self.padding_mask is None else self.padding_mask.expand(count, -1),
                tokens=self.pieces * count,
                single=False,
                stream=self.stream.map(lambda x: x.expand(count, -1, -1)),
                first=self.config.n_block,
            )

    def row(self, number: int) -> Trace:
        """One sequence of a batch, without its padding: as if it had been inspected alone."""
        number = check_index(number, len(self.ids), "row")
        start, stop = (0, len(self)) if self.edits.spans is None else self.edits.spans[number]
        rows, places = slice(number, number + 1), slice(start, stop)
        with torch.set_grad_enabled(self.grad):
            return self._again(
                ids=self.ids[rows, places],
                padding_mask=None,
                tokens=[self.pieces[number][places]],
                single=True,
                edits=self.edits.of_row(number),
                stream=self.stream.map(lambda x: x[rows, places]),
                first=self.config.n_block,
                logits=self._logits[rows, places] if "_logits" in vars(self) else None,
            )

    def sweep(self, over: str, measure: Callable[[Trace], float], patch_from: Trace | None = None) -> Tensor:
        """What `measure` gives for each variant of the trace, all variants run in batches.

        Over "head": each head's output silenced, or taken from another trace: blocks × heads. Over
        "block × position": each block's input at each position likewise: blocks × positions.
        """
        return sweep(self, over, measure, patch_from)

    @torch.no_grad()
    def verify(self) -> float:
        """How far the parts are from the whole: the largest ‖difference‖/‖value‖ of any token.

        Each block is put together again from its steps, and the logits from the last stream, and held
        against what the model itself computed. Where there are numbers that are none, so is the answer.
        """
        return verify(self)

    def lens(self) -> Lens:
        """What each block would predict."""
        self.check_single()
        return Lens(self)

    def attribute(
        self, token: str | int, position: int = -1, through: Sequence[tuple[int, int, int]] = ()
    ) -> Attribution:
        """How much every head, feed-forward, embedding and bias adds to a token's logit after a position.

        With the scale of the last norm held; the parts sum to the logit. `through` goes further back: each
        (block, head, position) takes what that head brings from a position it looks at, and splits it over
        what was written there before, with the weights of attention held.
        """
        self.check_single()
        token, position = self.token_id(token), self.check_position(position)
        with torch.set_grad_enabled(self.grad):
            if not through:
                return attribute(self, token, position)
            return read_back(self, token, position, through).split()

    def compare(self, other: Trace) -> Comparison:
        """This trace and another of the same shape of model, tokens aligned, every site's difference."""
        if not isinstance(other, Trace):
            raise UserError(f"compare with a {type(other).__name__}: expected another trace")
        for trace in (self, other):
            trace.check_single()
        if self.sites() != other.sites():
            message = "the two models have different sites: compare models of the same shape"
            raise UserError(message, "different_sites")
        pairs = align(self.pieces[0], other.pieces[0])
        if not pairs:
            message = "the two texts have no token in common: nothing can be compared"
            raise UserError(message, "nothing_in_common")
        return Comparison(self, other, pairs)

    def vector(self, word: str, block: int | None = None, occurrence: int | None = None) -> Tensor:
        """A word's vector as it enters a block, or without one at the end.

        Entering block 0 no other word has touched it yet; `embedding` is the static vector alone.
        """
        name = "final" if block is None else f"block.{block}.input"
        return self.read(name, rows=self.position_of(word, occurrence))[0]


def _spans(padding_mask: Tensor) -> tuple[tuple[int, int], ...]:
    """Where each sequence of a padded batch begins and ends."""
    first, length = padding_mask.int().argmax(1).tolist(), padding_mask.sum(1).tolist()
    return tuple((start, start + n) for start, n in zip(first, length, strict=True))
