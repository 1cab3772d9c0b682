"""The measurement runs, on a small model."""

import json
import subprocess

from tests.serving import make_model


def test_one_line(forked, tmp_path):
    make_model().save(tmp_path / "model")
    command = [
        *forked,
        "-m",
        "bench.saved_page",
        str(tmp_path / "model"),
        "--tokens",
        "64",
        "--head",
        "0.1",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    told = json.loads(done.stdout)
    assert told["tokens"] == 64
    sizes = [told[f"{name}_bytes"] for name in ("head", "flow_and_head", "lens_too")]
    assert 0 < sizes[0] < sizes[1] < sizes[2] < told["bound_bytes"]
    assert told["within"]
