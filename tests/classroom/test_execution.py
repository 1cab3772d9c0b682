"""The process that runs a submission: what it may do, and what ends it."""

import os
import time
from pathlib import Path

import pytest
import torch

from clearhead.classroom.execution import (
    ProcessEndedError,
    ProcessLimits,
    Runner,
    SubmissionError,
    SubmissionProcess,
)
from clearhead.classroom.sandbox import landlock_version

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="grading forks a process, which this system cannot"
)
FLOOD = """
import os
for handle in range(3, 100):
    try:
        while True: os.write(handle, b"x" * 2**16)
    except OSError: pass
"""
landlock = pytest.mark.skipif(landlock_version() == 0, reason="this kernel has no Landlock")


@pytest.fixture
def process(runner, limits, tmp_path):
    with SubmissionProcess(runner, limits, [tmp_path]) as started:
        yield started


def test_names_are_kept_between_cells(process):
    process.run("%matplotlib inline\nx = 2\nprint('nobody sees this')")
    process.run("def double(y):\n    return x * y")
    assert process.value("x") == 2
    assert process.call("double", (torch.tensor([1.0, 2.5]),)) == [2.0, 5.0]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("1 / 0", "raised ZeroDivisionError: division by zero"),
        ("raise ValueError", "raised ValueError"),
        ("raise ValueError('a\\nb\\x1b[31m')", "raised ValueError: a b"),
        ("import sys; sys.exit(3)", "raised SystemExit: 3"),
        ("raise KeyboardInterrupt", "raised KeyboardInterrupt"),
        ("def f(:", "raised SyntaxError"),
        ("def f(): f()\nf()", "raised RecursionError"),
        ("class E(Exception):\n  def __str__(self): 1 / 0\nraise E", "raised E"),
        ("x = [0] * 10**12", "out of memory"),
        ("import torch; x = torch.zeros(10**12)", "out of memory"),
        ("input()", "raised EOFError"),
    ],
)
def test_errors_are_reported_and_the_process_remains(process, code, reason):
    with pytest.raises(SubmissionError) as error:
        process.run(code)
    assert str(error.value).startswith(reason)
    assert str(error.value).isprintable()
    process.run("x = 1")
    assert process.value("x") == 1


def test_missing_names_and_odd_values_are_errors(process):
    with pytest.raises(SubmissionError, match="answer is not defined"):
        process.value("answer")
    process.run("answer = {'a': {1, 2}}")
    with pytest.raises(SubmissionError, match="of type dict"):
        process.value("answer")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os._exit(0)", "exit code 0"),
        ("import os; os._exit(7)", "exit code 7"),
        ("import os; os.abort()", "SIGABRT"),
        ("import os; os.kill(os.getpid(), 9)", "killed"),
        ("import os\nfor i in range(3, 100):\n  try: os.close(i)\n  except OSError: pass", "exit code 1"),
        (
            "import os\nfor i in range(3, 100):\n  try: os.write(i, b'[]\\n')\n  except OSError: pass",
            "something other",
        ),
        (FLOOD, "too much data"),
        (FLOOD.replace('b"x" * 2**16', "b'{\"value\": 1}\\n'"), "something other"),
        (FLOOD.replace('b"x" * 2**16', 'b"[" * 10**5 + b"\\n"'), "something other"),
    ],
)
def test_a_process_that_ends_is_reported(runner, limits, tmp_path, code, reason):
    with (
        pytest.raises(ProcessEndedError, match=reason),
        SubmissionProcess(runner, limits, [tmp_path]) as process,
    ):
        process.run(code)
    with SubmissionProcess(runner, limits, [tmp_path]) as process:
        process.run("x = 1")  # the next submission is not affected
        assert process.value("x") == 1


@pytest.mark.parametrize(
    "code",
    ["while True: pass", "import time\nwhile True:\n  try: time.sleep(9)\n  except BaseException: pass"],
)
def test_a_cell_that_hangs_is_ended(runner, tmp_path, code):
    short = ProcessLimits(seconds=0.5)
    with (
        pytest.raises(ProcessEndedError, match=r"timed out after 0\.5 s"),
        SubmissionProcess(runner, short, [tmp_path]) as process,
    ):
        process.run(code)


