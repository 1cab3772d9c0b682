"""Compare the scores of lm-evaluation-harness from our server with those from transformers, item by item.

Usage: python -m bench.harness PYTHON [--model stories] [--items 500] [--batch 32].
PYTHON is the interpreter of an environment with `lm-eval[api]`, transformers and torch. The items are generated from
the story grammar: multiple choice (which of two sentences comes next), cloze (the last word of a sentence), and the
perplexity of documents. The harness runs its local-completions client against `clearhead serve`, and its hf model on
the folder that the model exports to. Prints one JSON line: for each kind, the largest difference
between log-probabilities and the number of answers that differ; the metrics of both; and the seconds for each run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from bench.load_test import QUEUE, SLOTS, serving
from clearhead.language_model import load
from clearhead.text.stories import sentences, stories

SEED = 7
TASKS = {
    "choice": """output_type: multiple_choice
doc_to_text: "{{context}}"
doc_to_target: "{{answer}}"
doc_to_choice: "{{choices}}"
target_delimiter: " "
metric_list:
  - metric: acc
  - metric: acc_norm
""",
    "cloze": """output_type: loglikelihood
doc_to_text: "{{context}}"
doc_to_target: " {{last}}"
metric_list:
  - metric: perplexity
  - metric: acc
""",
    "document": """output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list:
  - metric: bits_per_byte
""",
}


def make_items(count: int) -> dict[str, list[dict[str, Any]]]:
    """The items of each task."""
    items: dict[str, list[dict[str, Any]]] = {name: [] for name in TASKS}
    texts = [story.text for story in islice(stories(SEED), count + 1)]
    for i, (text, other) in enumerate(pairwise(texts)):
        first, second, third, *_ = sentences(text)
        wrong = sentences(other)[1]
        choices = [second, wrong] if i % 2 == 0 else [wrong, second]
        items["choice"].append({"context": first, "choices": choices, "answer": i % 2})
        *start, last = f"{second} {third}".split(" ")
        items["cloze"].append({"context": " ".join(start), "last": last})
        items["document"].append({"text": text})
    return items


def write_tasks(folder: Path, count: int) -> None:
    """Write the harness's task files and their data."""
    folder.mkdir()
    for name, items in make_items(count).items():
        data = folder / f"{name}.jsonl"
        data.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
        head = f"task: {name}\ndataset_path: json\ndataset_kwargs:\n  data_files:\n    test: {data}\ntest_split: test\n"
        (folder / f"{name}.yaml").write_text(head + TASKS[name], encoding="utf-8")


def run_harness(
    python: str,
    kind: str,
    arguments: Mapping[str, object],
    tasks: Path,
    out: Path,
    batch: int,
    token: str = "",
) -> float:
    """Run the harness on all tasks and return the seconds it took; its samples are then in `out`."""
    given = ",".join(f"{name}={value}" for name, value in arguments.items())
    command = [python, "-m", "lm_eval", "--model", kind, "--model_args", given, "--tasks", ",".join(TASKS)]
    command += ["--include_path", str(tasks), "--batch_size", str(batch), "--output_path", str(out)]
    command += ["--log_samples"]
    if kind == "hf":
        command += ["--device", "cpu"]
    home = {"HF_HOME": str(out.parent / "home"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    start = time.perf_counter()
    done = subprocess.run(
        command,
        env={**os.environ, **home, "OPENAI_API_KEY": token},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return time.perf_counter() - start


def read_samples(out: Path) -> dict[str, list[list[Any]]]:
    """The responses to each item of each task: log-probabilities, and whether greedy decoding gives the text."""
    samples = {}
    for name in TASKS:
        [path] = out.glob(f"**/samples_{name}_*.jsonl")
        items = sorted(
            map(json.loads, path.read_text(encoding="utf-8").splitlines()), key=lambda each: each["doc_id"]
        )
        samples[name] = [_flatten(item["filtered_resps"]) for item in items]
    return samples


def _flatten(values: Any) -> list[Any]:
    """Numbers and Booleans in nested lists; the harness writes some of them as text."""
    if isinstance(values, list):
        return [each for value in values for each in _flatten(value)]
    return [json.loads(values.lower())] if isinstance(values, str) else [values]


def read_metrics(out: Path) -> dict[str, dict[str, float]]:
    [path] = out.glob("**/results_*.json")
    results = json.loads(path.read_text(encoding="utf-8"))["results"]
    return {
        name: {
            key.split(",")[0]: round(value, 5)
            for key, value in results[name].items()
            if isinstance(value, float) and "stderr" not in key
        }
        for name in TASKS
    }


def compare(ours: Sequence[list[Any]], theirs: Sequence[list[Any]]) -> dict[str, Any]:
    """The largest difference between log-probabilities, and the number of Booleans that differ."""
    pairs: Iterable[tuple[Any, Any]] = (
        pair for one, other in zip(ours, theirs, strict=True) for pair in zip(one, other, strict=True)
    )
    largest, unequal = 0.0, 0
    for one, other in pairs:
        if isinstance(one, bool):
            unequal += one is not other
        else:
            largest = max(largest, abs(one - other))
    return {"items": len(ours), "largest": largest, "unequal": unequal}


def main(python: str, name: str, items: int, batch: int) -> dict[str, Any]:
    model = load(name, "cpu")
    with tempfile.TemporaryDirectory(prefix="clearhead-") as temporary:
        folder = Path(temporary)
        tasks, exported = folder / "tasks", folder / "model"
        write_tasks(tasks, items)
        model.export(exported)
        # The client reserves one token of its length for generation, and one for what precedes a window.
        limits = model.config.n_context + 1, model.config.n_context - 1
        seconds = {}
        with serving(exported, SLOTS, QUEUE) as server:
            given = {"base_url": f"{server.url}/v1/completions", "model": "model", "tokenizer": exported}
            given |= {"max_length": limits[0]}
            seconds["server"] = run_harness(
                python, "local-completions", given, tasks, folder / "ours", batch, server.token
            )
        given = {"pretrained": exported, "dtype": "float32", "max_length": limits[1]}
        seconds["hf"] = run_harness(python, "hf", given, tasks, folder / "theirs", batch)
        ours, theirs = read_samples(folder / "ours"), read_samples(folder / "theirs")
        return {
            "model": name,
            **{task: compare(ours[task], theirs[task]) for task in TASKS},
            "metrics": {"server": read_metrics(folder / "ours"), "hf": read_metrics(folder / "theirs")},
            "seconds": {key: round(value, 1) for key, value in seconds.items()},
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python")
    parser.add_argument("--model", default="stories")
    parser.add_argument("--items", type=int, default=500)
    parser.add_argument("--batch", type=int, default=32)
    given = parser.parse_args()
    print(json.dumps(main(given.python, given.model, given.items, given.batch)))
