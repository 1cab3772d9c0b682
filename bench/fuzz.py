"""Fuzz the model readers: a damaged file must load or give a one-line error, quickly and with little memory.

Usage: python -m bench.fuzz [--files 100000] [--seed 0] [--short]. Eight in ten files are GGUF; one in ten
is a model folder with a mutated safetensors header, one in ten a folder with a mutated config.json. Prints
one JSON line; `crashed` lists the files that were neither accepted nor rejected, and must be empty.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from clearhead.errors import UserError
from clearhead.formats import folder
from clearhead.formats.gguf.file import GGUFFile
from clearhead.formats.gguf.tokenizer import read_tokenizer, write_tokenizer
from clearhead.formats.saved import Saved
from clearhead.formats.shards import WEIGHTS
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

FILES, SHORT = 100_000, 400
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


def make_gguf(path: Path) -> None:
    """Write a small file with a tokenizer and one tensor of each of several types."""
    tokenizer = Tokenizer.train("bpe", ["a cat and a hat and a bat"] * 3, 270)
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in write_tokenizer(tokenizer, 280).items():
        if isinstance(value, list):
            writer.add_array(key, value)
        elif isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        else:
            writer.add_string(key, value)
    numbers = np.random.default_rng(0).standard_normal((4, 256), dtype=np.float32)
    for kind in ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_1", "Q8_0", "TQ2_0"):
        number = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(f"blk.0.{kind}", gguf.quants.quantize(numbers, number), raw_dtype=number)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make_folder(path: Path) -> None:
    """Save a small model without Clearhead's own file, whose hash would reject every change at once."""
    config = preset("modern", n_vocab=257, n_context=16, n_block=1, n_head=2, d_model=16)
    folder.save(path, Saved(Transformer(config), Tokenizer.train("byte", []), None))
    (path / folder.OURS).unlink()


def read_gguf(path: Path) -> None:
    with GGUFFile.open(path) as file:
        for name in file.tensors:
            file.read(name)
        read_tokenizer(file.metadata)


class Fuzz:
    """A valid file, the byte range to mutate, and the function that reads it."""

    def __init__(self, path: Path, begin: int, end: int, read: Callable[[], Any]) -> None:
        self.path, self.valid, self.begin, self.end, self.read = path, path.read_bytes(), begin, end, read
        read()  # checks that the file is valid, and warms up imports

    def try_one(self, rng: random.Random) -> tuple[str, float]:
        """Read one mutated file. Return the outcome and the seconds taken."""
        self.path.write_bytes(mutate(self.valid, rng, self.begin, self.end))
        start = time.perf_counter()
        try:
            self.read()
            outcome = "accepted"
        except UserError as error:
            outcome = "rejected" if "\n" not in str(error) else f"more than one line: {error}"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            outcome = f"{type(error).__name__}: {error}"
        return outcome, time.perf_counter() - start


def measure(n_file: int, seed: int, place: Path) -> dict[str, Any]:
    make_gguf(place / "model.gguf")
    make_folder(place / "config")
    make_folder(place / "weights")
    header = GGUFFile.open(place / "model.gguf")
    header_end = min(info.offset for info in header.tensors.values())
    header.close()
    weights, config = place / "weights" / WEIGHTS, place / "config" / folder.CONFIG
    safetensors_end = 8 + struct.unpack("<Q", weights.read_bytes()[:8])[0]
    gguf_file = place / "model.gguf"
    targets = {
        # Counts and the first keys; the whole header, mostly vocabulary; tensor names, shapes and offsets.
        "gguf start": Fuzz(gguf_file, 0, 512, lambda: read_gguf(gguf_file)),
        "gguf": Fuzz(gguf_file, 0, header_end, lambda: read_gguf(gguf_file)),
        "gguf tensors": Fuzz(gguf_file, header_end - 512, header_end, lambda: read_gguf(gguf_file)),
        "safetensors": Fuzz(weights, 0, safetensors_end, lambda: folder.load(weights.parent)),
        "config": Fuzz(config, 0, config.stat().st_size, lambda: folder.load(config.parent)),
    }
    plan = ("gguf start", "gguf", "gguf tensors", "gguf") * 2 + ("safetensors", "config")
    before = _peak_mb()
    counts: Counter[str] = Counter()
    slowest: dict[str, float] = dict.fromkeys(targets, 0.0)
    crashed = []
    start = time.perf_counter()
    for i in range(n_file):
        name = plan[i % len(plan)]
        outcome, seconds = targets[name].try_one(random.Random(f"{seed} {i}"))
        slowest[name] = max(slowest[name], seconds)
        if outcome in ("accepted", "rejected"):
            counts[outcome] += 1
        else:
            crashed.append(f"{name}, file {i}: {outcome[:300]}")
    return {
        "bench": "fuzz",
        "files": n_file,
        "accepted": counts["accepted"],
        "rejected": counts["rejected"],
        "crashed": crashed[:5],
        "n_crashed": len(crashed),
        "max_seconds": round(max(slowest.values()), 4),
        "max_seconds_by_target": {name: round(seconds, 4) for name, seconds in slowest.items()},
        "seconds": round(time.perf_counter() - start, 1),
        "memory_growth_mb": round(_peak_mb() - before, 1),
    }


def _peak_mb() -> float:
    """Return the peak memory of this process in MB. Linux reports kB, macOS bytes."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        figures = measure(SHORT if args.short else args.files, args.seed, Path(place))
    print(json.dumps(figures))
    raise SystemExit(1 if figures["n_crashed"] else 0)
