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

    Shows the text, tokenizer, progress and validation loss of each, in bits per byte, which can be compared
    across tokenizers. For conversations, the loss is in nats per token.

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
        except (UserError, KeyError, TypeError, ValueError, AttributeError, OSError) as error:
            what = str(error) if isinstance(error, UserError) else f"{folder / 'run.json'} is damaged"
            err.print(f"skipped: {what}")
    return rows


def _describe(folder: Path) -> dict[str, Any]:
    """Describe a run from run.json and metrics.jsonl alone."""
    from clearhead.files import read_json
    from clearhead.networks import config_from_json
    from clearhead.runs.listing import list_texts, planned_steps
    from clearhead.runs.run_folder import read_metrics
    from clearhead.training.position_loss import bits_per_byte

    settings, metrics = read_json(folder / "run.json"), read_metrics(folder)
    losses = [each["validation"] for each in metrics if isinstance(each.get("validation"), float)]
    last = metrics[-1] if metrics else {}
    finished, config = bool(settings["finished"]), config_from_json(settings["plan"]["config"])
    command, tokenizer = [str(each) for each in settings["command"]], settings.get("tokenizer")
    n_bytes = settings.get("validation_bytes")
    bits = (
        [bits_per_byte(each * settings["validation_tokens"], n_bytes) for each in losses] if n_bytes else []
    )
    return {
        "run": str(folder),
        "kind": config.kind,
        "text": ", ".join(list_texts(command)) or None,
        "text_sha256": settings["text_sha256"],
        "tokenizer": None if tokenizer is None else f"{tokenizer['kind']} {tokenizer['n_vocab']:,}",
        "steps": int(last.get("step", 0)),
        "steps_planned": planned_steps(settings, int(last.get("step", 0))),
        "parameters": config.n_parameter,
        "tokens": int(last.get("tokens", 0)),
        "validation_loss": losses[-1] if losses else None,
        "best_validation_loss": min(losses) if losses else None,
        "bits_per_byte": bits[-1] if bits else None,
        "best_bits_per_byte": min(bits) if bits else None,
        "finished": finished,
        "resume": None if finished else _how_to_resume(command, folder),
    }


def _how_to_resume(command: list[str], folder: Path) -> str:
    """The command that resumes the run."""
    from clearhead.runs.listing import resume_command

    words = resume_command(command, folder)
    if words is None:
        return f"ch.train(…, out={str(folder)!r}, resume=True), with the original settings"
    return shlex.join(["clearhead", *words])


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    state = "finished" if row["finished"] else "unfinished"
    if row["bits_per_byte"] is None and row["validation_loss"] is not None:
        row = {**row, "bits_per_byte": f"{row['validation_loss']:.4f} nats/token"}
    return {**row, "steps": f"{row['steps']:,}/{row['steps_planned']:,}", "state": state}
