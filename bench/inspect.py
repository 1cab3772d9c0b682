"""The cost of a trace, compared in one run with a plain forward pass, transformers and TransformerLens.

Usage: python -m bench.inspect [--short]. Uses a random model with the shape of GPT-2 124M on the CPU. The
peers, transformers and transformer-lens, are not dependencies of Clearhead. Prints one JSON line; the
targets are inspect_over_forward ≤ 1.10, memory_over_lens ≤ 1/30, head_over_forward ≤ 0.05 and sweep_speedup
≥ 6.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

SHAPE = {"n_vocab": 50257, "n_context": 1024, "n_block": 12, "n_head": 12, "d_model": 768}
SHORT = {"n_vocab": 300, "n_context": 64, "n_block": 2, "n_head": 2, "d_model": 32}


def make(shape: dict[str, int]) -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(Transformer(preset("gpt2", **shape)).eval(), Tokenizer.train("byte", []))


def interleaved(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return each function's median time in seconds, interleaving the calls so that noise affects all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(rounds + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if turn:  # the first round is warmup
                seconds[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in seconds.items()}


def random_ids(length: int, vocabulary: int) -> Tensor:
    return torch.randint(vocabulary, (1, length), generator=torch.Generator().manual_seed(length))


def trace_of(network: Transformer, ids: Tensor) -> Trace:
    trace = Trace(network, ids, [[""] * ids.shape[1]])
    assert len(trace.logits) == ids.shape[1]  # computed lazily; a forward pass computes them too
    return trace


def own_figures(
    network: Transformer, lengths: list[int], rounds: int, peers: dict[str, Any]
) -> dict[str, Any]:
    """Time a trace, one head's weights and the peers at each length, relative to a plain forward pass."""
    figures: dict[str, Any] = {}
    for length in lengths:
        ids = random_ids(length, network.config.n_vocab)
        trace = trace_of(network, ids)
        functions: dict[str, Callable[[], Any]] = {
            "forward": partial(network, ids),
            "inspect": partial(trace_of, network, ids),
            "head": partial(trace.read, "block.1.head.1.weights"),
            **{name: partial(run, ids) for name, run in peers.items()},
        }
        seconds = interleaved(functions, rounds)
        forward = seconds.pop("forward")
        figures[str(length)] = {
            **{f"{name}_over_forward": round(value / forward, 3) for name, value in seconds.items()},
            "forward_ms": round(1000 * forward, 1),
            "trace_mb": round(trace_bytes(trace) / 1e6, 1),
        }
    return figures


def trace_bytes(trace: Trace) -> int:
    """Return the size in bytes of the residual stream, which is all that a trace keeps besides the logits."""
    tensors = [*trace.stream.inputs, *trace.stream.middles, trace.stream.last]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def load_peers(model: LanguageModel) -> tuple[Any, Any]:
    """Load the same weights in transformers and in TransformerLens."""
    import transformers
    from transformer_lens.model_bridge import TransformerBridge  # type: ignore[import-not-found]

    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        theirs = transformers.AutoModelForCausalLM.from_pretrained(Path(folder) / "model")
        bridge = TransformerBridge.boot_transformers(str(Path(folder) / "model"))
        bridge.enable_compatibility_mode(no_processing=True)
    return theirs, bridge


def weights_difference(network: Transformer, bridge: Any, length: int) -> float:
    """Return the largest difference between an attention weight and TransformerLens's, over all heads."""
    ids = random_ids(length, network.config.n_vocab)
    trace = trace_of(network, ids)
    _, cache = bridge.run_with_cache(ids)
    differences = [
        (trace.weights(i) - cache[f"blocks.{i}.attn.hook_pattern"][0]).abs().max().item()
        for i in range(network.config.n_block)
    ]
    return max(differences)


def sweep_figures(network: Transformer, bridge: Any, length: int) -> dict[str, Any]:
    """Ablate every head in turn and read one logit: in batches here, in a loop with TransformerLens."""
    ids = random_ids(length, network.config.n_vocab)
    config, token = network.config, 7

    def ours() -> Tensor:
        return trace_of(network, ids).sweep(
            "head", lambda trace: float(trace.read("logits", rows=-1)[0, token])
        )

    def theirs() -> Tensor:
        table = torch.zeros(config.n_block, config.n_head)
        for i in range(config.n_block):
            for j in range(config.n_head):

                def ablate(z: Tensor, hook: Any, j: int = j) -> Tensor:  # noqa: ARG001
                    z = z.clone()
                    z[:, :, j] = 0
                    return z

                logits = bridge.run_with_hooks(ids, fwd_hooks=[(f"blocks.{i}.attn.hook_z", ablate)])
                table[i, j] = logits[0, -1, token]
        return table

    start = time.perf_counter()
    one = ours()
    middle = time.perf_counter()
    other = theirs()
    end = time.perf_counter()
    return {
        "sweep_seconds": round(middle - start, 2),
        "lens_sweep_seconds": round(end - middle, 2),
        "sweep_speedup": round((end - middle) / (middle - start), 2),
        "sweep_difference": (one - other).abs().max().item(),
    }


@torch.no_grad()
def main(short: bool) -> dict[str, Any]:
    model = make(SHORT if short else SHAPE)
    network = model.transformer()
    lengths, rounds = ([16], 2) if short else ([64, 256, 1024], 5)
    result: dict[str, Any] = {"bench": "inspect"}
    if short:
        return {**result, **own_figures(network, lengths, rounds, {})}
    theirs, bridge = load_peers(model)
    peers = {"transformers": theirs, "lens": bridge.run_with_cache}
    result |= own_figures(network, lengths, rounds, peers)
    ids = random_ids(1024, SHAPE["n_vocab"])
    _, cache = bridge.run_with_cache(ids)
    lens_bytes = sum(value.numel() * value.element_size() for value in cache.values())
    result["lens_mb"] = round(lens_bytes / 1e6, 1)
    result["memory_over_lens"] = round(trace_bytes(trace_of(network, ids)) / lens_bytes, 4)
    result["weights_difference"] = weights_difference(network, bridge, 64)
    return {**result, **sweep_figures(network, bridge, 32)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    print(json.dumps(main(parser.parse_args().short)))
