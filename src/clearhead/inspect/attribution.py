"""Exact attributions: what contributes to a token's logit, and what contributes to an attention score.

The residual stream is the sum of what every component wrote into it. With the scales of the norms treated as
constants, a logit or a score is linear in the stream, so it splits into one part per component. Shapes: N
parts, C features of the stream, D features per head.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from clearhead.errors import UserError
from clearhead.inspect.block_steps import norm_scale
from clearhead.inspect.residual_trace import ResidualTrace
from clearhead.inspect.sites import Site, unembedded
from clearhead.model.block import Block
from clearhead.model.norm import Norm
from clearhead.model.position import rotate
from clearhead.summary_table import TableCell, html_table, text_table

EDITS = "edits"  # the part contributed by edits
SHOWN, SHOWN_IN_TEXT = 10, 5  # parts in a notebook's table and in `repr`


@dataclass(frozen=True, repr=False)
class Attribution:
    """The contributions of all components, which sum to a logit or to the difference between two logits."""

    names: list[str]
    values: Tensor  # N
    title: str = ""

    @property
    def total(self) -> float:
        return self.values.sum().item()

    def top(self, count: int = 10) -> list[tuple[str, float]]:
        """Return the parts with the largest absolute contribution."""
        order = self.values.abs().argsort(descending=True, stable=True)[:count].tolist()
        return [(self.names[i], self.values[i].item()) for i in order]

    def __repr__(self) -> str:
        parts = text_table((), [(f"  {name}", f"{value:+.4f}") for name, value in self.top(SHOWN_IN_TEXT)])
        more = "\n  …" if len(self.names) > SHOWN_IN_TEXT else ""
        return f"Attribution({_heading(self)})\n{parts}{more}"

    def _repr_html_(self) -> str:
        rows: list[tuple[TableCell, ...]] = [*self.top(SHOWN)]
        if others := len(self.names) - len(rows):
            rows.append((f"{others:,} others", self.total - sum(value for _, value in self.top(SHOWN))))
        return html_table(("part", "contribution"), rows, _heading(self))

    def __getitem__(self, name: str) -> float:
        if name not in self.names:
            raise UserError(f"{name!r} is not a part; expected one of {', '.join(self.names[:6])}, …")
        return self.values[self.names.index(name)].item()


@dataclass(frozen=True, repr=False)
class ScoreAttribution:
    """A score q·k decomposed by what each component wrote at the query position and at the key position.

    If it is a difference, the columns hold what is written at one key position minus what is written at the other.
    """

    names: list[str]
    values: Tensor  # N N: rows for the query side, columns for the key side
    title: str = ""

    @property
    def total(self) -> float:
        return self.values.sum().item()

    @property
    def by_key(self) -> Attribution:
        """Sum over the query's parts: what each component's writing at the key position contributes."""
        return Attribution(self.names, self.values.sum(0), f"{self.title}, by what was written at the key")

    @property
    def by_query(self) -> Attribution:
        """Sum over the key's parts: what each component's writing at the query position contributes."""
        return Attribution(self.names, self.values.sum(1), f"{self.title}, by what was written at the query")

    def top(self, count: int = 10) -> list[tuple[str, str, float]]:
        """Return the pairs with the largest absolute contribution: query part, key part, value."""
        order = self.values.flatten().abs().argsort(descending=True)[:count].tolist()
        pairs = [divmod(i, len(self.names)) for i in order]
        return [(self.names[a], self.names[b], self.values[a, b].item()) for a, b in pairs]

    def __repr__(self) -> str:
        top = self.top(SHOWN_IN_TEXT)
        parts = text_table((), [(f"  {query} · {key}", f"{value:+.4f}") for query, key, value in top])
        more = "\n  …" if self.values.numel() > SHOWN_IN_TEXT else ""
        return f"ScoreAttribution({_heading(self)})\n{parts}{more}"

    def _repr_html_(self) -> str:
        rows: list[tuple[TableCell, ...]] = [*self.top(SHOWN)]
        if others := self.values.numel() - len(rows):
            rest = self.total - sum(value for *_, value in self.top(SHOWN))
            rows.append((f"{others:,} others", "", rest))
        return html_table(("query part", "key part", "contribution"), rows, _heading(self))


def _heading(attribution: Attribution | ScoreAttribution) -> str:
    """What is attributed, and its value."""
    title = f"{attribution.title}: " if attribution.title else ""
    parts = "parts" if isinstance(attribution, Attribution) else "pairs of parts"
    return f"{title}{attribution.total:.4f}, the sum of {attribution.values.numel():,} {parts}"


def attribute_logit(
    trace: ResidualTrace, token: int, position: int, against: int | None = None
) -> Attribution:
    """Decompose a token's logit at a position, minus that of `against` if given, into one part per component.

    A soft-capped logit is not a sum of parts: what is decomposed is the logit before the cap.
    """
    network = trace.network
    names, parts = _stack(written(trace, position, trace.config.n_block))
    scale = trace.read("final.scale").reshape(-1)[position]
    names, parts = through_norm(network.final_norm, names, parts, scale, "final.shift")
    if trace.edits.of(None).made:
        names, parts = _with_edits(names, parts, trace.read("final", rows=position)[0])
    values = parts @ logit_direction(trace, token, against)
    if trace.edits.touch(unembedded(trace.config)):
        logit = read_logit(trace, token, position, against)
        names, values = _with_edits(names, values[:, None], logit[None])
        values = values[:, 0]
    return Attribution(names, values, attributed_name(trace, token, position, against))


def logit_direction(trace: ResidualTrace, token: int, against: int | None) -> Tensor:
    """Return the direction whose dot product with the normalized stream is a logit or a difference of logits: C."""
    weight = trace.network.unembedding.weight
    return weight[token] if against is None else weight[token] - weight[against]


def read_logit(trace: ResidualTrace, token: int, position: int, against: int | None) -> Tensor:
    """Return a token's logit at a position, before a cap, minus that of `against` if given."""
    logits = trace.read(str(unembedded(trace.config)), rows=position)[0]
    return logits[token] if against is None else logits[token] - logits[against]


