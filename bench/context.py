"""Generation past a full context: recompute the window for every token, or drop its older half (`shift`).

Usage: python -m bench.context [--short]. Prints one JSON line: tokens per second for both methods once the
context is full, and the mean loss of a small trained model on a text much longer than its context.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import torch

from clearhead.generate.decoder import ShiftingDecoder, TransformerDecoder
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.text.corpus import Document
from clearhead.text.stories import stories

SHAPE = {"n_vocab": 4096, "n_block": 4, "n_head": 4, "d_model": 256}


def speed(kind: type[TransformerDecoder], network: Transformer, tokens: int) -> float:
    """Return tokens per second after the context is full."""
    decoder = kind(network)
    decoder.prefill(torch.randint(network.config.n_vocab, (1, network.config.n_context)))
    start = time.perf_counter()
    for i in range(tokens):
        decoder.decode_one(torch.tensor([[i % network.config.n_vocab]]))
    return tokens / (time.perf_counter() - start)


def mean_loss(kind: type[TransformerDecoder], network: Transformer, ids: list[int]) -> float:
    """Return the mean loss, in nats, of the tokens after the first full context."""
    decoder, losses = kind(network), []
    for n, (i, following) in enumerate(pairwise(ids)):
        logits = decoder.decode_one(torch.tensor([[i]]))
        if n >= network.config.n_context:
            losses.append(-float(logits[0].log_softmax(-1)[following]))
    return sum(losses) / len(losses)


def main(short: bool) -> dict[str, Any]:
    figures: dict[str, Any] = {"bench": "context"}
    for n_context in (64,) if short else (256, 1024):
        torch.manual_seed(0)
        network = Transformer(preset("modern", **SHAPE, n_context=n_context)).eval()
        # Recomputing is slow, so it gets few tokens; shifting gets enough to shift twice.
        recomputed = speed(TransformerDecoder, network, 5 if short else 20)
        shifted = speed(ShiftingDecoder, network, n_context)
        figures |= {
            f"recompute_{n_context}": round(recomputed, 1),
            f"shift_{n_context}": round(shifted, 1),
            f"shift_speedup_{n_context}": round(shifted / recomputed, 1),
        }
    texts = [Document.of(f"{i}", story.text) for i, story in enumerate(islice(stories(), 600))]
    steps = 3 if short else 300
    request = TrainingRequest(steps=steps, blocks=3, width=64, heads=2, context=64, batch=16, device="cpu")
    with tempfile.TemporaryDirectory() as cache:
        run = Run(texts, request, Path(cache))
        list(run)
    others = "\n".join(story.text for story in islice(stories(seed=1), 40))
    ids = run.tokenizer.encode(others)[: 200 if short else 1000]
    recomputed, shifted = (
        mean_loss(kind, run.model.transformer(), ids) for kind in (TransformerDecoder, ShiftingDecoder)
    )
    return figures | {"recompute_loss": round(recomputed, 4), "shift_loss": round(shifted, 4)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    print(json.dumps(main(parser.parse_args().short)))
