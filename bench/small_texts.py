"""The lowest loss on a small text in a given time: everything that `clearhead train` does, teachers included.

    python -m bench.small_texts TEXT --minutes 2 [--seeds 3] [--set tokenizer=char] [--beside single classic]

Prints one JSON line. --beside also trains other models in the same time: `single`, one model as planned without
teachers, and `classic`, nanoGPT's recipe; `bench.train` has the texts and times that were measured. Each run is a
separate process, and its time starts with the process. The loss is that of the saved model over every token that was
held out, each once, in windows of the context length, given per token and in bits per byte; if the context is longer
than 256, `loss_256` is the same in windows of 256. The last tenth of the text is held out. --set takes any setting of
`ch.train`, as JSON or as a plain word.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

BESIDE: dict[str, dict[str, Any]] = {
    "single": {"teachers": 0},
    "classic": {"recipe": "classic", "teachers": 0},
}
WINDOW = 256  # in which losses of models with longer contexts are also given
STARTED = time.perf_counter()
STARTING = 5.0  # seconds for the interpreter and imports before, and for loading and exit after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings")
    parser.add_argument("--beside", nargs="+", choices=BESIDE, default=[])
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(train_one(args.text, args.minutes, json.loads(args.one))))
        return
    settings = dict(map(_setting, args.settings))
    seeds = range(args.first, args.first + args.seeds)
    print(json.dumps(compare(args.text, args.minutes, settings, seeds, args.beside)))


def _setting(given: str) -> tuple[str, Any]:
    name, _, value = given.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def compare(
    text: str, minutes: float, settings: dict[str, Any], seeds: range, beside: Sequence[str] = tuple(BESIDE)
) -> dict[str, Any]:
    """The figures of the plan and of each other recipe, with the plan's `gain` over it, in nats per byte."""
    planned = measure(text, minutes, settings, seeds)
    for name in beside:
        other = measure(text, minutes, {**settings, **BESIDE[name]}, seeds)
        gain = math.log(2) * (other["bits_per_byte"] - planned["bits_per_byte"])
        planned[name] = {**other, "gain": round(gain, 4)}
    return planned


def measure(text: str, minutes: float, settings: dict[str, Any], seeds: range) -> dict[str, Any]:
    runs = []
    for seed in seeds:
        began = time.perf_counter()
        one = json.dumps({**settings, "seed": seed})
        command = [sys.executable, "-m", "bench.small_texts", text, "--minutes", str(minutes), "--one", one]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        wall = round(time.perf_counter() - began, 1)
        runs.append({**json.loads(done.stdout.splitlines()[-1]), "wall_seconds": wall})
    means = {name: round(mean(run[name] for run in runs), 4) for name in ("loss", "bits_per_byte")}
    return {"text": Path(text).name, "minutes": minutes, "settings": settings, **means, "runs": runs}


def train_one(text: str, minutes: float, settings: dict[str, Any]) -> dict[str, Any]:
    import warnings

    import clearhead as ch
    from clearhead.runs.held_out import read_held_out
    from clearhead.runs.preparation import count_bytes
    from clearhead.runtime.device import pick_device
    from clearhead.text.evaluation_windows import windows_for_evaluation
    from clearhead.training.objective import evaluate
    from clearhead.training.position_loss import bits_per_byte

    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "run")
        if "steps" not in settings:
            settings["minutes"] = minutes - (time.perf_counter() - STARTED + STARTING) / 60
        ch.train(text, folder, validation=0.1, progress=False, **settings)
        trained = time.perf_counter() - STARTED
        model = ch.load(folder, settings.get("device"))
        held_out = read_held_out(folder, model.tokenizer.end_id)
        assert held_out is not None
        before, n_context = int(held_out.before[-1]), model.config.n_context
        network = model.network.to(pick_device(settings.get("device")))
        losses = {
            length: evaluate(
                network, windows_for_evaluation(held_out.validation, length, 16, before), bfloat16=False
            )
            for length in sorted({min(WINDOW, n_context), n_context})
        }
        loss = losses[n_context]
        n_bytes = count_bytes(held_out.validation, model.tokenizer)
        runs = ch.runs(folder)
        teachers = sorted((folder / "teachers").glob("[0-9]*"), key=lambda each: int(each.name))
        return {
            "loss": round(loss, 4),
            **({f"loss_{WINDOW}": round(losses[WINDOW], 4)} if n_context > WINDOW else {}),
            "bits_per_byte": round(bits_per_byte(loss * len(held_out.validation), n_bytes), 4),
            "seconds": round(trained, 1),
            "tokenizer": runs[0].tokenizer,
            **_describe(model),
            "teachers": [_describe(ch.load(each)) for each in teachers],
        }


def _describe(model: Any) -> dict[str, Any]:
    config, training = model.config, model.training
    recipe = training["recipe"]
    return {
        "shape": [config.n_block, config.d_model, config.n_context, recipe["batch_size"]],
        "steps": training["steps_done"],
        "validation_loss": training["validation_loss"],
        "regularization": [config.dropout, recipe["weight_decay"], recipe["token_noise"]],
        "compiled": recipe["compiled"],
    }


if __name__ == "__main__":
    main()