def attributed_name(trace: ResidualTrace, token: int, position: int, against: int | None) -> str:
    """Name the logit, or difference of logits, that is decomposed."""
    name = logit_name(trace, token, position, against)
    return name if trace.config.logit_cap is None else f"{name}, before the cap"


def logit_name(trace: ResidualTrace, token: int, position: int, against: int | None) -> str:
    names = [f"the logit of {text!r}" for text in trace.token_texts([token])]
    if against is not None:
        names += [f"that of {text!r}" for text in trace.token_texts([against])]
    return f"{' minus '.join(names)} after position {position}"


def attribute_score(
    trace: ResidualTrace,
    block: int,
    head: int,
    query_position: int,
    key_position: int,
    against: int | None = None,
) -> ScoreAttribution:
    """Decompose a head's score between two positions by what each component wrote before the head's block.

    With `against`, decompose the difference from the score of another key position.
    """
    if trace.edits.touch(Site("scores", block, head=head)):
        raise UserError(f"block.{block}.head.{head}.scores is edited: an edited score is not a sum of parts")
    _, query = _side(trace, block, head, query_position, "query")
    names, key = _side(trace, block, head, key_position, "key")
    title = f"the score of block {block}, head {head}, from position {query_position} to {key_position}"
    if against is not None:
        key = key - _side(trace, block, head, against, "key")[1]
        title += f" minus that to {against}"
    return ScoreAttribution(names, query @ key.T, title)


def _side(trace: ResidualTrace, block: int, head: int, position: int, name: str) -> tuple[list[str], Tensor]:
    """Return the parts of a query or a key: N D."""
    module = trace.network.blocks[block]
    assert isinstance(module, Block)
    attention = module.attention
    if name == "query":
        linear, norm, own = attention.query, attention.query_norm, head
    else:
        shared = head // (trace.config.n_head // trace.config.n_kv_head)
        linear, norm, own = attention.key, attention.key_norm, shared
    edited = bool(trace.edits.of(block).made)
    names, parts = _stack(written(trace, position, block))
    if edited:  # after each step, what the edits changed becomes a separate part
        names, parts = _with_edits(names, parts, trace.read(f"block.{block}.input", rows=position)[0])
    if isinstance(module.norm, Norm):
        scale = trace.read(f"block.{block}.normed.scale")[position]
        names, parts = through_norm(module.norm, names, parts, scale, "shift")
    if edited:
        names, parts = _with_edits(names, parts, trace.read(f"block.{block}.normed", rows=position)[0])
    names, parts = _through_linear(linear, own, trace.config.d_head, names, parts)
    raw = trace.read(f"block.{block}.head.{head}.{name}_raw", rows=position)[0]
    if edited:
        names, parts = _with_edits(names, parts, raw)
    if norm is not None and trace.config.qk_norm_joint:
        scale = trace.steps(block).joint_scale(name)[0, 0, position]
        parts = norm.gain.view(-1, trace.config.d_head)[own] * parts / scale
    elif norm is not None:
        names, parts = through_norm(norm, names, parts, norm_scale(norm, raw), "head shift")
    if trace.rotations[block] is not None:
        cos, sin = (angles[:, position : position + 1] for angles in trace.rotations[block] or ())
        parts = rotate(parts[None, :, None], (cos, sin))[0, :, 0]
    if edited:
        actual = trace.read(f"block.{block}.head.{head}.{name}", rows=position)[0]
        names, parts = _with_edits(names, parts, actual)
    return names, parts


