"""What is reported about a run when it ends: how its model was trained, and what went wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clearhead.runs.run import Run

LEAST_RISE = 0.02  # increase in the validation loss, in nats, that counts


def describe_training(run: Run) -> dict[str, Any]:
    """How the model was trained; this is saved with it."""
    return {
        **run.plan.to_json(),
        **_origin(run),
        "steps_done": run.trainer.step,
        **({"earlier": run.earlier} if run.earlier else {}),
        **({"held_out": True} if run.held_out is not None else {}),
        "text_sha256": run.text_sha256,
        **({} if run.opening_ids is None else {"opening_ids": run.opening_ids}),
        "tokens": len(run.tokens),
        "validation_tokens": len(run.validation),
        "validation_loss": run.last_loss(),
    }


def summarize(run: Run, best: Path | None = None) -> list[str]:
    """Warnings at the end of the run; `best` is where the model with the lowest loss is saved."""
    losses, taught = run.losses, run.teachers
    done = run.trainer.step >= run.trainer.recipe.steps
    if done and losses and run.request.teachers and taught is not None and taught.losses:
        lowest = min(taught.losses)
        if losses[-1] > lowest + LEAST_RISE:
            more = "more time" if run.request.steps is None else "more steps"
            return [
                f"the validation loss is {losses[-1]:.4f}, and one of the teachers ended at {lowest:.4f}: the student "
                f"had too few steps; give the run {more}, or train a single model (`teachers=0`)"
            ]
    if not losses or losses[-1] <= min(losses) + LEAST_RISE:
        return []
    kept = f"; the best model is saved in {best}" if best is not None else ""
    if losses.index(min(losses)) < run.losses_before:
        return [
            f"the validation loss is {losses[-1]:.4f}, above the {min(losses):.4f} before the run was "
            f"extended: extend it further, or use more text{kept}"
        ]
    return [
        f"the validation loss rose from its minimum of {min(losses):.4f} to "
        f"{losses[-1]:.4f}: the model is overfitting; train for less time, or "
        f"on more text{kept}"
    ]


def _origin(run: Run) -> dict[str, Any]:
    """How the network was initialized."""
    request = run.request
    if request.start is None:
        preset = {"preset": request.preset} if request.kind == "transformer" else {}
        own = len(run.teachers or ()) if request.teachers else 0
        taught: dict[str, Any] = {"teachers": own, "from_teachers": request.teacher_names}
        taught["teachers_sha256"] = request.teachers_sha256
        given = {name: value for name, value in taught.items() if value}
        return {"kind": request.kind, **preset, **given}
    return {"start": request.start, "start_sha256": request.start_sha256, "lora": request.lora}
