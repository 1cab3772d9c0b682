"""Whether a run trains teachers first: because an earlier process did, on request, or because it pays off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from clearhead.errors import UserError
from clearhead.files import home
from clearhead.runs.plan import Plan, scale_plan, share_batch
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.runs.run_folder import request_to_json
from clearhead.runs.saved_run import changed_text, check_same, occupied
from clearhead.runs.sizes import list_sizes
from clearhead.runs.teaching import TeachingPlan, choose_on_gpu, choose_teaching, plan_teaching
from clearhead.text.corpus import Document, measure


def open_teaching(
    folder: Path,
    texts: list[Document],
    request: TrainingRequest,
    resume: bool,
    cache: Path | None = None,
    command: Sequence[str] = (),
    chosen: TeachingPlan | None = None,
) -> TeachingPlan | None:
    """The plan for the teachers to train before the run, saved before the first one starts; None if not known yet.

    `chosen` is the plan of a run that does not request teachers.
    """
    saved = TeachingPlan.read(folder)
    if saved is None:
        planned = chosen or request_teaching(texts, request, cache)
        if planned is not None:
            planned = replace(planned, resume=resume, command=list(command))
            planned.save(folder)
        return planned
    if not resume:
        raise UserError(occupied(folder, {}, None))
    check_same(folder, saved.request, request_to_json(request))
    if saved.text_sha256 != measure(texts)[0]:
        raise UserError(changed_text(folder))
    return saved


def request_teaching(
    texts: list[Document], request: TrainingRequest, cache: Path | None = None
) -> TeachingPlan | None:
    """The plan for teachers that are requested, or that are certain to lower the loss."""
    if request.teachers:
        return plan_teaching(request, request_to_json(request), measure(texts)[0], request.teachers)
    return choose_on_gpu(request, request_to_json(request), texts, cache or home() / "tokens")


def teaching_of(run: Run) -> TeachingPlan | None:
    """The plan for teachers, if the run, which is planned without them, would learn more with them."""
    return choose_teaching(run.request, request_to_json(run.request), run.text_sha256, run.plan, run.tokens)


def plan_first_teacher(teaching: TeachingPlan, run: Run) -> Plan:
    """The plan of the first teacher, from that of a single run, so that nothing is measured again."""
    request = teaching.request_of(1, run.request)
    [config] = list_sizes(request, run.tokens, run.tokenizer.n_vocab)
    plan = scale_plan(request, run.plan, config, run.tokens, len(run.whole_validation), run.device)
    return share_batch(plan, request, run.group.world_size)
