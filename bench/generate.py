"""How fast text is written: each work a JSON line, with a peer's own beside it where it is installed.

    python -m bench.generate gpt2 [--batch 1]    GPT-2 124M, prompt 32, top-k 50, on the best device
    python -m bench.generate gpt2 --device cpu   the same on a processor, in float32
    python -m bench.generate best                the same, ours in eight bits, theirs as it is fastest
    python -m bench.generate file MODEL.gguf     a GGUF file, ours in eight bits beside llama.cpp

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

from bench.peers import llama_cpp, transformers_gpt2
from clearhead.generate.continuation import continuations
from clearhead.generate.cuda_decoder import quick_continuations, supports
from clearhead.generate.readers import make_reader
from clearhead.generate.sampler import make_drawers
from clearhead.generate.sampling import Sampling
from clearhead.language_model import load
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.runtime.device import pick_device
from clearhead.runtime.quantization import quantize
from clearhead.text.tokenizer import Tokenizer

SIZES = {"n_block": 12, "n_head": 12, "d_model": 768, "n_context": 1024, "n_vocab": 50257}
SHORT = {"n_block": 2, "n_head": 2, "d_model": 32, "n_context": 128, "n_vocab": 512}
PROMPT, TURNS = 32, 3
Way = Callable[[], object]
SAMPLING = Sampling(temperature=1.0, top_k=50)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("work", choices=["gpt2", "best", "file"])
    parser.add_argument("path", nargs="?", help="of a GGUF file")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--device")
    parser.add_argument("--alone", action="store_true", help="without the peer")
    parser.add_argument("--short", action="store_true")
    asked = parser.parse_args()
    tokens = 8 if asked.short else asked.tokens
    if asked.work == "gpt2":
        figures = measure(asked.batch, tokens, asked.device, asked.short, asked.alone)
    elif asked.work == "best":
        figures = measure_best(tokens, asked.short)
    elif asked.path:
        figures = measure_file(asked.path, tokens, asked.alone)
    else:
        parser.error("file wants the path of one")
    print(json.dumps(figures))


def measure(
    batch: int, tokens: int, device_name: str | None, short: bool = False, alone: bool = False
) -> dict[str, Any]:
    """Tokens a second, of all texts together, the reading of the prompt and the first steps included."""
    device = pick_device(device_name)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    sizes = SHORT if short else SIZES
    network, prompt = _gpt2(sizes, device, dtype)
    ways: dict[str, Way] = {"ours": lambda: _write(network, prompt, batch, tokens)}
    theirs = None if alone else _transformers(sizes, device, dtype, prompt, batch, tokens)
    if theirs is not None:
        ways["transformers"] = theirs
    figures = {"bench": "generate", "batch": batch, "tokens": tokens, "device": str(device)}
    return {**figures, **_take_turns(ways, batch * tokens)}


def measure_best(tokens: int, short: bool = False) -> dict[str, Any]:
    """On a processor, one text: ours in eight bits, theirs in each way that it has."""
    device, sizes = torch.device("cpu"), SHORT if short else SIZES
    network, prompt = _gpt2(sizes, device, torch.float32)
    quantize(network)
    ways: dict[str, Way] = {"ours": lambda: _write(network, prompt, 1, tokens)}
    peers = [("transformers", torch.float32, False), ("transformers bfloat16", torch.bfloat16, False)]
    if not short:  # it takes a minute to compile
        peers.append(("transformers compiled", torch.float32, True))
    for name, dtype, still in peers:
        theirs = _transformers(sizes, device, dtype, prompt, 1, tokens, still)
        if theirs is not None:
            ways[name] = theirs
    return {"bench": "generate best", "tokens": tokens, **_take_turns(ways, tokens)}


def measure_file(path: str, tokens: int, alone: bool = False) -> dict[str, Any]:
    """A GGUF file on a processor, one text: ours in float32 and in eight bits, and llama.cpp."""
    model, exact = load(path, "cpu", quantize="int8"), load(path, "cpu")
    prompt = torch.randint(1000, 2000, (PROMPT,), generator=torch.Generator().manual_seed(0)).tolist()
    ways: dict[str, Way] = {
        "ours": lambda: _write(model.transformer(), prompt, 1, tokens),
        "ours float32": lambda: _write(exact.transformer(), prompt, 1, tokens),
    }
    theirs = None if alone else llama_cpp(path, prompt, tokens)
    if theirs is not None:
        ways["llama.cpp"] = theirs
    return {"bench": "generate file", "tokens": tokens, **_take_turns(ways, tokens)}


def _take_turns(ways: dict[str, Way], words: int) -> dict[str, float]:
    """Words a second by each way, and how many times as fast ours is as the fastest of theirs."""
    best = dict.fromkeys(ways, float("inf"))
    for turn in range(TURNS + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if turn:  # the first sets things up
                best[name] = min(best[name], time.perf_counter() - start)
    figures = {name: round(words / seconds, 1) for name, seconds in best.items()}
    theirs = [seconds for name, seconds in best.items() if not name.startswith("ours")]
    return {**figures, "ratio": round(min(theirs) / best["ours"], 2)} if theirs else figures


def _gpt2(sizes: dict[str, int], device: torch.device, dtype: torch.dtype) -> tuple[Transformer, list[int]]:
    torch.manual_seed(0)
    network = Transformer(preset("gpt2", **sizes)).to(device, dtype).eval()
    return network, torch.randint(sizes["n_vocab"], (PROMPT,)).tolist()


def _write(network: Transformer, prompt: list[int], batch: int, tokens: int) -> None:
    drawers = make_drawers(SAMPLING, Tokenizer.train("byte", []), network.config.n_vocab, prompt, 0, batch)
    if supports(network, SAMPLING, len(prompt), tokens, batch):
        steps = quick_continuations(network, prompt, SAMPLING, drawers, tokens)
    else:
        steps = continuations(make_reader(network, batch, len(prompt) + tokens), prompt, drawers)
    for _ in islice(steps, tokens):
        pass


def _transformers(
    sizes: dict[str, int],
    device: torch.device,
    dtype: torch.dtype,
    prompt: list[int],
    batch: int,
    tokens: int,
    still: bool = False,
) -> Way | None:
    model = transformers_gpt2(sizes)
    if model is None:
        return None
    model = model.to(device, dtype).eval()
    ids = torch.tensor([prompt] * batch, device=device)
    chosen: dict[str, Any] = {
        "do_sample": True,
        "top_k": 50,
        "temperature": 1.0,
        "use_cache": True,
        "pad_token_id": 0,
    }
    if still:  # so that the shapes of a step stay, and one compiled step serves all
        chosen["cache_implementation"] = "static"
        model.forward = torch.compile(model.forward)

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
