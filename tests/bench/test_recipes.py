"""The comparison of recipes, in its short mode: a few steps of each."""

import subprocess
from json import loads
from pathlib import Path


def test_short_mode_prints_one_line(forked):
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [*forked, "-m", "bench.recipes", "--short"],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    figures = loads(done.stdout)
    assert len(figures["fast"]["losses"]) == len(figures["classic"]["losses"]) == 1
    assert figures["better"] == round(figures["classic"]["mean"] - figures["fast"]["mean"], 4)
    assert figures["classic"]["rate"] == 0.001
