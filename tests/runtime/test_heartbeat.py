"""Beats between the processes of a group, here threads of one process."""

import socket
import threading
import time

import pytest

from clearhead.runtime import heartbeat
from clearhead.runtime.heartbeat import Heartbeat, Meeting, connect

SILENCE = 0.6


class Group:
    """Three ranks, and the lost rank that each was told about."""

    def __init__(self):
        meeting = Meeting("localhost")
        peers = {rank: connect("localhost", meeting.port, meeting.secret, rank) for rank in (1, 2)}
        self.told = {}
        self.sockets = {0: meeting.accept(3), **{rank: {0: peer} for rank, peer in peers.items()}}

    def start(self, *ranks):
        return [
            Heartbeat(
                rank,
                self.sockets[rank],
                lambda lost, rank=rank: self.told.update({rank: lost}),
                SILENCE,
                0.05,
            )
            for rank in ranks
        ]

    def wait(self, count):
        until = time.monotonic() + 30
        while len(self.told) < count and time.monotonic() < until:
            time.sleep(0.01)
        return self.told


@pytest.fixture
def group(monkeypatch):
    monkeypatch.setattr(heartbeat, "GRACE", 0.0)
    group = Group()
    yield group
    for peers in group.sockets.values():
        for peer in peers.values():
            peer.close()


def test_processes_that_beat_and_leave_are_not_missed(group):
    beats = group.start(0, 1, 2)
    time.sleep(2 * SILENCE)
    for each in reversed(beats):
        each.leave()
    assert group.told == {}


def test_closed_connection_names_the_rank_to_all(group):
    group.start(0, 1)
    group.sockets[2][0].close()
    assert group.wait(2) == {0: 2, 1: 2}


def test_silent_process_is_named_to_all(group):
    group.start(0, 1)  # 2 is connected, and says nothing
    assert group.wait(2) == {0: 2, 1: 2}


def test_silent_rank_0_is_noticed(group):
    group.start(1, 2)
    assert group.wait(2) == {1: 0, 2: 0}


def test_main_thread_that_notices_first_reports_it(group, monkeypatch):
    monkeypatch.setattr(heartbeat, "GRACE", 30.0)
    beats = group.start(0, 1)
    group.sockets[2][0].close()
    found = []
    asking = [threading.Thread(target=lambda each=each: found.append(each.find_lost())) for each in beats]
    for each in asking:
        each.start()
    for each in asking:
        each.join(30)
    assert found == [2, 2]
    assert group.told == {}


def test_unknown_connections_are_rejected():
    meeting = Meeting("localhost")
    stranger = socket.create_connection(("localhost", meeting.port))
    stranger.sendall(bytes(20))
    known = connect("localhost", meeting.port, meeting.secret, 1)
    peers = meeting.accept(2)
    assert list(peers) == [1]
    for each in (stranger, known, *peers.values()):
        each.close()
