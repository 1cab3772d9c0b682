"""The routes that compute one training step on a text, and return every number in it."""

from __future__ import annotations

import math
from typing import Any

import torch
from fastapi import APIRouter
from starlette.responses import Response
from torch import Tensor

from clearhead.api import lessons as api
from clearhead.finite import finite
from clearhead.inspect.indexing import check_index
from clearhead.inspect.sites import Site
from clearhead.lessons.chain_rule import NumberIndex
from clearhead.lessons.effect import measure_effect
from clearhead.lessons.lesson import Lesson
from clearhead.lessons.token_parts import TokenParts
from clearhead.model.config import Config
from clearhead.server.matrices import parse_slice, slice_response
from clearhead.server.queries import Query, add_query
from clearhead.server.route_descriptions import MATRIX, MODEL_ERRORS
from clearhead.server.trace_cache import TraceCache, encode
from clearhead.text.tokens import IGNORED


def make_router(trace_cache: TraceCache) -> APIRouter:
    router = APIRouter(prefix="/api/lesson", tags=["clearhead"])
    add_query(router, trace_cache, "", lesson, responses=MODEL_ERRORS)
    add_query(router, trace_cache, "/gradient", gradient, responses=MATRIX)
    for path, answer in (("/errors", errors), ("/chain", chain), ("/update", update), ("/step", step)):
        add_query(router, trace_cache, path, answer, responses=MODEL_ERRORS)
    return router


def lesson(body: api.LessonRequest, query: Query) -> api.LessonResponse:
    """Compute one training step on a text, and return its losses and the size of the gradient at each stage."""
    lesson = _find(body, query)
    config, targets, losses = lesson.network.config, lesson.target_ids[0].tolist(), lesson.losses.tolist()
    stages = list_stages(config)
    columns = [lesson.gradient[stage].float().norm(dim=-1) for stage in stages]
    recipe = lesson.trainer.recipe
    return api.LessonResponse(
        ids=lesson.ids[0].tolist(),
        tokens=lesson.texts[0],
        targets=[
            None if i == IGNORED else _target(i, text, loss)
            for i, text, loss in zip(targets, lesson.target_texts[0], losses, strict=True)
        ],
        n_targets=sum(i != IGNORED for i in targets),
        loss=finite(lesson.loss),
        gradient_norm=finite(lesson.gradient_norm),
        clip=recipe.clip,
        optimizer=recipe.optimizer,
        learning_rate=lesson.learning_rate,
        stages=stages,
        norms=finite(torch.stack(columns, dim=1).tolist()),
    )


def gradient(body: api.GradientRequest, query: Query) -> Response:
    """Return the gradient with respect to a site or a weight, or a slice of it, as raw float32 or as JSON."""
    lesson = _find(body, query)
    part = parse_slice(body, lesson.gradient.shape(body.name))
    return slice_response(query.request, part, lambda: part.of(lesson.gradient[body.name]))


def errors(body: api.LogitErrorsRequest, query: Query) -> api.LogitErrorsResponse:
    """Return p - y at the logits of one position."""
    lesson = _find(body, query)
    position = check_index(body.position, lesson.ids.shape[1], "position")
    target = int(lesson.target_ids[0, position])
    gradients, probabilities = lesson.gradient["logits"][position], lesson.value("probabilities")[position]
    if target == IGNORED:
        return api.LogitErrorsResponse(errors=[], n_others=0, others=0.0)
    difference = probabilities.double()
    difference[target] -= 1
    ids = difference.abs().topk(min(body.count, len(difference))).indices
    others = difference.sum() - difference[ids].sum()
    return api.LogitErrorsResponse(
        errors=[
            api.LogitError(
                id=i,
                text=text,
                probability=finite(probabilities[i].item()),
                is_target=i == target,
                error=finite(difference[i].item()),
                gradient=finite(gradients[i].item()),
            )
            for i, text in zip(ids.tolist(), _spell(lesson, ids), strict=True)
        ],
        n_others=len(difference) - len(ids),
        others=finite(others.item()),
    )


