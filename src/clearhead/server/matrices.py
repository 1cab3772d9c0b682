"""Matrices on their way to a client: the slice asked for, checked, and sent as raw numbers or as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fastapi import Request
from starlette.responses import JSONResponse, Response
from torch import Tensor

from clearhead.api import inspection as looking
from clearhead.errors import UserError
from clearhead.finite import finite
from clearhead.server.errors import APIError


class Raw(Response):
    """Numbers, one after the other."""

    media_type = "application/octet-stream"


@dataclass(frozen=True)
class Chosen:
    """Some rows and columns of a tensor, all where none are named, and the shape that they have."""

    rows: list[int] | None
    columns: list[int] | None
    shape: list[int]

    def of(self, tensor: Tensor) -> Tensor:
        tensor = tensor if self.rows is None else tensor[self.rows]
        return tensor if self.columns is None else tensor[..., self.columns]


def choose_slice(asked: looking.Slice, shape: list[int]) -> Chosen:
    """The rows and columns that are asked for, checked before anything is computed."""
    rows = _range(asked.rows, shape[0], "rows")
    if len(shape) == 1 and asked.columns is not None:
        raise UserError("there are no columns: it is a number for each row")
    columns = _range(asked.columns, shape[-1], "columns") if len(shape) > 1 else None
    sizes = [shape[0] if rows is None else len(rows), *shape[1:]]
    if columns is not None:
        sizes[-1] = len(columns)
    return Chosen(rows, columns, sizes)


def check_size(shapes: Sequence[Sequence[int]], most: int) -> None:
    count = sum(math.prod(shape) for shape in shapes)
    if count > most:
        raise APIError(400, "too_large", f"{count:,} numbers are more than {most:,}: ask for a slice")


def send_slice(request: Request, chosen: Chosen, read: Callable[[], Tensor]) -> Response:
    """Raw, or as JSON for who asks for it."""
    in_json = "application/json" in request.headers.get("accept", "")
    check_size([chosen.shape], looking.MOST_JSON if in_json else looking.MOST_VALUES)
    if in_json:
        return JSONResponse({"shape": chosen.shape, "values": finite(read().detach().float().tolist())})
    return send_matrices([read()])


def send_matrices(tensors: Sequence[Tensor]) -> Response:
    """One after the other, their shapes in the header."""
    plain = [
        tensor.detach().float().cpu().contiguous().numpy().astype("<f4", copy=False) for tensor in tensors
    ]
    shapes = ";".join(",".join(map(str, each.shape)) for each in plain)
    body = b"".join(each.tobytes() for each in plain)
    return Raw(body, headers={"X-Shape": shapes})


def _range(given: tuple[int, int] | None, count: int, what: str) -> list[int] | None:
    if given is None:
        return None
    first, last = given
    if not 0 <= first < last <= count:
        raise UserError(
            f"{what} {first} to {last}: expected a first one below a last one, within 0 to {count}"
        )
    return list(range(first, last))
