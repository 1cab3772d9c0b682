"""A page in one HTML file: its script, its styles and its data are inside it."""

from __future__ import annotations

import base64
import hashlib
import html
import re

from clearhead.page.assets import read_bundle


def fill_page(title: str, data: dict[str, bytes], live: bool = False, language: str | None = None) -> str:
    """Return the HTML. The data is base64, so no part of it can be read as markup.

    On a live page, the engine is WebAssembly in a worker. The page opens in `language`, or else in the reader's;
    its colors follow the reader's system.
    """
    script, style = _inline_script(read_bundle("saved.js")), read_bundle("saved.css").strip()
    engine = " 'wasm-unsafe-eval'; worker-src blob:" if live else ""
    return PAGE.format(
        policy=f"default-src 'none'; script-src '{hash_source(script)}'{engine}; style-src '{hash_source(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'",
        title=f"{html.escape(title)} · clearhead",
        style=style,
        place=(" data-live" if live else "") + (f' data-language="{language}"' if language else ""),
        data="\n".join(
            f'<script type="text/plain" data-file="{name}">{base64.b64encode(content).decode()}</script>'
            for name, content in data.items()
        ),
        script=script,
        licenses=read_bundle("licenses.md"),
    )


def _inline_script(script: str) -> str:
    """Return the script in a form that can be written into an HTML page."""
    # HTML parsers act on these sequences even inside strings; escaped, they mean the same.
    return re.sub(r"<(?=!--|/script)", r"<\\", script.strip())


def hash_source(inline: str) -> str:
    """Return the source by which a content security policy allows an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}"


# The start of every page without a server, up to its styles.
PAGE_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
"""
PAGE = (
    PAGE_HEAD
    + """<style>{style}</style>
</head>
<body>
<div id="page"{place}></div>
{data}
<script type="module">{script}</script>
<script type="text/plain" id="licenses">{licenses}</script>
</body>
</html>
"""
)
