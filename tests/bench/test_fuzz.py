"""The fuzzing of files, in its short mode: nothing crashes, nothing takes long or much."""

import subprocess
import sys
from json import loads
from pathlib import Path


def test_short_mode_reads_or_refuses_every_file():
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "bench.fuzz", "--short"], cwd=root, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\n") == 1
    figures = loads(done.stdout)
    assert figures["files"] == 400 == figures["accepted"] + figures["refused"]
    assert figures["crashed"] == []
    assert 0 < figures["accepted"] < figures["refused"]
    assert figures["seconds_a_file_worst"] < 2
    assert figures["peak_mb"] < 200
