"""The scripts that carry the page's components elsewhere: built of web/ as the page is."""

from __future__ import annotations

from pathlib import Path

from clearhead import views
from clearhead.errors import UserError

FOLDER = Path(views.__file__).parent / "carried"


def read_built(name: str, folder: Path = FOLDER) -> str:
    try:
        return (folder / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError("the page was not built: `pip install .` builds it, with npm") from None


def is_built() -> bool:
    return all((FOLDER / name).is_file() for name in ("widget.js", "saved.js", "saved.css", "licences.md"))
