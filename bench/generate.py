"""Generation speed, compared with a peer library if it is installed. Prints one JSON line.

    python -m bench.generate gpt2 [--batch 1]    GPT-2 124M, prompt of 32 tokens, top-k 50, on the best device
    python -m bench.generate gpt2 --device cpu   the same on the CPU, in float32
    python -m bench.generate best                the same, with Clearhead in int8 and the peer in each mode
    python -m bench.generate file MODEL.gguf     a GGUF file, with Clearhead in int8 and llama.cpp as the peer
    python -m bench.generate draft MODEL TEXT    a model without and with drafts, from a text and from repetitions

GPT-2 has random weights, which do not affect the speed. Clearhead and the peer alternate; the best of three
rounds counts. On CUDA, both use bfloat16. --short uses a small model.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from bench.peers import llama_cpp, transformers_gpt2
from clearhead.generate import cuda_decoder
from clearhead.generate.decoder import TransformerDecoder
from clearhead.generate.drafting import Drafter, RepetitionDrafter, generate_drafted_tokens, make_drafter
from clearhead.generate.generation import generate_tokens, make_decoder
from clearhead.generate.sampler import make_samplers
from clearhead.generate.sampling import Sampling
from clearhead.language_model import load
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.runtime.device import pick_device
from clearhead.runtime.quantization import quantize
from clearhead.text.tokenizer import Tokenizer

SIZES = {"n_block": 12, "n_head": 12, "d_model": 768, "n_context": 1024, "n_vocab": 50257}
SHORT = {"n_block": 2, "n_head": 2, "d_model": 32, "n_context": 128, "n_vocab": 512}
PROMPT, ROUNDS = 32, 3
PROMPTS = 4  # for drafts, whose speed depends on the text
Mode = Callable[[], object]
SAMPLING = Sampling(temperature=1.0, top_k=50)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("benchmark", choices=["gpt2", "best", "file", "draft"])
    parser.add_argument("path", nargs="?", help="path of a GGUF file, or a model")
    parser.add_argument("text", nargs="?", help="path of a text to draft from")
    parser.add_argument("--temperature", type=float, default=0.8, help="of drafted text")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--device")
    parser.add_argument("--no-peer", action="store_true", help="measure Clearhead only")
    parser.add_argument("--short", action="store_true")
    args = parser.parse_args()
    tokens = 8 if args.short else args.tokens
    if args.benchmark == "gpt2":
        figures = measure(args.batch, tokens, args.device, args.short, args.no_peer)
    elif args.benchmark == "best":
        figures = measure_best(tokens, args.short)
    elif args.benchmark == "draft":
        if not args.text:
            parser.error("the benchmark `draft` needs a model and the path of a text")
        figures = measure_drafts(args.path, args.text, tokens, args.temperature, args.device)
    elif args.path:
        figures = measure_file(args.path, tokens, args.no_peer)
    else:
        parser.error("the benchmark `file` needs the path of a GGUF file")
    print(json.dumps(figures))


def measure(
    batch: int, tokens: int, device_name: str | None, short: bool = False, no_peer: bool = False
) -> dict[str, Any]:
    """Return tokens per second over the whole batch, including the prefill."""
    device = pick_device(device_name)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    sizes = SHORT if short else SIZES
    network, prompt = _gpt2(sizes, device, dtype)
    modes: dict[str, Mode] = {"clearhead": lambda: _generate(network, prompt, batch, tokens)}
    theirs = None if no_peer else _transformers(sizes, device, dtype, prompt, batch, tokens)
    if theirs is not None:
        modes["transformers"] = theirs
    figures = {"bench": "generate", "batch": batch, "tokens": tokens, "device": str(device)}
    return {**figures, **_alternate(modes, batch * tokens)}


def measure_best(tokens: int, short: bool = False) -> dict[str, Any]:
    """Compare Clearhead in int8 with each mode of transformers, on the CPU with one sequence."""
    device, sizes = torch.device("cpu"), SHORT if short else SIZES
    network, prompt = _gpt2(sizes, device, torch.float32)
    quantize(network)
    modes: dict[str, Mode] = {"clearhead": lambda: _generate(network, prompt, 1, tokens)}
    peers = [("transformers", torch.float32, False), ("transformers bfloat16", torch.bfloat16, False)]
    if not short:  # compiling takes a minute
        peers.append(("transformers compiled", torch.float32, True))
    for name, dtype, compiled in peers:
        theirs = _transformers(sizes, device, dtype, prompt, 1, tokens, compiled)
        if theirs is not None:
            modes[name] = theirs
    return {"bench": "generate best", "tokens": tokens, **_alternate(modes, tokens)}


def measure_file(path: str, tokens: int, no_peer: bool = False) -> dict[str, Any]:
    """Compare Clearhead in int8 and float32 with llama.cpp on a GGUF file, on the CPU with one sequence."""
    quantized, exact = load(path, "cpu", quantize="int8"), load(path, "cpu")
    prompt = torch.randint(1000, 2000, (PROMPT,), generator=torch.Generator().manual_seed(0)).tolist()
    modes: dict[str, Mode] = {
        "clearhead": lambda: _generate(quantized.transformer(), prompt, 1, tokens),
        "clearhead float32": lambda: _generate(exact.transformer(), prompt, 1, tokens),
    }
    theirs = None if no_peer else llama_cpp(path, prompt, tokens)
    if theirs is not None:
        modes["llama.cpp"] = theirs
    return {"bench": "generate file", "tokens": tokens, **_alternate(modes, tokens)}


def measure_drafts(
    name: str, text: str, tokens: int, temperature: float, device: str | None = None
) -> dict[str, Any]:
    """Return tokens per second, and the share of the tokens that were drafted, averaged over the prompts.

    The prompts are taken from across the text; the end token is excluded so that each text reaches its full length.
    """
    model = load(name, device)
    ids = model.tokenizer.encode(Path(text).read_text(encoding="utf-8"))
    tokens = min(tokens, model.config.n_context - PROMPT)
    prompts = [ids[len(ids) * i // PROMPTS :][:PROMPT] for i in range(PROMPTS)]
    sampling = Sampling(temperature, logit_bias=dict.fromkeys(model.tokenizer.end_ids, -math.inf))
    drafters: dict[str, Callable[[], Drafter | None]] = {
        "plain": lambda: None,
        "5-grams": partial(make_drafter, text, model.tokenizer, model.config.n_vocab),
        "repeats": RepetitionDrafter,
    }
    ready = {label: make() for label, make in drafters.items()}
    drafted = dict.fromkeys(drafters, 0)

    def generate(label: str) -> None:
        drafted[label] = 0
        for seed, prompt in enumerate(prompts):
            samplers = make_samplers(sampling, model.tokenizer, model.config.n_vocab, prompt, seed, 1)
            decoder = TransformerDecoder(model.transformer(), 1, PROMPT + tokens)
            drafter = RepetitionDrafter() if label == "repeats" else ready[label]
            steps = (
                generate_tokens(decoder, prompt, samplers)
                if drafter is None
                else generate_drafted_tokens(decoder, prompt, samplers[0], drafter)
            )
            drafted[label] += sum(token.drafted for [token] in islice(steps, tokens))

    rates = _alternate({label: partial(generate, label) for label in drafters}, PROMPTS * tokens)
    shares = {
        f"drafted by {label}": round(n / (PROMPTS * tokens), 3)
        for label, n in drafted.items()
        if label != "plain"
    }
    return {"bench": "generate draft", "tokens": tokens, "temperature": temperature, **rates, **shares}


def _alternate(modes: dict[str, Mode], tokens: int) -> dict[str, float]:
    """Return tokens per second of each mode, and the ratio of Clearhead to the fastest peer."""
    best = dict.fromkeys(modes, float("inf"))
    for turn in range(ROUNDS + 1):
        for name, generate in modes.items():
            start = time.perf_counter()
            generate()
            if turn:  # the first round is warmup
                best[name] = min(best[name], time.perf_counter() - start)
    figures = {name: round(tokens / seconds, 1) for name, seconds in best.items()}
    theirs = [seconds for name, seconds in best.items() if not name.startswith("clearhead")]
    compared = theirs and "clearhead" in best
    return {**figures, "ratio": round(min(theirs) / best["clearhead"], 2)} if compared else figures


def _gpt2(sizes: dict[str, int], device: torch.device, dtype: torch.dtype) -> tuple[Transformer, list[int]]:
    torch.manual_seed(0)
    network = Transformer(preset("gpt2", **sizes)).to(device, dtype).eval()
    return network, torch.randint(sizes["n_vocab"], (PROMPT,)).tolist()


def _generate(network: Transformer, prompt: list[int], batch: int, tokens: int) -> None:
    samplers = make_samplers(SAMPLING, Tokenizer.train("byte", []), network.config.n_vocab, prompt, 0, batch)
    if cuda_decoder.can_generate(network, SAMPLING, len(prompt), tokens, batch):
        steps = cuda_decoder.generate_tokens(network, prompt, SAMPLING, samplers, tokens)
    else:
        steps = generate_tokens(make_decoder(network, batch, len(prompt) + tokens), prompt, samplers)
    for _ in islice(steps, tokens):
        pass


def _transformers(
    sizes: dict[str, int],
    device: torch.device,
    dtype: torch.dtype,
    prompt: list[int],
    batch: int,
    tokens: int,
    compiled: bool = False,
) -> Mode | None:
    model = transformers_gpt2(sizes)
    if model is None:
        return None
    model = model.to(device, dtype).eval()
    ids = torch.tensor([prompt] * batch, device=device)
    options: dict[str, Any] = {
        "do_sample": True,
        "top_k": 50,
        "temperature": 1.0,
        "use_cache": True,
        "pad_token_id": 0,
    }
    if compiled:  # a static cache keeps the shapes fixed, so one compiled step works for every token
        options["cache_implementation"] = "static"
        model.forward = torch.compile(model.forward)

    def generate() -> None:
        model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=tokens,
            min_new_tokens=tokens,
            **options,
        ).tolist()

    return generate


if __name__ == "__main__":
    main()
