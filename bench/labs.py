"""Run the labs that train, at full length and with three seeds, and check their claims.

Usage: python -m bench.labs [NAME …] [--seeds 3]. Prints one JSON line: for each lab, the lowest, mean and
highest value of each of its numbers over the seeds, whether its claim holds with every seed, and the time taken.
The test suite runs the same labs with fewer seeds and steps (tests/labs).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Sequence
from statistics import mean
from typing import Any

from clearhead.labs.catalog import find_lab, lab
from clearhead.labs.lab import Lab, Lines, Result

Spread = list[float]  # lowest, mean, highest


def _any_one(result: Result) -> bool:
    """After training on 101 digits only, attention is correct with every seed; the Elman network is not."""
    lines = result.part("trained on 101 digits")
    at = lines.x.index(101.0)
    return bool(lines.spread["attention"][at][0] >= 0.99 and lines.spread["Elman"][at][1] < 0.75)


def _stream(result: Result) -> bool:
    """The induction head forms; ablating it, or the previous-token head it relies on, raises the loss."""
    found = result.findings
    learned, lost = _number(found["loss, repetition"]), _number(found["without any induction heads"])
    without = [_number(found[f"without the {head}"]) for head in ("induction head", "previous-token head")]
    return learned < 0.5 and lost > 3 and min(without) > learned + 0.5


def _neighbors(result: Result) -> bool:
    """Every other animal is closer to the cat than any place or thing."""
    found = result.findings
    others = [_number(found[f"largest cosine between cat and a {group}"]) for group in ("place", "thing")]
    return _number(found["smallest cosine between cat and an animal"]) > max(others)


def _pronoun(result: Result) -> bool:
    """A bidirectional model resolves `it` at `it`; a causal one only at the end, with every seed."""
    both, back = _by_kind(result, "what is encoded at the pronoun, in stories", ("bidirectional", "causal"))
    knows = all(
        each["accuracy at the pronoun"] >= 0.95 and each["correct side"] >= 0.95 and each["flipped"] >= 0.9
        for each in both
    )
    guesses = all(each["accuracy at the pronoun"] <= 0.5 and each["difference"] == 0 for each in back)
    return knows and guesses and all(each["accuracy at the end"] >= 0.95 for each in back)


def _senses(result: Result) -> bool:
    """Two occurrences of the same sense are more similar than two of different senses, with every seed."""
    kinds = _by_kind(result, "at the end", ("LSTM", "transformer"))
    return all(each["same sense"] > each["other sense"] + 0.01 for of_kind in kinds for each in of_kind)


def _by_kind(result: Result, name: str, kinds: Sequence[str]) -> list[list[dict[str, float]]]:
    """Return, for each kind, the rows whose names start with it, as dicts keyed by column."""
    table = result.part(name)
    rows = [
        (row, dict(zip(table.columns, line, strict=True)))
        for row, line in zip(table.rows, table.values, strict=True)
    ]
    return [[line for row, line in rows if row.startswith(f"{kind},")] for kind in kinds]


CLAIMS: dict[str, Callable[[Result], bool]] = {
    "any-one": _any_one,
    "stream": _stream,
    "neighbors": _neighbors,
    "pronoun": _pronoun,
    "senses": _senses,
}


def measure(names: Sequence[str] = (), seeds: int = 3, **settings: Any) -> dict[str, Any]:
    """Run the named labs, or all that have a claim, with the same settings."""
    labs = {name: _measure(find_lab(name), seeds, settings) for name in names or CLAIMS}
    claims = [each["claim"] for each in labs.values()]
    return {"bench": "labs", "seeds": seeds, "labs": labs, "claims": False not in claims}


def _measure(of: Lab, seeds: int, settings: dict[str, Any]) -> dict[str, Any]:
    began = time.perf_counter()
    if any(setting.name == "seeds" for setting in of.settings):  # the lab iterates over seeds itself
        results = [lab(of.name, seeds=seeds, **settings)]
        numbers = _found(results) | _along_lines(results[0])
    else:
        results = [lab(of.name, seed=seed, **settings) for seed in range(seeds)]
        numbers = _found(results)
    claim = CLAIMS.get(of.name)
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "claim": None if claim is None else all(map(claim, results)),
        "numbers": numbers,
    }


def _found(results: list[Result]) -> dict[str, Spread]:
    """Return the spread of every finding that is a number for all seeds."""
    found: dict[str, Spread] = {}
    for name in results[0].findings:
        values = [result.findings.get(name) for result in results]
        if all(isinstance(value, int | float) for value in values):
            found[name] = _spread(map(_number, values))
    return found


def _along_lines(result: Result) -> dict[str, Spread]:
    """Return the spread at each point of the lines, for a lab that computes it itself."""
    found: dict[str, Spread] = {}
    for part in result.parts:
        if isinstance(part, Lines):
            for name, spread in part.spread.items():
                for x, middle, (low, high) in zip(part.x, part.lines[name], spread, strict=True):
                    found[f"{part.name}: {name} at {x:g}"] = [
                        round(_number(n), 4) for n in (low, middle, high)
                    ]
    return found


def _spread(values: Iterable[float]) -> Spread:
    numbers = list(values)
    return [round(number, 4) for number in (min(numbers), mean(numbers), max(numbers))]


def _number(value: object) -> float:
    assert isinstance(value, int | float), f"expected a number, got {value!r}"
    return float(value)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    print(json.dumps(measure(args.names, args.seeds)))
