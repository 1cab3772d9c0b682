"""Limits on connections: how many may be open, and how long one may stall while sending or receiving."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from clearhead.server.authentication import SECURITY_HEADERS
from clearhead.server.errors import error_response
from clearhead.server.limits import Limits


def make_protocol(limits: Limits) -> type[asyncio.Protocol]:
    """Return uvicorn's HTTP protocol with timeouts; uvicorn alone waits forever for the end of a header."""

    class LimitedProtocol(H11Protocol):
        _timer: asyncio.TimerHandle | None = None
        _unsent = 0  # bytes in the write buffer when the timer was started

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > limits.max_connections:
                transport.abort()
                return
            self._start_timer()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            super().connection_lost(exc)

        def handle_events(self) -> None:
            previous = self.cycle
            super().handle_events()
            if self.cycle is not previous:
                self._stop_timer()  # the header is complete
                if self.flow.write_paused:
                    self._start_timer()  # the client has not read the responses to its earlier requests

        def on_response_complete(self) -> None:
            self._start_timer()  # before super(), which may handle a pipelined request
            super().on_response_complete()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._start_timer()  # a client that reads nothing would keep its connection forever

        def resume_writing(self) -> None:
            super().resume_writing()
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_timer()

        def send_400_response(self, msg: str) -> None:  # noqa: ARG002 (uvicorn's signature)
            """Send the error in the same format and with the same headers as every other error."""
            response = error_response(400, "invalid_http", "the request is not valid HTTP")
            response.headers.update({**SECURITY_HEADERS, "Connection": "close"})
            head = h11.Response(
                status_code=400, headers=response.raw_headers, reason=HTTPStatus.BAD_REQUEST.phrase.encode()
            )
            for event in (head, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

        def _start_timer(self) -> None:
            self._stop_timer()
            self._unsent = self.transport.get_write_buffer_size()
            self._timer = self.loop.call_later(limits.header_timeout, self._time_out)

        def _time_out(self) -> None:
            if self.transport.get_write_buffer_size() < self._unsent:
                self._start_timer()  # slow, but making progress
            else:
                self.transport.abort()

        def _stop_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return cast(Any, LimitedProtocol)
