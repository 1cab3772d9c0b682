"""Take screenshots of the page for the README and the docs: the flow and a head, light and dark.

Usage: python -m tools.screenshots OUT [MODEL]. Without MODEL, trains a model on the built-in stories for one
minute. Writes flow-light.png, flow-dark.png, head-light.png and head-dark.png into the folder OUT.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser

from bench.explorer import exploring, settle
from tools.browser import browsing

TEXT = "The duck did not cross the road because it was too tired."
MINUTES = "1"


def train(folder: Path) -> Path:
    """Train the demo's model."""
    command = [sys.executable, "-m", "clearhead", "demo", "--minutes", MINUTES, "--no-browser"]
    subprocess.run([*command, "--out", str(folder / "demo")], check=True, cwd=folder)
    return folder / "demo"


def take(browser: Browser, address: str, out: Path, theme: str) -> list[Path]:
    """Take a screenshot of the flow, and of one head at its softmax step."""
    page = browser.new_page(
        viewport={"width": 1440, "height": 1000},
        device_scale_factor=2,
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
    )
    page.add_init_script("localStorage.setItem('walked', 'yes')")
    page.goto(address)
    settle(page)
    page.goto(f"{address.partition('?')[0]}?{urlencode({'text': TEXT, 'block': 1})}")
    settle(page)
    page.locator(".steps").get_by_role("button", name="softmax").click()
    settle(page)
    paths = [out / f"flow-{theme}.png", out / f"head-{theme}.png"]
    page.screenshot(path=paths[0])
    page.locator("[data-place=detail]").screenshot(path=paths[1])
    page.close()
    return paths


def main(out: Path, model: str | None) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        name = model or str(train(Path(folder)))
        with exploring(name) as address, browsing() as browser:
            for theme in ("light", "dark"):
                for path in take(browser, address, out, theme):
                    print(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("model", nargs="?")
    args = parser.parse_args()
    main(args.out, args.model)
