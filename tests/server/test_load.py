"""Many clients at once, for a few seconds: `bench/load_test.py` is the same for longer."""

import asyncio
import os

from bench.load_test import Server, measure


def test_many_clients_at_once(start, shelf_of):
    with start(shelf=shelf_of(slots=4, queue=12)) as running:
        server = Server(running.url, running.door.token, os.getpid(), slots=4)
        figures = asyncio.run(measure(server, count=24, seconds=3, rounds=2))
        assert running.rests()
    assert figures["errors"] == 0, figures
    assert figures["mismatches"] == 0
    assert figures["done"] > 24
    assert figures["refused"] > 0
    assert figures["vanished"] > 0
    assert figures["next_seconds"] < 1
    assert figures["freed_seconds"] < 1
    assert figures["end_mb"] - figures["warm_mb"] < 50
