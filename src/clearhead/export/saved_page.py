"""One file that stands alone: the page's components, and what was recorded for the views that were chosen."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clearhead.errors import UserError
from clearhead.export.recording import Array, record
from clearhead.export.saved_views import choose_views
from clearhead.files import disk_errors, write_text
from clearhead.inspect.comparison import Comparison
from clearhead.inspect.state_trace import AnyTrace, StateTrace, need_heads
from clearhead.inspect.trace import Trace
from clearhead.page.assets import read_bundle


def save_html(
    what: AnyTrace | Comparison[Trace], path: str | Path, views: Sequence[str] | None = None
) -> None:
    """Write one file that opens in any browser, without a network or a model.

    Of a trace, `views` are "flow" (the whole way, every head's picture, the next word), heads such as
    "block.3.head.5", blocks such as "block.3" (with all their heads), "ends" (the embedding; the last norm
    and the next word), "lens", "why" (what wrote the likeliest next words, and why the heads look where they
    do) and "words" (each token's neighbours); the flow and a first head, unless said. Two traces that were
    compared stand side by side, and the same views can be added, of the first. The view that is named first
    is open; two that are compared open so. A head's numbers lead back to the trained weights.
    """
    if isinstance(what, StateTrace):
        what = need_heads(what, "a page of a trace")
    if not isinstance(what, Trace | Comparison):
        raise UserError(
            f"save_html of a {type(what).__name__}: expected a trace, as model.inspect(…) gives it, "
            "or two compared ones"
        )
    trace = what.one if isinstance(what, Comparison) else what
    trace.check_single()
    if trace.tokenizer is None:
        raise UserError("this trace has no tokenizer: inspect a text with a language model")
    path, chosen = Path(path), choose_views(views, what)
    if path.is_dir():
        raise UserError(f"{path} is a folder: say how the file in it is to be called")
    page = fill_page(trace, base64.b64encode(pack(*record(what, chosen))).decode())
    with disk_errors(path.parent, f"saving {path}"):
        write_text(path, page)


def pack(contents: dict[str, Any], arrays: Sequence[Array]) -> bytes:
    """As the page unpacks it. Bytes of the same place in a number are alike, and go together."""
    told = json.dumps(contents, ensure_ascii=False).encode()
    numbers = np.concatenate([np.empty(0, "<f4"), *(array.astype("<f4").ravel() for array in arrays)])
    planes = numbers.view(np.uint8).reshape(-1, 4).T.tobytes()
    return zlib.compress(len(told).to_bytes(4, "little") + told + planes, 9)


def fill_page(trace: Trace, recording: str) -> str:
    """Nothing of the text stands in it as it is: base64 has no letter that HTML knows."""
    # HTML would take these for its own; in the strings of a script they mean the same with a backslash.
    script = re.sub(r"<(?=!--|/script)", r"<\\", read_bundle("saved.js").strip())
    style = read_bundle("saved.css").strip()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    title = html.escape("".join(trace.tokens)[:60].strip())
    return PAGE.format(
        policy=policy,
        title=title,
        style=style,
        script=script,
        recording=recording,
        licences=read_bundle("licences.md"),
    )


def _hash(inline: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}"


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · clearhead</title>
<style>{style}</style>
</head>
<body>
<div id="page"></div>
<script type="text/plain" id="recording">{recording}</script>
<script type="module">{script}</script>
<script type="text/plain" id="licences">{licences}</script>
</body>
</html>
"""
