"""The files of a page that any web host can serve, and the folder they are written to.

`publication.json` is written last and marks the folder as a published one.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from clearhead.errors import UserError
from clearhead.files import disk_errors, write_text, write_whole
from clearhead.page.assets import SITE, read_bundle

INDEX_FILE = "publication.json"
GENERATED = r"(text-\d+|model|weights-.*)\.bin|labs\.json|worker\.js|offline\.js|tokenizer-\d+\.json"


def page_files() -> dict[str, bytes]:
    """Return the page itself, by file name."""
    bundles = {"page.js": "saved.js", "page.css": "saved.css", "licenses.md": "licenses.md"}
    files = {name: read_bundle(bundle).encode() for name, bundle in bundles.items()}
    return {**files, "icon.svg": (SITE / "icon.svg").read_bytes(), "index.html": INDEX_PAGE.encode()}


def check_folder(folder: Path) -> None:
    """Raise UserError if the folder holds anything but a published page and hidden files, such as .git."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise UserError(f"{folder} is a file: expected a new or empty folder")
    if not folder.is_dir():
        parent = next(parent for parent in folder.absolute().parents if os.path.lexists(parent))
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise UserError(f"{folder} cannot be created: {parent} is not a writable folder")
        return
    if _is_published(folder / INDEX_FILE):
        return
    if others := sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")):
        raise UserError(f"{folder} contains other files ({others[0]}): choose a new or empty folder")


def _is_published(index: Path) -> bool:
    """Return whether the file is our index; another program's file may have the same name."""
    try:
        content = json.loads(index.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    recorded, live = {"details", "views", "texts", "heads"}, {"live", "models"}
    return isinstance(content, dict) and (recorded <= set(content) or live <= set(content))


def write_site(folder: Path, files: Iterable[tuple[str, bytes]], index: dict[str, Any]) -> list[Path]:
    """Write the files one after another, then the index, and return their paths.

    Files of an earlier publication that were not written again are deleted.
    """
    written: list[Path] = []
    if not (folder / ".nojekyll").exists():  # without it, GitHub Pages runs Jekyll, which drops some files
        files = itertools.chain(files, [(".nojekyll", b"")])
    with disk_errors(folder, "the page was not published"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files:
            write_whole(folder / name, partial(_fill, content))
            written.append(folder / name)
        write_text(folder / INDEX_FILE, json.dumps(index, ensure_ascii=False, allow_nan=False))
        for path in folder.iterdir():
            if re.fullmatch(GENERATED, path.name) and path not in written:
                path.unlink()
    return [*written, folder / INDEX_FILE]


def _fill(content: bytes, path: Path) -> None:
    path.write_bytes(content)


# The policy allows requests to the page's own host only.
INDEX_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'; style-src 'self'; \
connect-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>clearhead</title>
<link rel="icon" href="icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="page.css">
</head>
<body>
<div id="page"><p>Every step of what a language model computes. Loading … If this message stays, JavaScript is \
disabled or the page was opened from disk: run <code>python -m http.server</code> in its folder and open it \
there.</p></div>
<script type="module" src="page.js"></script>
</body>
</html>
"""
