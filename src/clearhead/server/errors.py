"""Error responses, all in OpenAI's format."""

from __future__ import annotations

import re
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from clearhead.api.base import ErrorDetail, ErrorResponse, Values
from clearhead.errors import UserError
from clearhead.generate.engine import Busy
from clearhead.server.disconnect import ClientDisconnected

RETRY_AFTER = 1  # seconds
MAX_VALUE = 200  # characters
MAX_MESSAGE = 1000  # characters

INTERNAL_ERROR = "internal error; see the server's log"
UNSUPPORTED_FIELDS = ("suffix",)
# Parts of a message other than text, by their type.
OTHER_PARTS = {
    "image_url": "images",
    "input_image": "images",
    "input_audio": "recordings",
    "video_url": "videos",
    "file": "files",
    "input_file": "files",
}
# Names that pydantic adds to the paths of the members of a union.
TYPE_NAMES = ("str", "int", "float", "bool", "NamedTool", "AllowedToolChoice", "NamedChoice", "AllowedChoice")
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    503: "service_unavailable_error",
}


def error_response(
    status: int, code: str, message: str, param: str | None = None, values: Values | None = None
) -> JSONResponse:
    kind = ERROR_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    detail = ErrorDetail(
        message=message, type=kind, param=param, code=code, values=truncate_values(values or {})
    )
    headers = {"Retry-After": str(RETRY_AFTER)} if status == 429 else None
    return JSONResponse(ErrorResponse(error=detail).model_dump(), status, headers)


def truncate_values(values: Values) -> Values:
    """Shorten strings, which may be as long as a request body."""
    return {name: value[:MAX_VALUE] if isinstance(value, str) else value for name, value in values.items()}


class APIError(Exception):
    """An error that a route raises to end a request with this status, code and message."""

    def __init__(
        self, status: int, code: str, message: str, param: str | None = None, **values: str | int
    ) -> None:
        super().__init__(message)
        self.response = (status, code, message, param, values)


def handle_error(request: Request, error: Exception) -> Response:
    """Return the response for any exception raised by a route."""
    if isinstance(error, ClientDisconnected):
        return Response(status_code=499)  # nginx's "client closed request", for the log only
    if isinstance(error, APIError):
        return error_response(*error.response)
    if isinstance(error, Busy):
        return error_response(429, "busy", f"{error}; retry later")
    if isinstance(error, RequestValidationError):
        return _validation_response(request, error)
    if isinstance(error, UserError):
        return error_response(
            400, error.code or "invalid_request", str(error)[:MAX_MESSAGE], None, error.values
        )
    if isinstance(error, HTTPException):
        if error.status_code == 400 and "parsing the body" in str(error.detail):
            return error_response(
                400, "invalid_request", "the body is not valid JSON in UTF-8, or is nested too deeply"
            )
        message = str(error.detail)
        if error.status_code == 404:
            message = _unknown_route(request)
        elif error.status_code == 405:
            path, expected = (
                request.url.path[:MAX_VALUE],
                (error.headers or {}).get("Allow", "another method"),
            )
            message = f"{request.method} {path}: expected {expected}"
        response = error_response(error.status_code, "http_error", message[:MAX_MESSAGE])
        response.headers.update(error.headers or {})  # such as Allow
        return response
    return error_response(500, "internal_error", INTERNAL_ERROR)


def _unknown_route(request: Request) -> str:
    """List the OpenAI routes, whose paths clients often mistype, and say where the others are listed."""
    path = request.url.path[:MAX_VALUE]
    routes = [route for route in request.app.openapi()["paths"] if route.startswith("/v1/")]
    return f"no route {request.method} {path}: expected one of {', '.join(routes)}; /openapi.json lists all others"


def _validation_response(request: Request, error: RequestValidationError) -> Response:
    """Name the first invalid field and what is wrong with it."""
    details = error.errors()
    first = details[0]
    if first["type"] == "json_invalid":
        message = f"the body is not valid JSON: {first['ctx']['error']} at character {first['loc'][-1]}"
        return error_response(400, "invalid_request", message[:MAX_MESSAGE])
    if first["loc"] == ("body",) and "json" not in request.headers.get("content-type", ""):
        return error_response(
            415, "unsupported_type", "expected JSON, with the header Content-Type: application/json"
        )
    # For a union, pydantic reports an error for each member: the one with the longest path is the intended one.
    candidates = [each for each in details if each["loc"][:2] == first["loc"][:2]]
    best = max(candidates, key=lambda each: (not each["type"].endswith("_type"), len(_field_path(each))))
    field = ".".join(_field_path(best)) or None
    name = (field or "").rpartition(".")[2]
    reason = "not supported" if name in UNSUPPORTED_FIELDS else _reason(best)
    message = f"{field}: {reason}" if field else str(reason)
    param = field and field[:MAX_VALUE]
    if best["type"] == "string_too_long":
        values: Values = {"most": int(best["ctx"]["max_length"])}
        return error_response(400, "text_too_long", message[:MAX_MESSAGE], param, values)
    return error_response(400, "invalid_request", message[:MAX_MESSAGE], param)


def _reason(error: dict[str, Any]) -> str:
    """What is wrong with a field."""
    kind, least = error["type"], error.get("ctx", {}).get("min_length")
    if kind == "extra_forbidden":
        return "not supported"
    if kind in ("string_too_short", "too_short") and least == 1:
        return f"expected a non-empty {'string' if kind == 'string_too_short' else 'list'}"
    if kind == "literal_error" and isinstance(error["input"], str) and error["input"] in OTHER_PARTS:
        what = OTHER_PARTS[error["input"]]
        return f"{what} are not supported: this server reads only text; send the message without them"
    return str(error["msg"])


def _field_path(error: dict[str, Any]) -> list[str]:
    """Return the names and indices as the client wrote them, without pydantic's type names such as list[int]."""
    _, *parts = map(str, error["loc"])
    return [part for part in parts if re.fullmatch(r"\w+", part) and part not in TYPE_NAMES]
