"""The built web page: the site that the server serves, and the bundles for notebooks and saved pages."""

from __future__ import annotations

from pathlib import Path

from clearhead.errors import UserError

SITE = Path(__file__).parent / "site"  # served at /
BUNDLES = Path(__file__).parent / "bundles"


def read_bundle(name: str, folder: Path = BUNDLES) -> str:
    try:
        return (folder / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError("the page is not built: run `pip install .` with npm installed") from None


def has_site(folder: Path = SITE) -> bool:
    return (folder / "index.html").is_file()


def has_bundles(folder: Path = BUNDLES) -> bool:
    return all(
        (folder / name).is_file()
        for name in ("widget.js", "saved.js", "saved.css", "serviceWorker.js", "licenses.md")
    )
