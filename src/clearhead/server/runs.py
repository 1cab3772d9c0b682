"""The routes for training runs: list them, read their metrics, start, stop and resume them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi import Path as PathParameter

from clearhead.api import runs as api
from clearhead.runs.listing import ListedRun, describe_run, is_extendable, resume_command
from clearhead.server.disconnect import in_thread
from clearhead.server.errors import APIError
from clearhead.server.route_descriptions import RUN_ERRORS
from clearhead.server.run_registry import PendingRun, RunRegistry
from clearhead.server.training_process import TrainingManager

MAX_STEPS = 2000  # in one response; longer runs are thinned out evenly
RunInPath = Annotated[
    str, PathParameter(min_length=1, max_length=200, description="A run listed by /api/runs.")
]
After = Annotated[int, Query(ge=0, lt=2**31, description="Return only steps after this one.")]


def make_router(runs: RunRegistry, manager: TrainingManager) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["clearhead"])

    def details(name: str, run: ListedRun) -> api.RunDetails:
        current = manager.current if manager.current is not None and manager.current.name == name else None
        state: api.RunState = "finished" if run.finished else "running" if run.running else "stopped"
        if current is not None:  # not finished until its process exits
            state = "running"
        return api.RunDetails(
            name=name,
            state="stopping" if current is not None and current.stopping else state,
            error=manager.errors.get(name),
            steps_done=run.steps_done,
            steps_planned=run.steps_planned,
            tokens=run.tokens,
            minutes=run.minutes,
            kind=run.kind,
            preset=run.preset,
            texts=run.texts,
            snapshots=run.snapshots,
            model=runs.model_of(run.folder),
            own=current is not None,
            resumable=state == "stopped"
            and run.teacher is None
            and resume_command(run.command, run.folder) is not None,
            extendable=state == "finished" and manager.folder is not None and is_extendable(run),
            validated_share=run.validated_share,
            teachers=run.teachers,
            teacher=run.teacher,
            student=runs.student_of(run),
        )

    def pending_details(name: str, run: PendingRun) -> api.RunDetails:
        current = manager.current if manager.current is not None and manager.current.name == name else None
        state: api.RunState = "starting" if run.running or current is not None else "stopped"
        return api.RunDetails(
            name=name,
            state="stopping" if current is not None and current.stopping else state,
            error=manager.errors.get(name),
            texts=run.teachers[0].texts,
            own=current is not None,
            resumable=state == "stopped" and run.command is not None,
            teachers=run.teachers[0].teachers,
        )

    def list_all() -> api.RunList:
        scanned = runs.scan()
        pending = {name: pending_details(name, run) for name, run in runs.pending(scanned).items()}
        listed = pending | {name: details(name, run) for name, run in scanned.items()}
        current = manager.current
        if current is not None and current.name not in listed:
            starting = api.RunDetails(
                name=current.name, state="stopping" if current.stopping else "starting", own=True
            )
            listed = {current.name: starting, **listed}
        for name, error in manager.errors.items():
            if name not in listed:
                listed[name] = api.RunDetails(name=name, state="failed", error=error)
        return api.RunList(
            runs=list(listed.values()),
            can_start=manager.folder is not None,
            now=None if current is None else current.name,
        )

    def read_metrics(name: str, folder: Path, after: int) -> api.RunMetrics:
        follower = runs.follow(folder)
        steps = [api.RunStep(**asdict(step)) for step in follower.after(after, MAX_STEPS)]
        run = details(name, describe_run(folder))
        speed = follower.tokens_per_second if run.state in ("running", "stopping") else None
        return api.RunMetrics(run=run, steps=steps, tokens_per_second=speed)

    @router.get("/runs")
    async def list_runs() -> api.RunList:
        """List the runs in the searched folders and their progress."""
        listed = await in_thread(lambda _: list_all())
        if any(run.state == "finished" and run.model is None and run.teacher is None for run in listed.runs):
            await manager.loader.scan()  # the run has just saved its model
            listed = await in_thread(lambda _: list_all())
        return listed

    @router.get("/runs/{name}/metrics", responses=RUN_ERRORS)
    async def metrics(name: RunInPath, after: After = 0) -> api.RunMetrics:
        """Return the steps of a run: loss, validation loss, learning rate, tokens and samples."""
        folder = await in_thread(lambda _: runs.find(name))
        if folder is None:
            pending = (await in_thread(lambda _: runs.pending())).get(name)
            if pending is not None:
                return api.RunMetrics(run=pending_details(name, pending), steps=[], tokens_per_second=None)
            raise APIError(404, "run_not_found", f"the run {name!r} does not exist", "name", name=name)
        return await in_thread(lambda _: read_metrics(name, folder, after))

    @router.post("/train", responses=RUN_ERRORS)
    async def start(body: api.RunRequest) -> api.RunList:
        """Start a run in a new folder; one run trains at a time."""
        await manager.start(body)
        return await in_thread(lambda _: list_all())

    @router.post("/runs/{name}/stop", responses=RUN_ERRORS)
    async def stop(name: RunInPath) -> api.RunList:
        """Stop the run that this server is training, after it saves a checkpoint."""
        manager.stop(name)
        return await in_thread(lambda _: list_all())

    @router.post("/runs/{name}/resume", responses=RUN_ERRORS)
    async def resume(name: RunInPath, body: api.ResumeRequest | None = None) -> api.RunList:
        """Resume a stopped run, or extend a finished one by a number of minutes.

        If its length is given in steps, a resumed run has the same result as without the interruption.
        """
        await manager.resume(name, None if body is None else body.minutes)
        return await in_thread(lambda _: list_all())

    return router
