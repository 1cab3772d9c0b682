"""Tests for the fuzzer in short mode: no crashes, no large memory growth."""

from bench.fuzz import SHORT, measure


def test_short_mode_accepts_or_rejects_every_file(tmp_path):
    figures = measure(SHORT, 0, tmp_path)
    assert figures["files"] == 400 == figures["accepted"] + figures["rejected"]
    assert figures["crashed"] == []
    assert 0 < figures["accepted"] < figures["rejected"]
    assert figures["memory_growth_mb"] < 200
