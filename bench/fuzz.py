"""Damaged files, many of them: each must be read or refused in one line, quickly and in little memory.

Usage: python -m bench.fuzz [--files 100000] [--seed 0] [--short]. Of the files eight in ten are GGUF; one in
ten is a model's folder with a changed safetensors header, one in ten with a changed config.json. Prints one
JSON line; `crashed` lists whatever was neither read nor refused, and must be empty.
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
# Where counts, lengths and offsets go wrong.
NUMBERS = (0, 1, 2**7, 2**16, 2**31 - 1, 2**32 - 1, 2**40, 10**18, 2**63 - 1, 2**63, 2**64 - 1)
WORDS = (
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


def mutate(data: bytes, choose: random.Random, begin: int, end: int) -> bytes:
    """A few changes from `begin` to `end`: bits, numbers, words; bytes put in, taken out, doubled; a cut."""
    changed = bytearray(data)
    for _ in range(choose.choice((1, 1, 2, 4))):
        at = choose.randrange(begin, end)
        kind = choose.randrange(7)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << choose.randrange(8)
        elif kind == 1:
            width = choose.choice((4, 8))
            number = choose.choice(NUMBERS) % 2 ** (8 * width)
            changed[at : at + width] = number.to_bytes(width, "little")
        elif kind == 2:
            changed[at : at + choose.randint(0, 4)] = choose.choice(WORDS)
        elif kind == 3:
            changed[at:at] = choose.randbytes(choose.randint(1, 16))
        elif kind == 4:
            del changed[at : at + choose.randint(1, 16)]
        elif kind == 5:
            changed[at:at] = changed[at : at + choose.randint(1, 64)]
        elif choose.randrange(4) == 0:  # a cut is mostly found at once
            del changed[at:]
    return bytes(changed)


def make_gguf(path: Path) -> None:
    """A small file with a tokenizer and a tensor of each of several kinds."""
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
    """A small model, without our own file, whose hash would refuse every change at once."""
    config = preset("modern", n_vocab=257, n_context=16, n_block=1, n_head=2, d_model=16)
    folder.save(path, Saved(Transformer(config), Tokenizer.train("byte", []), None))
    (path / folder.OURS).unlink()


def read_gguf(path: Path) -> None:
    with GGUFFile.open(path) as file:
        for name in file.tensors:
            file.read(name)
        read_tokenizer(file.metadata)


class Fuzz:
    """A target's valid file, the bytes of it that are changed, and what reads it."""

    def __init__(self, path: Path, begin: int, end: int, read: Callable[[], Any]) -> None:
        self.path, self.valid, self.begin, self.end, self.read = path, path.read_bytes(), begin, end, read
        read()  # it is valid, and all that is loaded once is loaded

    def try_one(self, choose: random.Random) -> tuple[str, float]:
        """How it ended, and after how many seconds."""
        self.path.write_bytes(mutate(self.valid, choose, self.begin, self.end))
        start = time.perf_counter()
        try:
            self.read()
            ended = "accepted"
        except UserError as error:
            ended = "refused" if "\n" not in str(error) else f"two lines: {error}"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            ended = f"{type(error).__name__}: {error}"
        return ended, time.perf_counter() - start


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
        # Counts and the first keys; all of it, mostly vocabulary; the tensors' names, shapes and places.
        "gguf start": Fuzz(gguf_file, 0, 512, lambda: read_gguf(gguf_file)),
        "gguf": Fuzz(gguf_file, 0, header_end, lambda: read_gguf(gguf_file)),
        "gguf tensors": Fuzz(gguf_file, header_end - 512, header_end, lambda: read_gguf(gguf_file)),
        "safetensors": Fuzz(weights, 0, safetensors_end, lambda: folder.load(weights.parent)),
        "config": Fuzz(config, 0, config.stat().st_size, lambda: folder.load(config.parent)),
    }
    plan = ("gguf start", "gguf", "gguf tensors", "gguf") * 2 + ("safetensors", "config")
    before = _peak()
    counts: Counter[str] = Counter()
    worst: dict[str, float] = dict.fromkeys(targets, 0.0)
    crashed = []
    start = time.perf_counter()
    for i in range(n_file):
        name = plan[i % len(plan)]
        ended, seconds = targets[name].try_one(random.Random(f"{seed} {i}"))
        worst[name] = max(worst[name], seconds)
        if ended in ("accepted", "refused"):
            counts[ended] += 1
        else:
            crashed.append(f"{name}, file {i}: {ended[:300]}")
    return {
        "bench": "fuzz",
        "files": n_file,
        "accepted": counts["accepted"],
        "refused": counts["refused"],
        "crashed": crashed[:5],
        "n_crashed": len(crashed),
        "seconds_a_file_worst": round(max(worst.values()), 4),
        "seconds_worst": {name: round(seconds, 4) for name, seconds in worst.items()},
        "seconds": round(time.perf_counter() - start, 1),
        "peak_mb": round(_peak() - before, 1),
    }


def _peak() -> float:
    """The most memory this process ever had, in MB. Linux counts in kB, macOS in bytes."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        figures = measure(SHORT if asked.short else asked.files, asked.seed, Path(place))
    print(json.dumps(figures))
    raise SystemExit(1 if figures["n_crashed"] else 0)
