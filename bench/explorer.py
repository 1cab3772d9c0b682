"""Latency of the explorer in headless Chromium, compared with a plain forward pass of the model.

Usage: python -m bench.explorer [MODEL] [--short] [--interactions]. The default model is SmolLM2, which is pulled if
needed; --short uses a small random one. Runs on the CPU, with the server in a separate process. Prints one JSON
line; each figure is the median of several measurements:

    forward_ms     plain forward pass of 30 tokens
    typed_ms       letter typed into a prompt of 30 tokens, until the whole page is redrawn;
                   at most typed_bound_ms, 1.5 forward passes + 100 ms
    head_ms        switching to another head, at most 100 ms
    matrix_ms      1,024 tokens: drawing the matrix of a head not shown before, at most 300 ms
    pan_fps        1,024 tokens: frames per second while panning, at least 30
    edit_ms        16 tokens: ablating a head, until the prediction and the selected head are redrawn;
                   at most edit_bound_ms, 1.5 forward passes + 100 ms
    edit_all_ms    the same, until everything on screen is redrawn
    effect_map_s   16 tokens: the effect map of all heads, at most 10 s
    load           load average of the machine before the run

With --interactions, measures a reader's actions on the page instead, by default with the built-in model, and
with reduced motion: each figure is the median time from a key press or click to the last repaint, at most 100 ms.

On a busy machine, a forward pass slows down far more than the page does, which loosens the bounds, so the figures
are meaningful only at a load well under 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from string import ascii_lowercase
from typing import Any
from urllib.parse import urlencode

import torch
from playwright.sync_api import Page

from clearhead.formats.pulled import pull
from clearhead.language_model import LanguageModel, load
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer
from tools.browser import browsing

SENTENCE = (
    "The chicken didn't cross the road because it was too tired, and the duck said that it would wait. "
)
SMALL = {"n_context": 2048, "n_block": 2, "n_head": 2, "d_model": 32}
TIMEOUT = 120  # seconds

# Measures the time from an input event to the last repaint it causes: the last one before `quiet` ms without changes. A
# frame's callback runs before the frame is painted, so this waits for a later task.
WATCH = """async (quiet) => {
  const main = document.querySelector("main");
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const now = (done) => () => done(performance.now());
  const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(now(done))));
  let [start, last, unpainted] = [0, 0, 0];
  for (const kind of ["input", "keydown", "click", "popstate"])
    addEventListener(kind, (event) => (start = event.timeStamp), {capture: true, once: true});
  const seen = new MutationObserver(async () => {
    unpainted++;
    last = await drawn();
    unpainted--;
  });
  seen.observe(document.body, {subtree: true, childList: true, characterData: true, attributes: true});
  window.times = (async () => {
    while (start === 0 || last < start) await pause(1);
    const isBusy = () => main.getAttribute("aria-busy") === "true" || unpainted > 0;
    while (isBusy() || performance.now() - last < quiet) await pause(5);
    seen.disconnect();
    return last - start;
  })();
}"""

# Records the times of animation frames.
FRAMES = """() => { window.frames = []; const note = (at) => { window.frames.push(at);
  window.noting = requestAnimationFrame(note); }; requestAnimationFrame(note); }"""

# Ablates a head; measures until the prediction and the selected head are redrawn, and until everything is.
ABLATE = """async (count) => {
  const main = document.querySelector("main");
  const start = performance.now();
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const until = async (holds) => {
    while (!holds()) await pause(2);
    await frame();
    return performance.now() - start;
  };
  document.querySelector(".change [role=group] button").click();
  const listed = () => document.querySelectorAll(".edits li").length === count;
  await until(listed);
  const shown = await until(() => listed() && !main.classList.contains("stale"));
  return [shown, await until(() => main.getAttribute("aria-busy") === "false")];
}"""


@contextmanager
def exploring(model: str) -> Iterator[str]:
    """Run `clearhead explore` and yield the address it prints."""
    command = [sys.executable, "-m", "clearhead", "explore", model, "--no-browser", "--device", "cpu"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            output = []
            for line in process.stderr:
                output.append(line)
                if line.startswith("open http"):
                    break
            assert output, "clearhead explore printed nothing"
            assert output[-1].startswith("open http"), "".join(output)
            yield output[-1].split()[1]
        finally:
            process.terminate()
            process.wait(TIMEOUT)


def text_of(model: LanguageModel, count: int) -> str:
    """Return a text of `count` tokens."""
    words = (SENTENCE * count).split(" ")
    n_start = len(model.tokenizer.start_ids)
    low, high = 1, len(words)
    while low < high:
        middle = (low + high) // 2
        is_short = n_start + len(model.tokenizer.encode(" ".join(words[:middle]))) < count
        low, high = (middle + 1, high) if is_short else (low, middle)
    return " ".join(words[:low])


def forward_seconds(model: LanguageModel, text: str, times: int) -> float:
    with torch.inference_mode():
        ids = torch.tensor([model.tokenizer.start_ids + model.tokenizer.encode(text)])
        seconds = []
        for _ in range(times + 1):
            start = time.perf_counter()
            model.network(ids)
            seconds.append(time.perf_counter() - start)
    return median(seconds[1:])


def timed(page: Page, act: Callable[[], Any], quiet: int = 400) -> float:
    """Return the milliseconds from the input event of `act` to the last repaint it causes."""
    page.evaluate(WATCH, quiet)
    act()
    return float(page.evaluate("window.times"))


def settle(page: Page) -> None:
    page.wait_for_selector("main[aria-busy=false] :is(canvas, .change)", timeout=1000 * TIMEOUT)
    page.wait_for_timeout(300)
    page.wait_for_selector("main[aria-busy=false] :is(canvas, .change)", timeout=1000 * TIMEOUT)


def panning_fps(page: Page, seconds: float) -> float:
    """Zoom into the matrix, pan it with the pointer, and return frames per second."""
    canvas = page.locator(".map canvas")
    canvas.scroll_into_view_if_needed()
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
    settle(page)
    box = canvas.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate(FRAMES)
    end, k = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        k += 1
        page.mouse.move(x - 4 * (k % 40), y - 3 * (k % 40))
    times = page.evaluate("() => { cancelAnimationFrame(window.noting); return window.frames; }")
    page.mouse.up()
    return 1000 * (len(times) - 1) / (times[-1] - times[0])


def measure(page: Page, address: str, model: LanguageModel, rounds: int) -> dict[str, float]:
    page.set_default_timeout(1000 * TIMEOUT)
    page.add_init_script("localStorage.setItem('walked', 'yes')")
    page.goto(address)
    settle(page)
    text = text_of(model, 30)

    def go_to(**place: Any) -> None:
        page.goto(f"{address.partition('?')[0]}?{urlencode(place)}")
        settle(page)
        page.locator(".steps").get_by_role("button", name="softmax").click()
        settle(page)

    go_to(text=text, block=1)
    prompt = page.get_by_label("Input text")
    prompt.press("End")
    typed, forwards = [], []
    # A new letter each time, because the server caches recent traces.
    for letter in ascii_lowercase[: rounds + 1]:
        forwards.append(forward_seconds(model, text, 3))
        typed.append(timed(page, lambda key=letter: prompt.press(key)))  # type: ignore[misc]
        prompt.press("Backspace")
        settle(page)
    page.locator(".detail h2").click()  # move the focus out of the prompt
    heads = []
    for _ in range(rounds):
        heads.append(timed(page, lambda: page.keyboard.press("]")))
        settle(page)
    go_to(text=text_of(model, 1024))
    page.locator(".detail h2").click()
    matrices = []
    for _ in range(rounds):
        matrices.append(timed(page, lambda: page.keyboard.press("]")))
        settle(page)
    pan = panning_fps(page, 2.0)
    short = text_of(model, 16)
    page.goto(f"{address.partition('?')[0]}?{urlencode({'text': short, 'view': 'change', 'block': 1})}")
    start = time.monotonic()
    page.wait_for_selector("[data-testid=effects][aria-busy=true]")
    page.wait_for_selector("[data-testid=effects][aria-busy=false] [role=grid]")
    effect_map = time.monotonic() - start
    edits, edits_all, edit_forwards = [], [], []
    for count in range(1, rounds + 1):
        edit_forwards.append(forward_seconds(model, short, 3))
        shown, everything = page.evaluate(ABLATE, count)
        edits.append(shown)
        edits_all.append(everything)
        page.wait_for_selector("[data-testid=effects][aria-busy=false] [role=grid]")
        page.keyboard.press("]")
        settle(page)
    forward = 1000 * median(forwards)
    return {
        "forward_ms": round(forward, 1),
        "typed_ms": round(median(typed[1:]), 1),
        "typed_bound_ms": round(1.5 * forward + 100, 1),
        "head_ms": round(median(heads), 1),
        "matrix_ms": round(median(matrices), 1),
        "pan_fps": round(pan, 1),
        "edit_ms": round(median(edits), 1),
        "edit_all_ms": round(median(edits_all), 1),
        "edit_bound_ms": round(1500 * median(edit_forwards) + 100, 1),
        "effect_map_s": round(effect_map, 2),
    }


def measure_interactions(page: Page, address: str, rounds: int) -> dict[str, float]:
    """Measure a reader's actions on the page, starting at the head that the page opens with."""
    page.set_default_timeout(1000 * TIMEOUT)
    page.emulate_media(reduced_motion="reduce")
    page.add_init_script("localStorage.setItem('walked', 'yes')")
    page.goto(address)
    settle(page)

    def press(key: str) -> Callable[[], None]:
        return lambda: page.keyboard.press(key)

    def click(name: str) -> Callable[[], None]:
        return lambda: page.get_by_role("navigation").get_by_role("button", name=name, exact=True).click()

    def drill() -> None:
        page.locator("[data-testid=card] .number[data-cell]").first.click()

    actions: dict[str, Callable[[], Any]] = {
        "step": press("ArrowRight"),
        "token": press("ArrowUp"),
        "head": press("]"),
        "block": press("PageUp"),
        "drill": drill,
        "back": page.go_back,
        "All heads": click("All heads"),
        "Attribution": click("Attribution"),
        "Logit lens": click("Logit lens"),
        "Word vectors": click("Word vectors"),
        "Edit": click("Edit"),
        "Step by step": click("Step by step"),
        "typing": lambda: page.get_by_label("Input text").press("a"),
        "next word": lambda: page.get_by_label("Input text").press("Enter"),
    }
    found: dict[str, list[float]] = {name: [] for name in actions}
    page.locator(".detail h2").click()
    for _ in range(rounds + 1):
        for name, act in actions.items():
            found[name].append(timed(page, act))
            page.wait_for_selector("main[aria-busy=false]")
        page.goto(address)
        settle(page)
        page.locator(".detail h2").click()
    return {f"{name}_ms": round(median(times[1:]), 1) for name, times in found.items()}


def save_small(folder: Path) -> None:
    torch.manual_seed(0)
    tokenizer = Tokenizer.train("bpe", [SENTENCE * 20], n_vocab=300)
    network = Transformer(preset("modern", n_vocab=tokenizer.n_vocab, **SMALL))
    LanguageModel(network, tokenizer).save(folder)


def main(name: str | None, short: bool, interactions: bool = False) -> dict[str, Any]:
    machine_load = round(os.getloadavg()[0], 1)
    with tempfile.TemporaryDirectory() as folder:
        if short:
            path = str(Path(folder) / "small")
            save_small(Path(path))
        else:
            path = name or ("stories" if interactions else str(pull("smollm2")))
        model = load(path, "cpu")
        with exploring(path) as address, browsing() as browser:
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            rounds = 2 if short else 7
            if interactions:
                figures = measure_interactions(page, address, rounds)
            else:
                figures = measure(page, address, model, rounds)
    return {
        "bench": "explorer",
        "model": Path(path).name,
        "cores": os.cpu_count(),
        "load": machine_load,
        **figures,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--interactions", action="store_true")
    args = parser.parse_args()
    print(json.dumps(main(args.model, args.short, args.interactions)))
