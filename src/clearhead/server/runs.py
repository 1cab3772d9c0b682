"""The routes of training runs: which there are, how each goes; begin, stop and resume one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi import Path as InPath

from clearhead.api import runs as api
from clearhead.runs.listing import ListedRun, describe_run, resume_command
from clearhead.server.disconnect import in_thread
from clearhead.server.errors import APIError
from clearhead.server.responses import OF_A_RUN
from clearhead.server.run_registry import RunRegistry
from clearhead.server.training_process import TrainingManager

MOST_STEPS = 2000  # told at once; of more, some from all over
Name = Annotated[str, InPath(min_length=1, max_length=200, description="One of those that /api/runs lists.")]
After = Annotated[int, Query(ge=0, lt=2**31, description="Only later steps are told.")]


def make_router(runs: RunRegistry, trainer: TrainingManager) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["clearhead"])

    def detail(name: str, run: ListedRun) -> api.RunDetails:
        child = trainer.child if trainer.child is not None and trainer.child.name == name else None
        # What this server trains is finished when its process has left.
        over: api.RunState = "finished" if run.finished else "running" if run.running else "stopped"
        state = over if child is None else "running"
        return api.RunDetails(
            name=name,
            state="stopping" if child is not None and child.stopping else state,
            error=trainer.errors.get(name),
            steps_done=run.steps_done,
            steps_planned=run.steps_planned,
            tokens=run.tokens,
            minutes=run.minutes,
            kind=run.kind,
            preset=run.preset,
            texts=run.texts,
            snapshots=run.snapshots,
            model=runs.model_of(run.folder),
            own=child is not None,
            resumes=state == "stopped" and resume_command(run.command, run.folder) is not None,
        )

    def list_all() -> api.RunList:
        found = {name: detail(name, run) for name, run in runs.look().items()}
        child = trainer.child
        if child is not None and child.name not in found:
            begun = api.RunDetails(
                name=child.name, state="stopping" if child.stopping else "starting", own=True
            )
            found = {child.name: begun, **found}
        for name, error in trainer.errors.items():
            if name not in found:
                found[name] = api.RunDetails(name=name, state="failed", error=error)
        return api.RunList(
            runs=list(found.values()),
            can_start=trainer.place is not None,
            now=None if child is None else child.name,
        )

    def read_metrics(name: str, folder: Path, after: int) -> api.RunMetrics:
        follower = runs.follow(folder)
        steps = [api.RunStep(**asdict(each)) for each in follower.after(after, MOST_STEPS)]
        run = detail(name, describe_run(folder))
        speed = follower.tokens_a_second if run.state in ("running", "stopping") else None
        return api.RunMetrics(run=run, steps=steps, tokens_a_second=speed)

    @router.get("/runs")
    async def list_runs() -> api.RunList:
        """The runs that lie where models are looked for, and how far each came."""
        listed = await in_thread(lambda _: list_all())
        if any(each.state == "finished" and each.model is None for each in listed.runs):
            await trainer.loader.look()  # its model is new here
            listed = await in_thread(lambda _: list_all())
        return listed

    @router.get("/runs/{name}/metrics", responses=OF_A_RUN)
    async def metrics(name: Name, after: After = 0) -> api.RunMetrics:
        """Every step of a run after one: its loss, validation, rate, tokens, and what the model wrote."""
        folder = await in_thread(lambda _: runs.find(name))
        if folder is None:
            raise APIError(404, "run_not_found", f"there is no run {name!r}", "name", name=name)
        return await in_thread(lambda _: read_metrics(name, folder, after))

    @router.post("/train", responses=OF_A_RUN)
    async def start(body: api.RunRequest) -> api.RunList:
        """Begin a run, one at a time, in a folder of its own."""
        await trainer.start(body)
        return await in_thread(lambda _: list_all())

    @router.post("/runs/{name}/stop", responses=OF_A_RUN)
    async def stop(name: Name) -> api.RunList:
        """Have the run that this server trains save where it stands, and end."""
        trainer.stop(name)
        return await in_thread(lambda _: list_all())

    @router.post("/runs/{name}/resume", responses=OF_A_RUN)
    async def resume(name: Name) -> api.RunList:
        """Go on with a run that was stopped, as if it never had been."""
        await trainer.resume(name)
        return await in_thread(lambda _: list_all())

    return router
