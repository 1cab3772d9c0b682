"""Widgets in a real JupyterLab, in a real browser."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

from clearhead.page.assets import has_bundles
from tests.web.visitor import percent, shows

TEXT = "The duck was too tired"
CELLS = [
    "import clearhead as ch\nmodel = ch.load('model')\n"
    f"trace = model.inspect({TEXT!r})\nch.show(trace, block=1)",
    "ch.show(trace.edit({'block.1.head.1.weights': 0.25}), block=1, head=1, step='softmax', height=600)",
]


def write_notebook(path):
    cells = [
        {
            "cell_type": "code",
            "id": f"cell-{i}",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": source,
        }
        for i, source in enumerate(CELLS)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(made))


@contextmanager
def jupyterlab(folder):
    """Run JupyterLab on a free port with a clean configuration, and yield its URL."""
    places = {
        name: str(folder / name.lower())
        for name in (
            "JUPYTER_CONFIG_DIR",
            "JUPYTER_DATA_DIR",
            "JUPYTER_RUNTIME_DIR",
            "IPYTHONDIR",
            "JUPYTERLAB_SETTINGS_DIR",
        )
    }
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--ip=127.0.0.1",
        "--port=0",
        "--allow-root",
    ]
    command += ["--IdentityProvider.token=known", f"--ServerApp.root_dir={folder}"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **places},
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
    try:
        end = time.monotonic() + 300
        while not (told := list((folder / "jupyter_runtime_dir").glob("jpserver-*.json"))):
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < end, (folder / "log").read_text()
            time.sleep(0.1)
        time.sleep(0.2)  # the file may still be incomplete
        yield json.loads(told[0].read_text())["url"]
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.mark.skipif(
    find_spec("jupyterlab") is None, reason="JupyterLab is not installed: pip install '.[dev]'"
)
def test_widgets_in_jupyterlab(browser, models, tmp_path):
    if not has_bundles():
        pytest.skip("the page is not built: run `pip install .` with npm installed")
    model = models["modern"]
    model.save(tmp_path / "model")
    write_notebook(tmp_path / "a.ipynb")
    trace, complaints, elsewhere = model.inspect(TEXT), [], []
    with jupyterlab(tmp_path) as address:
        # Tall enough for both cells: JupyterLab removes off-screen cells from the page.
        page = browser.new_page(viewport={"width": 1400, "height": 2600}, locale="en-GB")
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: elsewhere.append(request.url))
        page.goto(f"{address}doc/tree/a.ipynb?token=known")
        page.get_by_text("| Idle").wait_for()
        for k in range(len(CELLS)):
            page.locator(".jp-CodeCell .cm-content").nth(k).click()
            page.keyboard.press("Control+Enter")
        widgets = page.locator(".embedded")
        first, second = widgets.nth(0), widgets.nth(1)

        # Each widget shows its own trace.
        second.get_by_text("1 edit made in Python is active.").wait_for()
        second.locator("[data-site='block.1.head.1.weights'] [role=gridcell]").first.wait_for()
        cells = second.locator("[role=gridcell]").all_inner_texts()
        assert len(cells) > 20
        assert set(cells) == {"0.25"}

        # Click a step and a cell; keys stay in the widget.
        first.get_by_role("button", name="softmax", exact=True).click()
        first.locator("[data-site='block.1.head.0.weights'] [role=gridcell]").first.wait_for()
        weights = trace["block.1.head.0.weights"]
        for cell in first.locator("[role=gridcell]").all()[:40]:
            row, column = int(cell.get_attribute("data-row")), int(cell.get_attribute("data-column"))
            assert shows(cell.inner_text(), weights[row, column].item())
        first.locator("[role=gridcell][data-row='2'][data-column='1']").click()
        told = first.locator("[data-testid=card] h3[data-cell='block.1.head.0.weights 2 1']")
        told.wait_for()
        # Formulas have their styles, in the widget's shadow root, and their fonts.
        math = first.locator(".formula .katex-mathml").first
        assert math.evaluate("(each) => getComputedStyle(each).position") == "absolute"
        assert page.evaluate(
            "['Main', 'Math', 'Size1', 'Size2'].every((name) => [...document.fonts].some((font) =>"
            " font.family === `KaTeX_${name}` && font.status === 'loaded'))"
        )
        page.keyboard.press("]")
        first.get_by_text("Block 1, head 1: attention from").wait_for()
        assert page.locator(".jp-CodeCell").count() == len(CELLS)
        assert second.locator(".detail h2").inner_text().startswith("Block 1, head 1")

        # Type a different text: it is run through the model in the kernel.
        first.get_by_label("Input text").fill(longer := f"{TEXT} a")
        chances = model.inspect(longer).logits[-1].softmax(-1).topk(9).values.tolist()
        page.wait_for_function(
            "([shown]) => document.querySelector('.jp-OutputArea-output div[data-theme]')"
            ".shadowRoot.querySelector('.next .share').textContent === shown",
            arg=[percent(chances[0])],
        )
        shares = first.locator(".next .share").all_inner_texts()
        assert all(shows(text, chance, percent) for text, chance in zip(shares, chances, strict=True))

        # The widget's styles do not leak into the notebook, and nothing is fetched from other hosts.
        assert page.evaluate("getComputedStyle(document.body).getPropertyValue('--attention')") == ""
        page.close()
    assert not complaints
    assert not [url for url in elsewhere if not url.startswith((address, "data:", "blob:"))]