def _with_edits(names: list[str], parts: Tensor, actual: Tensor) -> tuple[list[str], Tensor]:
    """Attribute the difference between the actual value and the sum of the parts to the edits."""
    missing = actual - parts.sum(0)
    if EDITS not in names:
        return [*names, EDITS], torch.cat((parts, missing[None]))
    at = names.index(EDITS)
    return names, torch.cat((parts[:at], (parts[at] + missing)[None], parts[at + 1 :]))


def written(trace: ResidualTrace, position: int, until: int) -> Iterator[tuple[str, Tensor]]:
    """Yield what each component wrote at a position before a block, by name; the sum is the residual stream."""
    total = torch.zeros_like(trace.stream.last[0, position])
    for name, part in _written(trace, position, until):
        total = total + part
        yield name, part
    stream = trace.stream.inputs[until] if until < trace.config.n_block else trace.stream.last
    if trace.edits.made:
        yield EDITS, stream[0, position] - total


def _written(trace: ResidualTrace, position: int, until: int) -> Iterator[tuple[str, Tensor]]:
    row = torch.tensor([position], device=trace.ids.device)
    yield "embedding", trace.read("embedding")[position]
    if trace.config.position in ("learned", "sinusoidal"):
        yield "position", trace.read("position")[position]
    for i in range(until):
        edited = bool(trace.edits.of(i).made)
        steps = trace.steps(i, rows=None if edited else row)
        module = trace.network.blocks[i]
        assert isinstance(module, Block)
        outputs = steps.head_output[0, :, position if edited else 0]
        names = [f"block.{i}.head.{j}.output" for j in range(len(outputs))]
        bias: Tensor | None = module.attention.output.bias
        if bias is not None:
            names, outputs = [*names, f"block.{i}.attention.bias"], torch.cat((outputs, bias[None]))
        yield from _added(trace, i, "attention", module.attention_norm, names, outputs, position)
        feedforward = trace.read(f"block.{i}.feedforward")[position]
        names, outputs, bias = [f"block.{i}.feedforward"], feedforward[None], module.feedforward.second.bias
        if bias is not None:
            names, outputs = [*names, f"block.{i}.feedforward.bias"], torch.stack((feedforward - bias, bias))
        yield from _added(trace, i, "feedforward", module.feedforward_norm, names, outputs, position)


def _added(
    trace: ResidualTrace, i: int, half: str, norm: nn.Module, names: list[str], parts: Tensor, position: int
) -> Iterator[tuple[str, Tensor]]:
    """Yield what the parts of one half of a block add to the stream, after the post-norm if there is one."""
    if isinstance(norm, Norm):
        scale = trace.read(f"block.{i}.{half}_normed.scale")[position]
        names, parts = through_norm(norm, names, parts, scale, f"block.{i}.{half}_normed.shift")
    yield from zip(names, parts, strict=True)


def through_norm(
    norm: Norm, names: list[str], parts: Tensor, scale: Tensor, shift: str
) -> tuple[list[str], Tensor]:
    """Apply a norm with a fixed scale to each part; its shift β becomes one more part."""
    if norm.shift is None:
        return names, norm.gain * parts / scale
    centered = parts - parts.mean(-1, keepdim=True)
    return [*names, shift], torch.cat((norm.gain * centered / scale, norm.shift[None]))


def _through_linear(
    linear: nn.Linear, head: int, d_head: int, names: list[str], parts: Tensor
) -> tuple[list[str], Tensor]:
    """Project each part with the matrix of one head; the bias becomes one more part."""
    own = slice(d_head * head, d_head * (head + 1))
    projected = parts @ linear.weight[own].T
    bias: Tensor | None = linear.bias
    return (names, projected) if bias is None else ([*names, "bias"], torch.cat((projected, bias[None, own])))


def _stack(parts: Iterator[tuple[str, Tensor]]) -> tuple[list[str], Tensor]:
    names, tensors = zip(*parts, strict=True)
    return list(names), torch.stack(tensors)
