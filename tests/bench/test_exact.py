"""The measurement of exactness, in its short mode, where hardly more than torch is installed."""

import subprocess
import sys
from json import loads
from pathlib import Path

import pytest

MISSING = "gguf", "jinja2", "sklearn", "matplotlib", "typer", "rich", "threadpoolctl", "huggingface_hub"
BARE = """
import runpy, sys
sys.modules.update(dict.fromkeys({missing!r}))
sys.argv = ["bench.exact", "--short", "--device", "cpu"]
runpy.run_module("bench.exact", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
def test_short_mode_finds_the_same_bytes_on_a_bare_machine():
    done = subprocess.run(
        [sys.executable, "-c", BARE.format(missing=MISSING)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    figures = loads(line)
    assert figures["repeated_equal"]
    assert figures["resumed_equal"]
    assert figures["different"] == []
    assert len(set(figures["weights_sha256"])) == 1
    first, *rest = figures["broken_after"]
    assert first < 4 <= rest[0] < rest[1] < figures["epoch"] < rest[2], "not within an epoch and over its end"
