"""A run with its folder: started or resumed there, and saved as it trains."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from clearhead.errors import UserError
from clearhead.language_model import LanguageModel
from clearhead.runs.extension import complete_request
from clearhead.runs.plan import Plan
from clearhead.runs.progress import Progress
from clearhead.runs.reports import Reports
from clearhead.runs.request import TrainingRequest, with_time
from clearhead.runs.run import Run
from clearhead.runs.run_folder import RunFolder, is_run, request_to_json
from clearhead.runs.teaching import TeachingPlan, teachers_of
from clearhead.runtime.process_group import ProcessGroup
from clearhead.text.corpus import Document, measure

SECONDS_PER_CHECKPOINT = 60.0
SAMPLE_TOKENS = 40
HASHED = {"start_sha256": "start", "teachers_sha256": "from_teachers"}  # hashes, and what names the models
LAST_STATE = "the state to extend the run from"
# The estimated time to save a model, used until one has been saved.
SAVING, SAVED_PER_SECOND = 0.1, 3e8  # seconds, bytes


def snapshot_steps(count: int, steps: int) -> set[int]:
    """Up to `count` steps from the first to the last, at increasing intervals."""
    if count < 1:
        return set()
    return {round(step) for step in np.geomspace(1, steps, count)} if count > 1 else {steps}


class SavedRun:
    """A run whose folder is kept up to date while it is iterated over."""

    def __init__(self, folder: RunFolder, run: Run, command: Sequence[str] = (), **keeping: Any) -> None:
        """`after` is the time in seconds that the caller needs after saving; it counts toward the total."""
        self.folder, self.run, self.command = folder, run, command
        self.after: float = keeping.get("after") or 0.0
        run.ending = self.after + SAVING + 4 * run.plan.config.n_parameter / SAVED_PER_SECOND
        self.every: int | None = keeping.get("checkpoint_every")
        self.snapshots: int = keeping.get("snapshots") or 0
        self.reports = Reports()
        self.saved_at = run.seconds
        self.failing: set[str] = set()  # what could not be saved at the last attempt

    @classmethod
    def open(
        cls,
        path: Path,
        texts: Sequence[Document],
        request: TrainingRequest,
        resume: bool = False,
        command: Sequence[str] = (),
        cache: Path | None = None,
        group: ProcessGroup | None = None,
        began: float | None = None,
        extend: bool = False,
        extend_again: bool = False,
        plan: Plan | None = None,
        is_teacher: bool = False,
        **keeping: Any,
    ) -> SavedRun | None:
        """Start or resume a run; return None if it is already finished.

        With `extend`, a finished run is extended by the requested minutes or steps, if there are any; a repeated
        command extends it only with `extend_again`. `began` is the start of the clock, as in `Run`; a resumed run
        keeps its own. A new run may be given its plan. A teacher is trained as part of another run, see `Run`.
        """
        _check_keeping(**keeping)
        group = group or ProcessGroup()
        folder = group.main_first(lambda: RunFolder(path, held=group.is_main))
        begun = is_run(path)
        try:
            settings = group.run_on_main(lambda: _begun(folder, resume))
            if settings is None:
                folder.resume = resume
                request = with_time(request)
                teachers = teachers_of(path, request)
                given: dict[str, Any] = {
                    "group": group,
                    "began": began,
                    "teachers": teachers,
                    "is_teacher": is_teacher,
                }
                run = Run(texts, request, cache, plan, **given)
                group.run_on_main(lambda: folder.begin(run, command))
                return cls(folder, run, command, **keeping)
            if request.teachers is None and request.from_teachers is None:
                request = replace(request, teachers=settings["request"].get("teachers"))
            request, changed = (
                _complete(path, settings, request),
                measure(texts)[0] != settings["text_sha256"],
            )
            if settings.get("finished"):
                timed = request.minutes is not None or request.steps is not None
                if not (extend and timed) or not (
                    extend_again or group.run_on_main(lambda: _is_new(folder, settings, request, changed))
                ):
                    folder.close()
                    return None
                run = extend_run(
                    folder, settings, texts, request, changed, cache=cache, group=group, began=began
                )
                group.run_on_main(lambda: folder.describe(run, command, finished=False))
                return cls(folder, run, command, **keeping)
            check_same(path, settings["request"], request_to_json(request))
            if changed:
                raise UserError(changed_text(path))
            plan = Plan.from_json(settings["plan"])
            group.run_on_main(lambda: folder.check_plan(plan))
            tokenizer = group.run_on_main(folder.tokenizer)
            held_out = folder.find_held_out(tokenizer, group) if settings.get("text_changed") else None
            run = Run(
                texts,
                request,
                cache,
                plan=plan,
                tokenizer=tokenizer,
                group=group,
                began=_began(path, request),
                held_out=held_out,
                teachers=teachers_of(path, request),
                is_teacher=is_teacher,
            )
            run.earlier = settings.get("earlier", [])
            group.run_on_main(lambda: folder.save_text(run))
            folder.restore(run)
            run.resumed_at = run.seconds if run.trainer.step else 0.0
            if group.world_size not in settings.get("processes", [1]):
                group.run_on_main(
                    lambda: folder.describe(run, settings.get("command", command), finished=False)
                )
            return cls(folder, run, settings.get("command", command), **keeping)
        except BaseException:
            folder.close() if begun else folder.discard()
            raise

    def __enter__(self) -> SavedRun:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        stepped = self.run.trainer.step or self.run.retreats  # the run may have gone back to step 0
        try:
            self.run.notes += self.reports.close(failed=error is not None)
        finally:
            self.folder.close() if stepped else self.folder.discard()

    def report_to(self, reports: Reports) -> None:
        """Report every remaining step."""
        if not self.run.group.is_main:
            return
        self.reports = reports
        self.run.notes += reports.begin(self.folder.path)

    def __iter__(self) -> Iterator[Progress]:
        for progress in self.run:
            progress = replace(progress, sample=self._sample(progress))
            self._write("the metrics", lambda progress=progress: self.folder.add_metrics(progress))
            self.run.notes += self.reports.add(progress)
            step = progress.record.step
            # The last model is saved anyway.
            if progress.validation is not None and self.run.is_best and step < progress.steps:
                model = self.run.full_model()
                self._write("the best model so far", lambda model=model: self._save_best(model))
            first = self.run.plan.recipe.first_step
            if step - first in snapshot_steps(self.snapshots, progress.steps - first):
                model = self.run.full_model()
                self._write("a snapshot", lambda m=model, step=step: self.folder.save_snapshot(m, step))
            # After a return to an earlier step, a new checkpoint makes the later ones obsolete.
            # The state to return to is saved too, so that a resumed run returns to the same one.
            is_good = self.run.good.step == step < progress.steps
            if self._is_due(step) or is_good or self.run.trainer.step < step:
                self.save()
            if self.run.at_most is not None and self.run.trainer.step < step:
                self._write("the metrics", self._drop_undone)
            yield progress

    def _sample(self, progress: Progress) -> str | None:
        """A sample from the model at each validation but the last, when the finished model can be used instead.

        None for a bidirectional model, and for sharded runs.
        """
        run, step = self.run, progress.record.step
        writes = run.plan.config.causal and run.group.is_main and not run.request.sharded
        if not writes or progress.validation is None or step >= progress.steps:
            return None
        return str(run.model.generate(run.opening_ids, tokens=SAMPLE_TOKENS, seed=run.trainer.step))

    def _drop_undone(self) -> None:
        """Drop the metrics of steps that were undone because the validation loss had risen."""
        self.folder.cut_metrics_after(self.run.trainer.step)

    def _save_best(self, model: LanguageModel) -> None:
        began = time.perf_counter()
        self.folder.save_best(model)
        self.run.ending = self.after + time.perf_counter() - began

    def save(self) -> None:
        """Save a checkpoint of the current state."""
        self.saved_at = self.run.seconds
        self._try("a checkpoint", lambda: self.folder.save_checkpoint(self.run))

    def finish(self) -> None:
        """Mark the run as finished after its model is saved, and delete what was needed only for resuming.

        The last state is kept so that the run can be extended from it, except that of a teacher, and of a student
        whose teachers are deleted.
        """
        discards = self.run.request.discards_teachers
        if not self.run.is_teacher and not discards:
            self._try(LAST_STATE, lambda: self.folder.save_checkpoint(self.run, True))
        if not self.run.group.is_main:
            return
        if self.run.is_best:
            self.folder.drop_best()
        self.folder.describe(self.run, self.command, finished=True)
        self.folder.drop_checkpoints()
        if discards:
            self.folder.drop_teachers()

    def _is_due(self, step: int) -> bool:
        if self.every is not None:
            return step % self.every == 0
        return self.run.group.broadcast(self.run.seconds - self.saved_at >= SECONDS_PER_CHECKPOINT)

    def _write(self, what: str, work: Any) -> None:
        """Save on rank 0 only."""
        if self.run.group.is_main:
            self._try(what, work)

    def _try(self, what: str, work: Any) -> None:
        """Try to save; a disk error becomes a note, and training continues."""
        try:
            work()
            self.failing.discard(what)
        except (OSError, UserError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            if what not in self.failing:
                rest = "" if what == LAST_STATE else "; training continues"
                self.run.notes.append(f"{what} could not be saved ({reason}){rest}")
            self.failing.add(what)


def extend_run(
    folder: RunFolder,
    settings: dict[str, Any],
    texts: Sequence[Document],
    request: TrainingRequest,
    changed: bool,
    **options: Any,
) -> Run:
    """The finished run with more steps ahead; `changed` tells whether its text has changed."""
    group, plan, done = options["group"], Plan.from_json(settings["plan"]), folder.newest_step()
    teachers = teachers_of(folder.path, request, extends=True)
    if done is None:
        raise UserError(
            f"the run in {folder.path} has no checkpoint to extend it from: fine-tune its model instead, in another "
            "folder, with `start`"
        )
    group.run_on_main(lambda: folder.check_plan(plan))
    tokenizer, held_out = group.run_on_main(folder.tokenizer), None
    if changed or settings.get("text_changed") or plan.share < 1:
        held_out = folder.find_held_out(tokenizer, group)
    inside = request.validation is None or isinstance(request.validation, float)
    if changed and held_out is None and inside:
        raise UserError(
            f"the text differs from the one that the run in {folder.path} was trained on, and the run does "
            "not record what it held out: extend it with that text"
        )
    run = Run(
        texts,
        request,
        plan=plan,
        tokenizer=tokenizer,
        held_out=held_out,
        extended_at=done,
        teachers=teachers,
        **options,
    )
    folder.restore(run)
    before = settings.get("earlier", [])
    steps = done - sum(each["steps"] for each in before)
    run.earlier = [*before, {"steps": steps, "minutes": settings["request"]["minutes"]}]
    if run.is_best:  # it is overwritten when the extension is saved
        model = run.full_model()
        group.run_on_main(lambda: folder.save_best(model))
    if changed:
        stays = (
            "the tokenizer and the validation text stay the same"
            if held_out is not None
            else "the tokenizer stays the same"
        )
        run.notes.append(
            f"the text has changed: {len(run.tokens):,} tokens to train on, {settings['tokens']:,} before; {stays}"
            + (", and what was held out is not trained on" if held_out is not None else "")
        )
    return run


def _began(folder: Path, request: TrainingRequest) -> float | None:
    """When a student that has no checkpoint yet began: its teachers' time counts too."""
    teaching = TeachingPlan.read(folder) if request.teachers else None
    return None if teaching is None else time.perf_counter() - (teaching.seconds or 0.0)


