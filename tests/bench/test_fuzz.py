"""The fuzzing of files, in its short mode: nothing crashes, nothing takes much memory."""

from bench.fuzz import SHORT, measure


def test_short_mode_reads_or_refuses_every_file(tmp_path):
    figures = measure(SHORT, 0, tmp_path)
    assert figures["files"] == 400 == figures["accepted"] + figures["refused"]
    assert figures["crashed"] == []
    assert 0 < figures["accepted"] < figures["refused"]
    assert figures["peak_mb"] < 200
