"""The gradient of one number by the chain rule: a sum over the numbers that are computed from it.

Each term is the gradient of such a number times its derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.inspect.gradients import SiteGradients
from clearhead.inspect.sites import Site, unembedded
from clearhead.inspect.weights import weight
from clearhead.lessons.gradients import Gradients
from clearhead.model.block import Block
from clearhead.model.norm import Norm
from clearhead.summary_table import TableCell, html_table, plural, text_table

NumberIndex = tuple[int, ...]  # of a number of a site or weight: row and column, or row alone


class Factor(NamedTuple):
    """The number that a derivative equals: an element of a weight or of a site."""

    name: str
    at: NumberIndex


class ChainTerm(NamedTuple):
    """A number computed from the explained one; it adds its gradient times its derivative to that one's gradient."""

    name: str
    at: NumberIndex
    gradient: float
    derivative: float
    value: float  # the product
    factor: Factor | None  # None if the derivative is a formula of several numbers


@dataclass(frozen=True, repr=False)
class Chain:
    """The gradient of one number. It equals the sum of the values of all terms, plus `others`.

    `kind` names the operation that uses the number next. The loss uses logits and probabilities, which have no terms.
    """

    name: str
    at: NumberIndex
    value: float
    gradient: float
    kind: str
    terms: list[ChainTerm]  # the largest first
    others: float = 0.0  # of a weight: what the other texts of the batch add
    n_others: int = 0  # the number of these texts

    def __repr__(self) -> str:
        return f"Chain({self._heading})\n{text_table((), self._rows(5))}"

    def _repr_html_(self) -> str:
        return html_table(
            ("computed from it", "gradient", "derivative", "product"), self._rows(10), self._heading
        )

    @property
    def _heading(self) -> str:
        at = ", ".join(map(str, self.at))
        others = (
            f", with {self.others:+.4g} from {plural(self.n_others, 'other text')}" if self.n_others else ""
        )
        return f"{self.name}[{at}]: {self.gradient:.4g}, the sum of {len(self.terms):,} terms{others}"

    def _rows(self, count: int) -> list[tuple[TableCell, ...]]:
        return [
            (f"  {term.name}[{', '.join(map(str, term.at))}]", f"{term.gradient:.4g}",
             f"× {term.derivative:.4g}", f"= {term.value:+.4g}")
            for term in self.terms[:count]
        ]  # fmt: skip


@dataclass(frozen=True)
class RuleUses:
    """Numbers of one site that are computed from the explained number, and their derivatives."""

    site: Site
    indices: Sequence[NumberIndex]
    derivatives: Tensor
    factor: Callable[[NumberIndex], Factor] | None = None


@dataclass(frozen=True)
class Rule:
    """How a number is used next: `kind` names the operation."""

    kind: str
    uses: list[RuleUses]


