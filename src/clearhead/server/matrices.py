"""Matrices on their way to a client: the slice asked for, checked, and sent as raw numbers or as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fastapi import Request
from starlette.responses import JSONResponse, Response
from torch import Tensor

from clearhead.api import inspection
from clearhead.errors import UserError
from clearhead.finite import finite
from clearhead.server.errors import APIError


class RawResponse(Response):
    """Numbers, one after the other."""

    media_type = "application/octet-stream"


@dataclass(frozen=True)
class TensorSlice:
    """Some rows and columns of a tensor, all where none are named, and the shape that they have."""

    rows: list[int] | None
    columns: list[int] | None
    shape: list[int]

    def of(self, tensor: Tensor) -> Tensor:
        tensor = tensor if self.rows is None else tensor[self.rows]
        return tensor if self.columns is None else tensor[..., self.columns]


def parse_slice(body: inspection.Slice, shape: list[int]) -> TensorSlice:
    """The rows and columns that are asked for, checked before anything is computed."""
    rows = _range(body.rows, shape[0], "rows")
    if len(shape) == 1 and body.columns is not None:
        raise UserError("there are no columns: it is a number for each row")
    columns = _range(body.columns, shape[-1], "columns") if len(shape) > 1 else None
    sizes = [shape[0] if rows is None else len(rows), *shape[1:]]
    if columns is not None:
        sizes[-1] = len(columns)
    return TensorSlice(rows, columns, sizes)


def check_size(shapes: Sequence[Sequence[int]], most: int) -> None:
    count = sum(math.prod(shape) for shape in shapes)
    if count > most:
        raise APIError(400, "too_large", f"{count:,} numbers are more than {most:,}: ask for a slice")


def slice_response(request: Request, chosen: TensorSlice, read: Callable[[], Tensor]) -> Response:
    """RawResponse, or as JSON for who asks for it."""
    in_json = "application/json" in request.headers.get("accept", "")
    check_size([chosen.shape], inspection.MOST_JSON if in_json else inspection.MOST_VALUES)
    if in_json:
        return JSONResponse({"shape": chosen.shape, "values": finite(read().detach().float().tolist())})
    return matrices_response([read()])


def matrices_response(tensors: Sequence[Tensor]) -> Response:
    """One after the other, their shapes in the header."""
    plain = [
        tensor.detach().float().cpu().contiguous().numpy().astype("<f4", copy=False) for tensor in tensors
    ]
    shapes = ";".join(",".join(map(str, each.shape)) for each in plain)
    body = b"".join(each.tobytes() for each in plain)
    return RawResponse(body, headers={"X-Shape": shapes})


def _range(given: tuple[int, int] | None, count: int, what: str) -> list[int] | None:
    if given is None:
        return None
    first, last = given
    if not 0 <= first < last <= count:
        raise UserError(
            f"{what} {first} to {last}: expected a first one below a last one, within 0 to {count}"
        )
    return list(range(first, last))
