"""The server process: a socket, uvicorn, and a shutdown that lets running requests finish."""

from __future__ import annotations

import asyncio
import errno
import gc
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
from clearhead.server.connections import make_protocol
from clearhead.server.idle_memory import return_memory
from clearhead.server.limits import Limits
from clearhead.server.model_loader import ModelLibrary
from clearhead.server.model_registry import ModelRegistry
from clearhead.server.page_file import PageWriter

GRACE = 30.0  # seconds for running generations to finish after a signal
SEND_GRACE = 10  # further seconds to send the end of canceled responses
MEMORY_INTERVAL = 5  # seconds between checks of whether the server is idle and can return memory


class Server(uvicorn.Server):
    """uvicorn's server with a graceful shutdown on SIGINT and SIGTERM; it returns memory when it is idle."""

    def __init__(self, config: uvicorn.Config, registry: ModelRegistry, grace: float) -> None:
        config.callback_notify, config.timeout_notify = self.return_memory_if_idle, MEMORY_INTERVAL
        super().__init__(config)
        self.registry, self.grace = registry, grace
        self._tidy_after = 0  # requests

    async def return_memory_if_idle(self) -> None:
        """Return free memory once after each burst of requests; this takes a few hundredths of a second."""
        requests = self.server_state.total_requests
        if requests != self._tidy_after and not self.server_state.tasks:
            self._tidy_after = requests
            return_memory()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Cancel the generations that are still running after the grace period, and end their responses."""
        timer = asyncio.get_running_loop().call_later(self.grace, self.registry.cancel_all)
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():  # only the main thread gets signals
            yield
            return
        previous = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


def open_socket(host: str, port: int, token: str | None) -> socket.socket:
    """Bind and listen, so that early clients wait. Hosts other than loopback require a token."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        if token is None and not _is_loopback(host):
            raise UserError(f"--no-token: {host} can be reached from other machines, so a token is required")
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
        unavailable = getattr(error, "errno", None) == errno.EADDRNOTAVAIL
        option = "host" if unavailable or isinstance(error, socket.gaierror | UnicodeError) else "port"
        raise UserError(f"cannot listen on {host}:{port}: {reason}; choose another --{option}") from None
    return opened


def make_credentials(
    host: str, opened: socket.socket, token: str | None, allowed: Sequence[str] = ()
) -> Credentials:
    """Return credentials that accept the names of this address and the `allowed` names."""
    port = opened.getsockname()[1]
    names = {*LOOPBACK, *(name.lower() for name in allowed)}
    if not _is_loopback(host) and not _is_wildcard(host):
        names.add(f"[{host}]" if ":" in host else host.lower())
    return Credentials(token, frozenset(names), port)


def make_token() -> str:
    return secrets.token_urlsafe(32)


def make_url(host: str, credentials: Credentials) -> str:
    """Return the URL to open in a browser, with the token if there is one."""
    name = "127.0.0.1" if _is_wildcard(host) else f"[{host}]" if ":" in host else host
    query = f"?token={credentials.token}" if credentials.token is not None else ""
    return f"http://{name}:{credentials.port}/{query}"


def make_server(
    registry: ModelRegistry,
    credentials: Credentials,
    limits: Limits | None = None,
    log: Callable[[str], object] = lambda _: None,
    library: ModelLibrary | None = None,
    grace: float = GRACE,
    write_page: PageWriter | None = None,
) -> Server:
    limits = limits or Limits()
    config = uvicorn.Config(
        make_app(registry, credentials, limits, log, library, write_page),
        http=make_protocol(limits),
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=int(grace) + SEND_GRACE,
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
    write_page: PageWriter | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; then accept no more requests and let running ones finish."""
    server = make_server(registry, credentials, limits, log, library, grace, write_page)
    gc.freeze()  # collections then skip what was loaded; traversing it takes a tenth of a second
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


def _is_wildcard(host: str) -> bool:
    return host in ("", "0.0.0.0", "::")  # noqa: S104 (chosen by the user)
