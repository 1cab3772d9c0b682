"""Compare a run that is finished and then extended with one run of the same total length.

Usage: python -m bench.extend [TEXT…] [--steps 300 | --minutes 2] [--seeds 0 1 2] [--short]. Trains N steps
(or minutes) and extends the run by N more, and trains one run of 2N, on the same text (the built-in stories
by default) with the same seed. Prints one JSON line: the validation losses `first`, `extended` and `single`,
and `difference`, which is extended minus single in nats, each for every seed, and the mean difference. With
--steps, the two have the same model and batch; with --minutes, the plan chooses them for the time given, so
the single run can have a larger model.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Any

from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.runs.saved_run import SavedRun
from clearhead.runs.training import save_somewhere
from clearhead.text.corpus import Document, documents
from clearhead.text.stories import stories

STORIES = 2_000
SIZES = {"blocks": 2, "heads": 4, "width": 64, "context": 64, "batch": 8, "tokenizer": "bpe", "vocab": 512}
SHORT_SIZES = {"blocks": 1, "heads": 1, "width": 32, "context": 32, "batch": 4, "tokenizer": "byte"}


def train(folder: Path, texts: list[Document], resume: bool = False, **settings: Any) -> Run:
    """Start a run, or extend the finished one, and save it as `clearhead train` does."""
    request = TrainingRequest(device="cpu", **settings)
    saved_run = SavedRun.open(folder, texts, request, resume, cache=folder.parent / "cache", extend=resume)
    assert saved_run is not None
    with saved_run:
        for _ in saved_run:
            pass
        _, error = save_somewhere(saved_run.run.model, folder)
        assert error is None, error
        saved_run.finish()
    return saved_run.run


def compare(texts: list[Document], seed: int, length: dict[str, Any], sizes: dict[str, Any]) -> list[Run]:
    """The first run, the extended one and the single one."""
    double = {name: 2 * value for name, value in length.items()}
    with tempfile.TemporaryDirectory(prefix="clearhead-extend-") as place:
        folder = Path(place)
        first = train(folder / "run", texts, seed=seed, **length, **sizes)
        extended = train(folder / "run", texts, resume=True, **length)
        single = train(folder / "single", texts, seed=seed, **double, **sizes)
    return [first, extended, single]


def main(
    texts: list[Document], length: dict[str, Any], seeds: list[int], sizes: dict[str, Any]
) -> dict[str, Any]:
    runs = [compare(texts, seed, length, sizes) for seed in seeds]
    losses = [[round(run.losses[-1], 4) for run in each] for each in zip(*runs, strict=True)]
    _, extended, single = runs[0]
    differences = [round(a - b, 4) for a, b in zip(losses[1], losses[2], strict=True)]
    return {
        "bench": "extend",
        **length,
        "first": losses[0],
        "extended": losses[1],
        "single": losses[2],
        "difference": differences,
        "mean_difference": round(mean(differences), 4),
        "steps_done": [extended.trainer.step, single.trainer.step],
        "parameters": [extended.plan.config.n_parameter, single.plan.config.n_parameter],
        "epochs": [round(run.plan.epochs(len(run.tokens)), 2) for run in (extended, single)],
        "validation_tokens": len(single.validation),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("text", nargs="*")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--short", action="store_true", help="a run of a few seconds, to test this benchmark")
    options = parser.parse_args()
    count = 100 if options.short else STORIES
    told = "\n\n".join(story.text for story in islice(stories(), count))
    given = list(documents(options.text)) if options.text else [Document.of("stories", told)]
    if options.short:
        print(json.dumps(main(given, {"steps": 20}, [0], SHORT_SIZES)))
    elif options.minutes:
        print(json.dumps(main(given, {"minutes": options.minutes}, options.seeds, {})))
    else:
        print(json.dumps(main(given, {"steps": options.steps}, options.seeds, SIZES)))
