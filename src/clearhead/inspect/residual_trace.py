"""The forward pass of a transformer, stored as its residual stream.

Stores the stream before each block and between its two halves; every other site is recomputed on demand. Shapes, for
one sequence: T positions, C features, V tokens in the vocabulary; a batch has B in front.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import torch
from torch import Tensor

from clearhead.inspect.base_trace import UNNAMED, BaseTrace
from clearhead.inspect.block_steps import BlockSteps, apply_norm, norm_mean, norm_scale
from clearhead.inspect.edits import Edit, Edits, EditValue
from clearhead.inspect.indexing import Selection, check_index, chunk_rows, index_tensor, select_indices
from clearhead.inspect.sites import MATRICES, Site, SiteError, all_sites, dotted, end_names, parse_site
from clearhead.model.block import Block
from clearhead.model.config import Config
from clearhead.model.kv_cache import BlockKVCache
from clearhead.model.mask import AttentionMask
from clearhead.model.position import Rotation, sinusoids
from clearhead.model.transformer import Transformer
from clearhead.runtime.quantization import need_exact
from clearhead.text.tokenizer import Tokenizer

BY_ROW = (*MATRICES, "mixed")  # computed only for the requested rows


@dataclass(frozen=True)
class ResidualStream:
    """The residual stream at the input and middle of each block, and after the last block. B T C each."""

    inputs: list[Tensor]
    middles: list[Tensor]
    last: Tensor

    def map(self, change: Callable[[Tensor], Tensor]) -> ResidualStream:
        return ResidualStream(
            [change(x) for x in self.inputs], [change(x) for x in self.middles], change(self.last)
        )


class ResidualTrace(BaseTrace):
    """The forward pass of a transformer; any site is recomputed from the residual stream when it is read."""

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
        stream: ResidualStream | None = None,
        first: int = 0,
        logits: Tensor | None = None,
        watch: Callable[[], object] = lambda: None,
        model_name: str = UNNAMED,
    ) -> None:
        """Run the model, or only block `first` and those after it if the `stream` before them is known.

        `watch` is called before each block; an exception from it stops the run.
        """
        need_exact(network, "inspecting a model")
        self.network, self.config, self.ids, self.padding_mask = network, network.config, ids, padding_mask
        self.pieces, self.single = tokens, single
        self.edits = replace(edits or Edits(), spans=None if padding_mask is None else _spans(padding_mask))
        self.grad = torch.is_grad_enabled()
        self.tokenizer, self.model_name = tokenizer, model_name
        self.positions = network.positions(ids, padding_mask)
        self.masks = network.masks(self.positions, padding_mask)
        self.rotations = network.rotations(self.positions)
        self.stream = self._run(stream or ResidualStream([], [], ids), first if stream else 0, watch)
        if logits is not None:
            self._logits = logits

    @cached_property
    def _logits(self) -> Tensor:
        with torch.set_grad_enabled(self.grad):
            return self._cap(self._logits_raw)

    @property
    def _logits_raw(self) -> Tensor:
        """The logits before the cap; without a cap, the logits before an edit of them."""
        return self._raw_logits(self._end("final"))

    def _raw_logits(self, final: Tensor) -> Tensor:
        logits = self.network.unembedding(final)
        return logits if self.config.logit_cap is None else self._edited("logits_raw", logits)

    def _cap(self, raw: Tensor) -> Tensor:
        return self._edited("logits", self.network.cap_logits(raw))

    def _run(self, known: ResidualStream, first: int, watch: Callable[[], object]) -> ResidualStream:
        inputs, middles = known.inputs[:first], known.middles[:first]
        if first == 0:
            x = self.first_input()
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
        return ResidualStream(inputs, middles, x)

    def first_input(self) -> Tensor:
        """Return the input of the first block."""
        if not self.edits.of(None).made:
            return self.network.embed(self.ids, self.positions)
        x = self._end("embedding")
        return x if self.config.position in ("rotary", "none") else x + self._end("position")

    @property
    def logits(self) -> Tensor:
        return self.read("logits")

    def __getattr__(self, name: str) -> Tensor:
        """Return a site outside the blocks."""
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
        """Return the names of all sites."""
        return [str(site) for site in all_sites(self.config)]

    def read(self, name: str, rows: Selection = None, columns: Selection = None) -> Tensor:
        """Read a site by name. `rows` are (query) positions; `columns` are features or key positions."""
        with torch.set_grad_enabled(self.grad):
            return self._select(name, rows, columns)

    def _select(self, name: str, rows: Selection, columns: Selection) -> Tensor:
        site, device = parse_site(name, self.config), self.ids.device
        row_indices = select_indices(rows, len(self), "row")
        if columns is not None and site.name in MATRICES and site.head is not None:
            # For a few columns of a large matrix, compute a chunk of rows at a time to bound memory.
            column_index = index_tensor(select_indices(columns, len(self), "column"), device)
            parts = [
                self._read(site, index_tensor(chunk, device))[..., column_index]
                for chunk in chunk_rows(list(range(len(self))) if row_indices is None else row_indices)
            ]
            tensor = torch.cat(parts, dim=1)
        else:
            tensor = self._read(site, index_tensor(row_indices, device))
            column_index = index_tensor(select_indices(columns, tensor.shape[-1], "column"), device)
            tensor = tensor if column_index is None else tensor[..., column_index]
        return tensor[0] if self.single else tensor

    def _read(self, site: Site, rows: Tensor | None) -> Tensor:
        if site.block is None:
            known = site.name == "logits" and "_logits" in vars(self)
            if (
                site.name in ("logits", "logits_raw")
                and rows is not None
                and not (known or self.edits.of(None).made)
            ):
                # With a large vocabulary, a few rows cost far less than all of them.
                raw = self.network.unembedding(self._end("final")[:, rows])
                return self.network.cap_logits(raw) if site.name == "logits" else raw
            tensor = self._end(site.name)
            return tensor if rows is None else tensor[:, rows]
        if site.head is None and site.kv_head is None:
            if site.name == "output":
                output = [*self.stream.inputs[1:], self.stream.last][site.block]
                return output if rows is None else output[:, rows]
            if rows is not None and self._stays_in_rows(site):
                return self._steps_of_rows(site.block, rows).read(site)
            tensor = self.steps(site.block).read(site)
            return tensor if rows is None else tensor[:, rows]
        # Compute this head alone and, for its matrices, only the requested rows.
        group = self.config.n_head // self.config.n_kv_head
        head = site.head if site.head is not None else (site.kv_head or 0) * group
        early = rows if site.name in BY_ROW and not self.edits.of(site.block).made else None
        tensor = self.steps(site.block, [head], early).read(site)[:, 0]
        return tensor if rows is None or early is not None else tensor[:, rows]

    def weights(self, block: int) -> Tensor:
        """Return the attention weights of all heads of a block: H T T, or B H T T for a batch."""
        with torch.set_grad_enabled(self.grad):
            weights = self.steps(check_index(block, self.config.n_block, "block")).weights
        return weights[0] if self.single else weights

    def steps(self, block: int, heads: Sequence[int] | None = None, rows: Tensor | None = None) -> BlockSteps:
        """Return the steps of a block, each computed on first access."""
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
        """Whether each row of a site depends only on the same row of the stream, so reading a few is cheap."""
        return not site.name.startswith("attention") and not self.edits.of(site.block).made

    def _steps_of_rows(self, block: int, rows: Tensor) -> BlockSteps:
        module = self.network.blocks[block]
        assert isinstance(module, Block)
        x, middle = self.stream.inputs[block][:, rows], self.stream.middles[block][:, rows]
        return BlockSteps(
            module, block, self.config, x, self.masks[block], self.rotations[block], middle=middle
        )

    def _end(self, name: str) -> Tensor:
        """Read a site outside the blocks: B T …."""
        norm, last = self.network.final_norm, None if name in ("embedding", "position") else self.stream.last
        if name == "embedding":
            return self._edited(name, self.network.token_vectors(self.ids))
        if name == "position":
            return self._edited(name, self._position_vectors())
        assert last is not None
        if name == "final.mean":
            return self._edited(name, norm_mean(last))
        if name == "final.scale":
            return self._edited(name, norm_scale(norm, last))
        if name == "final":
            return self._final(last)
        if name == "probabilities":
            return self._edited(name, self._logits.softmax(-1))
        return self._logits_raw if name == "logits_raw" else self._logits

    def _final(self, last: Tensor) -> Tensor:
        norm = self.network.final_norm
        if not self.edits.of(None).made:
            return norm(last)
        mean = self._edited("final.mean", norm_mean(last)) if norm.shift is not None else 0.0
        scale = self._edited("final.scale", norm_scale(norm, last))
        return self._edited("final", apply_norm(norm, last, mean, scale))

    def unembed(self, stream: Tensor) -> Tensor:
        """Return the logits for this stream after the last block: B T C → B T V."""
        return self._cap(self._raw_logits(self._final(stream)))

    def _position_vectors(self) -> Tensor:
        if self.network.position is not None:
            vectors = self.network.position(self.positions)
        else:
            vectors = sinusoids(self.positions, self.config.d_model).to(self.network.embedding.weight.dtype)
        return vectors.expand(len(self.ids), -1, -1)

    def _edited(self, name: str, tensor: Tensor) -> Tensor:
        return self.edits.apply(Site(name), tensor)

    def edit(self, changes: Mapping[str, EditValue | Edit]) -> Self:
        """Return a new trace with these edits; blocks before the first edit are not recomputed."""
        return self.with_edits(Edits.parse(changes, self.config))

    def with_edits(self, more: Edits, watch: Callable[[], object] = lambda: None) -> Self:
        first = more.first_block(self.config.n_block)
        with torch.set_grad_enabled(self.grad or more.wants_grad):
            return self._replace(edits=self.edits + more, stream=self.stream, first=first, watch=watch)

    def _replace(self, **changed: Any) -> Self:
        """Return a copy of this trace with some arguments changed."""
        unchanged = {
            "ids": self.ids,
            "tokens": self.pieces,
            "padding_mask": self.padding_mask,
            "single": self.single,
            "edits": self.edits,
            "tokenizer": self.tokenizer,
            "model_name": self.model_name,
        }
        return type(self)(self.network, **{**unchanged, **changed})

    def repeat(self, count: int) -> Self:
        """Return a batch that repeats one text `count` times, to be edited row by row.

        Nothing is recomputed or copied.
        """
        self.check_single()
        with torch.set_grad_enabled(self.grad):
            return self._replace(
                ids=self.ids.expand(count, -1),
                padding_mask=None if self.padding_mask is None else self.padding_mask.expand(count, -1),
                tokens=self.pieces * count,
                single=False,
                stream=self.stream.map(lambda x: x.expand(count, -1, -1)),
                first=self.config.n_block,
            )

    def row(self, number: int) -> Self:
        """Return one sequence of a batch without its padding, as if it had been inspected alone."""
        number = check_index(number, len(self.ids), "row")
        start, stop = (0, len(self)) if self.edits.spans is None else self.edits.spans[number]
        rows, span = slice(number, number + 1), slice(start, stop)
        with torch.set_grad_enabled(self.grad):
            return self._replace(
                ids=self.ids[rows, span],
                padding_mask=None,
                tokens=[self.pieces[number][span]],
                single=True,
                edits=self.edits.of_row(number),
                stream=self.stream.map(lambda x: x[rows, span]),
                first=self.config.n_block,
                logits=self._logits[rows, span] if "_logits" in vars(self) else None,
            )


TraceT = TypeVar("TraceT", bound=ResidualTrace)  # an analysis returns traces of the class it receives


def _spans(padding_mask: Tensor) -> tuple[tuple[int, int], ...]:
    """Return the start and end of each sequence in a padded batch."""
    first, length = padding_mask.int().argmax(1).tolist(), padding_mask.sum(1).tolist()
    return tuple((start, start + n) for start, n in zip(first, length, strict=True))
