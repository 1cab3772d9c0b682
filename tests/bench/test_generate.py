"""The measurement of writing, in its short mode."""

from bench.generate import measure


def test_speed_is_told_beside_the_peer_where_there_is_one():
    figures = measure(2, 4, "cpu", short=True)
    assert figures["ours"] > 0
    assert ("transformers" in figures) == ("ratio" in figures)