def _check_keeping(checkpoint_every: Any = None, snapshots: Any = 0, **_: Any) -> None:
    for name, value, least in (("checkpoint_every", checkpoint_every, 1), ("snapshots", snapshots, 0)):
        if value is not None and (type(value) is not int or value < least):
            raise UserError(f"{name} = {value!r}: expected an integer of at least {least}")


def _begun(folder: RunFolder, resume: bool) -> dict[str, Any] | None:
    """The settings of the run to resume or extend, or None if a new one may start."""
    settings = folder.settings()
    if settings is None:
        return None
    if not resume:
        raise UserError(occupied(folder.path, settings, folder.newest_step()))
    if settings.get("finished"):
        folder.drop_checkpoints()  # in case deleting them was interrupted
        if settings["request"].get("teachers") and not settings["request"].get("keep_teachers", True):
            folder.drop_teachers()
    folder.resume = bool(settings.get("resume"))
    folder.processes = settings.get("processes", [1])
    return settings


def _complete(path: Path, settings: dict[str, Any], request: TrainingRequest) -> TrainingRequest:
    """The request. For an extension, it names only what is new; the rest is taken from the saved run."""
    if not settings.get("finished") and not settings.get("earlier"):
        return with_time(request)
    saved = settings["request"]
    request = complete_request(request, saved)
    if request.minutes is None and request.steps is None and not settings.get("finished"):
        request = replace(request, minutes=saved["minutes"], steps=saved["steps"])
    now = request_to_json(request)
    check_same(path, saved, {name: now[name] for name in now if name not in ("minutes", "steps")})
    return request


