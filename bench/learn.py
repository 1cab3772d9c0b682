"""The cost of a lesson: the gradients with respect to all sites of one text, compared with a plain training step on it.

Usage: python -m bench.learn [--short] [--device cuda]. Uses a random model with the shape of GPT-2 124M and a text of
256 tokens. Each kind of work runs in a separate process; its peak memory is counted beyond what the imports use. On
the CPU, it is the CPU time of one thread that is measured, so that other programs do not count.
Prints one JSON line; the targets are seconds_over_step ≤ 3 and memory_over_step ≤ 2.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import time
from statistics import median
from typing import Any

SHAPE = {"n_vocab": 50257, "n_context": 1024, "n_block": 12, "n_head": 12, "d_model": 768}
SHORT = {"n_vocab": 300, "n_context": 64, "n_block": 2, "n_head": 2, "d_model": 32}


def measure(kind: str, shape: dict[str, int], length: int, rounds: int, device: str) -> dict[str, float]:
    """The median time in seconds of a training step, or of a lesson with all its sites; and the peak memory."""
    import torch

    from clearhead.language_model import LanguageModel
    from clearhead.lessons.text_lesson import SameBatch, TextTrainer, learn, make_batch, make_recipe
    from clearhead.model.config import preset
    from clearhead.model.transformer import Transformer
    from clearhead.text.tokenizer import Tokenizer

    clock = time.perf_counter if device == "cuda" else time.process_time
    torch.set_num_threads(1)
    torch.manual_seed(0)
    before = peak(device)
    model = LanguageModel(Transformer(preset("gpt2", **shape)).to(device), Tokenizer.train("byte", []))
    ids = torch.randint(shape["n_vocab"], (length,)).tolist()
    batch, _ = make_batch(model, ids)
    trainer = None
    if kind == "step":
        recipe = make_recipe(model, 1, "adamw", None, None)
        trainer = TextTrainer(model.transformer(), SameBatch(batch), recipe)
        trainer.training_step.graph = None
        trainer.network.train()
    seconds = []
    for _ in range(rounds + 1):
        began = clock()
        if trainer is not None:
            trainer.take_step()
        else:
            lesson = learn(model, ids, optimizer="adamw")
            total = sum(lesson.gradient[name].sum() for name in model.inspect(ids[:2]).sites())
            assert not torch.as_tensor(total).isnan()
            del lesson
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(clock() - began)
    return {"seconds": median(seconds[1:]), "bytes": peak(device) - before}  # the first round is warmup


def peak(device: str) -> int:
    """The peak memory of this process so far, in bytes."""
    if device == "cuda":
        import torch

        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main(short: bool, device: str = "cpu") -> dict[str, Any]:
    shape, length, rounds = (SHORT, 16, 2) if short else (SHAPE, 256, 3)
    found = {}
    for kind in ("step", "lesson"):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found[kind] = pool.apply(measure, (kind, shape, length, rounds, device))
    step, lesson = found["step"], found["lesson"]
    return {
        "bench": "learn",
        "step_ms": round(1000 * step["seconds"], 1),
        "lesson_ms": round(1000 * lesson["seconds"], 1),
        "seconds_over_step": round(lesson["seconds"] / step["seconds"], 2),
        "step_mb": round(step["bytes"] / 1e6, 1),
        "lesson_mb": round(lesson["bytes"] / 1e6, 1),
        "memory_over_step": round(lesson["bytes"] / step["bytes"], 2),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    print(json.dumps(main(arguments.short, arguments.device)))
