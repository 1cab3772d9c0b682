"""Fuzz the readers: a damaged file must load or give a one-line error, quickly and with little memory.

Usage: python -m bench.fuzz [--files 100000] [--seed 0] [--kind KIND] [--short]. The files are of every kind in
`bench.fuzz_targets` and `bench.fuzz_imports`, or of KIND: models of all families, GGUF, tokenizers, runs with their
snapshots and checkpoints, cached tokens, n-gram models, word vectors, packed texts, chat templates, archives that
expand to 256 MB, models of llama2.c and nanoGPT, adapters, items to score, and documents. Prints one JSON line.
`crashed` lists the files that were neither accepted nor rejected, `slow` and `large` those that took more
than two seconds of processor time or 200 MB; all three must be empty.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from bench.fuzz_imports import make_imports
from bench.fuzz_targets import Target, make_targets
from clearhead.errors import UserError

FILES, SHORT = 100_000, 400
MOST_SECONDS, MOST_MB = 2.0, 200
# Edge cases for counts, lengths and offsets.
NUMBERS = (0, 1, 2**7, 2**16, 2**31 - 1, 2**32 - 1, 2**40, 10**18, 2**63 - 1, 2**63, 2**64 - 1)
LITERALS = (
    b"-1",
    b"0",
    b"1e999",
    b"NaN",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'""',
    b"99999999999999999999",
    b"0.5",
)


def mutate(data: bytes, rng: random.Random, begin: int, end: int) -> bytes:
    """Flip, overwrite, insert, delete, duplicate or truncate bytes between `begin` and `end`, a few times."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(begin, end)
        kind = rng.randrange(7)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            width = rng.choice((4, 8))
            number = rng.choice(NUMBERS) % 2 ** (8 * width)
            changed[at : at + width] = number.to_bytes(width, "little")
        elif kind == 2:
            changed[at : at + rng.randint(0, 4)] = rng.choice(LITERALS)
        elif kind == 3:
            changed[at:at] = rng.randbytes(rng.randint(1, 16))
        elif kind == 4:
            del changed[at : at + rng.randint(1, 16)]
        elif kind == 5:
            changed[at:at] = changed[at : at + rng.randint(1, 64)]
        elif rng.randrange(4) == 0:  # rare, because truncation is mostly detected at once
            del changed[at:]
    return bytes(changed)


def try_one(target: Target, rng: random.Random) -> tuple[str, float]:
    """Read one mutated file. Return the outcome and the seconds taken."""
    changed = (
        _replace_number(target.valid, rng) if target.path.suffix == ".json" and rng.random() < 0.5 else None
    )
    target.path.write_bytes(changed or mutate(target.valid, rng, target.begin, target.end))
    start = _seconds()
    try:
        target.read()
        outcome = "accepted"
    except UserError as error:
        outcome = "rejected" if "\n" not in str(error) else f"more than one line: {error}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        outcome = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
    seconds = _seconds() - start
    target.path.unlink()  # it may still be memory-mapped, so do not overwrite it in place
    target.path.write_bytes(target.valid)
    return outcome, seconds


def _replace_number(data: bytes, rng: random.Random) -> bytes | None:
    """Replace one number in a JSON file with an edge case; None if it has no numbers."""
    found = list(re.finditer(rb"(?<=[:\[,\s])-?\d+(\.\d+)?(e-?\d+)?(?=[,\s\]}])", data))
    if not found:
        return None
    place = rng.choice(found)
    number = rng.choice((*map(str, (*NUMBERS, 2**20, 2**24, 1000)), *map(bytes.decode, LITERALS)))
    return data[: place.start()] + str(number).encode() + data[place.end() :]


def measure(n_file: int, seed: int, place: Path, kind: str | None = None) -> dict[str, Any]:
    made = (*make_targets(place), *make_imports(place))
    targets = [target for target in made if kind in (None, target.kind)]
    if not targets:
        raise SystemExit(f"unknown kind of file: {kind!r}")
    weights = [target.weight for target in targets]
    before = peak = _peak_mb()
    counts: dict[str, Counter[str]] = {target.kind: Counter() for target in targets}
    slowest: dict[str, float] = dict.fromkeys(counts, 0.0)
    crashed, slow, large = [], [], []
    start = time.perf_counter()
    for i in range(n_file):
        rng = random.Random(f"{seed} {i}")
        target = rng.choices(targets, weights)[0]
        outcome, seconds = try_one(target, rng)
        name = f"{target.kind}, {target.path.relative_to(place)}, file {i}"
        slowest[target.kind] = max(slowest[target.kind], seconds)
        if seconds > MOST_SECONDS:
            slow.append(f"{name}: {seconds:.1f} s")
        if (now := _peak_mb()) > peak + MOST_MB:
            large.append(f"{name}: {now - peak:.0f} MB")
        peak = max(peak, now)
        if outcome in ("accepted", "rejected"):
            counts[target.kind][outcome] += 1
        else:
            counts[target.kind]["crashed"] += 1
            crashed.append(f"{name}: {outcome[:300]}")
    total = sum(counts.values(), Counter())
    return {
        "bench": "fuzz",
        "files": n_file,
        "accepted": total["accepted"],
        "rejected": total["rejected"],
        "crashed": crashed[:10],
        "n_crashed": len(crashed),
        "slow": slow,
        "large": large,
        "kinds": {
            kind: {
                "files": sum(found.values()),
                "rejected_share": round(found["rejected"] / max(1, sum(found.values())), 3),
                "max_seconds": round(slowest[kind], 3),
            }
            for kind, found in counts.items()
        },
        "max_seconds": round(max(slowest.values()), 4),
        "seconds": round(time.perf_counter() - start, 1),
        "memory_growth_mb": round(peak - before, 1),
    }


def _seconds() -> float:
    """The processor time of this process and its children, which does not depend on other programs."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _peak_mb() -> float:
    """Return the peak memory of this process in MB. Linux reports kB, macOS bytes."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind")
    parser.add_argument("--short", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        figures = measure(SHORT if args.short else args.files, args.seed, Path(place), args.kind)
    print(json.dumps(figures))
    raise SystemExit(1 if figures["crashed"] or figures["slow"] or figures["large"] else 0)
