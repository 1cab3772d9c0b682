"""A real Chromium without a window: the one that is installed, none is fetched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

# Nothing of its own goes over the network.
OPTIONS = ["--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]


def find_chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


@contextmanager
def browsing() -> Iterator[Browser]:
    """The browser, until one has seen enough."""
    found = find_chromium()
    assert found is not None, "there is no Chromium: install Debian's, `apt install chromium`"
    as_root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=[*OPTIONS, *as_root, "--no-first-run"]
        )
        try:
            yield browser
        finally:
            browser.close()
