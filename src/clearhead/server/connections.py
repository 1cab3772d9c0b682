"""Connections: how many at a time, and how long one may take to say what it wants, or to take it."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from clearhead.server.authentication import SECURITY_HEADERS
from clearhead.server.errors import error_response
from clearhead.server.limits import Limits


def protocol(limits: Limits) -> type[asyncio.Protocol]:
    """uvicorn's own, which by itself would wait for ever for the end of a request's head."""

    class Bounded(H11Protocol):
        _patience: asyncio.TimerHandle | None = None
        _unsent = 0  # bytes, when last looked

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > limits.max_connections:
                transport.abort()
                return
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def handle_events(self) -> None:
            before = self.cycle
            super().handle_events()
            if self.cycle is not before:
                self._stop_waiting()  # the head is whole
                if self.flow.write_paused:
                    self._wait()  # answers to requests before it were not taken yet

        def on_response_complete(self) -> None:
            self._wait()  # for the next; which may have come already
            super().on_response_complete()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._wait()  # who takes nothing of what it is sent would hold its place for ever

        def resume_writing(self) -> None:
            super().resume_writing()
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_waiting()

        def send_400_response(self, msg: str) -> None:  # noqa: ARG002 (as uvicorn calls it)
            """In the shape of every other refusal, and as guarded."""
            answer = error_response(400, "invalid_http", "this is not HTTP as it should be")
            answer.headers.update({**SECURITY_HEADERS, "Connection": "close"})
            head = h11.Response(
                status_code=400, headers=answer.raw_headers, reason=HTTPStatus.BAD_REQUEST.phrase.encode()
            )
            for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

        def _wait(self) -> None:
            self._stop_waiting()
            self._unsent = self.transport.get_write_buffer_size()
            self._patience = self.loop.call_later(limits.header_timeout, self._give_up)

        def _give_up(self) -> None:
            if self.transport.get_write_buffer_size() < self._unsent:
                self._wait()  # slow, and still there
            else:
                self.transport.abort()

        def _stop_waiting(self) -> None:
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None

    return cast(Any, Bounded)
