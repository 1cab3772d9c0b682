"""Training that is killed, at random moments and inside its file operations, and resumed until it is done.

Usage: python -m bench.faults [--kills 200] [--seed 0] [--short]. Each run is the command line's own, in a
process of its own. Half of the kills come at a random moment, half before, in the middle of or after a random
one of all the file operations of a run. Prints one JSON line: of `kills`, how many runs were in the end
`resumed_equal`, every file of the folder, and `worst_steps`, the most steps that one kill cost.
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

from clearhead.runs.run_folder import read_metrics
from tools.fault_injection import Commands, Ended, Fault

KILLS, SHORT = 200, 4
EVERY = 3  # steps between checkpoints
TEXT = "The chicken didn't cross the road because it was too tired.\n" * 20
SIZES = "--blocks 1 --width 32 --heads 1 --context 32 --batch 4 --tokenizer char --dropout 0.2 --device cpu"
MOST_KILLS_A_RUN = 3


def make_command(folder: str, steps: int = 30, every: int = EVERY, snapshots: int = 3) -> list[str]:
    """The same run always; an epoch of its text is a few steps."""
    keeping = f"--steps {steps} --checkpoint-every {every} --snapshots {snapshots}"
    return ["train", "text.txt", "--out", folder, "--resume", *SIZES.split(), *keeping.split()]


def files(folder: Path, but: Sequence[str] = ("run.json",)) -> dict[str, bytes]:
    """Everything in a run's folder; run.json names the folder."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name not in but)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def steps_done(folder: Path) -> int:
    return max((each["step"] for each in read_metrics(folder)), default=0)


class Broken:
    """A run that is broken off, and how many steps that costs it."""

    def __init__(self, commands: Commands, folder: Path, command: Sequence[object] | None = None) -> None:
        self.commands, self.folder = commands, folder
        self.command = command or make_command(folder.name)
        self.reached = self.lost = 0

    def go_on(self, fault: Fault | None = None, seconds: float | None = None) -> Ended:
        """To the end, to the fault, or for so long."""
        process = self.commands.start(*self.command, fault=fault)
        if seconds is not None:
            time.sleep(seconds)
            process.signal(signal.SIGKILL)
        ended = process.wait()
        if "training " in ended.err:  # it came so far as to say what it would do
            found = re.search(r"going on after step ([\d,]+)", ended.err)
            start = int(found[1].replace(",", "")) if found else 0
            self.lost = max(self.lost, self.reached - start)
            self.reached = 0
        self.reached = max(self.reached, steps_done(self.folder))
        return ended


def main(kills: int, seed: int) -> dict[str, Any]:
    draw = random.Random(seed)
    began = time.perf_counter()
    equal = runs = worst = done = 0
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="clearhead-faults-") as place:
        root = Path(place)
        (root / "text.txt").write_text(TEXT)
        with Commands(root, CLEARHEAD_HOME=str(root / "home")) as commands:
            commands.run("--version")  # the server is ready
            start = time.perf_counter()
            whole = commands.run(*make_command("whole"))
            assert whole.code == 0, whole.err
            seconds, count = time.perf_counter() - start, len(whole.operations)
            expected = files(root / "whole")
            while done < kills:
                run, faults = Broken(commands, root / f"broken-{runs}"), []
                runs += 1
                for _ in range(min(kills - done, draw.randint(1, MOST_KILLS_A_RUN))):
                    when = draw.choice(("before", "torn", "after", "at random", "at random", "at random"))
                    if when == "at random":
                        at = round(draw.random() * seconds, 3)
                        ended = run.go_on(seconds=at)
                    else:
                        at = draw.randrange(count)
                        ended = run.go_on(Fault(int(at), when))
                    if ended.code != -signal.SIGKILL:
                        break  # it was done before its time came
                    done += 1
                    faults.append(f"{when} {at}")
                ended = run.go_on()
                same = ended.code == 0 and files(run.folder) == expected
                equal, worst = equal + same, max(worst, run.lost)
                if not same:
                    failed.append(f"{', '.join(faults)}: {ended.code} {ended.err[-200:]}")
                shutil.rmtree(run.folder, ignore_errors=True)
    return {
        "bench": "faults",
        "kills": done,
        "runs": runs,
        "resumed_equal": equal,
        "worst_steps": worst,
        "checkpoint_every": EVERY,
        "operations": count,
        "seconds": round(time.perf_counter() - began, 1),
        "failed": failed[:5],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true")
    given = parser.parse_args()
    print(json.dumps(main(SHORT if given.short else given.kills, given.seed)))
