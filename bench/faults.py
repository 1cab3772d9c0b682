"""Kill training runs at random times and inside file operations, and resume them until they finish.

Usage: python -m bench.faults [--kills 200] [--seed 0] [--short]. Each run is a `clearhead train` process.
Half of the kills happen at a random time, half before, in the middle of, or after a random file operation
of the run. Prints one JSON line: the number of `kills` and `runs`, the number of runs in which every file of
the folder except run.json is identical to an uninterrupted run's (`resumed_equal`), and the largest number of
steps lost to one kill (`max_lost_steps`).
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clearhead.runs.run_metrics import read_metrics
from tools.fault_injection import CommandResult, Commands, Fault

KILLS, SHORT = 200, 4
CHECKPOINT_EVERY = 3  # steps
TEXT = "The chicken didn't cross the road because it was too tired.\n" * 20
SIZES = "--blocks 1 --width 32 --heads 1 --context 32 --batch 4 --tokenizer char --dropout 0.2 --device cpu"
MAX_KILLS_PER_RUN = 3


def make_command(
    folder: str, steps: int = 30, every: int = CHECKPOINT_EVERY, snapshots: int = 3
) -> list[str]:
    """Return the arguments of a small run whose epochs take only a few steps."""
    saving = f"--steps {steps} --checkpoint-every {every} --snapshots {snapshots}"
    return ["train", "text.txt", "--out", folder, "--resume", *SIZES.split(), *saving.split()]


def read_files(folder: Path, exclude: Sequence[str] = ("run.json",)) -> dict[str, bytes]:
    """Read all files in a run folder except run.json, which contains the folder's name."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name not in exclude)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def steps_done(folder: Path) -> int:
    return max((record["step"] for record in read_metrics(folder)), default=0)


class InterruptedRun:
    """A run that is killed and resumed; counts the steps lost."""

    def __init__(self, commands: Commands, folder: Path, command: Sequence[object] | None = None) -> None:
        self.commands, self.folder = commands, folder
        self.command = command or make_command(folder.name)
        self.reached = self.max_lost = 0

    def resume(self, fault: Fault | None = None, seconds: float | None = None) -> CommandResult:
        """Run to the end, to the fault, or for a number of seconds."""
        process = self.commands.start(*self.command, fault=fault)
        if seconds is not None:
            time.sleep(seconds)
            process.signal(signal.SIGKILL)
        ended = process.wait()
        if "training " in ended.err:  # the run got as far as printing its plan
            match = re.search(r"resuming after step ([\d,]+)", ended.err)
            start = int(match[1].replace(",", "")) if match else 0
            self.max_lost = max(self.max_lost, self.reached - start)
            self.reached = 0
        self.reached = max(self.reached, steps_done(self.folder))
        return ended


def main(kills: int, seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    began = time.perf_counter()
    equal = runs = max_lost = done = 0
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="clearhead-faults-") as place:
        root = Path(place)
        (root / "text.txt").write_text(TEXT)
        with Commands(root, CLEARHEAD_HOME=str(root / "home")) as commands:
            commands.run("--version")  # wait until the server is ready
            start = time.perf_counter()
            reference = commands.run(*make_command("reference"))
            assert reference.code == 0, reference.err
            seconds, count = time.perf_counter() - start, len(reference.operations)
            expected = read_files(root / "reference")
            while done < kills:
                run, faults = InterruptedRun(commands, root / f"interrupted-{runs}"), []
                runs += 1
                for _ in range(min(kills - done, rng.randint(1, MAX_KILLS_PER_RUN))):
                    when = rng.choice(("before", "torn", "after", "at random", "at random", "at random"))
                    if when == "at random":
                        at = round(rng.random() * seconds, 3)
                        ended = run.resume(seconds=at)
                    else:
                        at = rng.randrange(count)
                        ended = run.resume(Fault(int(at), when))
                    if ended.code != -signal.SIGKILL:
                        break  # the run finished before the kill
                    done += 1
                    faults.append(f"{when} {at}")
                ended = run.resume()
                same = ended.code == 0 and read_files(run.folder) == expected
                equal, max_lost = equal + same, max(max_lost, run.max_lost)
                if not same:
                    failed.append(f"{', '.join(faults)}: {ended.code} {ended.err[-200:]}")
                shutil.rmtree(run.folder, ignore_errors=True)
    return {
        "bench": "faults",
        "kills": done,
        "runs": runs,
        "resumed_equal": equal,
        "max_lost_steps": max_lost,
        "checkpoint_every": CHECKPOINT_EVERY,
        "operations": count,
        "seconds": round(time.perf_counter() - began, 1),
        "failed": failed[:5],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true")
    args = parser.parse_args()
    print(json.dumps(main(SHORT if args.short else args.kills, args.seed)))
