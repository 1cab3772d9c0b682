"""Training runs in their folders. The package can be called: `ch.runs()` lists them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clearhead.runs.listing import ListedRuns


class _CallablePackage(ModuleType):
    def __call__(self, folder: str | Path = "runs") -> ListedRuns:
        """List the runs in a folder, or the folder itself if it is a run, with settings, losses and curves.

        A damaged run is skipped, with a warning.
        """
        from clearhead.runs.listing import list_runs  # imports torch

        return list_runs(folder)


sys.modules[__name__].__class__ = _CallablePackage
