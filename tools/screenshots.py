"""Take screenshots of the page for the README and the docs: the flow and a head, light and dark.

Usage: python -m tools.screenshots OUT [MODEL]. MODEL is the built-in model by default. Writes flow-light.png,
flow-dark.png, head-light.png and head-dark.png into the folder OUT.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from playwright.sync_api import Browser

from bench.explorer import exploring, settle
from tools.browser import browsing


def take(browser: Browser, address: str, out: Path, theme: str) -> list[Path]:
    """Take a screenshot of the flow, and of the head that the page opens with, at its softmax step."""
    page = browser.new_page(
        viewport={"width": 1366, "height": 768},
        device_scale_factor=2,
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
    )
    page.add_init_script("localStorage.setItem('walked', 'yes')")
    page.goto(address)
    settle(page)
    page.locator(".steps").get_by_role("button", name="softmax").click()
    settle(page)
    paths = [out / f"flow-{theme}.png", out / f"head-{theme}.png"]
    page.screenshot(path=paths[0])
    page.locator("[data-place=detail]").screenshot(path=paths[1])
    page.close()
    return paths


def main(out: Path, model: str) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with exploring(model) as address, browsing() as browser:
        for theme in ("light", "dark"):
            for path in take(browser, address, out, theme):
                print(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("model", nargs="?", default="stories")
    args = parser.parse_args()
    main(args.out, args.model)
