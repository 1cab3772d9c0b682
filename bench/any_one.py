"""The lab `any-one` in full: three seeds, trained on short sequences and on 101 digits alone.

Usage: python -m bench.any_one [--short]. Prints one JSON line: how much each kind of network gets right at
101 digits and at 200, as the lowest, mean and highest over the seeds, whether the lab's claim came out, and
how long it took.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from clearhead.labs.catalogue import lab
from clearhead.labs.lab import Lines

LENGTHS = (20.0, 101.0, 200.0)


def measure(**settings: Any) -> dict[str, Any]:
    began = time.perf_counter()
    result = lab("any-one", **settings)
    seconds = time.perf_counter() - began
    right = {part.name: _at_lengths(part) for part in result.parts if isinstance(part, Lines)}
    at_101 = right["trained on 101 digits"]
    return {
        "bench": "any_one",
        "seconds": round(seconds, 1),
        "right": right,
        "claim": at_101["attention"]["101"][0] >= 0.99 and at_101["Elman"]["101"][2] < 0.75,
        "settings": result.settings,
    }


def _at_lengths(part: Lines) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {}
    for kind, means in part.lines.items():
        at = [part.x.index(length) for length in LENGTHS]
        rows = [(part.spread[kind][i][0], means[i] or 0.0, part.spread[kind][i][1]) for i in at]
        found[kind] = {
            f"{length:g}": [round(each, 3) for each in row] for length, row in zip(LENGTHS, rows, strict=True)
        }
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true", help="one seed, a third of the steps")
    given = parser.parse_args()
    print(json.dumps(measure(seeds=1, steps=100) if given.short else measure()))