def chain(body: api.ChainRequest, query: Query) -> api.ChainResponse:
    """Return the gradient of one number by the chain rule."""
    lesson = _find(body, query)
    found = lesson.chain(body.name, body.row, body.column)
    of_loss = found.kind == "loss"
    rest = found.terms[body.count :]
    return api.ChainResponse(
        **_place(found.name, found.at),
        value=finite(found.value),
        gradient=finite(found.gradient),
        kind=found.kind,
        terms=[
            api.ChainTermValue(
                **_place(term.name, term.at),
                gradient=finite(term.gradient),
                derivative=finite(term.derivative),
                value=finite(term.value),
                factor=None if term.factor is None else api.NumberPlace(**_place(*term.factor)),
            )
            for term in found.terms[: body.count]
        ],
        n_others=len(rest),
        others=finite(math.fsum(term.value for term in rest)),
        probability=finite(lesson.value("probabilities")[found.at].item()) if of_loss else None,
        is_target=of_loss and int(lesson.target_ids[0, found.at[0]]) == found.at[-1],
    )


def update(body: api.UpdateRequest, query: Query) -> api.UpdateResponse:
    """Return what the step does to one number in a weight, and which tokens contribute most to its gradient."""
    lesson = _find(body, query)
    by_position = lesson.tokens(body.name, body.row, body.column)
    by_target = lesson.tokens(body.name, body.row, body.column, by="target")
    query.check_connected()
    changes = lesson.update(body.name)
    index = (body.row,) if body.column is None else (body.row, body.column)
    numbers = changes.at(*index)
    before, after = numbers.pop("before"), numbers.pop("after")
    return api.UpdateResponse(
        before=finite(before),
        gradient=finite(lesson.gradient[body.name][index].item()),
        terms=[api.UpdateTerm(name=name, value=finite(value)) for name, value in numbers.items()],
        after=finite(after),
        cause=changes.cause(*index),
        learning_rate=changes.learning_rate,
        weight_decay=changes.weight_decay,
        epsilon=changes.epsilon,
        positions=_parts(by_position, body.count),
        targets=_parts(by_target, body.count),
    )


def step(body: api.StepRequest, query: Query) -> api.StepResponse:
    """Take one or more steps on a copy of the model, and return what changes."""
    lesson = _find(body, query)
    other = None if not body.other else encode(query.model(body.model), body.other)
    effect = measure_effect(lesson, other, body.count, query.check_connected, body.steps)
    targets = lesson.target_ids[0].tolist()
    texts = _spell(lesson, torch.tensor([each.id for each in effect.probabilities]))
    return api.StepResponse(
        loss=_change(effect.loss),
        losses=[
            _change(both)
            for both in zip(effect.losses_before[0].tolist(), effect.losses[0].tolist(), strict=True)
        ],
        other=None if effect.other is None else _change(effect.other),
        steps=[
            api.LossesOfStep(loss=_change(loss), other=None if other is None else _change(other))
            for loss, other in effect.steps
        ],
        expected=finite(effect.expected),
        weights=[api.WeightMove(**finite(each._asdict())) for each in effect.weights],
        probabilities=[
            api.ProbabilityMove(
                position=each.position,
                id=each.id,
                text=text,
                is_target=targets[each.position] == each.id,
                before=finite(each.before),
                after=finite(each.after),
            )
            for each, text in zip(effect.probabilities, texts, strict=True)
        ],
    )


def list_stages(config: Config) -> list[str]:
    """The sites of the residual stream and the logits, in the order of the forward pass."""
    blocks = [
        str(Site(name, i))
        for i in range(config.n_block)
        for name in (("output",) if config.parallel else ("middle", "output"))
    ]
    return ["embedding", *blocks, "final", "logits"]


def _find(body: api.LessonRequest, query: Query) -> Lesson:
    model = query.model(body.model)
    model.transformer("a lesson")  # raises an error for a network of a different kind
    query.check_connected()
    ids = encode(model, body.text)
    return query.trace_cache.lessons.get(body.model, model, ids, body.number, query.check_connected)


def _target(i: int, text: str | None, loss: float) -> api.LessonTarget:
    return api.LessonTarget(id=i, text=text or "", probability=finite(math.exp(-loss)), loss=finite(loss))


def _spell(lesson: Lesson, ids: Tensor) -> list[str]:
    return [lesson.tokenizer.pieces([i])[0] for i in ids.tolist()]


def _place(name: str, at: NumberIndex) -> dict[str, Any]:
    return {"name": name, "row": at[0], "column": at[1] if len(at) > 1 else None}


def _parts(parts: TokenParts, count: int) -> api.TokenContributions:
    shown = parts.top(count)
    return api.TokenContributions(
        parts=[api.TokenContribution(position=each.position, value=finite(each.value)) for each in shown],
        n_others=parts.values.numel() - len(shown),
        others=finite(parts.others(count)),
    )


def _change(change: tuple[float, float]) -> api.LossBeforeAfter:
    before, after = change
    return api.LossBeforeAfter(before=finite(before), after=finite(after))
