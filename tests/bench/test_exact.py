"""Tests for the reproducibility benchmark in short mode, with little installed besides torch."""

from json import loads

import pytest

from tests.bench.process import run_python

MISSING = "gguf", "jinja2", "sklearn", "matplotlib", "typer", "rich", "threadpoolctl", "huggingface_hub"
BARE = """
import runpy, sys
sys.modules.update(dict.fromkeys({missing!r}))
sys.argv = ["bench.exact", "--short", "--device", "cpu"]
runpy.run_module("bench.exact", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
def test_short_mode_finds_identical_files_with_minimal_dependencies():
    [line] = run_python("-c", BARE.format(missing=MISSING)).splitlines()
    figures = loads(line)
    assert figures["repeated_equal"]
    assert figures["resumed_equal"]
    assert figures["different"] == []
    assert len(set(figures["weights_sha256"])) == 1
    first, *rest = figures["interrupted_after"]
    assert first < 4 <= rest[0] < rest[1] < figures["epoch"] < rest[2], (
        "expected interruptions within an epoch and past its end"
    )
