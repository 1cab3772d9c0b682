"""Who may ask: the Host must be ours, the Origin the same, and the token known. On every route without fail.

The token comes once in the address that is printed at the start (…/?token=…), which sets a cookie and goes on
without it; or in the header `Authorization: Bearer …`.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clearhead.server.errors import error_response

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")

# The page is ours alone: nothing from elsewhere, in no one's frame, kept by no one.
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
KEPT = "private, max-age=31536000, immutable"  # but for files that are the same as long as their name is


@dataclass(frozen=True)
class Credentials:
    """Which hosts are ours, and what opens."""

    token: str | None  # none lets in whoever reaches it, which only a loopback address may
    hosts: frozenset[str] = frozenset(LOOPBACK)
    port: int = 0
    cookie: str = field(init=False)

    def __post_init__(self) -> None:
        # Cookies do not tell ports apart: two servers on one machine must not take each other's.
        object.__setattr__(self, "cookie", f"clearhead-{self.port}")

    @property
    def cookie_value(self) -> str:
        """Not the token itself, which is more: it can be given to others."""
        return hashlib.sha256(f"cookie {self.token}".encode()).hexdigest()

    def refuses(self, headers: Headers) -> tuple[int, str, str] | None:
        """Status, kind and reason, where the request is not from here."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or _name(hosts[0]) not in self.hosts:
            return 403, "forbidden_host", "this server does not answer to that Host"
        origins = headers.getlist("origin")
        same = {f"http://{hosts[0]}".lower(), f"https://{hosts[0]}".lower()}
        if len(origins) > 1 or (origins and origins[0].lower() not in same):
            return 403, "forbidden_origin", "this server answers to no page but its own"
        return None

    def knows(self, headers: Headers) -> bool:
        """Whether the request carries the token, or the cookie that it was given for it."""
        if self.token is None:
            return True
        said = headers.getlist("authorization")
        if len(said) > 1:
            return False  # which of them counts is not for us to guess
        kind, _, given = "".join(said).partition(" ")
        if kind.lower() == "bearer" and _equal(given.strip(), self.token):
            return True
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        return self.cookie in cookies and _equal(cookies[self.cookie].value, self.cookie_value)


UNKNOWN = "the token is missing or wrong: it is in the address printed at the start"
STRANGER = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>clearhead</title>
<h1>clearhead</h1>
<p>This browser is not known here: {UNKNOWN}. Open that address once, and then this one again.</p>
</html>
"""  # for people; programs get the same as JSON


class AuthenticationMiddleware:
    """In front of everything else: what is not let in reaches nothing, and no body of it is read."""

    def __init__(self, app: ASGIApp, credentials: Credentials) -> None:
        self.app, self.credentials = app, credentials

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):  # the server's own start and end
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    if headers.get(name) != KEPT:
                        headers[name] = value
            await send(message)

        answer = self._answer(scope)
        if answer is None:
            await self.app(scope, receive, guarded)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            answer.headers["Connection"] = "close"
            await answer(scope, receive, guarded)

    def _answer(self, scope: Scope) -> Response | None:
        """None where the request may go on."""
        headers = Headers(scope=scope)
        if (refused := self.credentials.refuses(headers)) is not None:
            return error_response(*refused)
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = query.pop("token", [])
        can_go_on = (
            scope["type"] == "http" and scope["method"] == "GET" and self.credentials.token is not None
        )
        if can_go_on and len(given) == 1 and _equal(given[0], self.credentials.token or ""):
            return self._let_in(scope, query)  # also who is known: the token stays in no address
        if self.credentials.knows(headers):
            return None
        answer: Response = error_response(401, "invalid_token", UNKNOWN)
        if scope["type"] == "http" and scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
            answer = HTMLResponse(STRANGER, 401)
        answer.headers["WWW-Authenticate"] = "Bearer"
        return answer

    def _let_in(self, scope: Scope, query: dict[str, list[str]]) -> Response:
        # A path of our own: nothing in it may be left that a browser takes for the start of another address.
        path = "/" + quote(scope["path"].lstrip("/\\"))
        rest = urlencode(query, doseq=True)
        answer = RedirectResponse(path + (f"?{rest}" if rest else ""), status_code=303)
        answer.set_cookie(
            self.credentials.cookie, self.credentials.cookie_value, httponly=True, samesite="strict", path="/"
        )
        return answer


def _name(host: str) -> str:
    """Without the port: localhost of localhost:8000, [::1] of [::1]:8000."""
    name, bracket, port = host.rpartition("]") if host.startswith("[") else host.partition(":")
    if bracket == "]":
        name, port = name + bracket, port.removeprefix(":")
    return name.lower() if not port or (port.isascii() and port.isdigit()) else ""


def _equal(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), known.encode())
