"""A run's settings and loss curve, for a report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clearhead.files import read_sealed
from clearhead.runs.listing import describe_run
from clearhead.runs.run_folder import is_run
from clearhead.runs.teacher_folders import RUN
from clearhead.summary_table import TableCell
from clearhead.training.recipe import Recipe

MOST_POINTS = 200  # of the training loss

Curve = list[tuple[int, float]]  # step and loss


@dataclass(frozen=True)
class RunSummary:
    settings: dict[str, TableCell]
    training: Curve  # smoothed
    validation: Curve

    @classmethod
    def of(cls, folder: Path) -> RunSummary | None:
        """None if the folder is not a run."""
        if not is_run(folder):
            return None
        run, written = describe_run(folder), read_sealed(folder / RUN)
        plan, curves = written["plan"], run.metrics
        recipe, config = Recipe(**plan["recipe"]), plan["config"]
        settings: dict[str, TableCell] = {
            "text": run.text,
            "training tokens": written.get("tokens"),
            "tokenizer": run.tokenizer,
            "started from": written["request"].get("start"),
            "steps": run.steps_done,
            "minutes": run.minutes,
            "tokens read": run.tokens,
            "batch size": recipe.batch_size,
            "context": plan["context"],
            "optimizer": recipe.optimizer,
            "learning rate": f"{recipe.main_rate:g}",
            "schedule": recipe.schedule,
            "weight decay": f"{recipe.weight_decay:g}",
            "dropout": f"{config.get('dropout', 0):g}",
            "seed": recipe.seed,
            "machine": written.get("machine"),
        }
        known: dict[str, TableCell] = {name: value for name, value in settings.items() if value is not None}
        steps, smoothed = curves["step"], curves["smoothed"]
        there = np.flatnonzero(np.isfinite(smoothed))
        # Evenly spread over the logarithm of the step, as they are drawn.
        even = np.searchsorted(steps[there], np.geomspace(1, max(1, run.steps_done), MOST_POINTS))
        shown = there[np.unique(np.minimum(even, len(there) - 1))] if len(there) else there
        validated = np.flatnonzero(np.isfinite(curves["validation"]))
        return cls(
            known,
            [(int(steps[i]), float(smoothed[i])) for i in shown],
            [(int(steps[i]), float(curves["validation"][i])) for i in validated],
        )
