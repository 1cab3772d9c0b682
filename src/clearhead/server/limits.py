"""How much one client may ask of the server: bytes of a body, seconds to send it, requests at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Container
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clearhead.server.errors import error_response


@dataclass(frozen=True)
class Limits:
    """What the server takes on."""

    max_body: int = 2**21  # bytes
    max_text: int = 2**26  # bytes of a body with a text to train on, of which one comes at a time
    body_timeout: float = 10.0  # seconds for a body to come
    max_requests: int = 1024  # at a time
    max_connections: int = 2048
    header_timeout: float = 10.0  # seconds for a request's head to come, and to take some of what is sent


class LimitsMiddleware:
    """Reads the body before anyone acts on it, and hands it on whole."""

    def __init__(self, app: ASGIApp, limits: Limits, roomy: Container[str] = ()) -> None:
        """`roomy` are the paths to which texts may be sent that are trained on."""
        self.app, self.limits, self.roomy = app, limits, roomy
        self.running = 0
        self._one = asyncio.Lock()  # for long bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.running >= self.limits.max_requests:
            await _refuse(
                429, "busy", "too many requests at a time; come back in a moment", scope, receive, send
            )
            return
        self.running += 1
        try:
            if scope["method"] == "POST" and scope["path"] in self.roomy:
                async with self._one:
                    await self._handle(scope, receive, send, self.limits.max_text)
            else:
                await self._handle(scope, receive, send, self.limits.max_body)
        finally:
            self.running -= 1

    async def _handle(self, scope: Scope, receive: Receive, send: Send, most: int) -> None:
        patience = self.limits.body_timeout
        if (unclear := _unclear(Headers(scope=scope))) is not None:
            await _refuse(*unclear, scope, receive, send)
            return
        try:
            async with asyncio.timeout(patience):
                body = await _read(scope, receive, most)
        except TimeoutError:
            await _refuse(
                408, "too_slow", f"the body did not come within {patience:g} s", scope, receive, send
            )
            return
        if body is None:
            await _refuse(413, "too_large", f"the body is longer than {most:,} bytes", scope, receive, send)
            return
        given = [body]

        async def replay() -> Message:
            if given:
                return {"type": "http.request", "body": given.pop(), "more_body": False}
            return await receive()  # that the client has left

        await self.app(scope, replay, send)


def _unclear(headers: Headers) -> tuple[int, str, str] | None:
    """Status, kind and reason, where it cannot be said for sure what the body is."""
    if "transfer-encoding" in headers and "content-length" in headers:
        # Whoever stands between may go by the other, and take a part of this request for the next.
        return (
            400,
            "invalid_request",
            "Content-Length and Transfer-Encoding were both given; give one of them",
        )
    if headers.get("content-encoding", "identity").lower() != "identity":
        return 415, "unsupported_encoding", "bodies are taken as they are: send it without Content-Encoding"
    return None


async def _read(scope: Scope, receive: Receive, most: int) -> bytes | None:
    """The body; none where it is too long."""
    declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    if not declared.isdigit() or len(declared) > 15 or int(declared) > most:
        return None
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return bytes(body)  # gone; whoever acts on it will see
        body += message.get("body", b"")
        if len(body) > most:
            return None
        if not message.get("more_body", False):
            return bytes(body)


async def _refuse(status: int, code: str, message: str, scope: Scope, receive: Receive, send: Send) -> None:
    answer = error_response(status, code, message)
    answer.headers["Connection"] = "close"
    await answer(scope, receive, send)
