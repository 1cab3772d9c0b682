"""The lab `pronoun` in full: two models on our stories, three seeds; and the same with blanks alone.

Usage: python -m bench.pronoun [--short]. Prints one JSON line: what stands at the pronoun in each kind of
model, as the lowest and the highest over the seeds, whether the lab's claim came out, and how long it took.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from clearhead.labs.catalogue import lab

TABLE = "what stands at it, in stories"
Ranges = dict[str, dict[str, list[float]]]


def measure(**settings: Any) -> dict[str, Any]:
    began = time.perf_counter()
    asked = _ranges(**settings)
    seconds = time.perf_counter() - began
    both, back = asked["sees both ways"], asked["looks back"]
    return {
        "bench": "pronoun",
        "seconds": round(seconds, 1),
        "asked": asked,
        "blanks alone": _ranges(asked=False, **settings),
        "claim": both["right at it"][0] >= 0.95
        and both["right way"][0] >= 0.95
        and both["turned"][0] >= 0.9
        and back["right at it"][1] <= 0.5
        and back["apart"][1] == 0
        and back["right at end"][0] >= 0.95,
        "settings": settings,
    }


def _ranges(**settings: Any) -> Ranges:
    table = lab("pronoun", **settings).part(TABLE)
    found: Ranges = {}
    for row, values in zip(table.rows, table.values, strict=True):
        of_kind = found.setdefault(row.partition(",")[0], {})
        for column, value in zip(table.columns, values, strict=True):
            low, high = of_kind.get(column, [value, value])
            of_kind[column] = [round(min(low, value), 3), round(max(high, value), 3)]
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true", help="one seed, half of the steps")
    given = parser.parse_args()
    print(json.dumps(measure(seeds=1, steps=150) if given.short else measure()))
