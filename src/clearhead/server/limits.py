"""Limits on requests: the size of a body, the time to send it, and how many run at once."""

from __future__ import annotations

import asyncio
from collections.abc import Container
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clearhead.server.errors import error_response


@dataclass(frozen=True)
class Limits:
    """What the server accepts."""

    max_body: int = 2**21  # bytes
    max_text: int = 2**26  # bytes of a body with a training text; such requests run one at a time
    body_timeout: float = 10.0  # seconds to receive a body
    max_requests: int = 1024  # concurrently
    max_connections: int = 2048
    header_timeout: float = 10.0  # seconds to receive a header, or for a response to make progress


class LimitsMiddleware:
    """Read the whole body before the application runs, and reject requests that exceed a limit."""

    def __init__(self, app: ASGIApp, limits: Limits, large: Container[str] = ()) -> None:
        """`large` contains the paths that accept a body of up to `max_text` bytes."""
        self.app, self.limits, self.large = app, limits, large
        self.running = 0
        self._large_lock = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.running >= self.limits.max_requests:
            await _reject(429, "busy", "too many concurrent requests; retry later", scope, receive, send)
            return
        self.running += 1
        try:
            if scope["method"] == "POST" and scope["path"] in self.large:
                async with self._large_lock:
                    await self._handle(scope, receive, send, self.limits.max_text)
            else:
                await self._handle(scope, receive, send, self.limits.max_body)
        finally:
            self.running -= 1

    async def _handle(self, scope: Scope, receive: Receive, send: Send, max_bytes: int) -> None:
        timeout = self.limits.body_timeout
        if (error := _check_encoding(Headers(scope=scope))) is not None:
            await _reject(*error, scope, receive, send)
            return
        try:
            async with asyncio.timeout(timeout):
                body = await _read_body(scope, receive, max_bytes)
        except TimeoutError:
            message = f"the body was not received within {timeout:g} s"
            await _reject(408, "too_slow", message, scope, receive, send)
            return
        if body is None:
            message = f"the body is larger than {max_bytes:,} bytes"
            await _reject(413, "too_large", message, scope, receive, send)
            return
        pending = [body]

        async def replay() -> Message:
            if pending:
                return {"type": "http.request", "body": pending.pop(), "more_body": False}
            return await receive()  # http.disconnect

        await self.app(scope, replay, send)


def _check_encoding(headers: Headers) -> tuple[int, str, str] | None:
    """Return a status, a code and a message if the length or the encoding of the body is ambiguous."""
    if "transfer-encoding" in headers and "content-length" in headers:
        # Request smuggling: a proxy may go by the other header and see the end of the body elsewhere.
        return (
            400,
            "invalid_request",
            "both Content-Length and Transfer-Encoding are given; send only one",
        )
    if headers.get("content-encoding", "identity").lower() != "identity":
        return 415, "unsupported_encoding", "Content-Encoding is not supported; send the body uncompressed"
    return None


async def _read_body(scope: Scope, receive: Receive, max_bytes: int) -> bytes | None:
    """Return the body, or None if it is too large."""
    declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    if not declared.isdigit() or len(declared) > 15 or int(declared) > max_bytes:
        return None
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return bytes(body)  # the client disconnected; the application will notice
        body += message.get("body", b"")
        if len(body) > max_bytes:
            return None
        if not message.get("more_body", False):
            return bytes(body)


async def _reject(status: int, code: str, message: str, scope: Scope, receive: Receive, send: Send) -> None:
    response = error_response(status, code, message)
    response.headers["Connection"] = "close"
    await response(scope, receive, send)
