"""Load a GGUF file with Clearhead and with transformers, alternating, each in a fresh process.

Usage: python -m bench.load [FILE] [--short], where FILE is a GGUF file that both can read; the default is
SmolLM2, which is pulled if needed. Needs transformers and accelerate, which are not dependencies of
Clearhead. Prints one JSON line; the targets are load_speedup ≥ 1 and memory_over_transformers < 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from statistics import median
from typing import Any

from clearhead.formats.pulled import pull

# Prints the load time without imports, and the peak memory of the process. Includes the first logits, because
# memory-mapped weights would otherwise look free.
MEASURE = """
import json, resource, sys, time
{prepare}
start = time.perf_counter()
{work}
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
print(json.dumps({{"seconds": seconds, "peak_mb": peak}}))
"""
OURS = MEASURE.format(
    prepare="import torch\nfrom clearhead.language_model import load",
    work="load(sys.argv[1], 'cpu').logits('The capital of France is')",
)
TRANSFORMERS = MEASURE.format(
    prepare=(
        "import os, torch, transformers\n"
        "folder, file = os.path.split(sys.argv[1])\n"
        "transformers.logging.set_verbosity_error()\n"
        "from transformers import AutoModelForCausalLM, AutoTokenizer"
    ),
    work=(
        "model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)\n"
        "tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)\n"
        "with torch.no_grad():\n"
        "    model(**tokenizer('The capital of France is', return_tensors='pt'))"
    ),
)


def run(program: str, path: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"loading failed: {done.stderr.strip().splitlines()[-1]}")
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main(path: str, short: bool) -> dict[str, Any]:
    if short:
        return {"bench": "load", **run(OURS, path)}
    turns = [(run(OURS, path), run(TRANSFORMERS, path)) for _ in range(3)]
    seconds = [median(turn[side]["seconds"] for turn in turns) for side in (0, 1)]
    peaks = [median(turn[side]["peak_mb"] for turn in turns) for side in (0, 1)]
    return {
        "bench": "load",
        "seconds": round(seconds[0], 2),
        "transformers_seconds": round(seconds[1], 2),
        "load_speedup": round(seconds[1] / seconds[0], 2),
        "peak_mb": round(peaks[0]),
        "transformers_peak_mb": round(peaks[1]),
        "memory_over_transformers": round(peaks[0] / peaks[1], 3),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--short", action="store_true")
    args = parser.parse_args()
    print(json.dumps(main(args.file or str(pull("smollm2")), args.short)))
