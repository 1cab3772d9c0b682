"""Extend a finished run by more minutes or steps, with a new schedule and the text as it is now."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import MISSING, fields, replace
from typing import Any

import torch

from clearhead.errors import UserError
from clearhead.networks import Learner, Network
from clearhead.runs.measure import Measure
from clearhead.runs.pace import Schedule
from clearhead.runs.plan import Plan
from clearhead.runs.recipes import choose_warmup, regularize
from clearhead.runs.request import TrainingRequest
from clearhead.runs.start import measure_start, prepare
from clearhead.text.tokens import Tokens

# Not taken from the run being extended: the device may differ, and the hashes are computed again.
OWN = ("minutes", "steps", "device", "start_sha256", "teachers_sha256")

# Peak learning rate of an extension, relative to the run's. Measured for models trained from scratch
# (docs/experiments.md).
PEAK = 0.7


def complete_request(request: TrainingRequest, saved: dict[str, Any]) -> TrainingRequest:
    """The request, with the settings that it leaves open taken from those saved with the run."""
    settings = vars(request) | {"start_sha256": "", "teachers_sha256": None}
    if request.from_teachers is not None and not saved.get("from_teachers"):
        raise UserError(
            "the run was not started with `from_teachers`: omit it, or start another run in another folder with `out`"
        )
    # One excludes the other.
    own = (*OWN, "from_teachers") if request.teachers else OWN
    for field in fields(request):
        default = None if field.default is MISSING else field.default
        if field.name in saved and field.name not in own and settings[field.name] == default:
            settings[field.name] = saved[field.name]
    if settings["start"] is not None and settings["optimizer"] is None:
        settings["optimizer"] = saved.get("optimizer")
    return TrainingRequest(**settings)


def extend_plan(
    request: TrainingRequest,
    plan: Plan,
    done: int,
    tokens: Tokens,
    n_validation: int,
    device: torch.device,
    left: float | None,
    start: Learner | None,
    teachers: Sequence[Network] = (),
) -> Plan:
    """The plan of a finished run with more steps: the schedule starts again after the steps done.

    Model and batch stay the same, and the learning rate has a lower peak. `left` is the number of seconds left,
    `start` the model that was fine-tuned, `teachers` those that the run learns from.
    """
    config, recipe, context, validated = plan.config, plan.recipe, plan.context, plan.validated
    if left is None:
        steps = request.steps or 0
        plan = replace(plan, seconds=None, validations=min(steps, 5))
    else:
        began = time.perf_counter()
        alike = replace(request, batch=recipe.batch_size)
        if start is None:
            measure = Measure.take(alike, config, tokens, device, left, teachers)
        else:
            network = prepare(deepcopy(start), config, request.lora).to(device)
            measure = measure_start(alike, network, context, tokens, left)
        left -= time.perf_counter() - began
        n_validated = n_validation if validated is None else min(n_validation, validated)
        seconds_per_step = measure.seconds_per_token * recipe.batch_size * context
        reading = measure.seconds_per_token_read
        schedule = Schedule.fit(left, seconds_per_step, reading, n_validated, context)
        steps = schedule.steps
        plan = replace(plan, seconds=left, threads=measure.threads, **schedule.to_plan())
    warmup = choose_warmup(recipe.name, steps)
    recipe = replace(recipe, steps=done + steps, first_step=done, warmup=warmup)
    if start is None:
        config, recipe = regularize(request, config, recipe, tokens, device)
        scale = PEAK if plan.recipe.first_step == 0 else 1.0  # further extensions have the same peak
        recipe = replace(
            recipe, learning_rate=scale * recipe.learning_rate, matrix_rate=scale * recipe.matrix_rate
        )
    return replace(plan, config=config, recipe=recipe)
