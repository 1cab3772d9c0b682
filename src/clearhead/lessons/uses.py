"""Where a weight is used: its gradient is a sum over the positions of the batch, one part per position.

Shapes: B sequences, T positions, R rows and K columns of a weight, C features, D features per head.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.sites import Site, unembedded
from clearhead.model.attention_steps import mix
from clearhead.model.config import Config

Read = Callable[[Site], Tensor]


@dataclass(frozen=True)
class Use:
    """One use of a weight. For a matrix, each position adds the outer product of `left` and `right`.

    A `left` of integers, B T, names the one row that a position uses, as in an embedding; without `left`, the weight
    is a vector.
    """

    left: Tensor | None  # B T R, or B T
    right: Tensor  # B T K

    def total(self, rows: int) -> Tensor:
        """The sum over all positions: R K, or K."""
        right = self.right.flatten(0, 1)
        if self.left is None:
            return right.sum(0)
        if self.left.is_floating_point():
            return self.left.flatten(0, 1).T @ right
        return right.new_zeros(rows, right.shape[1]).index_add_(0, self.left.flatten(), right)

    def parts(self, row: int | None, column: int) -> Tensor:
        """What each position adds to one number of the gradient: B T."""
        right = self.right[..., column]
        if self.left is None or row is None:
            return right
        return right * (self.left[..., row] if self.left.is_floating_point() else self.left == row)


class Uses:
    """The uses of every weight, from the values of sites and the gradients with respect to them."""

    def __init__(self, config: Config, ids: Tensor, positions: Tensor, value: Read, gradient: Read) -> None:
        self.config, self.ids, self.positions = config, ids, positions.expand_as(ids)
        self.value, self.gradient = value, gradient

    def of(self, name: str) -> list[Use]:
        """The uses of a weight; for a tied embedding, as token vectors and as the unembedding."""
        if name == "embedding.W":
            entering, leaving = self._entering(), self._leaving()
            return [entering, Use(leaving.right, _need(leaving.left))] if self.config.tied else [entering]
        if name == "unembedding.W":
            return [self._leaving()]  # if tied, see `Gradients`
        if name == "position.W":
            return [Use(self.positions, self.gradient(Site("position")))]
        if name.startswith("final."):
            return [self._norm(name.removeprefix("final."), Site("final"), self.value(Site("last")))]
        match = re.fullmatch(r"block\.(\d+)\.(?:head\.(\d+)\.)?(.+)", name)
        assert match is not None
        block, part = int(match[1]), match[3]
        return [
            self._in_block(block, part) if match[2] is None else self._in_head(block, int(match[2]), part)
        ]

    def _entering(self) -> Use:
        return Use(self.ids, self.config.embedding_scale * self.gradient(Site("embedding")))

    def _leaving(self) -> Use:
        return Use(self.value(Site("final")), self.gradient(unembedded(self.config)))

    def _in_block(self, i: int, name: str) -> Use:
        hidden = "hidden_up" if self.config.gated else "hidden_raw"
        matrices = {
            "1": ("normed2", hidden),
            "gate": ("normed2", "hidden_gate"),
            "2": ("hidden", "feedforward"),
            "O": ("", "attention"),
        }
        if "." not in name:
            kind, which = name.split("_")
            left, right = matrices[which]
            return Use(self.value(Site(left, i)) if kind == "W" else None, self.gradient(Site(right, i)))
        norm, part = name.split(".")
        if norm in ("query_norm", "key_norm"):
            return self._head_norm(i, norm.removesuffix("_norm"), part)
        inputs = {"normed": "input", "attention_normed": "attention", "feedforward_normed": "feedforward"}
        read = inputs.get(norm, "input" if self.config.parallel else "middle")
        return self._norm(part, Site(norm, i), self.value(Site(read, i)))

    def _norm(self, part: str, site: Site, x: Tensor) -> Use:
        by_normed = self.gradient(site)
        if part == "shift":
            return Use(None, by_normed)
        if self.config.norm == "layer":
            x = x - self.value(Site(f"{site.name}.mean", site.block))[..., None]
        return Use(None, by_normed * x / self.value(Site(f"{site.name}.scale", site.block))[..., None])

    def _head_norm(self, i: int, name: str, part: str) -> Use:
        """QK-norm, whose gain all heads share, unless it normalizes them together."""
        parts = []
        if self.config.qk_norm_joint:
            return Use(None, self._joint_norm(i, name))
        for j in range(self.config.n_head):
            by_normed = self.gradient(Site(f"{name}_normed", i, head=j))
            x = self.value(Site(f"{name}_raw", i, head=j))
            if self.config.norm == "layer":
                x = x - x.mean(-1, keepdim=True)
            unit = x * (x.square().mean(-1, keepdim=True) + self.config.norm_epsilon).rsqrt()
            parts.append(by_normed if part == "shift" else by_normed * unit)
        return Use(None, torch.stack(parts).sum(0))

    def _joint_norm(self, i: int, name: str) -> Tensor:
        """The gradient of each head's own gains: B T H·D."""
        heads = range(self.config.n_head)
        by_normed = torch.stack([self.gradient(Site(f"{name}_normed", i, head=j)) for j in heads], dim=2)
        x = torch.stack([self.value(Site(f"{name}_raw", i, head=j)) for j in heads], dim=2)
        unit = x * (x.square().mean((2, 3), keepdim=True) + self.config.norm_epsilon).rsqrt()
        gains = self.config.n_head if name == "query" else self.config.n_kv_head
        return (by_normed * unit).reshape(*x.shape[:2], gains, -1, x.shape[3]).sum(3).flatten(2)

    def _in_head(self, i: int, j: int, name: str) -> Use:
        normed = self.value(Site("normed", i))
        if name == "W_O":
            return Use(self.value(Site("mixed", i, head=j)), self.gradient(Site("attention", i)))
        if name == "OV":
            moved = mix(self.value(Site("weights", i, head=j)), normed)
            return Use(moved, self.gradient(Site("output", i, head=j)))
        if name == "QK":
            if self.config.position == "rotary" or self.config.qk_norm:
                raise UserError(
                    f"block.{i}.head.{j}.QK: queries and keys are rotated or normalized before they are compared, so "
                    "the scores do not depend on this product alone; ask for W_Q and W_K"
                )
            return Use(normed, mix(self.gradient(Site("scores", i, head=j)), normed))
        kind, role = name.split("_")
        left = normed if kind == "W" else None
        if role == "Q":
            return Use(left, self.gradient(Site("query_raw", i, head=j)))
        site, group = "key_raw" if role == "K" else "value", self.config.n_head // self.config.n_kv_head
        sharing = range(j // group * group, (j // group + 1) * group)  # heads with the same keys and values
        return Use(left, torch.stack([self.gradient(Site(site, i, head=k)) for k in sharing]).sum(0))


def _need(tensor: Tensor | None) -> Tensor:
    assert tensor is not None
    return tensor
