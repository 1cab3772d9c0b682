"""The server as a process: a socket, uvicorn around the routes, and an end that finishes what streams."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import uvicorn

from clearhead.errors import UserError
from clearhead.server.app import make_app
from clearhead.server.authentication import LOOPBACK, Credentials
from clearhead.server.connections import protocol
from clearhead.server.limits import Limits
from clearhead.server.model_loader import ModelLibrary
from clearhead.server.model_registry import ModelRegistry

GRACE = 30.0  # seconds that what is being written may take to its end
LAST = 10  # seconds more, in which its end is told


class Server(uvicorn.Server):
    """uvicorn's, which ends quietly at SIGINT and SIGTERM."""

    def __init__(self, config: uvicorn.Config, registry: ModelRegistry, grace: float) -> None:
        super().__init__(config)
        self.registry, self.grace = registry, grace

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """What is still being written after the grace ends where it stands, and whoever waits is told so."""
        ending = asyncio.get_running_loop().call_later(self.grace, self.registry.end)
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():  # whoever made the thread ends it
            yield
            return
        before = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def open_socket(host: str, port: int, token: str | None) -> socket.socket:
    """Bound and listening, so that who comes early waits; beyond this machine only behind a token."""
    if token is None and not _is_loopback(host):
        raise UserError(f"{host} can be reached from other machines: it is served with a token only")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        opened = socket.socket(family, kind, protocol)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind(address)
            opened.listen(2048)
        except BaseException:
            opened.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        elsewhere = getattr(error, "errno", None) == errno.EADDRNOTAVAIL
        wrong = "host" if elsewhere or isinstance(error, socket.gaierror | UnicodeError) else "port"
        raise UserError(
            f"nothing can be served at {host}:{port}: {reason}; choose another --{wrong}"
        ) from None
    return opened


def make_credentials(
    host: str, opened: socket.socket, token: str | None, allowed: Sequence[str] = ()
) -> Credentials:
    """Open to the names that this address goes by, and to those that are allowed besides."""
    port = opened.getsockname()[1]
    names = {*LOOPBACK, *(name.lower() for name in allowed)}
    if not _is_loopback(host) and not _is_any(host):
        names.add(f"[{host}]" if ":" in host else host.lower())
    return Credentials(token, frozenset(names), port)


def make_token() -> str:
    return secrets.token_urlsafe(32)


def address(host: str, credentials: Credentials) -> str:
    """What to open: with the token, where there is one."""
    name = "127.0.0.1" if _is_any(host) else f"[{host}]" if ":" in host else host
    return f"http://{name}:{credentials.port}/" + (
        f"?token={credentials.token}" if credentials.token is not None else ""
    )


def make_server(
    registry: ModelRegistry,
    credentials: Credentials,
    limits: Limits | None = None,
    log: Callable[[str], object] = lambda _: None,
    library: ModelLibrary | None = None,
    grace: float = GRACE,
) -> Server:
    limits = limits or Limits()
    config = uvicorn.Config(
        make_app(registry, credentials, limits, log, library),
        http=protocol(limits),
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=int(grace) + LAST,
    )
    return Server(config, registry, grace)


def serve(
    registry: ModelRegistry,
    opened: socket.socket,
    credentials: Credentials,
    limits: Limits | None = None,
    log: Callable[[str], object] = lambda _: None,
    library: ModelLibrary | None = None,
    grace: float = GRACE,
) -> None:
    """Until SIGINT or SIGTERM: then no more is taken on, and what is being written goes to its end."""
    server = make_server(registry, credentials, limits, log, library, grace)
    try:
        asyncio.run(server.serve([opened]))
    finally:
        opened.close()
        registry.close(cancel=True)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _is_any(host: str) -> bool:
    return host in ("", "0.0.0.0", "::")  # noqa: S104 (asked for by the user)
