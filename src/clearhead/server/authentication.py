"""Authentication of every request: its Host and Origin must be this server's, and its token must be valid.

The URL printed at startup carries the token (…/?token=…). Opening it sets a cookie and redirects to the same URL
without the token. Programs send the header `Authorization: Bearer …` instead.
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

# No resources from other origins, no framing, no caching.
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
IMMUTABLE = "private, max-age=31536000, immutable"  # Cache-Control of files with a hash in their name


@dataclass(frozen=True)
class Credentials:
    """The host names and the token that requests must present."""

    token: str | None  # None admits every client; only loopback addresses are served without a token
    hosts: frozenset[str] = frozenset(LOOPBACK)
    port: int = 0
    cookie: str = field(init=False)

    def __post_init__(self) -> None:
        # Cookies are shared across ports: servers on one machine need different cookie names.
        object.__setattr__(self, "cookie", f"clearhead-{self.port}")

    @property
    def cookie_value(self) -> str:
        """Return a hash of the token, so that the cookie does not reveal the token itself."""
        return hashlib.sha256(f"cookie {self.token}".encode()).hexdigest()

    def check_source(self, headers: Headers) -> tuple[int, str, str] | None:
        """Return a status, a code and a message if the Host or the Origin is not this server's."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or _host_name(hosts[0]) not in self.hosts:
            return (
                403,
                "forbidden_host",
                "this Host is not allowed; see the option --allow-host of clearhead serve",
            )
        origins = headers.getlist("origin")
        same = {f"http://{hosts[0]}".lower(), f"https://{hosts[0]}".lower()}
        if len(origins) > 1 or (origins and origins[0].lower() not in same):
            return 403, "forbidden_origin", "requests from other origins are not allowed"
        return None

    def authenticate(self, headers: Headers) -> bool:
        """Return whether the request carries the token, or the cookie that stands for it."""
        if self.token is None:
            return True
        values = headers.getlist("authorization")
        if len(values) > 1:
            return False  # ambiguous
        scheme, _, token = "".join(values).partition(" ")
        if scheme.lower() == "bearer" and _equal(token.strip(), self.token):
            return True
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        return self.cookie in cookies and _equal(cookies[self.cookie].value, self.cookie_value)


UNAUTHORIZED = "the token is missing or invalid; open the URL printed when the server started"
UNAUTHORIZED_PAGE = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>clearhead</title>
<h1>clearhead</h1>
<p>This browser is not authorized: {UNAUTHORIZED}. After that, this URL works too.</p>
</html>
"""  # for browsers; other clients get the message as JSON


class AuthenticationMiddleware:
    """Reject unauthenticated requests before anything else runs and before their bodies are read."""

    def __init__(self, app: ASGIApp, credentials: Credentials) -> None:
        self.app, self.credentials = app, credentials

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):  # lifespan
            await self.app(scope, receive, send)
            return

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    if headers.get(name) != IMMUTABLE:
                        headers[name] = value
            await send(message)

        response = self._respond(scope)
        if response is None:
            await self.app(scope, receive, send_secured)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            response.headers["Connection"] = "close"
            await response(scope, receive, send_secured)

    def _respond(self, scope: Scope) -> Response | None:
        """Return the response that rejects or redirects the request; None if the request may proceed."""
        headers = Headers(scope=scope)
        if (error := self.credentials.check_source(headers)) is not None:
            return error_response(*error)
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = query.pop("token", [])
        is_get = scope["type"] == "http" and scope["method"] == "GET"
        expected = self.credentials.token
        if is_get and expected is not None and len(tokens) == 1 and _equal(tokens[0], expected):
            # Authenticated clients are redirected too: the token should not stay in the address bar.
            return self._redirect(scope, query)
        if self.credentials.authenticate(headers):
            return None
        response: Response = error_response(401, "invalid_token", UNAUTHORIZED)
        if is_get and "text/html" in headers.get("accept", ""):
            response = HTMLResponse(UNAUTHORIZED_PAGE, 401)
        response.headers["WWW-Authenticate"] = "Bearer"
        return response

    def _redirect(self, scope: Scope, query: dict[str, list[str]]) -> Response:
        """Set the cookie and redirect to the same URL without the token."""
        # A leading // or \ would make the browser interpret the path as a host.
        path = "/" + quote(scope["path"].lstrip("/\\"))
        rest = urlencode(query, doseq=True)
        response = RedirectResponse(path + (f"?{rest}" if rest else ""), status_code=303)
        response.set_cookie(
            self.credentials.cookie,
            self.credentials.cookie_value,
            httponly=True,
            samesite="strict",
            path="/",
        )
        return response


def _host_name(host: str) -> str:
    """Return the Host header without its port: localhost for localhost:8000, [::1] for [::1]:8000."""
    name, bracket, port = host.rpartition("]") if host.startswith("[") else host.partition(":")
    if bracket == "]":
        name, port = name + bracket, port.removeprefix(":")
    return name.lower() if not port or (port.isascii() and port.isdigit()) else ""


def _equal(value: str, expected: str) -> bool:
    return hmac.compare_digest(value.encode("utf-8", "surrogateescape"), expected.encode())
