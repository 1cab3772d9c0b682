"""Gradients of a logit, a probability or the loss of a text, and attributions based on them.

Shapes: B sequences, T positions, V tokens in the vocabulary, N points on a path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.errors import UserError, guess
from clearhead.inspect.attribution import Attribution, logit_name
from clearhead.inspect.edits import Edits
from clearhead.inspect.gradient_steps import ForwardPass
from clearhead.inspect.gradients import SiteGradients
from clearhead.inspect.residual_trace import ResidualTrace
from clearhead.inspect.sites import Site, parse_site

OBJECTIVES = ("logit", "probability", "log_probability", "loss")
METHODS = ("gradient_x_input", "integrated_gradients")
POINTS_AT_ONCE = 16  # on the path of integrated gradients; bounds the memory


@dataclass(frozen=True)
class Objective:
    """The number whose gradient is computed.

    `of` is one of OBJECTIVES: the value for `token` after `position`, minus that for `against` if given; or the mean
    loss of the text, which needs no token. In a batch, the number is summed over the sequences.
    """

    of: str
    token: int = 0
    position: int = -1
    against: int | None = None

    def by_logits(self, logits: Tensor) -> Tensor:
        return _gradient(self._of_logits, logits)

    def by_probabilities(self, probabilities: Tensor) -> Tensor:
        if self.of == "logit":  # does not depend on the probabilities
            return torch.zeros_like(probabilities)
        if self.of == "probability":
            return _gradient(self._pick, probabilities)
        return _gradient(lambda each: self._of_log_probabilities(each.log(), each), probabilities)

    def _of_logits(self, logits: Tensor) -> Tensor:
        if self.of == "logit":
            return self._pick(logits)
        if self.of == "probability":
            return self._pick(logits.softmax(-1))
        return self._of_log_probabilities(logits.log_softmax(-1), logits)

    def _of_log_probabilities(self, found: Tensor, _: Tensor) -> Tensor:
        return self._pick(found)

    def _pick(self, table: Tensor) -> Tensor:
        picked = table[:, self.position, self.token].sum()
        return picked if self.against is None else picked - table[:, self.position, self.against].sum()


@dataclass(frozen=True)
class TextLoss(Objective):
    """The mean loss of the next tokens of one text."""

    ids: Tensor | None = field(default=None, compare=False)  # 1 T

    def _of_log_probabilities(self, found: Tensor, _: Tensor) -> Tensor:
        assert self.ids is not None
        return F.nll_loss(found[:, :-1].flatten(0, 1), self.ids[:, 1:].flatten())


def make_objective(
    trace: ResidualTrace, of: str, token: str | int | None, position: int, against: str | int | None
) -> Objective:
    """Check the arguments and return the objective; the default token is the most likely one."""
    trace.check_single()
    if of not in OBJECTIVES:
        raise UserError(f"of = {of!r}: expected one of {', '.join(OBJECTIVES)}{guess(str(of), OBJECTIVES)}")
    if of == "loss":
        if token is not None or against is not None:
            raise UserError("the loss is that of the text's own next tokens: omit token and against")
        if not trace.config.causal:
            raise UserError("this model is bidirectional: a text alone has no loss; use a logit or ch.learn")
        if len(trace) < 2:
            raise UserError("a text of one token has no loss: expected at least two tokens")
        return TextLoss("loss", ids=trace.ids)
    position = trace.check_position(position)
    if token is None:
        token = int(trace.read("logits", rows=position)[0].argmax())
    other = None if against is None else trace.token_id(against)
    return Objective(of, trace.token_id(token), position, other)


def site_gradients(trace: ResidualTrace, objective: Objective) -> SiteGradients:
    """The gradients of the objective with respect to every site of a trace."""
    forward = ForwardPass(
        trace.network,
        trace.ids,
        trace.positions,
        trace.masks,
        list(trace.rotations),
        trace.stream.inputs,
        trace.stream.last,
        trace.edits,
    )
    return SiteGradients(forward, objective.by_logits, objective.by_probabilities)


def attribute_inputs(
    trace: ResidualTrace,
    objective: Objective,
    site: str,
    method: str,
    points: int,
    baseline: float | Tensor,
) -> Attribution:
    """Attribute a logit to the positions of a site, by gradients."""
    if method not in METHODS:
        raise UserError(
            f"method = {method!r}: expected one of {', '.join(METHODS)}{guess(str(method), METHODS)}"
        )
    if type(points) is not int or points < 1:
        raise UserError(f"points = {points!r}: expected an integer of at least 1")
    place = parse_site(site, trace.config)
    if place.name == "masked":
        before = "scaled" if trace.config.score_cap is None else "capped"
        raise UserError(
            f"{site} is -inf where a position may not be attended to: attribute to {before} instead"
        )
    value = trace.read(site).detach()
    start = _check_baseline(baseline, value, site)
    title = logit_name(trace, objective.token, objective.position, objective.against)
    if method == "gradient_x_input":
        gradient = site_gradients(trace, objective).read(place)[0]
        title = f"gradient × input for {title}"
    else:
        gradient = _mean_gradient(trace, objective, place, start, value, points)
        moved = trace.with_edits(Edits.parse({site: start}, trace.config))
        change = _logit(trace, objective) - _logit(moved, objective)
        title = f"integrated gradients for {title}, which differs from that of the baseline by {change:.4f}"
    parts = (value - start) * gradient
    texts = [f"{i} {text}" for i, text in enumerate(trace.pieces[0])]
    return Attribution(texts, parts.flatten(1).sum(1) if parts.dim() > 1 else parts, title)


def _check_baseline(baseline: float | Tensor, value: Tensor, site: str) -> Tensor:
    """The baseline in the shape of the site's value."""
    try:
        return torch.as_tensor(baseline, dtype=value.dtype, device=value.device).expand_as(value)
    except (RuntimeError, TypeError, ValueError):
        given = "×".join(map(str, baseline.shape)) if isinstance(baseline, Tensor) else f"{baseline!r:.60}"
        shape = "×".join(map(str, value.shape))
        raise UserError(f"baseline is {given}: expected a number or a tensor like {site}, {shape}") from None


def _logit(trace: ResidualTrace, objective: Objective) -> float:
    """The logit, or difference of logits, that is attributed."""
    logits = trace.read("logits", rows=objective.position)[0]
    found = logits[objective.token].item()
    return found if objective.against is None else found - logits[objective.against].item()


def _mean_gradient(
    trace: ResidualTrace, objective: Objective, site: Site, start: Tensor, end: Tensor, points: int
) -> Tensor:
    """The mean gradient on the straight path from `start` to `end`, at the midpoints of equal intervals."""
    shares = (torch.arange(points, device=end.device) + 0.5) / points
    total = torch.zeros_like(end)
    for some in torch.split(shares.to(end.dtype), POINTS_AT_ONCE):
        values = start + some.view(-1, *[1] * end.dim()) * (end - start)  # N T …
        edits = replace(Edits.parse({str(site): values}, trace.config), spans=None)
        with torch.no_grad():
            moved = trace.repeat(len(some)).with_edits(edits)
        total += site_gradients(moved, objective).read(site).sum(0)
    return total / points


def _gradient(function: Callable[..., Any], at: Tensor) -> Tensor:
    with torch.enable_grad():
        leaf = at.detach().requires_grad_()
        (found,) = torch.autograd.grad(function(leaf), [leaf])
    return found
