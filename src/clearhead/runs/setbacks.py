"""When training goes wrong, a run returns to an earlier state: values are not finite, or the validation loss rises."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from clearhead.errors import UserError
from clearhead.runs.summary import LEAST_RISE
from clearhead.summary_table import plural
from clearhead.training.trainer import DIVERGED

if TYPE_CHECKING:
    from clearhead.runs.run import Run

MOST_SKIPPED = 3  # consecutive non-finite steps before the run returns to an earlier state
MOST_RETREATS = 3
# Of the steps before the validation loss rose; the learning rate then decays over that many.
LAST_SHARE = 0.25
# How much higher than the lowest validation loss, and how many times in a row, until the learning rate decays.
RISE, RISES = 0.02, 2


def retreat(run: Run, step: int) -> None:
    """Return to the last finite state with a lower learning rate; give up after several attempts."""
    if run.retreats >= MOST_RETREATS:
        raise UserError(f"training diverged at step {step}, for the {run.retreats + 1}th time: {DIVERGED}")
    retreats, slowdown = run.retreats + 1, run.trainer.slowdown / 2
    seconds, steps = run.seconds, run.trainer.recipe.steps
    run.restore(run.good)
    run.start = time.perf_counter() - seconds
    run.retreats, run.trainer.slowdown, run.skipped = retreats, slowdown, 0
    run.trainer.recipe = replace(run.trainer.recipe, steps=steps)
    run.notes.append(
        f"step {step}: loss or gradients were not finite; returned to step {run.trainer.step}, "
        f"with {slowdown:g}× the learning rate"
    )


def good_loss(run: Run) -> float:
    """The validation loss of the state to return to; infinite if it was not measured since the run was extended."""
    state = run.good.state
    known = len(state["losses"]) > state["losses_before"] and state["validated_at"] == run.good.step
    return float(state["losses"][-1]) if known else math.inf


def has_turned(run: Run, loss: float) -> bool:
    """Whether the validation loss of a timed run that has read its whole text is rising.

    At a high learning rate, it also fluctuates, the more the higher it is, so two in a row must be clearly higher.
    When a run is extended, the learning rate rises again and the loss with it, so only the last loss counts.
    """
    step, recipe = run.trainer.step, run.trainer.recipe
    repeats = (step - recipe.first_step) * recipe.batch_size * run.plan.context > len(run.tokens)
    if run.request.minutes is None or not repeats:
        return False
    lowest = good_loss(run)
    if step >= recipe.steps:
        return loss > lowest
    if run.at_most is not None:
        return loss > lowest + LEAST_RISE
    if recipe.first_step:
        return False
    since = run.losses[len(run.good.state["losses"]) :]
    return len(since) >= RISES and min(since[-RISES:]) > (1 + RISE) * lowest


def turn(run: Run, loss: float) -> None:
    """Return to the state with the lowest validation loss, and end soon: the learning rate decays from there.

    The second time, or if no time is left, the run ends with that state.
    """
    step, lowest, has_decayed, seconds = run.trainer.step, good_loss(run), run.at_most, run.seconds
    run.restore(run.good)
    run.start = time.perf_counter() - seconds
    done, first = run.trainer.step, run.trainer.recipe.first_step
    run.at_most = done if has_decayed else done + round(LAST_SHARE * (done - first))
    run.set_steps(done)
    run.marks, more = run.count_marks(done), run.trainer.recipe.steps - done
    then = f"; {plural(more, 'more step')} with a low learning rate" if more else ""
    run.notes.append(
        f"the validation loss rose from {lowest:.4f} at step {done:,} to {loss:.4f} at step {step:,}: returned to "
        f"step {done:,}{then}"
    )