class ChainRule:
    """The chain rule for the sites of one text of a training step, which must be without dropout."""

    def __init__(self, gradients: Gradients, text: int = 0) -> None:
        self.config = gradients.config
        self.part, self.text = _find_part(gradients.parts, text)
        self.network = self.part.forward.network
        self.length = self.part.forward.ids.shape[1]

    def explain(self, site: Site, index: NumberIndex) -> Chain:
        number, gradient = self.value(site)[index].item(), self.gradient(site)[index].item()
        rule = self.rule(site, index)
        return Chain(str(site), index, number, gradient, rule.kind, self.terms(rule))

    def terms(self, rule: Rule) -> list[ChainTerm]:
        terms = [term for uses in rule.uses if uses.indices for term in self._terms(uses)]
        return sorted(terms, key=lambda term: -abs(term.value))

    def value(self, site: Site) -> Tensor:
        return self.part.value(site)[self.text]

    def gradient(self, site: Site) -> Tensor:
        return self.part.read(site)[self.text]

    def block(self, i: int) -> Block:
        return self.part.forward.block(i)

    def norm_of(self, normed: str, block: int | None) -> Norm:
        """The norm that computes a normalized vector."""
        if block is None:
            return self.network.final_norm
        names = {"normed": "norm", "normed2": "norm2"}
        norm = getattr(self.block(block), names.get(normed, normed.replace("_normed", "_norm")))
        assert isinstance(norm, Norm)
        return norm

    def norm_input(self, normed: str, block: int | None) -> Site:
        """The input of the norm that computes a normalized vector."""
        if block is None:
            return Site("output", self.config.n_block - 1)
        names = {"normed": "input", "normed2": "input" if self.config.parallel else "middle"}
        return Site(names.get(normed, normed.removesuffix("_normed")), block)

    def _terms(self, uses: RuleUses) -> list[ChainTerm]:
        gradients = self.gradient(uses.site)[tuple(zip(*uses.indices, strict=True))].double()
        derivatives = uses.derivatives.double().to(gradients.device)
        numbers = zip(
            gradients.tolist(), derivatives.tolist(), (gradients * derivatives).tolist(), strict=True
        )
        factor = uses.factor
        return [
            ChainTerm(str(uses.site), index, *three, None if factor is None else factor(index))
            for index, three in zip(uses.indices, numbers, strict=True)
        ]

    def rule(self, site: Site, index: NumberIndex) -> Rule:
        if site.block is None:
            return self._outside(site, index)
        if site.kv_head is not None:
            group = self.config.n_head // self.config.n_kv_head
            heads = range(group * site.kv_head, group * (site.kv_head + 1))
            same = [Site(site.name, site.block, head=head) for head in heads]
            return Rule("shared", [self._same(each, index) for each in same])
        if site.head is not None:
            return self._in_head(site, site.block, site.head, index)
        return self._in_block(site, site.block, index)

    def _outside(self, site: Site, index: NumberIndex) -> Rule:
        t = index[0]
        if site.name in ("embedding", "position"):
            return Rule("sum", [self._same(Site("input", 0), index)])
        if site.name == "final":
            return Rule("linear", [self._linear(unembedded(self.config), "unembedding.W", t, index[1])])
        if site.name == "logits_raw":
            return self._cap(Site("logits"), self.config.logit_cap, index)
        if site.name.startswith("final."):
            x = self.value(self.norm_input("final", None))[t]
            return self._norm_number(site, self.norm_of("final", None), x, t)
        assert site.name in ("logits", "probabilities")
        return Rule("loss", [])

    def _in_block(self, site: Site, i: int, index: NumberIndex) -> Rule:
        t, name = index[0], site.name
        added = Site("output" if self.config.parallel else "middle", i)
        if "." in name:
            normed = name.split(".")[0]
            x = self.value(self.norm_input(normed, i))[t]
            return self._norm_number(site, self.norm_of(normed, i), x, t)
        c = index[1]

        def through(normed: str) -> list[RuleUses]:
            x = self.value(self.norm_input(normed, i))[t]
            return self._norm(Site(normed, i), self.norm_of(normed, i), x, t, c)

        if not self.config.pre_norm and name in ("input", "middle"):
            second = name == "middle" or self.config.parallel
            copies = ["normed"] * (name == "input") + ["normed2"] * second
            after = added if name == "input" else Site("output", i)
            return Rule(
                "residual", [self._same(each, index) for each in (after, *(Site(c, i) for c in copies))]
            )
        if name == "input":
            from_second = through("normed2") if self.config.parallel else []
            return Rule("residual", [self._same(added, index), *through("normed"), *from_second])
        if name == "normed":
            heads = range(self.config.n_head)
            return Rule("linear", [uses for head in heads for uses in self._projections(i, head, t, c)])
        if name in ("attention", "feedforward") and self.config.post_norm:
            return Rule("norm", through(f"{name}_normed"))
        if name in ("attention", "attention_normed"):
            return Rule("sum", [self._same(added, index)])
        if name in ("feedforward", "feedforward_normed"):
            return Rule("sum", [self._same(Site("output", i), index)])
        if name == "middle":
            return Rule("residual", [self._same(Site("output", i), index), *through("normed2")])
        if name == "normed2":
            first = Site("hidden_up" if self.config.gated else "hidden_raw", i)
            uses = [self._linear(first, f"block.{i}.W_1", t, c)]
            if self.config.gated:
                uses.append(self._linear(Site("hidden_gate", i), f"block.{i}.W_gate", t, c))
            return Rule("linear", uses)
        if name == "hidden":
            return Rule("linear", [self._linear(Site("feedforward", i), f"block.{i}.W_2", t, c)])
        if name.startswith("hidden_"):
            return self._activation(name, i, (t, c))
        assert name == "output"
        if i + 1 < self.config.n_block:
            return Rule("same", [self._same(Site("input", i + 1), index)])
        x = self.value(site)[t]
        return Rule("norm", self._norm(Site("final"), self.norm_of("final", None), x, t, c))

    def _in_head(self, site: Site, i: int, head: int, index: NumberIndex) -> Rule:
        (t, c), name = index, site.name

        def at(name: str) -> Site:
            return Site(name, i, head=head)

        T = self.length
        if name == "output":
            return Rule("sum", [self._same(Site("attention", i), index)])
        if name == "mixed":
            write = weight(self.network, f"block.{i}.head.{head}.W_O")[c]
            outputs = [(t, k) for k in range(len(write))]
            return Rule("linear", [RuleUses(at("output"), outputs, write,
                                        lambda k: Factor(f"block.{i}.head.{head}.W_O", (c, k[1])))])  # fmt: skip
        if name == "value":
            weights = self.value(at("weights"))[:, t]
            return Rule("weigh", [RuleUses(at("mixed"), [(q, c) for q in range(T)], weights,
                                       lambda k: Factor(str(at("weights")), (k[0], t)))])  # fmt: skip
        if name == "weights":
            value = self.value(at("value"))[c]
            return Rule("weigh", [RuleUses(at("mixed"), [(t, d) for d in range(len(value))], value,
                                       lambda k: Factor(str(at("value")), (c, k[1])))])  # fmt: skip
        if name == "masked":
            weights = self.value(at("weights"))[t]
            own = torch.zeros_like(weights)
            own[c] = 1.0
            derivatives = weights * (own - weights[c])
            return Rule("softmax", [RuleUses(at("weights"), [(t, s) for s in range(T)], derivatives)])
        if name == "scaled" and self.config.score_cap is not None:
            return self._cap(at("capped"), self.config.score_cap, index)
        if name in ("scaled", "capped"):
            visible = torch.isfinite(self.value(at("masked"))[t, c]).reshape(1)
            return Rule("mask", [RuleUses(at("masked"), [index], visible.to(self.value(site).dtype))])
        if name == "scores":
            divided = torch.tensor([1 / math.sqrt(self.config.d_k)])
            return Rule("divide", [RuleUses(at("scaled"), [index], divided)])
        if name == "query":
            keys = self.value(at("key"))[:, c]
            return Rule("compare", [RuleUses(at("scores"), [(t, s) for s in range(T)], keys,
                                         lambda k: Factor(str(at("key")), (k[1], c)))])  # fmt: skip
        if name == "key":
            queries = self.value(at("query"))[:, c]
            return Rule("compare", [RuleUses(at("scores"), [(q, t) for q in range(T)], queries,
                                         lambda k: Factor(str(at("query")), (k[0], c)))])  # fmt: skip
        role = name.split("_")[0]
        if name.endswith("_raw") and self.config.qk_norm:
            norm = getattr(self.block(i).attention, f"{role}_norm")
            if self.config.qk_norm_joint:
                return self._joint_norm(role, norm, i, head, t, c)
            return self._whole_norm(at(f"{role}_normed"), norm, self.value(site)[t], t, c)
        return self._rotation(at(role), i, t, c)

    def _cap(self, capped: Site, limit: float | None, index: NumberIndex) -> Rule:
        """Through y = cap · tanh(x / cap), whose derivative is 1 - (y / cap)²."""
        assert limit is not None
        y = self.value(capped)[index].double()
        return Rule("cap", [RuleUses(capped, [index], (1 - (y / limit).square()).reshape(1))])

    def _same(self, site: Site, index: NumberIndex) -> RuleUses:
        return RuleUses(site, [index], torch.ones(1))

    def _linear(self, output: Site, name: str, t: int, c: int) -> RuleUses:
        row = weight(self.network, name)[c]
        return RuleUses(output, [(t, k) for k in range(len(row))], row, lambda k: Factor(name, (c, k[1])))

    def _projections(self, i: int, head: int, t: int, c: int) -> list[RuleUses]:
        outputs = {"W_Q": "query_raw", "W_K": "key_raw", "W_V": "value"}
        place = f"block.{i}.head.{head}"
        return [
            self._linear(Site(output, i, head=head), f"{place}.{name}", t, c)
            for name, output in outputs.items()
        ]

    def _norm(self, normed: Site, norm: Norm, x: Tensor, t: int, c: int) -> list[RuleUses]:
        """Through γ (x - μ)/σ + β, with μ and σ as separate sites."""
        mean, scale = self._mean(norm, x), self._scale(norm, x)
        one = torch.ones(1, dtype=x.dtype)
        uses = [RuleUses(normed, [(t, c)], one * norm.gain[c].detach() / scale)]
        if norm.shift is not None:
            uses.append(RuleUses(Site(f"{normed.name}.mean", normed.block), [(t,)], one / len(x)))
        by_scale = one * (x[c] - mean) / (len(x) * scale)
        return [*uses, RuleUses(Site(f"{normed.name}.scale", normed.block), [(t,)], by_scale)]

    def _norm_number(self, site: Site, norm: Norm, x: Tensor, t: int) -> Rule:
        """The rule for μ or σ itself, which every feature of the normalized vector depends on."""
        name, kind = site.name.rsplit(".", 1)
        scale, gain = self._scale(norm, x), norm.gain.detach()
        centered = x - self._mean(norm, x)
        derivatives = -gain / scale if kind == "mean" else -gain * centered / scale**2
        return Rule(kind, [RuleUses(Site(name, site.block), [(t, k) for k in range(len(x))], derivatives)])

    def _whole_norm(self, normed: Site, norm: Norm, x: Tensor, t: int, c: int) -> Rule:
        """QK-norm, whose μ and σ are not sites."""
        unit = (x - self._mean(norm, x)) / self._scale(norm, x)
        own = torch.zeros_like(x)
        own[c] = 1.0
        if norm.shift is not None:
            own = own - 1 / len(x)
        derivatives = norm.gain.detach() * (own - unit * unit[c] / len(x)) / self._scale(norm, x)
        return Rule("whole_norm", [RuleUses(normed, [(t, k) for k in range(len(x))], derivatives)])

    def _joint_norm(self, role: str, norm: Norm, i: int, head: int, t: int, c: int) -> Rule:
        """A QK-norm over all heads together. Heads that share a key have the same gains."""
        heads = range(self.config.n_head)
        x = torch.stack([self.value(Site(f"{role}_raw", i, head=j))[t] for j in heads])  # H D
        gains = norm.gain.detach().view(-1, x.shape[1])
        gains = gains.repeat_interleave(len(x) // len(gains), dim=0)
        scale = (x.pow(2).mean() + norm.epsilon).sqrt()
        own = torch.zeros_like(x)
        own[head, c] = 1.0
        derivatives = gains * (own - x * x[head, c] / scale**2 / x.numel()) / scale
        uses = [
            RuleUses(Site(f"{role}_normed", i, head=j), [(t, k) for k in range(x.shape[1])], derivatives[j])
            for j in heads
        ]
        return Rule("whole_norm", uses)

    def _mean(self, norm: Norm, x: Tensor) -> Tensor:
        return torch.zeros_like(x[0]) if norm.shift is None else x.mean()

    def _scale(self, norm: Norm, x: Tensor) -> Tensor:
        return ((x - self._mean(norm, x)).pow(2).mean() + norm.epsilon).sqrt()

    def _rotation(self, rotated: Site, i: int, t: int, c: int) -> Rule:
        """RoPE rotates each feature together with another one; without it, the vector stays the same."""
        angles = self.part.forward.rotations[i]
        if angles is None or c >= 2 * angles[0].shape[-1]:
            return Rule("same", [self._same(rotated, (t, c))])
        cos, sin = (each[min(self.text, len(each) - 1), t] for each in angles)
        half = len(cos)
        k, partner, sign = (c, c + half, 1) if c < half else (c - half, c - half, -1)
        derivatives = torch.stack((cos[k], sign * sin[k]))
        return Rule("rotate", [RuleUses(rotated, [(t, c), (t, partner)], derivatives)])

    def _activation(self, name: str, i: int, index: NumberIndex) -> Rule:
        f, hidden = self.block(i).feedforward.nonlinearity, Site("hidden", i)
        if name == "hidden_up":
            return Rule(
                "gate", [RuleUses(hidden, [index], f(self.value(Site("hidden_gate", i))[index]).reshape(1))]
            )
        with torch.enable_grad():
            x = self.value(Site(name, i))[index].detach().requires_grad_()
            (derivative,) = torch.autograd.grad(f(x), [x])
        if name == "hidden_gate":
            derivative = derivative * self.value(Site("hidden_up", i))[index]
        return Rule(
            "gate" if self.config.gated else "activation", [RuleUses(hidden, [index], derivative.reshape(1))]
        )


def _find_part(parts: list[SiteGradients], text: int) -> tuple[SiteGradients, int]:
    """The part of the batch that contains a text, and the text's row in it."""
    for part in parts:
        if text < len(part.forward.ids):
            return part, text
        text -= len(part.forward.ids)
    raise AssertionError("the batch has fewer texts")
