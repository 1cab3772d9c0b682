"""The observer of a run: hooks that are called while it trains. Does not import torch."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clearhead.runs.counting import CountedText
    from clearhead.runs.preparation import PreparedText
    from clearhead.runs.progress import Progress
    from clearhead.runs.reports import Reports
    from clearhead.runs.run import Run


class Observer:
    """Hooks that are called while a run trains; the defaults do nothing."""

    def noted(self, message: str) -> None:
        """Something about the text that the user should know."""

    def entered(self, phase: str) -> None:
        """A run with teachers enters a phase: one of the teachers, or the student."""

    def started(self, run: Run, reports: Reports) -> None:
        """The plan is fixed, and training starts or resumes."""

    def stepped(self, run: Run, progress: Progress) -> bool:  # noqa: ARG002
        """A step is done. Return False to stop early."""
        return True

    def training(self) -> AbstractContextManager[object]:
        """Entered around training and saving."""
        return nullcontext()

    def saving(self) -> None:
        """Training is over, and the model is about to be saved."""

    def counting(self, text: PreparedText) -> None:
        """The n-grams of this text are about to be counted."""

    def counted(self, counted: CountedText) -> None:
        """The n-gram model is trained and about to be saved."""
