"""The progress of a run as one line, updated in place in a terminal or a notebook. Does not import torch."""

from __future__ import annotations

import shutil
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from clearhead.runs.progress import Progress

REFRESH = 0.1  # seconds between updates
COLUMNS = 80  # of a line, if its display has no fixed width


def describe_progress(
    progress: Progress, validated: Progress | None, minutes: float | None, width: int = COLUMNS
) -> str:
    """A progress line, with the last validation loss and its step, shortened to fit the width.

    A timed run shows the time instead of the total number of steps, which changes with the speed.
    """
    record = progress.record
    left = (progress.steps - record.step) * progress.seconds_per_step
    loss, validation, at = f"loss {progress.loss:.3f}", "", ""
    if validated is not None:
        validation = f"validation {validated.validation:.4f}"
        at = "" if validated is progress else f" at {validated.record.step:,}"
    speed = f"{progress.tokens_per_second:,.0f} tokens/s"
    if minutes is None:
        step, time_left = f"step {record.step:,}/{progress.steps:,}", f"{clock(left)} left"
        parts = [step, loss, validation + at, speed, time_left]
        shorter = [step, loss, validation, time_left]
    else:
        elapsed = f"{clock(progress.seconds)} of {clock(60 * minutes)}"
        parts = [elapsed, f"step {record.step:,}", loss, validation + at, speed]
        shorter = [elapsed, loss, validation]
    lines = [
        space.join(part for part in each if part)
        for each, space in ((parts, "   "), (parts, "  "), (shorter, "   "), (shorter, "  "))
    ]
    return next((line for line in lines if len(line) <= width), lines[-1])


def clock(seconds: float) -> str:
    """Format a duration: 1:05, or 2:03:04."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Display(Protocol):
    """Shows one line, which can be replaced."""

    @property
    def columns(self) -> int:
        """The length of a line that fits."""

    def write(self, text: str) -> None: ...

    def clear(self) -> None:
        """Make room for other output."""

    def close(self) -> None: ...


class TerminalDisplay:
    """The current line of a terminal, on stdout."""

    def __init__(self) -> None:
        self.width = 0  # characters on the line

    @property
    def columns(self) -> int:
        return shutil.get_terminal_size().columns - 1

    def write(self, text: str) -> None:
        text = text[: self.columns]
        self._put(f"\r{text:<{self.width}}")
        self.width = len(text)

    def clear(self) -> None:
        if self.width:
            self._put(f"\r{'':<{self.width}}\r")
            self.width = 0

    def close(self) -> None:
        if self.width:
            self._put("\n")
            self.width = 0

    def _put(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


class NotebookDisplay:
    """One output of the current cell."""

    columns = COLUMNS

    def __init__(self) -> None:
        self.handle: Any = None

    def write(self, text: str) -> None:
        data = {"text/plain": text}
        if self.handle is None:
            self.handle = import_module("IPython.display").display(data, raw=True, display_id=True)
        else:
            self.handle.update(data, raw=True)

    def clear(self) -> None:
        pass

    def close(self) -> None:
        pass


def find_display() -> Display | None:
    """The display of this process: a notebook, a terminal, or None if stdout is neither."""
    ipython = sys.modules.get("IPython")  # imported by every notebook's kernel
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is not None:
        return NotebookDisplay()
    return TerminalDisplay() if sys.stdout is not None and sys.stdout.isatty() else None


class ProgressLine:
    """Shows the newest step on a display, a few times per second; the last step is always shown."""

    def __init__(self, display: Display) -> None:
        self.display = display
        self.validated: Progress | None = None
        self.phase = ""  # of a run with teachers
        self.pending: str | None = None  # the newest line, if it has not been shown yet
        self.shown_at: float | None = None

    def step(self, progress: Progress, minutes: float | None) -> None:
        """Show a step; `minutes` is the planned time of a timed run."""
        self.validated = self.validated if progress.validation is None else progress
        phase = f"{self.phase}   " if self.phase else ""
        width = self.display.columns - len(phase)
        self.pending = phase + describe_progress(progress, self.validated, minutes, width)
        if self.shown_at is None or time.monotonic() - self.shown_at >= REFRESH:
            self._show()

    def clear(self) -> None:
        self.display.clear()

    def close(self) -> None:
        self._show()
        self.display.close()

    def _show(self) -> None:
        if self.pending is not None:
            self.display.write(self.pending)
            self.pending, self.shown_at = None, time.monotonic()