def test_cpu_time_is_limited(runner, tmp_path):
    limits = ProcessLimits(seconds=120, cpu_seconds=1)
    with (
        pytest.raises(ProcessEndedError, match="CPU time"),
        SubmissionProcess(runner, limits, [tmp_path]) as process,
    ):
        process.run("while True: pass")


def test_one_submission_sees_nothing_of_another(runner, limits, tmp_path):
    with SubmissionProcess(runner, limits, [tmp_path]) as process:
        process.run(
            "import torch, os; torch.mine = 1; open('left', 'w').write('x'); os.environ['LEFT'] = '1'"
        )
        process.run("here = os.getcwd()")
        folder = Path(process.value("here"))
        assert (folder / "left").exists()
    assert not folder.exists()
    with SubmissionProcess(runner, limits, [tmp_path]) as process:
        process.run(
            "import torch, os; seen = [hasattr(torch, 'mine'), os.path.exists('left'), 'LEFT' in os.environ]"
        )
        assert process.value("seen") == [False, False, False]


def test_processes_left_behind_are_ended(runner, limits, tmp_path):
    """Root may start any number of processes, but those left running are still ended."""
    with SubmissionProcess(runner, limits, [tmp_path]) as process:
        process.run(
            "import os, time\n"
            "pid = 0\n"
            "try:\n"
            "    pid = os.fork()\n"
            "    if pid == 0:\n"
            "        os.setsid()\n"
            "        time.sleep(600)\n"
            "        os._exit(0)\n"
            "except OSError: pass\n"
        )
        pid = process.value("pid")
    if os.geteuid() != 0:
        assert pid == 0  # the process could not be started at all
    elif Path("/proc").is_dir():
        assert not Path(f"/proc/{pid}").exists()


def test_secrets_in_the_environment_are_not_passed_on(tmp_path, limits, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "secret")
    started = Runner()
    try:
        with SubmissionProcess(started, limits, [tmp_path]) as process:
            process.run("import os; seen = 'secret' in str(os.environ)")
            assert process.value("seen") is False
    finally:
        started.close()
    assert not started.is_running


@landlock
def test_files_outside_cannot_be_opened(process, tmp_path):
    assert process.confined
    (tmp_path / "solutions.txt").write_text("42")
    package = Path(__file__).parents[2] / "src" / "clearhead" / "classroom"
    for path in (tmp_path / "solutions.txt", Path(__file__), package / "lecture_000.py"):
        with pytest.raises(SubmissionError, match="PermissionError"):
            process.run(f"open({str(path)!r}).read()")
    for code in (
        "import clearhead.classroom.exercises",
        f"open({str(tmp_path / 'new')!r}, 'w')",
        f"import os; os.remove({str(tmp_path / 'solutions.txt')!r})",
        "import socket; socket.create_connection(('127.0.0.1', 9), 5)",
        "import os; os.kill(os.getppid(), 9)",
    ):
        with pytest.raises(SubmissionError, match="PermissionError"):
            process.run(code)
    assert (tmp_path / "solutions.txt").read_text() == "42"


@landlock
def test_exercises_can_use_everything_they_need(process):
    process.run(
        "import clearhead as ch; model = ch.load('stories'); text = model.generate('Once', tokens=3, seed=1)"
    )
    assert isinstance(process.value("text"), str)
    process.run("open('mine.txt', 'w').write('x'); mine = open('mine.txt').read()")
    assert process.value("mine") == "x"
    process.run("import numpy, statistics, fractions, decimal; import torch.nn.functional as F")


def test_large_files_cannot_be_written(process):
    with pytest.raises(SubmissionError, match="OSError"):
        process.run("file = open('big', 'wb', buffering=0)\nfor _ in range(100): file.write(bytes(2**20))")


def test_a_runner_that_was_killed_is_noticed(tmp_path, limits):
    started = Runner()
    process = SubmissionProcess(started, limits, [tmp_path])
    started._process.kill()
    started._process.wait()
    deadline = time.monotonic() + 60
    while started.is_running and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not started.is_running
    process.close()
    started.close()
