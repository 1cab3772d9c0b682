"""How fast text is written: each work a JSON line, with transformers' own beside it where it is installed.

    python -m bench.generate gpt2 [--batch 1]    GPT-2 124M, prompt 32, top-k 50, on the best device
    python -m bench.generate gpt2 --device cpu   the same on a processor, in float32

A random GPT-2: what is drawn does not matter for the time. Ours and theirs take turns; the best of three. On
CUDA both are in bfloat16. --short is a small model.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import torch

from bench.peers import transformers_gpt2
from clearhead.generate.continuation import Reader, continuations
from clearhead.generate.drawing import make_drawers
from clearhead.generate.quick import is_quick, quick_continuations
from clearhead.generate.sampling import Sampling
from clearhead.model.config import preset
from clearhead.model.machine import pick_device
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

SIZES = {"n_block": 12, "n_head": 12, "d_model": 768, "n_context": 1024, "n_vocab": 50257}
SHORT = {"n_block": 2, "n_head": 2, "d_model": 32, "n_context": 128, "n_vocab": 512}
PROMPT, TURNS = 32, 3
SAMPLING = Sampling(temperature=1.0, top_k=50)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("work", choices=["gpt2"])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--device")
    parser.add_argument("--alone", action="store_true", help="without transformers")
    parser.add_argument("--short", action="store_true")
    asked = parser.parse_args()
    tokens = 8 if asked.short else asked.tokens
    print(json.dumps(measure(asked.batch, tokens, asked.device, asked.short, asked.alone)))


def measure(
    batch: int, tokens: int, device_name: str | None, short: bool = False, alone: bool = False
) -> dict[str, Any]:
    """Tokens a second, of all texts together, the reading of the prompt and the first steps included."""
    device = pick_device(device_name)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    sizes = SHORT if short else SIZES
    torch.manual_seed(0)
    network = Transformer(preset("gpt2", **sizes)).to(device, dtype).eval()
    prompt = torch.randint(sizes["n_vocab"], (PROMPT,)).tolist()
    ways: dict[str, Callable[[], object]] = {"ours": lambda: _write(network, prompt, batch, tokens)}
    theirs = None if alone else _transformers(sizes, device, dtype, prompt, batch, tokens)
    if theirs is not None:
        ways["transformers"] = theirs
    best = dict.fromkeys(ways, float("inf"))
    for turn in range(TURNS + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if turn:  # the first sets things up
                best[name] = min(best[name], time.perf_counter() - start)
    speeds = {name: round(batch * tokens / seconds, 1) for name, seconds in best.items()}
    figures = {"bench": "generate", "batch": batch, "tokens": tokens, "device": str(device), **speeds}
    if theirs is not None:
        figures["ratio"] = round(best["transformers"] / best["ours"], 2)
    return figures


def _write(network: Transformer, prompt: list[int], batch: int, tokens: int) -> None:
    drawers = make_drawers(SAMPLING, Tokenizer.train("byte", []), network.config.n_vocab, prompt, 0, batch)
    if is_quick(network, SAMPLING, len(prompt), tokens, batch):
        steps = quick_continuations(network, prompt, SAMPLING, drawers, tokens)
    else:
        steps = continuations(Reader(network, batch, len(prompt) + tokens), prompt, drawers)
    for _ in islice(steps, tokens):
        pass


def _transformers(
    sizes: dict[str, int],
    device: torch.device,
    dtype: torch.dtype,
    prompt: list[int],
    batch: int,
    tokens: int,
) -> Callable[[], object] | None:
    model = transformers_gpt2(sizes)
    if model is None:
        return None
    model = model.to(device, dtype).eval()
    ids = torch.tensor([prompt] * batch, device=device)
    chosen = {"do_sample": True, "top_k": 50, "temperature": 1.0, "use_cache": True, "pad_token_id": 0}

    def write() -> None:
        model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=tokens,
            min_new_tokens=tokens,
            **chosen,
        ).tolist()

    return write


if __name__ == "__main__":
    main()
