"""Scripts and styles inside an HTML page."""

from __future__ import annotations

import base64
import hashlib
import re


def inline_script(script: str) -> str:
    """Return a script that can be written into an HTML page."""
    # HTML parsers act on these sequences even inside strings; escaped, they mean the same.
    return re.sub(r"<(?=!--|/script)", r"<\\", script.strip())


def hash_source(inline: str) -> str:
    """Return the source by which a content security policy allows an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}"
