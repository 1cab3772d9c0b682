"""The measurement of looking inside, in its short mode: no peers, a small model."""

import subprocess
from json import loads
from pathlib import Path


def test_short_mode_prints_one_line_with_ratios(forked):
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [*forked, "-m", "bench.inspect", "--short"],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    figures = loads(done.stdout)["16"]
    assert figures["inspect_over_forward"] > 0
    assert figures["head_over_forward"] > 0
