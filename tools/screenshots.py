"""Take screenshots of the page for the README and the docs: the flow, a head and a report, light and dark.

Usage: python -m tools.screenshots OUT [MODEL [TEXT]]. MODEL is the built-in model by default; a model that was saved
without held-out text is measured on TEXT, a file. Writes flow-light.png, flow-dark.png, head-light.png, head-dark.png,
report-light.png and report-dark.png into the folder OUT.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from playwright.sync_api import Browser

from bench.explorer import exploring, settle
from tools.browser import browsing

REPORT_TIMEOUT = 600_000  # milliseconds


def take(browser: Browser, address: str, out: Path, theme: str, text: str) -> list[Path]:
    """Take screenshots of the flow, of the head that the page opens with (at its softmax step), and of a report."""
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
    paths = [out / f"flow-{theme}.png", out / f"head-{theme}.png", out / f"report-{theme}.png"]
    page.screenshot(path=paths[0])
    page.locator("[data-place=detail]").screenshot(path=paths[1])
    page.get_by_role("button", name="Report", exact=True).click()
    report = page.locator("section.report")
    report.get_by_label("Text").fill(text)
    report.get_by_role("button", name="Report", exact=True).click()
    report.get_by_test_id("key-figures").wait_for(timeout=REPORT_TIMEOUT)
    page.screenshot(path=paths[2])
    page.close()
    return paths


def main(out: Path, model: str, text: Path | None) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with exploring(model) as address, browsing() as browser:
        for theme in ("light", "dark"):
            for path in take(browser, address, out, theme, text.read_text(encoding="utf-8") if text else ""):
                print(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("model", nargs="?", default="stories")
    parser.add_argument("text", type=Path, nargs="?")
    args = parser.parse_args()
    main(args.out, args.model, args.text)
