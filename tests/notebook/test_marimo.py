"""A widget in a real marimo notebook, in a real browser."""

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

from clearhead.page.assets import has_bundles
from tests.web.visitor import percent, shows

TEXT = "The duck was too tired"
NOTEBOOK = f"""# /// script
# [tool.marimo.display]
# theme = "THEME"
# ///
import marimo

app = marimo.App(width="full")


@app.cell
def _():
    import clearhead as ch

    model = ch.load("model")
    ch.show(model.inspect({TEXT!r}), block=1)
    return
"""


@contextmanager
def marimo(mode, folder):
    """Run marimo on a free port with a clean configuration, and yield its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "marimo", mode, "a.py", "--headless", "--no-token"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    places = {name: str(folder / "home") for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, *(["--skip-update-check"] if mode == "edit" else [])],
            cwd=folder,
            env={**os.environ, **places},
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
    try:
        end = time.monotonic() + 300
        while True:
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < end, (folder / "log").read_text()
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.mark.skipif(find_spec("marimo") is None, reason="marimo is not installed: pip install marimo")
@pytest.mark.parametrize(("mode", "theme"), [("run", "light"), ("edit", "dark")])
def test_widget_in_marimo(browser, models, tmp_path, mode, theme):
    if not has_bundles():
        pytest.skip("the page is not built: run `pip install .` with npm installed")
    model = models["modern"]
    model.save(tmp_path / "model")
    (tmp_path / "a.py").write_text(NOTEBOOK.replace("THEME", theme))
    trace, complaints, elsewhere = model.inspect(TEXT), [], []
    with marimo(mode, tmp_path) as address:
        page = browser.new_page(viewport={"width": 1400, "height": 1800}, locale="en-GB")
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: elsewhere.append(request.url))
        page.goto(address)
        if mode == "edit":
            page.locator(".cm-content").first.click()
            page.keyboard.press("Control+Enter")
        widget = page.locator(".embedded")

        # The widget shows the trace and the model's name, in the notebook's theme.
        widget.locator("main[aria-busy=false]").wait_for()
        assert widget.locator("header .muted").inner_text() == "model"
        page.locator(f"div[data-theme={theme}] .embedded").wait_for()

        # Click a step and a cell, and press keys.
        widget.get_by_role("button", name="softmax", exact=True).click()
        widget.locator("[data-site='block.1.head.0.weights'] [role=gridcell]").first.wait_for()
        weights = trace["block.1.head.0.weights"]
        for cell in widget.locator("[role=gridcell]").all()[:40]:
            row, column = int(cell.get_attribute("data-row")), int(cell.get_attribute("data-column"))
            assert shows(cell.inner_text(), weights[row, column].item())
        widget.locator("[role=gridcell][data-row='2'][data-column='1']").click()
        widget.locator("[data-testid=card] h3[data-cell='block.1.head.0.weights 2 1']").wait_for()
        page.keyboard.press("]")
        widget.get_by_text("Block 1, head 1: attention from").wait_for()

        # Type a different text: it is run through the model in the kernel.
        widget.get_by_label("Input text").fill(longer := f"{TEXT} a")
        chances = model.inspect(longer).logits[-1].softmax(-1).topk(9).values.tolist()
        widget.locator(".next .share", has_text=percent(chances[0])).first.wait_for()
        shares = widget.locator(".next .share").all_inner_texts()
        assert all(shows(text, chance, percent) for text, chance in zip(shares, chances, strict=True))
        page.close()
    assert not complaints
    assert not [url for url in elsewhere if not url.startswith((address, "data:", "blob:"))]
