"""The lecture's steps of one block, computed on demand for all or some of its heads.

Shapes: B sequences, T positions, H selected heads, D features per head, C features of the stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clearhead.inspect.edits import Edits
from clearhead.inspect.sites import Site
from clearhead.model.attention_steps import cap, compare, divide, mix, softmax, write
from clearhead.model.attention_steps import mask as mask_scores
from clearhead.model.block import Block
from clearhead.model.config import Config
from clearhead.model.mask import AttentionMask
from clearhead.model.norm import Norm
from clearhead.model.position import Rotation, rotate


class BlockSteps:
    """The steps of a block; each is computed on first access from the previous ones, with edits applied.

    `heads` and `rows` (query positions) limit what is computed. `middle` is the value the model computed,
    passed if nothing before it in this block is edited.
    """

    def __init__(
        self,
        block: Block,
        number: int,
        config: Config,
        x: Tensor,
        mask: AttentionMask,
        rotation: Rotation | None,
        edits: Edits = Edits(),  # noqa: B008 (frozen)
        middle: Tensor | None = None,
        heads: Sequence[int] | None = None,
        rows: Tensor | None = None,
    ) -> None:
        self.block, self.number, self.config = block, number, config
        self.mask, self.rotation = mask, rotation
        self.edits, self.known_middle, self.B = edits, middle, x.shape[0]
        # A text repeated for many variants stays one row until the first edit that distinguishes them.
        self.x = x[:1] if x.stride(0) == 0 else x
        self.heads = list(range(config.n_head)) if heads is None else list(heads)
        self.rows = torch.arange(x.shape[1], device=x.device) if rows is None else rows
        self.group = config.n_head // config.n_kv_head

    def _edited(self, name: str, tensor: Tensor) -> Tensor:
        return self.edits.apply(Site(name, self.number), self._for_all(name, tensor))

    def _for_all(self, name: str, tensor: Tensor) -> Tensor:
        """Expand to all B rows if an edit at a site of this name may distinguish them."""
        if len(tensor) == self.B or all(site.name != name for site, _ in self.edits.made):
            return tensor
        return tensor.expand(self.B, *tensor.shape[1:])

    def _edited_heads(self, name: str, tensor: Tensor) -> Tensor:
        """Apply each head's edits to B H T …; an edit of a shared key-value head affects its whole group."""
        if not self.edits.made:
            return tensor
        parts, tensor = [], self._for_all(name, tensor)
        for part, head in zip(tensor.unbind(1), self.heads, strict=True):
            shared = self.edits.apply(Site(name, self.number, kv_head=head // self.group), part)
            parts.append(self.edits.apply(Site(name, self.number, head=head), shared))
        return torch.stack(parts, dim=1)

    @cached_property
    def input(self) -> Tensor:
        return self._edited("input", self.x)

    @cached_property
    def normed_mean(self) -> Tensor:
        return self._edited("normed.mean", norm_mean(self.input))

    @cached_property
    def normed_scale(self) -> Tensor:
        assert isinstance(self.block.norm, Norm)
        return self._edited("normed.scale", norm_scale(self.block.norm, self.input))

    @cached_property
    def normed(self) -> Tensor:
        return self._edited("normed", self._norm(self.block.norm, "normed", self.input))

    def _norm(self, norm: nn.Module, name: str, x: Tensor) -> Tensor:
        """Apply the model's norm, if there is one, or its formula if the mean or scale is edited."""
        if not isinstance(norm, Norm):
            return x.view_as(x)  # a separate tensor, with its own gradient
        touched = {site.name for site, _ in self.edits.made}
        if f"{name}.mean" not in touched and f"{name}.scale" not in touched:
            return norm(x)
        mean = getattr(self, f"{name}_mean") if norm.shift is not None else 0.0
        return apply_norm(norm, x, mean, getattr(self, f"{name}_scale"))

    @cached_property
    def query_raw(self) -> Tensor:
        return self._edited_heads("query_raw", self._project(self.block.attention.query, self.heads))

    @cached_property
    def key_raw(self) -> Tensor:
        return self._edited_heads("key_raw", self._project(self.block.attention.key, self._shared))

    @cached_property
    def value(self) -> Tensor:
        return self._edited_heads("value", self._project(self.block.attention.value, self._shared))

    @property
    def _shared(self) -> list[int]:
        """The key-value head of each selected head."""
        return [head // self.group for head in self.heads]

    def _project(self, linear: nn.Linear, heads: list[int]) -> Tensor:
        """Project with the columns of these heads alone, once per shared head: B H T D."""
        D, once = self.config.d_head, sorted(set(heads))
        weight: Tensor = linear.weight
        bias: Tensor | None = linear.bias
        if len(once) * D < linear.out_features:
            weight = weight.view(-1, D, linear.in_features)[once].flatten(0, 1)
            bias = None if bias is None else bias.view(-1, D)[once].flatten()
        projected = F.linear(self.normed, weight, bias)
        projected = projected.view(*projected.shape[:2], len(once), D).transpose(1, 2)
        return projected if once == heads else projected[:, [once.index(head) for head in heads]]

    @cached_property
    def query_normed(self) -> Tensor:
        return self._normalize_heads("query", self.block.attention.query_norm, self.query_raw, self.heads)

    @cached_property
    def key_normed(self) -> Tensor:
        return self._normalize_heads("key", self.block.attention.key_norm, self.key_raw, self._shared)

    def _normalize_heads(self, role: str, norm: Norm | None, raw: Tensor, heads: list[int]) -> Tensor:
        if norm is None:
            return raw
        if not self.config.qk_norm_joint:
            return self._edited_heads(f"{role}_normed", norm(raw))
        gain = norm.gain.view(-1, 1, self.config.d_head)[heads]
        return self._edited_heads(f"{role}_normed", gain * raw / self.joint_scale(role))

    def joint_scale(self, role: str) -> Tensor:
        """The divisor of a QK-norm over all heads together: B 1 T 1.

        Keys that several heads share count once per head: this matters only if they are edited in one head alone.
        """
        every = self if self.heads == list(range(self.config.n_head)) else self._all_heads
        raw: Tensor = getattr(every, f"{role}_raw")
        return (raw.pow(2).mean((1, 3), keepdim=True) + self.config.norm_epsilon).sqrt()

    @cached_property
    def _all_heads(self) -> BlockSteps:
        return BlockSteps(
            self.block,
            self.number,
            self.config,
            self.x.expand(self.B, -1, -1),
            self.mask,
            self.rotation,
            self.edits,
        )

    @cached_property
    def query(self) -> Tensor:
        return self._edited_heads("query", self._rotate(self.query_normed))

    @cached_property
    def key(self) -> Tensor:
        return self._edited_heads("key", self._rotate(self.key_normed))

    def _rotate(self, vectors: Tensor) -> Tensor:
        return vectors if self.rotation is None else rotate(vectors, self.rotation)

    @cached_property
    def scores(self) -> Tensor:
        return self._edited_heads("scores", compare(self.query[:, :, self.rows], self.key))

    @cached_property
    def scaled(self) -> Tensor:
        return self._edited_heads("scaled", divide(self.scores, self.config.d_k))

    @cached_property
    def capped(self) -> Tensor:
        limit = self.config.score_cap
        return self.scaled if limit is None else self._edited_heads("capped", cap(self.scaled, limit))

    @cached_property
    def masked(self) -> Tensor:
        matrix = self.mask.rows(self.rows, self.x.shape[1])
        if matrix is not None and matrix.dim() == 4:
            matrix = matrix[: len(self.capped)]  # a repeated text has one row here as well
        masked = self.capped if matrix is None else mask_scores(self.capped, matrix)
        return self._edited_heads("masked", masked)

    @cached_property
    def weights(self) -> Tensor:
        return self._edited_heads("weights", softmax(self.masked))

    @cached_property
    def mixed(self) -> Tensor:
        return self._edited_heads("mixed", mix(self.weights, self.value))

    @cached_property
    def head_output(self) -> Tensor:
        D = self.config.d_head
        W_O = self.block.attention.output.weight.T.reshape(-1, D, self.config.d_model)[self.heads]
        return self._edited_heads("output", write(self.mixed, W_O))

    @cached_property
    def attention(self) -> Tensor:
        total = self.head_output.sum(1)
        bias = self.block.attention.output.bias
        return self._edited("attention", total if bias is None else total + bias)

    @cached_property
    def attention_normed_mean(self) -> Tensor:
        return self._edited("attention_normed.mean", norm_mean(self.attention))

    @cached_property
    def attention_normed_scale(self) -> Tensor:
        assert isinstance(self.block.attention_norm, Norm)
        return self._edited("attention_normed.scale", norm_scale(self.block.attention_norm, self.attention))

    @cached_property
    def attention_normed(self) -> Tensor:
        assert isinstance(self.block.attention_norm, Norm)
        normed = self._norm(self.block.attention_norm, "attention_normed", self.attention)
        return self._edited("attention_normed", normed)

    @cached_property
    def middle(self) -> Tensor:
        if self.known_middle is not None:
            return self.known_middle
        added = self.attention_normed if self.config.post_norm else self.attention
        return self._edited("middle", added + self.input)

    @property
    def _second_input(self) -> Tensor:
        """The input of the feed-forward half."""
        return self.input if self.config.parallel else self.middle

    @cached_property
    def normed2_mean(self) -> Tensor:
        return self._edited("normed2.mean", norm_mean(self._second_input))

    @cached_property
    def normed2_scale(self) -> Tensor:
        assert isinstance(self.block.norm2, Norm)
        return self._edited("normed2.scale", norm_scale(self.block.norm2, self._second_input))

    @cached_property
    def normed2(self) -> Tensor:
        return self._edited("normed2", self._norm(self.block.norm2, "normed2", self._second_input))

    @cached_property
    def hidden_raw(self) -> Tensor:
        return self._edited("hidden_raw", self.block.feedforward.first(self.normed2))

    @cached_property
    def hidden_up(self) -> Tensor:
        return self._edited("hidden_up", self.block.feedforward.first(self.normed2))

    @cached_property
    def hidden_gate(self) -> Tensor:
        assert self.block.feedforward.gate is not None
        return self._edited("hidden_gate", self.block.feedforward.gate(self.normed2))

    @cached_property
    def hidden(self) -> Tensor:
        nonlinearity = self.block.feedforward.nonlinearity
        if self.config.gated:
            return self._edited("hidden", nonlinearity(self.hidden_gate) * self.hidden_up)
        return self._edited("hidden", nonlinearity(self.hidden_raw))

    @cached_property
    def feedforward(self) -> Tensor:
        return self._edited("feedforward", self.block.feedforward.second(self.hidden))

    @cached_property
    def feedforward_normed_mean(self) -> Tensor:
        return self._edited("feedforward_normed.mean", norm_mean(self.feedforward))

    @cached_property
    def feedforward_normed_scale(self) -> Tensor:
        assert isinstance(self.block.feedforward_norm, Norm)
        scale = norm_scale(self.block.feedforward_norm, self.feedforward)
        return self._edited("feedforward_normed.scale", scale)

    @cached_property
    def feedforward_normed(self) -> Tensor:
        assert isinstance(self.block.feedforward_norm, Norm)
        normed = self._norm(self.block.feedforward_norm, "feedforward_normed", self.feedforward)
        return self._edited("feedforward_normed", normed)

    @cached_property
    def output(self) -> Tensor:
        added = self.feedforward_normed if self.config.post_norm else self.feedforward
        return self._edited("output", added + self.middle)

    def read(self, site: Site) -> Tensor:
        """Read a site of this block: B T …, or B 1 T … for a single selected head."""
        if site.head is None and site.kv_head is None:
            return getattr(self, site.name.replace(".", "_"))
        return getattr(self, "head_output" if site.name == "output" else site.name)


def norm_mean(x: Tensor) -> Tensor:
    """Return the mean μ of each position's vector: B T."""
    return x.mean(-1)


def norm_scale(norm: Norm, x: Tensor) -> Tensor:
    """Return each vector's divisor, including ε: σ, or the root mean square for `rms`. B T."""
    centered = x if norm.shift is None else x - x.mean(-1, keepdim=True)
    return (centered.pow(2).mean(-1) + norm.epsilon).sqrt()


def apply_norm(norm: Norm, x: Tensor, mean: Tensor | float, scale: Tensor) -> Tensor:
    """Compute γ (x - μ)/σ + β for these μ and σ."""
    centered = x - mean[..., None] if isinstance(mean, Tensor) else x - mean
    normed = norm.gain * centered / scale[..., None]
    return normed if norm.shift is None else normed + norm.shift
