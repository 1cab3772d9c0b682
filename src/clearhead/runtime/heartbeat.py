"""Detects whether the other processes of a group are alive: each sends a heartbeat every second.

A process that was killed, or that hangs as a whole (it is stopped, or its machine does not answer), would keep the
others waiting for hours. Rank 0 listens to all others and they listen to it; it tells them which rank is lost. A
separate thread sends the heartbeats, so a process that takes long to read a text or to write a checkpoint still sends
them.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

BEAT = 1.0  # seconds
SILENCE = 20.0  # seconds without a heartbeat after which a process counts as lost
GRACE = 2.0  # seconds in which the main thread, if it notices by itself, may report the loss
CONNECTING = 60.0  # seconds
BEATS, LEAVES = -1, -2  # messages; other numbers are ranks that are lost
MESSAGE = struct.Struct("!i")


class Heartbeat:
    """Exchanges heartbeats with the other processes: rank 0 with all of them, each of the others only with rank 0."""

    def __init__(
        self,
        rank: int,
        peers: dict[int, socket.socket],
        end: Callable[[int], object],
        silence: float = SILENCE,
        beat: float = BEAT,
    ) -> None:
        """`end` is called with the rank that is lost, unless the main thread calls `find_lost` first."""
        self.rank, self.peers, self.end, self.silence, self.interval = rank, peers, end, silence, beat
        self.lost: int | None = None
        self._heard = dict.fromkeys(peers, time.monotonic())
        self._left, self._named, self._taken = threading.Event(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Stop without being reported as lost."""
        if not self._left.is_set():
            self._left.set()
            self._thread.join()
            self._send(LEAVES)
        for peer in self.peers.values():
            peer.close()

    def find_lost(self) -> int | None:
        """After communication has failed, wait until the lost rank is known and return it; None if it stays unknown."""
        self._taken.set()
        self._named.wait(self.silence + GRACE)
        return self.lost

    def _run(self) -> None:
        last = -self.interval
        while not self._left.is_set() and self.peers:
            if time.monotonic() - last >= self.interval:
                last = time.monotonic()
                self._send(BEATS)
            lost = self._listen(self.interval / 4)
            if lost is not None:
                self.lost = lost
                self._send(lost)
                self._named.set()
                # The main thread may be waiting for the lost process, and that wait cannot be interrupted.
                if not self._taken.wait(GRACE) and not self._left.is_set():
                    self.end(lost)
                return

    def _send(self, message: int) -> None:
        for peer in self.peers.values():
            with suppress(OSError):
                peer.sendall(MESSAGE.pack(message))

    def _listen(self, seconds: float) -> int | None:
        """Listen to the others for a while; return the rank that is lost, if there is one."""
        ranks = {peer: rank for rank, peer in self.peers.items()}
        for peer in select.select(list(ranks), [], [], seconds)[0]:
            rank = ranks[peer]
            try:
                messages = [number for (number,) in MESSAGE.iter_unpack(_receive(peer))]
            except (OSError, struct.error):
                return rank
            self._heard[rank] = time.monotonic()
            named = [message for message in messages if message >= 0]
            if LEAVES in messages:
                self.peers.pop(rank).close()
            elif named or not messages:  # an empty message is the end of the connection
                return named[0] if named else rank
        now = time.monotonic()
        return next((rank for rank in self.peers if now - self._heard[rank] > self.silence), None)


def _receive(peer: socket.socket) -> bytes:
    """Receive a whole number of messages; empty when the connection ends."""
    received = peer.recv(MESSAGE.size * 64)
    while len(received) % MESSAGE.size and (more := peer.recv(1)):
        received += more
    return received


class Meeting:
    """Where rank 0 waits for the connections of the others."""

    def __init__(self, host: str) -> None:
        family, _, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        self.server = socket.create_server((address[0], 0), family=family)
        self.port: int = self.server.getsockname()[1]
        self.secret = os.urandom(16)

    def accept(self, world_size: int) -> dict[int, socket.socket]:
        """The connections of all other ranks. Connections without the secret are rejected."""
        peers: dict[int, socket.socket] = {}
        until = time.monotonic() + CONNECTING
        with self.server:
            while len(peers) < world_size - 1:
                self.server.settimeout(max(0.1, until - time.monotonic()))
                peer, _ = self.server.accept()
                peer.settimeout(BEAT)
                with suppress(OSError, struct.error):
                    hello = b"".join(_pieces(peer, len(self.secret) + MESSAGE.size))
                    [rank] = MESSAGE.unpack(hello[len(self.secret) :])
                    if hello.startswith(self.secret) and 0 < rank < world_size:
                        peers[rank] = peer
                        continue
                peer.close()
        return peers


def _pieces(peer: socket.socket, n: int) -> Iterator[bytes]:
    while n and (piece := peer.recv(n)):
        n -= len(piece)
        yield piece


def connect(host: str, port: int, secret: bytes, rank: int) -> socket.socket:
    """The connection of another rank to rank 0."""
    peer = socket.create_connection((host, port), timeout=CONNECTING)
    peer.settimeout(BEAT)
    peer.sendall(secret + MESSAGE.pack(rank))
    return peer


def describe_lost(rank: int | None) -> str:
    which = "another process" if rank is None else f"rank {rank}"
    return f"{which} ended or does not answer, so this process stops too: resume the run"


def end_process(lost: int) -> None:
    """End this process at once: its files are left as if it had been killed, which is safe."""
    sys.stderr.write(f"clearhead: {describe_lost(lost)}\n")
    sys.stderr.flush()
    os._exit(2)
