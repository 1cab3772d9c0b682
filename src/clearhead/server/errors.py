"""Answers to what cannot be done, all in OpenAI's shape."""

from __future__ import annotations

import re
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from clearhead.api.base import Fault, Refusal, Values
from clearhead.errors import UserError
from clearhead.generate.engine import Busy
from clearhead.server.disconnect import ClientDisconnected

COME_BACK = 1  # seconds
LONGEST = 200  # characters of a value

NOT_OFFERED = ("tools", "suffix", "tool_choice")
TYPES = ("str", "int", "float", "bool")
KINDS = {
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
    kind = KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    fault = Fault(message=message, type=kind, param=param, code=code, values=truncate_values(values or {}))
    body = Refusal(error=fault)
    headers = {"Retry-After": str(COME_BACK)} if status == 429 else None
    return JSONResponse(body.model_dump(), status, headers)


def truncate_values(values: Values) -> Values:
    """What was given may be as long as a body."""
    return {name: value[:LONGEST] if isinstance(value, str) else value for name, value in values.items()}


class APIError(Exception):
    """Raised where a route cannot do what it was body."""

    def __init__(
        self, status: int, code: str, message: str, param: str | None = None, **values: str | int
    ) -> None:
        super().__init__(message)
        self.answer = (status, code, message, param, values)


def handle_error(request: Request, error: Exception) -> Response:
    """For every exception that a route may let out."""
    if isinstance(error, ClientDisconnected):
        return Response(status_code=499)  # for the log alone: nobody is there to read it
    if isinstance(error, APIError):
        return error_response(*error.answer)
    if isinstance(error, Busy):
        return error_response(429, "busy", f"{error}; come back in a moment")
    if isinstance(error, RequestValidationError):
        return _not_understood(request, error)
    if isinstance(error, UserError):
        return error_response(400, error.code or "invalid_request", str(error)[:1000], None, error.values)
    if isinstance(error, HTTPException):
        if error.status_code == 400 and "parsing the body" in str(error.detail):
            return error_response(
                400, "invalid_request", "the body is not JSON in UTF-8, or is nested too deep"
            )
        answer = error_response(error.status_code, "http_error", str(error.detail)[:1000])
        answer.headers.update(error.headers or {})  # which methods there are instead
        return answer
    return error_response(
        500, "internal_error", "a mistake of ours, not yours; the server's own output says more"
    )


def _not_understood(request: Request, error: RequestValidationError) -> Response:
    """The first field that is wrong, and what is wrong with it."""
    found = error.errors()
    first = found[0]
    if first["type"] == "json_invalid":
        what = f"the body is not JSON: {first['ctx']['error']} at character {first['loc'][-1]}"
        return error_response(400, "invalid_request", what[:1000])
    if first["loc"] == ("body",) and "json" not in request.headers.get("content-type", ""):
        return error_response(
            415, "unsupported_type", "expected JSON, with the header Content-Type: application/json"
        )
    # Where a field may be this or that, each is told of: the one that was meant comes furthest.
    meant = [each for each in found if each["loc"][:2] == first["loc"][:2]]
    best = max(meant, key=lambda each: (not each["type"].endswith("_type"), len(_where(each))))
    where = ".".join(_where(best)) or None
    said = "this is not offered" if best["type"] == "extra_forbidden" or where in NOT_OFFERED else best["msg"]
    what = f"{where}: {said}" if where else str(said)
    if best["type"] == "string_too_long":
        most: Values = {"most": int(best["ctx"]["max_length"])}
        return error_response(400, "text_too_long", what[:1000], where and where[:200], most)
    return error_response(400, "invalid_request", what[:1000], where and where[:200])


def _where(error: dict[str, Any]) -> list[str]:
    """Names and numbers as the client wrote them, without those of our own types, such as list[int]."""
    _, *parts = map(str, error["loc"])
    return [part for part in parts if re.fullmatch(r"\w+", part) and part not in TYPES]
