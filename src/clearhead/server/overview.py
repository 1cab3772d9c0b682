"""The routes by which the page sees much at once: several slices, all heads' patterns, all streams' sizes."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

import torch
from fastapi import APIRouter, Request
from starlette.responses import Response
from torch import Tensor

from clearhead.api import inspection as looking
from clearhead.errors import UserError
from clearhead.figures.pooling import pool_weights
from clearhead.inspect.sites import site_shape
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel
from clearhead.server.description import MATRICES
from clearhead.server.disconnect import stop_if
from clearhead.server.matrices import Chosen, Raw, check_size, choose_slice, send_matrices
from clearhead.server.trace_cache import TraceCache, choose_blocks


def make_routes(desk: TraceCache) -> APIRouter:
    routes = APIRouter(prefix="/api", tags=["clearhead"])

    @routes.post("/sites", response_class=Raw, responses=MATRICES)
    async def sites(request: Request, asked: looking.SitesRequest) -> Response:
        """Several slices of sites and weights, one after the other; their shapes with a ; between."""

        def read(left: threading.Event) -> Response:
            model = desk.shelf.model(asked.model)
            trace = desk.trace(asked, left)
            # All is checked before anything is computed.
            found = [_find(each, model, trace) for each in asked.reads]
            check_size([chosen.shape for chosen, _ in found], looking.MOST_VALUES)
            made = []
            for _, read_one in found:
                stop_if(left)
                made.append(read_one())
            return send_matrices(made)

        return await desk.do(request, asked.model, read)

    @routes.post("/patterns", response_class=Raw, responses=MATRICES)
    async def patterns(request: Request, asked: looking.PatternsRequest) -> Response:
        """blocks × heads × cells × cells; each row of cells sums to one."""

        def read(left: threading.Event) -> Response:
            trace = desk.trace(asked, left)
            size = math.ceil(len(trace) / asked.cells)
            made = []
            for i in choose_blocks(asked.blocks, trace):
                stop_if(left)
                made.append(_patterns(trace, i, size))
            return send_matrices([torch.stack(made)])

        return await desk.do(request, asked.model, read)

    @routes.post("/streams", response_class=Raw, responses=MATRICES)
    async def streams(request: Request, asked: looking.TextRequest) -> Response:
        """blocks × 3 × tokens: the length of the stream entering, and of what the two halves add to it."""

        def read(left: threading.Event) -> Response:
            stream = desk.trace(asked, left).stream
            after = [*stream.inputs[1:], stream.last]
            lengths = [
                torch.stack((x[0].norm(dim=-1), (middle - x)[0].norm(dim=-1), (out - middle)[0].norm(dim=-1)))
                for x, middle, out in zip(stream.inputs, stream.middles, after, strict=True)
            ]
            return send_matrices([torch.stack(lengths)])

        return await desk.do(request, asked.model, read)

    return routes


def _find(asked: looking.Read, model: LanguageModel, trace: Trace) -> tuple[Chosen, Callable[[], Tensor]]:
    """What the slice is, and how it is read."""
    if asked.weight is not None and asked.site is None:
        tensor = model.weight(asked.weight)
        chosen = choose_slice(asked, list(tensor.shape))
        return chosen, lambda: chosen.of(tensor)
    if asked.site is not None and asked.weight is None:
        site = asked.site
        chosen = choose_slice(asked, site_shape(site, trace.config, len(trace)))
        return chosen, lambda: trace.read(site, chosen.rows, chosen.columns)
    raise UserError("a read: give a site or a weight")


def _patterns(trace: Trace, block: int, size: int) -> Tensor:
    weights = trace.weights(block).float().cpu().numpy()
    return torch.as_tensor(pool_weights(weights, size, size))
