"""lm-evaluation-harness computes the same scores through the server as with transformers."""

import subprocess
import sys
import sysconfig
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.harness import main
from tests.serving import make_model

pytestmark = pytest.mark.slow

# Not a development requirement: it has dozens of dependencies, which this test adds to the installed packages.
HARNESS = "lm-eval[api]==0.4.13"
HINT = f"to run this test, pip install '{HARNESS}'"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """An interpreter with the harness: this one, or that of an environment that adds it to the installed packages."""
    if find_spec("lm_eval") is not None:
        return sys.executable
    if find_spec("pip") is None:
        pytest.skip(f"{HARNESS} is not installed, and neither is pip: {HINT}")
    folder = tmp_path_factory.mktemp("harness")
    venv.create(folder)
    python = folder / "bin" / "python"
    added = Path(sysconfig.get_path("purelib", "venv", {"base": folder, "platbase": folder}))
    (added / "installed.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", python, "--retries", "1", "--timeout", "30"]
    try:
        done = subprocess.run([*pip, "install", "-q", HARNESS], capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{HARNESS} could not be installed within five minutes: {HINT}")
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        pytest.skip(f"{HARNESS} cannot be downloaded ({said}): {HINT}")
    return str(python)


def test_scores_equal_those_with_transformers(python, tmp_path):
    """The documents are longer than the context, so that their perplexity takes several windows."""
    make_model().save(tmp_path / "small")
    found = main(python, str(tmp_path / "small"), items=3, batch=4)
    # A document's log-probability is about -1,600, of which float32 keeps four decimals.
    for task, tolerance in (("choice", 1e-4), ("cloze", 1e-4), ("document", 1e-3)):
        assert found[task]["items"] == 3
        assert found[task]["largest"] <= tolerance
        assert found[task]["unequal"] == 0
    assert found["metrics"]["server"]["document"]["bits_per_byte"] > 1
