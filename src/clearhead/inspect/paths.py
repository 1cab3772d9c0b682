"""Paths of a token's logit, traced back through heads to the positions they attend to, down to the embedding.

With the scales of the norms and the attention weights treated as constants, a logit is a linear function of
any earlier residual stream, given by a direction; so is the difference between two logits. Going back through a
head transforms that direction.

Shapes: T positions, H heads, C features of the stream, D features per head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.attribution import (
    EDITS,
    Attribution,
    attributed_name,
    logit_direction,
    read_logit,
    written,
)
from clearhead.inspect.indexing import check_index
from clearhead.inspect.residual_trace import ResidualTrace
from clearhead.inspect.sites import Site
from clearhead.model.block import Block
from clearhead.model.norm import Norm

PathHop = tuple[int, int, int]  # block, head, key position


@dataclass(frozen=True)
class LinearReadout:
    """A linear function of the residual stream at one position before a block: a direction and constants."""

    trace: ResidualTrace
    position: int
    until: int  # the block before which the stream is read
    direction: Tensor  # C
    rest: dict[str, float]  # constant contributions of biases and shifts along the path, by name
    total: float | None = None  # the exact sum of all parts, if known
    target: str = ""  # the name of the logit, or of the difference between two logits

    @classmethod
    def of_logit(
        cls, trace: ResidualTrace, token: int, position: int, against: int | None = None
    ) -> LinearReadout:
        norm, direction = trace.network.final_norm, logit_direction(trace, token, against)
        scale = trace.read("final.scale").reshape(-1)[position]
        rest = {} if norm.shift is None else {"final.shift": (norm.shift @ direction).item()}
        total = read_logit(trace, token, position, against).item()
        direction, target = _before(norm, direction, scale), attributed_name(trace, token, position, against)
        return cls(trace, position, trace.config.n_block, direction, rest, total, target)

    def through(self, block: int, head: int, source: int) -> LinearReadout:
        """Return the part that a head moves here from a source position, as a readout of the stream there."""
        trace, module = self.trace, self._module(check_index(block, self.trace.config.n_block, "block"))
        head = check_index(head, trace.config.n_head, "head")
        source = trace.check_position(source)
        if block >= self.until:
            raise UserError(f"block {block} is not before this readout: expected 0 to {self.until - 1}")
        name, D = f"block.{block}.head.{head}", trace.config.d_head
        shared = head // (trace.config.n_head // trace.config.n_kv_head)
        weight = trace.read(f"{name}.weights", rows=self.position, columns=source)[0, 0]
        written_along = self._along_heads(block)[head] * weight  # D
        value, norm = module.attention.value, module.norm
        own = slice(D * shared, D * (shared + 1))
        direction, rest = written_along @ value.weight[own], {}  # C
        if value.bias is not None:
            rest["bias"] = (value.bias[own] @ written_along).item()
        total = (trace.read(f"{name}.value", rows=source)[0] @ written_along).item()
        if isinstance(norm, Norm):
            if norm.shift is not None:
                rest["shift"] = (norm.shift @ direction).item()
            direction = _before(norm, direction, trace.read(f"block.{block}.normed.scale")[source])
        return LinearReadout(trace, source, block, direction, rest, total, self.target)

    def attribution(self) -> Attribution:
        """Decompose the readout by everything written into the stream that it reads."""
        parts = {name: (part @ self.direction).item() for name, part in self._written()}
        parts |= self.rest
        if self.trace.edits.made and self.total is not None:
            parts[EDITS] = parts.get(EDITS, 0.0) + self.total - sum(parts.values())
        return Attribution(list(parts), torch.tensor(list(parts.values())), self._title())

    def by_position(self, block: int) -> Tensor:
        """Return what each head of an earlier block moves here from each position: H T."""
        steps = self.trace.steps(block, rows=self._row(block))
        at = self.position if self.trace.edits.of(block).made else 0
        weights, values = steps.weights[0, :, at], steps.value[0]  # H T, H T D
        return weights * torch.einsum("htd,hd->ht", values, self._along_heads(block))

    def _passed(self, block: int) -> Tensor:
        """Return the fraction of its gathered values that each head writes here, 1 unless it is edited: H 1.

        A head whose output is replaced by something else writes none of what it gathered.
        """
        trace, module, D = self.trace, self._module(block), self.trace.config.d_head
        passed = torch.ones(trace.config.n_head, 1, device=trace.ids.device)
        for head in range(trace.config.n_head):
            if not trace.edits.touch(*(Site(part, block, head=head) for part in ("mixed", "output"))):
                continue
            name = f"block.{block}.head.{head}"
            weights, values = (
                trace.read(f"{name}.weights", rows=self.position)[0],
                trace.read(f"{name}.value"),
            )
            gathered = module.attention.output.weight[:, D * head : D * (head + 1)] @ (weights @ values)
            actual = trace.read(f"{name}.output", rows=self.position)[0]
            scale = (actual @ gathered) / (gathered @ gathered)
            passed[head] = scale if torch.allclose(actual, scale * gathered, rtol=1e-4, atol=1e-6) else 0.0
        return passed

    def _along_heads(self, block: int) -> Tensor:
        """Return the direction in the space of each head's mixed values: H D."""
        module, direction = self._module(block), self.direction
        if isinstance(module.attention_norm, Norm):
            scale = self.trace.read(f"block.{block}.attention_normed.scale")[self.position]
            direction = _before(module.attention_norm, direction, scale)
        along = (direction @ module.attention.output.weight).view(-1, self.trace.config.d_head)
        return along * self._passed(block) if self.trace.edits.of(block).made else along

    def _written(self) -> list[tuple[str, Tensor]]:
        return list(written(self.trace, self.position, self.until))

    def _row(self, block: int) -> Tensor | None:
        return (
            None
            if self.trace.edits.of(block).made
            else torch.tensor([self.position], device=self.trace.ids.device)
        )

    def _module(self, block: int) -> Block:
        module = self.trace.network.blocks[block]
        assert isinstance(module, Block)
        return module

    def _title(self) -> str:
        if self.until == self.trace.config.n_block:
            return self.target
        return f"{self.target}: the part from position {self.position} before block {self.until}"


def follow_path(
    trace: ResidualTrace, token: int, position: int, hops: Sequence[PathHop], against: int | None = None
) -> LinearReadout:
    """Follow a token's logit at a position, minus that of `against` if given, back through these hops."""
    readout = LinearReadout.of_logit(trace, token, position, against)
    for hop in hops:
        readout = readout.through(*hop)
    return readout


def _before(norm: Norm, direction: Tensor, scale: Tensor) -> Tensor:
    """Return the direction before a norm (its scale fixed) that is equivalent to this direction after it."""
    scaled = norm.gain * direction / scale
    return scaled if norm.shift is None else scaled - scaled.mean()
