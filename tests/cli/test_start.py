"""Startup time of the command line, and what it does without importing torch, which takes seconds."""

import subprocess
import sys
import time

import pytest

WITHOUT_TORCH = [
    ["--help"],
    ["--version"],
    ["models", "--help"],
    ["train", "--help"],
    ["doctor", "--help"],
    ["lab", "--help"],
    ["lab", "stream", "--help"],
    ["trian"],
    ["train", "my.txt", "--minuts", "3"],
]


def seconds(*arguments, times=7):
    """The minimum of several runs: other load on the machine can only add time."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True, timeout=60)
        taken.append(time.perf_counter() - began)
    return min(taken)


def test_heavy_packages_are_not_imported():
    code = (
        "import sys; import clearhead; from clearhead.cli import run\n"
        f"for command in {WITHOUT_TORCH}:\n"
        "    run(command)\n"
        "    loaded = {'torch', 'numpy', 'matplotlib', 'fastapi'} & {*sys.modules}\n"
        "    assert not loaded, (command, loaded)\n"
        "print('all')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("all\n"), done.stderr
    assert done.returncode == 0


@pytest.mark.clock
def test_import_takes_under_300_ms():
    assert seconds("-c", "import clearhead") < 0.3


@pytest.mark.clock
def test_help_takes_under_500_ms():
    assert seconds("-m", "clearhead", "--help") < 0.5


@pytest.mark.slow
def test_torchs_compiler_is_not_imported_to_load_and_run_a_model():
    """Importing it takes longer than everything else that `clearhead generate` does after importing torch."""
    code = (
        "import sys; from clearhead.language_model import load\n"
        "model = load('stories', 'cpu'); model.generate('Once', 3); model.inspect('Once').verify()\n"
        "assert 'torch' in sys.modules\n"
        "assert 'torch._dynamo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
