"""The measurement of serving, in its short mode: a small random model, few requests."""

import subprocess
from json import loads
from pathlib import Path


def test_short_mode_prints_one_line_with_ratios(forked):
    done = subprocess.run(
        [*forked, "-m", "bench.serve", "--short"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    figures = loads(done.stdout)["small"]
    assert figures["1"]["over_plain"] > 0
    assert figures["2"]["tokens_per_second"] > 0
    assert figures["longest_wait"] > 0
