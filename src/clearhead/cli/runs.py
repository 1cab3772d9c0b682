"""`clearhead runs`: the training runs on this disk, their progress, and how to resume them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from clearhead.cli.console import err, out, print_json
from clearhead.cli.tables import print_table
from clearhead.errors import UserError
from clearhead.runs.teacher_folders import RUN, find_runs

if TYPE_CHECKING:
    from clearhead.runs.listing import ListedRun

HEADINGS = {
    "run": "run",
    "kind": "kind",
    "text": "text",
    "tokenizer": "tokenizer",
    "steps": "steps",
    "parameters": "parameters",
    "tokens": "tokens read",
    "bits_per_byte": "bits per byte",
    "best_bits_per_byte": "lowest",
    "state": "state",
}


def runs(
    folders: list[Path] = typer.Argument(
        None, metavar="FOLDER", help="Runs, or folders that contain runs. [default: runs/]"
    ),
    json: bool = typer.Option(False, "--json", help="Print the list as JSON."),
) -> None:
    """List the runs in runs/ and how to resume them.

    Shows each run's text, tokenizer, progress and validation loss. The loss is in bits per byte, which can be
    compared across tokenizers. For conversations, the loss is in nats per token.

    \b
    For example:
      clearhead runs
      clearhead runs some/folder --json
    """
    for place in folders or []:
        if not place.is_dir():
            raise UserError(f"no such folder: {place}; name a run folder, or one that contains runs")
    places = folders or [Path("runs")]
    rows = [row for place in places for row in _find(place)]
    if json:
        print_json({"runs": rows})
        return
    if not rows:
        out.print(f"no runs in {' or '.join(map(str, places))}; start one: clearhead train my.txt")
        return
    print_table(HEADINGS, [_shown(row) for row in rows])
    if any(row["validated_share"] < 1 for row in rows):
        from clearhead.runs.listing import PARTIAL

        out.print(PARTIAL)
    commands = dict.fromkeys(row["resume"] for row in rows if row["resume"] is not None)
    if commands:
        out.print("\nto resume an unfinished run:")
    for command in commands:
        out.print(f"  {command}")


def _find(place: Path) -> list[dict[str, Any]]:
    """The folder itself, if it is a run, and the runs in it, with their teachers."""
    rows = []
    for folder in find_runs([place]):
        try:
            rows.append(_describe(folder))
        except (UserError, OSError) as error:
            err.print(f"skipped: {error}")
    return rows


def _describe(folder: Path) -> dict[str, Any]:
    from clearhead.runs.listing import describe_run

    run = describe_run(folder)
    return {
        "run": str(folder),
        "kind": run.kind,
        "text": run.text,
        "text_sha256": run.text_sha256,
        "tokenizer": run.tokenizer,
        "steps": run.steps_done,
        "steps_planned": run.steps_planned,
        "parameters": run.parameters,
        "tokens": run.tokens,
        "validation_loss": run.validation_loss,
        "best_validation_loss": run.best_validation_loss,
        "validated_share": run.validated_share,
        "bits_per_byte": run.bits_per_byte,
        "best_bits_per_byte": run.best_bits_per_byte,
        "finished": run.finished,
        "role": run.role,
        "teachers": run.teachers,
        "teacher": run.teacher,
        "student": None if run.student is None else str(run.student),
        "resume": _how_to_resume(run),
    }


def _how_to_resume(run: ListedRun) -> str | None:
    """The command that resumes the run; None if it is finished.

    A teacher is resumed with its student, whose own row has the command once the student has started.
    """
    if run.student is not None:
        started = (run.student / RUN).is_file()
        return None if started else _resume_command(run.command, run.student)
    return None if run.finished else _resume_command(run.command, run.folder)


def _resume_command(command: list[str], folder: Path) -> str:
    from clearhead.runs.listing import resume_command

    arguments = resume_command(command, folder)
    if arguments is None:
        return f"ch.train(…, out={str(folder)!r}, resume=True), with the original settings"
    return shlex.join(["clearhead", *arguments])


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    finished = "finished" if row["finished"] else "unfinished"
    state = finished if row["role"] is None else f"{row['role']}, {finished}"
    mark = "~" if row["validated_share"] < 1 else ""
    if row["bits_per_byte"] is None and row["validation_loss"] is not None:
        row = {**row, "bits_per_byte": f"{mark}{row['validation_loss']:.4f} nats/token"}
    elif mark and row["bits_per_byte"] is not None:
        row = {**row, **{name: f"{mark}{row[name]:.4f}" for name in ("bits_per_byte", "best_bits_per_byte")}}
    return {**row, "steps": f"{row['steps']:,}/{row['steps_planned']:,}", "state": state}
