"""The files of a page that any web host can serve, and the folder they are written to.

The index is written last and marks the folder as a published one.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from clearhead.errors import UserError
from clearhead.export.inline import PAGE_HEAD
from clearhead.files import disk_errors, read_text, write_text, write_whole
from clearhead.page.assets import SITE, read_bundle

INDEX_FILE, LIVE_INDEX = "publication.json", "live.json"  # of recorded texts, and of models
LARGEST_INDEX = 2**26  # bytes; it has the scores of all heads
DOMAIN_FILE = "CNAME"  # of a page on GitHub Pages
GENERATED = re.compile(
    r"(text-\d+|model)\.bin|(publication|live|labs)\.json|serviceWorker\.js"
    r"|model-\d+/(weights-[0-9a-f]{16}\.bin|(config|tokenizer|tokenizer_config|weights)\.json)"
)


def page_files(live: bool = False) -> dict[str, bytes]:
    """Return the page itself, by file name."""
    bundles = {"page.js": "saved.js", "page.css": "saved.css", "licenses.md": "licenses.md"}
    bundles |= {"serviceWorker.js": "serviceWorker.js"} if live else {}
    files = {name: read_bundle(bundle).encode() for name, bundle in bundles.items()}
    # The policy allows requests to the page's own host only. The engine is WebAssembly in a worker.
    policy = POLICY.format("'self' 'wasm-unsafe-eval'; worker-src 'self' blob:" if live else "'self'")
    page = INDEX_PAGE.format(policy=policy, title="clearhead", live=" data-live" if live else "")
    return {**files, "icon.svg": (SITE / "icon.svg").read_bytes(), "index.html": page.encode()}


def check_folder(folder: Path) -> None:
    """Raise UserError if the folder cannot be written, or contains files other than those of a published page.

    Hidden files, such as .git, and the domain file of GitHub Pages do not count.
    """
    if os.path.lexists(folder) and not folder.is_dir():
        raise UserError(f"{folder} is a file: expected a new or empty folder")
    if not folder.is_dir():
        parent = next(parent for parent in folder.absolute().parents if os.path.lexists(parent))
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise UserError(f"{folder} cannot be created: {parent} is not a writable folder")
        return
    if not os.access(folder, os.W_OK):
        raise UserError(f"{folder} is not writable: choose another folder, or change its permissions")
    if any(_is_published(folder / name) for name in (INDEX_FILE, LIVE_INDEX)):
        return
    names = sorted(path.name for path in folder.iterdir())
    if others := [name for name in names if not name.startswith(".") and name != DOMAIN_FILE]:
        raise UserError(f"{folder} contains other files ({others[0]}): choose a new or empty folder")


def check_file(path: Path) -> None:
    """Raise UserError if a page cannot be written to this file."""
    if path.is_dir():
        raise UserError(f"{path} is a folder: expected the path of a file")
    if not path.parent.is_dir():
        raise UserError(f"{path} cannot be saved: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"{path} cannot be saved: {path.parent} is not writable")


def check_texts(texts: Sequence[str]) -> None:
    """Raise UserError unless these are texts for a page to offer."""
    if not texts:
        raise UserError("no text to publish: give at least one, or omit the argument for the default texts")
    if twice := next((text for i, text in enumerate(texts) if text in texts[:i]), None):
        raise UserError(f"the text {twice[:40]!r} is given twice: give each text once")


def _is_published(index: Path) -> bool:
    """Return whether the file is our index; another program's file may have the same name."""
    try:
        content = json.loads(read_text(index, LARGEST_INDEX))
    except (ValueError, RecursionError):
        return False
    recorded, live = {"details", "views", "texts", "heads"}, {"live", "models"}
    return isinstance(content, dict) and (recorded <= set(content) or live <= set(content))


def write_site(
    folder: Path, files: Iterable[tuple[str, bytes]], index_file: str, index: dict[str, Any]
) -> list[Path]:
    """Write the files one after another, then the index, and return their paths.

    Files of an earlier publication that were not written again are deleted.
    """
    written: list[Path] = []
    if not (folder / ".nojekyll").exists():  # without it, GitHub Pages runs Jekyll, which drops some files
        files = itertools.chain(files, [(".nojekyll", b"")])
    with disk_errors(folder, "the page was not published"):
        for name, content in files:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, partial(_fill, content))
            written.append(path)
        write_text(folder / index_file, json.dumps(index, ensure_ascii=False, allow_nan=False))
        written.append(folder / index_file)
        _delete_others(folder, set(written))
    return list(dict.fromkeys(written))


def _delete_others(folder: Path, written: set[Path]) -> None:
    for path in [*folder.iterdir(), *folder.glob("model-*/*")]:
        if path not in written and GENERATED.fullmatch(path.relative_to(folder).as_posix()):
            path.unlink()
    for inner in folder.glob("model-*"):
        if inner.is_dir() and not any(inner.iterdir()):
            inner.rmdir()


def _fill(content: bytes, path: Path) -> None:
    path.write_bytes(content)


POLICY = (
    "default-src 'none'; script-src {}; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
INDEX_PAGE = (
    PAGE_HEAD
    + """<link rel="icon" href="icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="page.css">
</head>
<body>
<div id="page"{live}><p>Every step of what a language model computes. Loading … If this message stays, JavaScript is \
disabled, a file of the page is damaged, or the page was opened from disk: then run <code>python -m http.server --bind \
127.0.0.1</code> in its folder and open it there.</p></div>
<script type="module" src="page.js"></script>
</body>
</html>
"""
)
