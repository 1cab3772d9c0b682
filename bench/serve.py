"""Many requests at once: the engine beside the plain loop, which makes one text after the other.

A random model of 4 blocks, width 128, and a real one. Usage: python -m bench.serve [MODEL] [--short], the
model SmolLM2, pulled if need be, unless said; on the best device here. Prints one JSON line: tokens a second
and their ratio to the plain loop's with 1, 8 and 32 requests, and the longest that a text had to wait for its
next word while a long prompt was read, over the median wait before.
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
TURNS = 3  # each figure is the best of so many: other work on a machine only ever slows it down


def make(shape: dict[str, int]) -> LanguageModel:
    torch.manual_seed(0)
    network = Transformer(preset("modern", **shape)).to(pick_device())
    return LanguageModel(network, Tokenizer.train("byte", []))


def ask(model: LanguageModel, number: int, tokens: int) -> GenerationRequest:
    drawn = torch.randint(256, (16,), generator=torch.Generator().manual_seed(number))
    return model.request(drawn.tolist(), tokens, seed=number)


def serve(engine: Engine, requests: list[GenerationRequest]) -> tuple[int, float]:
    """Tokens made, and seconds."""
    start = time.perf_counter()
    tickets = [engine.submit(request) for request in requests]
    for ticket in tickets:
        ticket.texts()
    return sum(len(ticket.events) for ticket in tickets), time.perf_counter() - start


def make_plainly(model: LanguageModel, request: GenerationRequest) -> float:
    start = time.perf_counter()
    model.generate(list(request.ids), request.tokens, seed=request.seed)
    return time.perf_counter() - start


def longest_wait(engine: Engine, model: LanguageModel, length: int, tokens: int) -> float:
    moments: list[float] = []

    def listen(_: Event) -> None:
        moments.append(time.perf_counter())

    writing = engine.submit(model.request([65], tokens, temperature=0), listen)
    while len(moments) < tokens // 2:
        time.sleep(0.001)
    quiet = len(moments)
    engine.submit(model.request([66] * length, 1)).texts()
    writing.texts()
    waits = [after - before for before, after in pairwise(moments)]
    return max(waits[quiet:]) / median(waits[:quiet])


def measure(model: LanguageModel, counts: list[int], tokens: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    with model.engine(max(counts)) as engine:
        requests = [ask(model, number, tokens) for number in range(max(counts))]
        alone = serve(engine, requests[:1])[0]  # how many it makes before its end, if it ends early
        plain, served = 0.0, dict.fromkeys(counts, 0.0)
        for _ in range(TURNS):
            plain = max(plain, alone / make_plainly(model, requests[0]))
            for count in counts:
                made, seconds = serve(engine, requests[:count])
                served[count] = max(served[count], made / seconds)
        for count, rate in served.items():
            figures[str(count)] = {
                "tokens_per_second": round(rate, 1),
                "over_plain": round(rate / plain, 2),
            }
        wait = longest_wait(engine, model, model.config.n_context // 2, tokens)
    return {**figures, "plain_tokens_per_second": round(plain, 1), "longest_wait": round(wait, 1)}


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
    given = parser.parse_args()
    print(json.dumps(main(given.model, given.short)))
