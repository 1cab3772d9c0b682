"""The observer of a run: what a caller does while it trains. Imports no torch."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clearhead.runs.run import Progress, Run
    from clearhead.runs.saved_run import SavedRun


class Observer:
    """What a caller does while a run trains; the default does nothing."""

    def started(self, saved_run: SavedRun) -> None:
        """The plan is fixed, and training starts or resumes."""

    def stepped(self, run: Run, progress: Progress) -> bool:  # noqa: ARG002
        """A step is done. Return False to stop early."""
        return True

    def training(self) -> AbstractContextManager[object]:
        """Entered around training and saving."""
        return nullcontext()

    def saving(self) -> None:
        """Training is over, and the model is about to be saved."""
