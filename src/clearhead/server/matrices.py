"""Responses with matrices: the requested slice, as raw float32 or as JSON."""

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
    """Little-endian float32 values."""

    media_type = "application/octet-stream"


@dataclass(frozen=True)
class TensorSlice:
    """Rows and columns of a tensor (None selects all of them), and the shape of the result."""

    rows: list[int] | None
    columns: list[int] | None
    shape: list[int]

    def of(self, tensor: Tensor) -> Tensor:
        tensor = tensor if self.rows is None else tensor[self.rows]
        return tensor if self.columns is None else tensor[..., self.columns]


def parse_slice(body: inspection.Slice, shape: list[int]) -> TensorSlice:
    """Validate the requested rows and columns of a tensor of this shape, before anything is computed."""
    rows = _parse_range(body.rows, shape[0], "rows")
    if len(shape) == 1 and body.columns is not None:
        raise UserError("columns were given for a vector: expected rows only")
    columns = _parse_range(body.columns, shape[-1], "columns") if len(shape) > 1 else None
    sizes = [shape[0] if rows is None else len(rows), *shape[1:]]
    if columns is not None:
        sizes[-1] = len(columns)
    return TensorSlice(rows, columns, sizes)


def check_size(shapes: Sequence[Sequence[int]], limit: int) -> None:
    count = sum(math.prod(shape) for shape in shapes)
    if count > limit:
        raise APIError(
            400,
            "too_large",
            f"the response would have {count:,} numbers; the limit is {limit:,}: request a slice",
        )


def slice_response(request: Request, part: TensorSlice, read: Callable[[], Tensor]) -> Response:
    """Return the slice as raw float32, or as JSON if the client accepts it."""
    as_json = "application/json" in request.headers.get("accept", "")
    check_size([part.shape], inspection.MAX_JSON_VALUES if as_json else inspection.MAX_VALUES)
    if as_json:
        return JSONResponse({"shape": part.shape, "values": finite(read().detach().float().tolist())})
    return matrices_response([read()])


def matrices_response(tensors: Sequence[Tensor]) -> Response:
    """Return the concatenated tensors, with their shapes in the X-Shape header."""
    arrays = [
        tensor.detach().float().cpu().contiguous().numpy().astype("<f4", copy=False) for tensor in tensors
    ]
    shapes = ";".join(",".join(map(str, array.shape)) for array in arrays)
    return RawResponse(b"".join(array.tobytes() for array in arrays), headers={"X-Shape": shapes})


def _parse_range(bounds: tuple[int, int] | None, size: int, name: str) -> list[int] | None:
    if bounds is None:
        return None
    start, stop = bounds
    if not 0 <= start < stop <= size:
        raise UserError(f"{name} {start} to {stop}: expected 0 <= start < stop <= {size}")
    return list(range(start, stop))
