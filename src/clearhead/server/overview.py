"""The routes by which the page sees much at once: several slices, all heads' patterns, all streams' sizes."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

import torch
from fastapi import APIRouter, Request
from starlette.responses import Response
from torch import Tensor

from clearhead.api import inspection
from clearhead.errors import UserError
from clearhead.figures.pooling import pool_weights
from clearhead.inspect.sites import site_shape
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel
from clearhead.server.disconnect import raise_if_cancelled
from clearhead.server.matrices import RawResponse, TensorSlice, check_size, matrices_response, parse_slice
from clearhead.server.responses import MATRICES
from clearhead.server.trace_cache import TraceCache, choose_blocks


def make_router(trace_cache: TraceCache) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["clearhead"])

    @router.post("/sites", response_class=RawResponse, responses=MATRICES)
    async def sites(request: Request, body: inspection.SitesRequest) -> Response:
        """Several slices of sites and weights, one after the other; their shapes with a ; between."""

        def read(cancelled: threading.Event) -> Response:
            model = trace_cache.registry.model(body.model)
            trace = trace_cache.trace(body, cancelled)
            # All is checked before anything is computed.
            found = [_find(each, model, trace) for each in body.reads]
            check_size([chosen.shape for chosen, _ in found], inspection.MOST_VALUES)
            made = []
            for _, read_one in found:
                raise_if_cancelled(cancelled)
                made.append(read_one())
            return matrices_response(made)

        return await trace_cache.run(request, body.model, read)

    @router.post("/patterns", response_class=RawResponse, responses=MATRICES)
    async def patterns(request: Request, body: inspection.PatternsRequest) -> Response:
        """blocks × heads × cells × cells; each row of cells sums to one."""

        def read(cancelled: threading.Event) -> Response:
            trace = trace_cache.trace(body, cancelled)
            size = math.ceil(len(trace) / body.cells)
            made = []
            for i in choose_blocks(body.blocks, trace):
                raise_if_cancelled(cancelled)
                made.append(_patterns(trace, i, size))
            return matrices_response([torch.stack(made)])

        return await trace_cache.run(request, body.model, read)

    @router.post("/streams", response_class=RawResponse, responses=MATRICES)
    async def streams(request: Request, body: inspection.TextRequest) -> Response:
        """blocks × 3 × tokens: the length of the stream entering, and of what the two halves add to it."""

        def read(cancelled: threading.Event) -> Response:
            stream = trace_cache.trace(body, cancelled).stream
            after = [*stream.inputs[1:], stream.last]
            lengths = [
                torch.stack((x[0].norm(dim=-1), (middle - x)[0].norm(dim=-1), (out - middle)[0].norm(dim=-1)))
                for x, middle, out in zip(stream.inputs, stream.middles, after, strict=True)
            ]
            return matrices_response([torch.stack(lengths)])

        return await trace_cache.run(request, body.model, read)

    return router


def _find(
    body: inspection.Read, model: LanguageModel, trace: Trace
) -> tuple[TensorSlice, Callable[[], Tensor]]:
    """What the slice is, and how it is read."""
    if body.weight is not None and body.site is None:
        tensor = model.weight(body.weight)
        chosen = parse_slice(body, list(tensor.shape))
        return chosen, lambda: chosen.of(tensor)
    if body.site is not None and body.weight is None:
        site = body.site
        chosen = parse_slice(body, site_shape(site, trace.config, len(trace)))
        return chosen, lambda: trace.read(site, chosen.rows, chosen.columns)
    raise UserError("a read: give a site or a weight")


def _patterns(trace: Trace, block: int, size: int) -> Tensor:
    weights = trace.weights(block).float().cpu().numpy()
    return torch.as_tensor(pool_weights(weights, size, size))
