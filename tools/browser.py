"""Headless Chromium for tests and screenshots: the installed one; nothing is downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserType, sync_playwright

# The popups of the address bar, which nobody sees, cost a second of computation for each page. This list replaces
# Playwright's, so it repeats those of its features that matter here.
DISABLED = [
    *(
        "WebUIOmniboxPopup",
        "WebUIOmniboxAimPopup",
        "AimEnabled",
        "LensOverlay",
        "MediaRouter",
        "OptimizationHints",
    ),
    *("HttpsUpgrades", "HttpsFirstBalancedModeAutoEnable", "PaintHolding", "ThirdPartyStoragePartitioning"),
    *("DestroyProfileOnBrowserClose", "AvoidUnnecessaryBeforeUnloadCheckSync", "NetworkTimeServiceQuerying"),
    *("AvoidCorsURLLoaderRestartOnRedirect", "PreconnectToSearch"),
]
# Keeps the browser from using the network on its own.
OPTIONS = [
    *("--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    f"--disable-features={','.join(DISABLED)}",
]


def find_chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def launch(chromium: BrowserType, *options: str) -> Browser:
    path = find_chromium()
    assert path is not None, "Chromium is not installed: on Debian, run `apt install chromium`"
    as_root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return chromium.launch(executable_path=path, args=[*OPTIONS, *as_root, "--no-first-run", *options])


@contextmanager
def browsing() -> Iterator[Browser]:
    """Launch the browser, and close it on exit."""
    with sync_playwright() as playwright:
        browser = launch(playwright.chromium)
        try:
            yield browser
        finally:
            browser.close()
