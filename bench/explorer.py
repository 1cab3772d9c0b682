"""How fast the explorer answers, in a real Chromium without a window, beside a plain forward of the model.

Usage: python -m bench.explorer [MODEL] [--short]; SmolLM2, pulled if need be, unless a model is named; short
mode takes a small random one. On the processor, with the server in a process of its own. Prints one JSON
line, each figure the median of several: `typed_ms`, from a letter typed into a prompt of 30 tokens until all
of the page is drawn anew, to be at most `typed_bound_ms`, 1.5 forwards + 100 ms; `head_ms`, paging to another
head, at most 100; with 1,024 tokens `map_ms`, until the matrix of a head not seen before is drawn, at most
300, and `pan_fps`, frames a second while it is moved about, at least 30. With 16 tokens: `change_ms`, from
silencing a head until the prediction and what is open are drawn with that in force, at most
`change_bound_ms`, 1.5 forwards + 100 ms, and `change_all_ms`, until the small pictures of all heads are too;
`effects_s`, until the map of how much every head matters is full, at most 10. `load` is the machine's before
the run: on a crowded one a forward slows down far more than the page does, and the bound with it, so that
figures count only where it is well under 1.
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
PATIENCE = 120  # seconds

# From what someone does to the last drawing that it brought about, known once nothing has come for a while. A
# frame's callback comes before the frame is painted, so a task after it is waited for.
WATCH = """async (quiet) => {
  const main = document.querySelector("main");
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const now = (done) => () => done(performance.now());
  const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(now(done))));
  let [start, last] = [0, 0];
  for (const kind of ["input", "keydown"])
    addEventListener(kind, (event) => (start = event.timeStamp), {capture: true, once: true});
  const seen = new MutationObserver(async () => (last = await drawn()));
  seen.observe(document.body, {subtree: true, childList: true, characterData: true, attributes: true});
  window.times = (async () => {
    while (start === 0 || last < start) await pause(1);
    while (main.getAttribute("aria-busy") === "true" || performance.now() - last < quiet) await pause(5);
    seen.disconnect();
    return last - start;
  })();
}"""

# Frames a second, and the longest between two of them, while the pointer moves the map.
FRAMES = """() => { window.frames = []; const note = (at) => { window.frames.push(at);
  window.noting = requestAnimationFrame(note); }; requestAnimationFrame(note); }"""

# A head is silenced: until the prediction and what is open are drawn with that in force, and until all is.
SILENCE = """async (count) => {
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
    """`clearhead explore` as a user runs it: the address that it prints."""
    command = [sys.executable, "-m", "clearhead", "explore", model, "--no-browser", "--device", "cpu"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            said = []
            for line in process.stderr:
                said.append(line)
                if line.startswith("open http"):
                    break
            assert said, "it said nothing"
            assert said[-1].startswith("open http"), "".join(said)
            yield said[-1].split()[1]
        finally:
            process.terminate()
            process.wait(PATIENCE)


def text_of(model: LanguageModel, count: int) -> str:
    """A text that the model reads as so many tokens."""
    words = (SENTENCE * count).split(" ")
    given = len(model.tokenizer.start_ids)
    low, high = 1, len(words)
    while low < high:
        middle = (low + high) // 2
        fits = given + len(model.tokenizer.encode(" ".join(words[:middle]))) < count
        low, high = (middle + 1, high) if fits else (low, middle)
    return " ".join(words[:low])


def forward_seconds(model: LanguageModel, text: str, times: int) -> float:
    with torch.inference_mode():
        ids = torch.tensor([model.tokenizer.start_ids + model.tokenizer.encode(text)])
        taken = []
        for _ in range(times + 1):
            start = time.perf_counter()
            model.network(ids)
            taken.append(time.perf_counter() - start)
    return median(taken[1:])


def timed(page: Page, act: Callable[[], Any], quiet: int = 400) -> float:
    """Milliseconds from the act's event until the last drawing that it brought about."""
    page.evaluate(WATCH, quiet)
    act()
    return float(page.evaluate("window.times"))


def settle(page: Page) -> None:
    page.wait_for_selector("main[aria-busy=false] canvas", timeout=1000 * PATIENCE)
    page.wait_for_timeout(300)
    page.wait_for_selector("main[aria-busy=false] canvas", timeout=1000 * PATIENCE)


def frames_while_moving(page: Page, seconds: float) -> float:
    """The map larger, and moved about by the pointer."""
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


def measure(page: Page, address: str, model: LanguageModel, turns: int) -> dict[str, float]:
    page.set_default_timeout(1000 * PATIENCE)
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
    for letter in ascii_lowercase[: turns + 1]:  # another each time: the server knows the last few texts
        forwards.append(forward_seconds(model, text, 3))
        typed.append(timed(page, lambda key=letter: prompt.press(key)))  # type: ignore[misc]
        prompt.press("Backspace")
        settle(page)
    page.locator(".detail h2").click()  # out of the prompt
    heads = []
    for _ in range(turns):
        heads.append(timed(page, lambda: page.keyboard.press("]")))
        settle(page)
    go_to(text=text_of(model, 1024))
    page.locator(".detail h2").click()
    maps = []
    for _ in range(turns):
        maps.append(timed(page, lambda: page.keyboard.press("]")))
        settle(page)
    pan = frames_while_moving(page, 2.0)
    short = text_of(model, 16)
    page.goto(f"{address.partition('?')[0]}?{urlencode({'text': short, 'view': 'change', 'block': 1})}")
    start = time.monotonic()
    page.wait_for_selector("[data-testid=effects][aria-busy=true]")
    page.wait_for_selector("[data-testid=effects][aria-busy=false] [role=grid]")
    effects = time.monotonic() - start
    changes, alls, plain = [], [], []
    for count in range(1, turns + 1):
        plain.append(forward_seconds(model, short, 3))
        shown, everything = page.evaluate(SILENCE, count)
        changes.append(shown)
        alls.append(everything)
        page.wait_for_selector("[data-testid=effects][aria-busy=false] [role=grid]")
        page.keyboard.press("]")
        settle(page)
    forward = 1000 * median(forwards)
    return {
        "forward_ms": round(forward, 1),
        "typed_ms": round(median(typed[1:]), 1),
        "typed_bound_ms": round(1.5 * forward + 100, 1),
        "head_ms": round(median(heads), 1),
        "map_ms": round(median(maps), 1),
        "pan_fps": round(pan, 1),
        "change_ms": round(median(changes), 1),
        "change_all_ms": round(median(alls), 1),
        "change_bound_ms": round(1500 * median(plain) + 100, 1),
        "effects_s": round(effects, 2),
    }


def save_small(folder: Path) -> None:
    torch.manual_seed(0)
    tokenizer = Tokenizer.train("bpe", [SENTENCE * 20], n_vocab=300)
    network = Transformer(preset("modern", n_vocab=tokenizer.n_vocab, **SMALL))
    LanguageModel(network, tokenizer).save(folder)


def main(name: str | None, short: bool) -> dict[str, Any]:
    crowd = round(os.getloadavg()[0], 1)
    with tempfile.TemporaryDirectory() as folder:
        if short:
            save_small(Path(folder) / "small")
        given = str(Path(folder) / "small") if short else name or str(pull("smollm2"))
        model = load(given, "cpu")
        with exploring(given) as address, browsing() as browser:
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            figures = measure(page, address, model, 2 if short else 7)
    return {"bench": "explorer", "model": Path(given).name, "cores": os.cpu_count(), "load": crowd, **figures}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--short", action="store_true")
    given = parser.parse_args()
    print(json.dumps(main(given.model, given.short)))
