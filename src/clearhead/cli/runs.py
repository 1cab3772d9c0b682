"""`clearhead runs`: the training runs on this disk, their progress, and how to resume them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import typer

from clearhead.cli.console import err, out, print_json
from clearhead.cli.tables import print_table
from clearhead.errors import UserError

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
    unfinished = [row for row in rows if not row["finished"]]
    if unfinished:
        out.print("\nto resume an unfinished run:")
    for row in unfinished:
        out.print(f"  {row['resume']}")


def _find(place: Path) -> list[dict[str, Any]]:
    """The folder itself, if it is a run, and the runs in it."""
    rows = []
    for folder in [place, *sorted(place.glob("*"))]:
        if not (folder / "run.json").is_file():
            continue
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
        "bits_per_byte": run.bits_per_byte,
        "best_bits_per_byte": run.best_bits_per_byte,
        "finished": run.finished,
        "resume": None if run.finished else _how_to_resume(run.command, folder),
    }


def _how_to_resume(command: list[str], folder: Path) -> str:
    """The command that resumes the run."""
    from clearhead.runs.listing import resume_command

    arguments = resume_command(command, folder)
    if arguments is None:
        return f"ch.train(…, out={str(folder)!r}, resume=True), with the original settings"
    return shlex.join(["clearhead", *arguments])


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    state = "finished" if row["finished"] else "unfinished"
    if row["bits_per_byte"] is None and row["validation_loss"] is not None:
        row = {**row, "bits_per_byte": f"{row['validation_loss']:.4f} nats/token"}
    return {**row, "steps": f"{row['steps']:,}/{row['steps_planned']:,}", "state": state}