def _is_new(folder: RunFolder, settings: dict[str, Any], request: TrainingRequest, changed: bool) -> bool:
    """Whether the request is not the one that the run was started with.

    It may be the same if the process that finished the run was killed before exiting, or if the run was started with
    `resume` and the same settings: repeating a command until it succeeds must not add to the run.
    """
    if folder.left_locked:
        return False
    repeated = settings.get("resume") and not settings.get("earlier") and not changed
    return not (repeated and settings["request"] == request_to_json(request))


def occupied(path: Path, settings: dict[str, Any], step: int | None) -> str:
    if settings.get("finished"):
        return (
            f"{path} already contains a finished run: extend it with `resume` and `minutes` or `steps`, or choose "
            "another folder with `out`"
        )
    where = f" (at step {step})" if step is not None else ""
    return f"{path} contains an unfinished run{where}: continue it with `resume`, or choose another folder with `out`"


def changed_text(path: Path) -> str:
    return (
        f"the text differs from the one that the run in {path} was started with: resume with that text, or "
        "start a run in another folder with `out`"
    )


def check_same(path: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    before = {"kind": "transformer", "keep_teachers": True, **before}  # which older runs did not record
    changed = [name for name in now if before.get(name) != now[name]]
    if changed:
        shown = ", ".join(
            _describe_change(name, before.get(name), now[name])
            for name in changed
            if HASHED.get(name) not in changed  # other names say more than other weights
        )
        raise UserError(
            f"the run in {path} was started with different settings ({shown}): resume with its own settings"
        )


def _describe_change(name: str, before: Any, now: Any) -> str:
    if name in HASHED:
        return f"the weights in `{HASHED[name]}` have changed"
    if isinstance(now, bool):
        return f"`{name}={now}` in place of `{name}={before}`"
    return f"`{name}` was {before!r} and is {now!r}"
