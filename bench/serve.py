"""Throughput of continuous batching, compared with a sequential loop that generates one sequence at a time.

Usage: python -m bench.serve [MODEL] [--short]. Measures a random model of 4 blocks and width 128, and
MODEL (by default SmolLM2, which is pulled if needed), on the best device. Prints one JSON line: tokens per
second with 1, 8 and 32 requests and the speedup over the sequential loop; and `max_wait_ratio`, the longest
time that a sequence waits for its next token during the prefill of a long prompt, relative to the median wait
before the prefill.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import pairwise
from statistics import median
from typing import Any

import torch

from clearhead.formats.pulled import pull
from clearhead.generate.engine import Engine
from clearhead.generate.request import Event, GenerationRequest
from clearhead.language_model import LanguageModel, load
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.runtime.device import pick_device
from clearhead.text.tokenizer import Tokenizer

SMALL = {"n_vocab": 1024, "n_context": 256, "n_block": 4, "n_head": 4, "d_model": 128}
SHORT = {"n_vocab": 300, "n_context": 64, "n_block": 1, "n_head": 2, "d_model": 32}
ROUNDS = 3  # the best is reported, because other jobs on the machine only slow it down


def make(shape: dict[str, int]) -> LanguageModel:
    torch.manual_seed(0)
    network = Transformer(preset("modern", **shape)).to(pick_device())
    return LanguageModel(network, Tokenizer.train("byte", []))


def make_request(model: LanguageModel, seed: int, tokens: int) -> GenerationRequest:
    prompt = torch.randint(256, (16,), generator=torch.Generator().manual_seed(seed))
    return model.request(prompt.tolist(), tokens, seed=seed)


def serve(engine: Engine, requests: list[GenerationRequest]) -> tuple[int, float]:
    """Return the number of generated tokens and the seconds taken."""
    start = time.perf_counter()
    handles = [engine.submit(request) for request in requests]
    for handle in handles:
        handle.texts()
    return sum(len(handle.events) for handle in handles), time.perf_counter() - start


def generate_sequentially(model: LanguageModel, request: GenerationRequest) -> float:
    start = time.perf_counter()
    model.generate(list(request.ids), request.tokens, seed=request.seed)
    return time.perf_counter() - start


def max_wait_ratio(engine: Engine, model: LanguageModel, length: int, tokens: int) -> float:
    """Return the longest wait for a token during a prefill of `length` tokens, relative to the median before it."""
    times: list[float] = []

    def listen(_: Event) -> None:
        times.append(time.perf_counter())

    writing = engine.submit(model.request([65], tokens, temperature=0), listen)
    while len(times) < tokens // 2:
        time.sleep(0.001)
    before_prefill = len(times)
    engine.submit(model.request([66] * length, 1)).texts()
    writing.texts()
    waits = [after - before for before, after in pairwise(times)]
    return max(waits[before_prefill:]) / median(waits[:before_prefill])


def measure(model: LanguageModel, counts: list[int], tokens: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    with model.engine(max(counts)) as engine:
        requests = [make_request(model, seed, tokens) for seed in range(max(counts))]
        alone = serve(engine, requests[:1])[0]  # the sequence may end early
        sequential, served = 0.0, dict.fromkeys(counts, 0.0)
        for _ in range(ROUNDS):
            sequential = max(sequential, alone / generate_sequentially(model, requests[0]))
            for count in counts:
                made, seconds = serve(engine, requests[:count])
                served[count] = max(served[count], made / seconds)
        for count, rate in served.items():
            figures[str(count)] = {
                "tokens_per_second": round(rate, 1),
                "speedup": round(rate / sequential, 2),
            }
        wait = max_wait_ratio(engine, model, model.config.n_context // 2, tokens)
    return {**figures, "sequential_tokens_per_second": round(sequential, 1), "max_wait_ratio": round(wait, 1)}


def main(name: str | None, short: bool) -> dict[str, Any]:
    if short:
        return {"bench": "serve", "small": measure(make(SHORT), [1, 2], 8)}
    real = load(name or pull("smollm2"))
    return {
        "bench": "serve",
        "device": str(real.device),
        "small": measure(make(SMALL), [1, 8, 32], 64),
        "real": measure(real, [1, 8, 32], 32),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--short", action="store_true")
    args = parser.parse_args()
    print(json.dumps(main(args.model, args.short)))
