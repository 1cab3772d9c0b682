"""How soon the command line answers, and what it does without torch, whose import takes seconds."""

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
    """The least of several: what else the machine does only adds."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True, timeout=60)
        taken.append(time.perf_counter() - began)
    return min(taken)


def test_nothing_of_torch_is_imported():
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
def test_importing_takes_under_a_third_of_a_second():
    assert seconds("-c", "import clearhead") < 0.3


@pytest.mark.clock
def test_help_takes_under_half_a_second():
    assert seconds("-m", "clearhead", "--help") < 0.5
