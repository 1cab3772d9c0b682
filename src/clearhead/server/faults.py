"""Answers to what cannot be done, all in OpenAI's shape."""

from __future__ import annotations

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from clearhead.errors import UserError
from clearhead.generate.engine import Busy
from clearhead.server.leaving import Left
from clearhead.views.wire import Fault, Refusal

COME_BACK = 1  # seconds

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    503: "service_unavailable_error",
}


def refusal(status: int, code: str, message: str, param: str | None = None) -> JSONResponse:
    kind = KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    body = Refusal(error=Fault(message=message, type=kind, param=param, code=code))
    headers = {"Retry-After": str(COME_BACK)} if status in (429, 503) else None
    return JSONResponse(body.model_dump(), status, headers)


class Refused(Exception):  # noqa: N818 (it is an answer)
    """Raised where a route cannot do what it was asked."""

    def __init__(self, status: int, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.answer = (status, code, message, param)


def answer_fault(_: Request, error: Exception) -> Response:
    """For every exception that a route may let out."""
    if isinstance(error, Left):
        return Response(status_code=499)  # for the log alone: nobody is there to read it
    if isinstance(error, Refused):
        return refusal(*error.answer)
    if isinstance(error, Busy):
        return refusal(429, "busy", f"{error}; come back in a moment")
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body") or None
        what = f"{where}: {first['msg']}" if where else str(first["msg"])
        return refusal(400, "invalid_request", what[:1000], where and where[:200])
    if isinstance(error, UserError):
        return refusal(400, "invalid_request", str(error)[:1000])
    if isinstance(error, HTTPException):
        return refusal(error.status_code, "http_error", str(error.detail)[:1000])
    return refusal(500, "internal_error", "a mistake of ours, not yours; the server's own output says more")
