"""The progress line, in a terminal and in a notebook."""

import io
import sys
from types import SimpleNamespace

import pytest

from clearhead.runs import progress_line
from clearhead.runs.progress import Progress
from clearhead.runs.progress_line import (
    NotebookDisplay,
    ProgressLine,
    TerminalDisplay,
    describe_progress,
    find_display,
)
from clearhead.training.trainer import StepRecord
from tests.runs.recording_display import RecordingDisplay


class Terminal(io.StringIO):
    def isatty(self):
        return True


def progress(step, validation=None):
    record = StepRecord(step, 3.0, 1.0, lr_scale=1.0, learning_rate=0.1, tokens=100 * step, seconds=0.5)
    return Progress(record, 10, 3.0, 0.5, 0.5 * step, validation)


@pytest.fixture
def notebook(monkeypatch):
    """Stand in for IPython in a kernel; return what the notebook displays."""
    shown = []

    def display(data, raw, display_id):
        assert raw
        assert display_id
        shown.append(data)
        return SimpleNamespace(update=lambda data, raw: shown.__setitem__(-1, data))

    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    return shown


def test_line_has_step_losses_speed_and_time_left():
    early, late = progress(2, validation=2.5), progress(4)
    assert describe_progress(early, None, None) == "step 2/10   loss 3.000   200 tokens/s   0:04 left"
    assert "validation 2.5000   200" in describe_progress(early, early, None)
    assert "validation 2.5000 at 2   200" in describe_progress(late, early, None)


def test_terminal_line_is_overwritten_and_fits(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setitem(sys.modules, "IPython", None)
    monkeypatch.setenv("COLUMNS", "40")
    display = find_display()
    assert isinstance(display, TerminalDisplay)
    display.write("a long line " * 10)
    display.write("short")
    display.clear()
    display.write("last")
    display.close()
    lines = terminal.getvalue().split("\r")
    assert [len(line) for line in lines[1:3]] == [39, 39]
    assert lines[2].rstrip() == "short"
    assert lines[3:] == ["     ", "", "last\n"]


def test_notebook_line_is_one_output(notebook):
    display = find_display()
    assert isinstance(display, NotebookDisplay)
    for text in ("one", "two", "three"):
        display.write(text)
    assert notebook == [{"text/plain": "three"}]


def test_nothing_is_shown_elsewhere(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert find_display() is None
    monkeypatch.setattr(sys, "stdout", None)  # as in a program without a console on Windows
    assert find_display() is None


def test_line_is_updated_a_few_times_per_second_and_ends_with_the_last_step(monkeypatch):
    now = 0.0
    monkeypatch.setattr(progress_line.time, "monotonic", lambda: now)
    recorder = RecordingDisplay()
    line = ProgressLine(recorder)
    for step in range(1, 9):
        line.step(progress(step, validation=2.0 if step == 3 else None), None)
        now += 0.04
    line.clear()
    line.close()
    steps = [said.split()[1] for said in recorder.said if said.startswith("step")]
    assert steps == ["1/10", "4/10", "7/10", "8/10"]
    assert "at 3" in recorder.said[-2]
    assert recorder.said[-3:][::2] == ["clear", "close"]
