"""`clearhead slurm`: print a job script for the Slurm scheduler that trains, and requeues itself until it is done."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import typer

from clearhead.cli.console import out
from clearhead.errors import UserError
from clearhead.processes import python

WARNING = 120  # seconds before the end of a job's time in which the processes are told to save and exit


def slurm(
    command: list[str] = typer.Argument(
        ..., metavar="TRAIN", help="After --, the arguments of `clearhead train`, with --out."
    ),
    nodes: int = typer.Option(1, min=1, help="Machines."),
    processes: int = typer.Option(1, min=1, help="Processes per machine: one per GPU."),
    gpu: bool = typer.Option(True, "--gpu/--cpu", help="Request a GPU for each process, or none."),
    cpus: int = typer.Option(None, min=1, help="CPU cores per process. [default: the cluster's]"),
    hours: float = typer.Option(4.0, min=0.1, help="Time limit of each job; a longer run is requeued."),
    partition: str = typer.Option(None, help="Partition. [default: the cluster's]"),
    account: str = typer.Option(None, help="Account. [default: yours]"),
) -> None:
    """Print a job script for Slurm. Two minutes before its time is up, the job saves a checkpoint, exits and requeues
    itself, until the run is finished. The folder must be on a disk that all machines share.

    \b
    For example:
      clearhead slurm --nodes 2 --processes 8 -- my.txt --steps 50000 --out runs/my > job.sh
    """
    folder = _check(command)
    minutes = round(60 * hours)
    options = {
        "job-name": re.sub(r"[^\w.-]", "-", folder.name),
        "output": "%x-%j.log",
        "open-mode": "append",
        "nodes": nodes,
        "ntasks-per-node": processes,
        "gpus-per-node": processes if gpu else None,
        "cpus-per-task": cpus,
        "time": f"{minutes // 60}:{minutes % 60:02}:00",
        "partition": partition,
        "account": account,
        "signal": f"USR1@{WARNING}",
        "requeue": True,
    }
    for name, value in options.items():
        if isinstance(value, str) and not re.fullmatch(r"[\w.,:@%-]+", value):
            raise UserError(f"{name} = {value!r}: expected letters, digits, and .,:@%-")
    lines = [
        f"#SBATCH --{name}" + ("" if value is True else f"={value}")
        for name, value in options.items()
        if value is not None
    ]
    train = shlex.join(
        [*python("clearhead"), "train", *command, *([] if "--resume" in command else ["--resume"])]
    )
    run = shlex.quote(str(folder / "run.json"))
    out.print(SCRIPT.format(options="\n".join(lines), train=train, run=run), end="", soft_wrap=True)


SCRIPT = """\
#!/bin/bash
{options}

MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))
export MASTER_ADDR MASTER_PORT

# Each task is one process of the run, and receives SIGUSR1 itself.
srun bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS exec "$@"' task \\
    {train}
code=$?

# After an error, do not try again.
if [ $code -eq 0 ] && ! grep -qs '"finished": true' {run}; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit $code
"""


def _check(command: list[str]) -> Path:
    """The run's folder. Raises an error now, not hours later when the job starts, if `train` has no such options."""
    from clearhead.cli import _make_command

    given = _make_command().commands["train"].make_context("clearhead train", list(command)).params
    if given["out"] is None:
        raise UserError("the arguments of train have no --out: name a folder that all machines share")
    if "-" in given["text"]:
        raise UserError("the text is standard input (-): name a file that all machines can read")
    if given["kind"] == "ngram":
        raise UserError("an n-gram model is trained in one pass, without checkpoints: run clearhead train")
    return Path(given["out"])
