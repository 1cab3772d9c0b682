"""Quality of the demo's model: how many generated sentences parse, and whether any story is a copy.

Usage: python -m bench.stories [MINUTES] [SIZES AS JSON]. Prints one JSON line; `ratio` is the share of
sentences that parse, relative to the target of 95%.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

from clearhead.language_model import LanguageModel
from clearhead.runs.demo import demo_request, demo_texts
from clearhead.runs.run import Run
from clearhead.text.stories import parses, sentences

SENTENCES = 200
TARGET = 0.95


def measure(run: Run, training: set[str]) -> dict[str, Any]:
    """Train, then generate stories and parse their sentences."""
    for _ in run:
        pass
    stories = sample_stories(run.model)
    sampled = list(islice((sentence for story in stories for sentence in sentences(story)), SENTENCES))
    share = sum(map(parses, sampled)) / len(sampled)
    return {
        "bench": "stories",
        "seconds": round(run.seconds, 1),
        "parameters": run.plan.config.n_parameter,
        "steps": run.plan.recipe.steps,
        "validation_loss": round(run.losses[-1], 4),
        "sentences": len(sampled),
        "parsed": share,
        "copies": sum(story in training for story in stories),
        "ratio": round(share / TARGET, 3),
        "failures": [sentence for sentence in sampled if not parses(sentence)][:3],
    }


def sample_stories(model: LanguageModel) -> list[str]:
    """Generate stories as the demo does, at the same temperature, each until it ends."""
    texts = model.generate(tokens=250, samples=40, seed=1)
    assert isinstance(texts, list)
    return [text.strip() for text in texts]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", type=float, nargs="?", default=1.0)
    parser.add_argument("sizes", type=json.loads, nargs="?", default={})
    args = parser.parse_args()
    texts = demo_texts()
    with tempfile.TemporaryDirectory() as cache:
        run = Run(texts, demo_request(minutes=args.minutes, **args.sizes), cache=Path(cache))
        print(json.dumps(measure(run, {text for document in texts for text in document.read()})))
