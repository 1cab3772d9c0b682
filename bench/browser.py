"""Latency and memory of a live page in headless Chromium, where the model runs in the browser.

Usage: python -m bench.browser [1M|10M|MODEL …] [--numbers float32|float16|int8] [--rounds N] [--short]. By default,
measures random models of 1M and 10M parameters and SmolLM2, which is pulled if needed; --short uses a tiny random one.
The page is published to a folder and served as static files. Prints one JSON line per model; times are medians:

    load_s           loading the page and the weights, until everything is drawn
    text_ms          another text of `tokens` tokens, until the whole page is redrawn
    typed_ms         letter typed at the end of that text, until the whole page is redrawn
    trace_ms         the part of it that computes: the engine's answer to one more token
    tokens_per_s     the engine, one token after another
    page_per_s       the page while it generates: it draws every token, and pauses 60 ms after each
    weights_mb       weights as they are stored
    memory           memory that the browser's page needs for this model, divided by weights_mb
    load             load average of the machine before the run

The targets are at most 100 ms for typed_ms at 1M and 300 ms at 10M; for SmolLM2, 2,500 ms for text_ms and 400 ms for
typed_ms; at least 50 tokens per second at 1M and 3 at 135M; and at most 1.5 for memory.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from itertools import islice
from pathlib import Path
from statistics import median
from string import ascii_lowercase
from typing import Any
from urllib.parse import urlencode

import torch
from playwright.sync_api import Browser, Page

from bench.explorer import TIMEOUT, settle, text_of, timed
from clearhead.export.live_page import check_numbers, publish_live
from clearhead.formats.pulled import pull
from clearhead.language_model import LanguageModel, load
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.stories import stories
from clearhead.text.tokenizer import Tokenizer
from tools.browser import browsing
from tools.live_page import ASK, serve

# Shapes of random models by their number of parameters.
SHAPES = {
    "tiny": {"n_block": 2, "n_head": 2, "d_model": 32},
    "1M": {"n_block": 4, "n_head": 4, "d_model": 128},
    "10M": {"n_block": 6, "n_head": 6, "d_model": 384},
}
DEFAULT = ["1M", "10M", "smollm2"]
TOKENS = 32
GENERATED = 30

# How many texts the page has run.
TRACED = "sent.filter((path) => path === '/api/trace').length"

# Appends the likeliest token again and again, and returns the milliseconds of each.
GENERATE = """async ([model, text, count]) => {
  const times = [];
  const trace = async (text) => {
    const { body } = await ask("/api/trace", { model, text, sites: false });
    return JSON.parse(new TextDecoder().decode(body));
  };
  let { ids } = await trace(text);
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    const { next } = await trace(ids);
    ids = [...ids, next[0].id];
    times.push(performance.now() - start);
  }
  return times.slice(1);
}"""


def random_model(name: str) -> LanguageModel:
    torch.manual_seed(0)
    tokenizer = Tokenizer.train("bpe", [story.text for story in islice(stories(), 400)], n_vocab=1024)
    shape = SHAPES[name]
    network = Transformer(preset("modern", n_vocab=tokenizer.n_vocab, n_context=256, **shape))
    return LanguageModel(network.eval(), tokenizer, name=name)


def renderer_memory(browser: Browser) -> float:
    """Return the memory of the browser's pages in megabytes: their share of what is resident."""
    session = browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    total = 0
    for process in processes:
        if process["type"] == "renderer":
            lines = Path(f"/proc/{process['id']}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1000


def open_page(browser: Browser, address: str) -> Page:
    context = browser.new_context(
        viewport={"width": 1366, "height": 768}, reduced_motion="reduce", service_workers="allow"
    )
    context.add_init_script(ASK)
    page = context.new_page()
    page.set_default_timeout(1000 * TIMEOUT)
    page.goto(address)
    settle(page)
    return page


def measure(browser: Browser, address: str, model: LanguageModel, rounds: int) -> dict[str, Any]:
    start = time.monotonic()
    page = open_page(browser, address)
    seconds = time.monotonic() - start - 0.3  # the time that settling takes
    text = text_of(model, TOKENS)
    page.goto(f"{address}?{urlencode({'text': text})}")
    settle(page)
    prompt = page.get_by_label("Input text")
    texts, typed = [], []
    for letter in ascii_lowercase[: rounds + 1]:
        # The first token differs, so nothing from an earlier run can be reused.
        other = f"{letter.upper()}, {text}"
        texts.append(timed(page, lambda other=other: prompt.fill(other)))  # type: ignore[misc]
        prompt.press("End")
        typed.append(timed(page, lambda key=letter: prompt.press(key)))  # type: ignore[misc]
    steps = page.evaluate(GENERATE, [model.name, text, GENERATED])
    return {
        "load_s": round(seconds, 2),
        "tokens": len(model.tokenizer.start_ids) + len(model.tokenizer.encode(other)),
        "text_ms": round(median(texts[1:])),
        "typed_ms": round(median(typed[1:])),
        "trace_ms": round(median(steps), 1),
        "tokens_per_s": round(1000 * len(steps) / sum(steps), 1),
        "page_per_s": round(generating_speed(page, 3.0), 1),
        "memory_mb": round(renderer_memory(browser)),
    }


def generating_speed(page: Page, seconds: float) -> float:
    """Return the tokens per second that the page appends and draws."""
    page.get_by_role("button", name="Generate", exact=True).click()
    first, start = page.evaluate(TRACED), time.monotonic()
    page.wait_for_timeout(1000 * seconds)
    last, end = page.evaluate(TRACED), time.monotonic()
    page.get_by_role("button", name="Stop", exact=True).click()
    return float(last - first) / (end - start)


def run(name: str, numbers: str, rounds: int, empty_mb: float) -> dict[str, Any]:
    """Publish a model and measure it. `empty_mb` is the memory of a page with a model of negligible size."""
    load_average = round(os.getloadavg()[0], 1)
    model = random_model(name) if name in SHAPES else load(pull(name) if name == "smollm2" else name, "cpu")
    with tempfile.TemporaryDirectory() as folder:
        publish_live([model], Path(folder), check_numbers(numbers), labs=False)
        weights = sum(path.stat().st_size for path in Path(folder).glob("*/weights-*.bin")) / 1e6
        with serve(Path(folder)) as address, browsing() as browser:
            figures = measure(browser, f"{address}/", model, rounds)
    return {
        "bench": "browser",
        "model": model.name,
        "parameters": model.transformer("the benchmark").config.n_parameter,
        "numbers": numbers,
        "cores": os.cpu_count(),
        "load": load_average,
        **figures,
        "weights_mb": round(weights, 1),
        "memory": round((figures["memory_mb"] - empty_mb) / weights, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--numbers", default="float32")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--short", action="store_true")
    args = parser.parse_args()
    rounds = 1 if args.short else args.rounds
    tiny = run("tiny", args.numbers, rounds, 0.0)
    if args.short:
        print(json.dumps(tiny))
        return
    for name in args.models or DEFAULT:
        print(json.dumps(run(name, args.numbers, rounds, tiny["memory_mb"])), flush=True)


if __name__ == "__main__":
    main()
