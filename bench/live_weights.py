"""What a live page loses with smaller number types: the perplexity of a model with its published weights.

Usage: python -m bench.live_weights [MODEL] [TEXT] [--short]. Decodes the published files of each number
type, and evaluates a model with those weights: by default, the built-in model on stories that it was not
trained on. Prints one JSON line per type; `ratio` is the perplexity relative to that of the original model.
"""

from __future__ import annotations

import argparse
import copy
import json
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from clearhead.export.live_weights import NumberType, encode_weights
from clearhead.language_model import LanguageModel, load
from clearhead.text.stories import stories

UNSEEN_SEED = 77  # of stories; the built-in model was trained on stories with other seeds
KINDS = {"float32": "<f4", "float16": "<f2", "int8": "i1"}


def published(model: LanguageModel, numbers: NumberType) -> tuple[LanguageModel, int]:
    """Return the model that a live page runs, and the size of its weights in bytes."""
    network = copy.deepcopy(model.transformer("the benchmark"))
    index, pieces = encode_weights(network, numbers)
    stream = b"".join(pieces)
    parameters = dict(network.named_parameters())
    for entry in index["tensors"]:
        shape = entry["shape"]
        values = np.frombuffer(stream, KINDS[entry["type"]], int(np.prod(shape)), entry["start"])
        tensor = torch.from_numpy(values.astype(np.float32)).reshape(shape)
        if "scales" in entry:
            scales = np.frombuffer(stream, "<f4", shape[0], entry["scales"])
            tensor = tensor * torch.from_numpy(scales.copy())[:, None]
        with torch.no_grad():
            parameters[entry["name"]].copy_(tensor)
    return LanguageModel(network, model.tokenizer, name=model.name), len(stream)


def main(name: str, text: str) -> list[dict[str, Any]]:
    model = load(name, "cpu")
    before = model.evaluate(text)
    lines = []
    for numbers in get_args(NumberType):
        rounded, size = published(model, numbers)
        score = rounded.evaluate(text)
        lines.append(
            {
                "bench": "live_weights",
                "model": model.name,
                "numbers": numbers,
                "weights_mb": round(size / 1e6, 1),
                "tokens": score.tokens,
                "perplexity": round(score.perplexity, 4),
                "ratio": round(score.perplexity / before.perplexity, 5),
            }
        )
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="stories")
    parser.add_argument("text", nargs="?", type=Path)
    parser.add_argument("--short", action="store_true")
    args = parser.parse_args()
    unseen = islice(stories(UNSEEN_SEED), 2 if args.short else 100)
    text = args.text.read_text(encoding="utf-8") if args.text else "\n\n".join(story.text for story in unseen)
    for line in main(args.model, text):
        print(json.dumps(line))
