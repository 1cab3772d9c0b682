"""The routes for the steps of a training run: how far a head moved, and which texts moved it."""

from __future__ import annotations

import math
from collections import OrderedDict
from itertools import pairwise
from pathlib import Path

from fastapi import APIRouter

from clearhead.api import lessons as api
from clearhead.errors import UserError
from clearhead.finite import finite
from clearhead.formats.opening import find_snapshot, open_model
from clearhead.inspect.indexing import check_index
from clearhead.lessons.effect import changed_weights
from clearhead.lessons.head_rows import HEAD_WEIGHTS, head_rows
from clearhead.model.config import Config
from clearhead.model.transformer import Transformer
from clearhead.runs.listing import describe_run
from clearhead.runs.run_lesson import TEXT_MISSING
from clearhead.server.errors import APIError
from clearhead.server.queries import Query, add_query
from clearhead.server.route_descriptions import MODEL_ERRORS
from clearhead.server.run_registry import RunRegistry
from clearhead.server.trace_cache import TraceCache

MAX_CACHED = 256  # pairs of snapshots
Moves = dict[str, float]  # the relative change in each weight


class RunLessons:
    """Compares the snapshots of runs, each pair once."""

    def __init__(self, runs: RunRegistry) -> None:
        self.runs = runs
        self._moves: OrderedDict[tuple[Path, int, int], Moves] = OrderedDict()

    def head_moves(self, body: api.HeadMovesRequest, query: Query) -> api.HeadMovesResponse:
        """Return how far a head's weights moved between successive snapshots of a run, and then to its model."""
        folder = self._find(body.run)
        run, before = describe_run(folder), None
        last = run.steps_done if run.finished else None  # the step whose weights are those of the run's model
        steps = sorted({*run.snapshots, *([] if last is None else [last])})
        found = []
        for start, end in pairwise(steps):
            query.check_connected()
            key = folder, start, end
            if key not in self._moves:
                before = before or _open(find_snapshot(folder, start))
                after = _open(folder if end == last else find_snapshot(folder, end))
                changed = changed_weights(before, after)
                self._moves[key], before = {each.name: each.relative for each in changed}, after
                if len(self._moves) > MAX_CACHED:
                    self._moves.popitem(last=False)
            else:
                before = None
            found.append(_of_head(self._moves[key], body, start, end))
        return api.HeadMovesResponse(moves=found)

    def batch(self, body: api.RunBatchRequest, query: Query) -> api.RunBatchResponse:
        """Compute the batch of a run's step again, and return the texts that move a head most."""
        folder = self._find(body.run)
        try:
            lesson = describe_run(folder).lesson(body.step, repeat=0, device="cpu")
        except UserError as error:
            raise _not_repeatable(error, body) from error
        _check_head(lesson.network.config, body)
        query.check_connected()
        norms, losses = head_rows(lesson, body.block, body.head), lesson.losses.nanmean(-1)
        largest = norms.argsort(descending=True)[: body.count].tolist()
        return api.RunBatchResponse(
            step=body.step,
            loss=finite(lesson.loss),
            rows=[
                api.BatchRow(
                    text=lesson.tokenizer.decode(lesson.ids[row].tolist()),
                    loss=finite(losses[row].item()),
                    gradient=finite(norms[row].item()),
                )
                for row in largest
            ],
            n_rows=len(norms),
        )

    def _find(self, name: str) -> Path:
        folder = self.runs.find(name)
        if folder is None:
            raise APIError(404, "run_not_found", f"the run {name!r} does not exist", "run", name=name)
        return folder


def make_router(trace_cache: TraceCache, runs: RunRegistry) -> APIRouter:
    router, lessons = APIRouter(prefix="/api/lesson", tags=["clearhead"]), RunLessons(runs)

    def moves(body: api.HeadMovesRequest, query: Query) -> api.HeadMovesResponse:
        """Return how far a head's weights moved between successive snapshots of a run, and then to its model."""
        return lessons.head_moves(body, query)

    def batch(body: api.RunBatchRequest, query: Query) -> api.RunBatchResponse:
        """Compute the batch of a run's step again, and return the texts that move a head most."""
        return lessons.batch(body, query)

    for path, answer in (("/moves", moves), ("/batch", batch)):
        add_query(router, trace_cache, path, answer, models=lambda _: (), responses=MODEL_ERRORS)
    return router


def _open(folder: Path) -> Transformer:
    network = open_model(folder).network
    if not isinstance(network, Transformer):
        raise UserError("only a transformer has heads: choose another run")
    return network


def _not_repeatable(error: UserError, body: api.RunBatchRequest) -> APIError:
    """An error that says why a step cannot be computed again; the message of `error` may contain paths."""
    code = "step_not_kept"
    message = f"step {body.step} of the run {body.run!r} cannot be computed again"
    if error.code == TEXT_MISSING:
        code = TEXT_MISSING
        message += (
            ": the training text is not on this machine. To see which texts move a head, train a model of your own "
            "with snapshots: clearhead train my.txt --snapshots 5"
        )
    else:
        message += ": the state before it is missing, or depends on several processes"
    return APIError(400, code, message, "step", name=body.run, step=body.step)


def _of_head(moves: Moves, body: api.HeadMovesRequest, start: int, end: int) -> api.HeadMove:
    place = f"block.{body.block}.head.{body.head}"
    if f"{place}.{HEAD_WEIGHTS[0]}" not in moves:
        message = f"{place} does not exist in the run {body.run!r}"
        raise APIError(400, "head_not_found", message, "head", block=body.block, head=body.head)
    weights = {name: finite(moves.get(f"{place}.{name}", math.nan)) for name in HEAD_WEIGHTS}
    return api.HeadMove(start=start, end=end, weights=weights)


def _check_head(config: Config, body: api.HeadMovesRequest) -> None:
    check_index(body.block, config.n_block, "block")
    check_index(body.head, config.n_head, "head")
