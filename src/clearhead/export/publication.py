"""A folder that any web host can serve: the page, a model's weights, and texts that went through it before.

The weights stand once, in `model.bin`; of each text there is a file of its own, which the page fetches when
the text is chosen. `publication.json` is written last, and tells a folder of ours from others.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from clearhead.api.labs import LabAnswer, LabDetails
from clearhead.errors import UserError
from clearhead.export.precompute import Exchange, ResponseRecorder
from clearhead.export.recording import Array, as_array, kept_weights, record
from clearhead.export.saved_page import pack
from clearhead.export.saved_views import ASKED, SavedViews
from clearhead.extras import is_installed
from clearhead.files import disk_errors, write_text, write_whole
from clearhead.inspect.indexing import check_index
from clearhead.inspect.state_trace import need_heads
from clearhead.inspect.trace import Trace
from clearhead.inspect.weights import weight, weight_names
from clearhead.labs.catalog import LABS, lab
from clearhead.language_model import LanguageModel
from clearhead.model.config import Config
from clearhead.page.assets import SITE, read_bundle
from clearhead.server.in_process import InProcessClient

LISTING, MODEL, LAB_FILE = "publication.json", "model.bin", "labs.json"
# Labs that look into no model and take seconds; what comes out is the same whatever is published.
LABS_RUN = ("attention", "matrix", "position", "scale", "neighbours")
COMPILED = ("neighbours",)  # by numba, which need not be there
MOST = 8_000_000  # trained numbers, 32 MB: what one might wait for on a web page

# As in the stories, which the demo's model has learned to read: after a space, what stands amid them.
TEXTS = (
    " The chicken didn't cross the road because it was too tired.",
    " The chicken didn't cross the road because it was too wide.",
    " The trumpet didn't fit in the bucket because it was too",
    "Ella lived near the village. She had a trumpet, and it was green. One afternoon, Ella lost her",
    "Ben lived near the orchard. Ben and Rosa played with the ball until",
    "Tom was happy, and Anna was",
)

Heads = Sequence[tuple[int, int]]


def publish(
    model: LanguageModel,
    folder: Path,
    texts: Sequence[str] = TEXTS,
    heads: Heads | None = None,
    labs: bool = True,
    tell: Callable[[str], object] = lambda _: None,
) -> list[Path]:
    """Write the folder; what was written. Of all heads, or of some, every step can be seen.

    A folder that was published before is written anew; what is in it that is not ours is left alone.
    """
    check_folder(folder)
    config = model.transformer("publishing").config
    traces = _read(model, texts)
    views = _choose(config, heads, len(traces) > 1)
    weights = _weights(traces[0], views, whole=heads is None)
    page = {"page.js": read_bundle("saved.js"), "page.css": read_bundle("saved.css")}
    page |= {"licences.md": read_bundle("licences.md"), "index.html": INDEX}
    tell(f"{'a text goes' if len(traces) == 1 else f'{len(traces)} texts go'} through {model.name} …")
    routes = InProcessClient({model.name: (model, tuple(traces))})
    files: dict[str, bytes] = {name: text.encode() for name, text in page.items()}
    files["icon.svg"] = (SITE / "icon.svg").read_bytes()
    files[MODEL] = pack({"matrices": _list(weights)}, list(weights.values()))
    for number, trace in enumerate(traces):
        contents, arrays = record(trace, views, weights=False)
        contents["beside"] = [_compare(routes, model.name, trace, other) for other in traces]
        files[_text_file(number)] = pack(contents, arrays)
    if labs:
        files[LAB_FILE] = _run_labs(tell)
    listing = {
        "details": _ask(routes, "/api/open", model.name),
        "views": [*views.tabs, "tiny", *(["labs"] if labs else [])],
        "texts": [
            {"text": text, "ids": trace.ids[0].tolist(), "file": _text_file(number)}
            for number, (text, trace) in enumerate(zip(texts, traces, strict=True))
        ],
        "heads": _ask(routes, "/api/heads", model.name),
        "labs": labs,
    }
    return _write(folder, files, listing)


def check_folder(folder: Path) -> None:
    """Refuse a folder in which something else is; hidden files, such as git's, are no matter."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise UserError(f"{folder} is a file: say which folder is to be made")
    if not folder.is_dir():
        above = next(parent for parent in folder.absolute().parents if os.path.lexists(parent))
        if not above.is_dir() or not os.access(above, os.W_OK):
            raise UserError(f"{folder} cannot be made: {above} is a file, or may not be written in")
        return
    if _is_ours(folder / LISTING):
        return
    if others := sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")):
        raise UserError(f"{folder} has other things in it ({others[0]}): name a new folder, or an empty one")


def _is_ours(listing: Path) -> bool:
    """Whether a folder was published before; another's file may have the same name."""
    try:
        found = json.loads(listing.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and {"details", "views", "texts", "heads"} <= set(found)


def _read(model: LanguageModel, texts: Sequence[str]) -> list[Trace]:
    if not texts:
        raise UserError("there is no text to publish: name one, or leave them out for some of ours")
    if twice := next((text for i, text in enumerate(texts) if text in texts[:i]), None):
        raise UserError(f"the text {twice[:40]!r} is there twice: name each once")
    return [need_heads(model.inspect(text), "a page") for text in texts]


def _choose(config: Config, heads: Heads | None, several: bool) -> SavedViews:
    asked = set(ASKED) if several else set(ASKED) - {"compare"}
    if heads is None:
        every = [(i, j) for i in range(config.n_block) for j in range(config.n_head)]
        return SavedViews(True, True, list(range(config.n_block)), every, asked, "steps")
    for block, head in heads:
        check_index(block, config.n_block, "block")
        check_index(head, config.n_head, "head")
    return SavedViews(True, heads=list(dict.fromkeys(heads)), asked=asked, opened="steps")


def _weights(trace: Trace, views: SavedViews, whole: bool) -> dict[str, Array]:
    """Those that the views need, or all of the model; of a tied one, the embedding stands once."""
    names = kept_weights(trace, views)
    if whole:
        names = [name for name in weight_names(trace.config) if not name.endswith((".QK", ".OV"))]
    if trace.config.tied:
        names = [name for name in names if name != "unembedding.W"]
    network = trace.network
    count = network.config.n_parameter if whole else sum(weight(network, name).numel() for name in names)
    if count > MOST:
        raise UserError(
            f"a page with all of {trace.model_name} would have {count:,} weights, more than {MOST:,}; "
            "name heads to show, such as --head 3.5"
        )
    return {name: as_array(weight(network, name)) for name in names}


def _list(weights: dict[str, Array]) -> list[dict[str, Any]]:
    return [{"name": name, "shape": array.shape, "first": 0} for name, array in weights.items()]


def _text_file(number: int) -> str:
    return f"text-{number}.bin"


def _compare(routes: InProcessClient, model: str, one: Trace, other: Trace) -> list[Exchange]:
    if one is other:
        return []
    interview = ResponseRecorder(routes, model, one)
    interview.keep_distances({"model": model, "text": other.ids[0].tolist()})
    return interview.kept


def _ask(routes: InProcessClient, path: str, model: str) -> Any:
    answer = routes.ask("POST", path, json.dumps({"model": model}))
    assert answer.status == 200, answer.body
    return json.loads(answer.body)


def _run_labs(tell: Callable[[str], object]) -> bytes:
    names = list(LABS_RUN)
    if not is_installed("numba") and (left := [name for name in names if name in COMPILED]):
        tell(f"without the lab {', '.join(left)}, which needs numba: pip install 'clearhead[numba]'")
        names = [name for name in names if name not in left]
    tell(f"labs run: {', '.join(names)} …")
    answers = [LabAnswer.of(lab(name)).model_dump(mode="json") for name in names]
    told = [LabDetails.of(LABS[name]).model_dump(mode="json") for name in names]
    return json.dumps({"labs": told, "answers": answers}, ensure_ascii=False, allow_nan=False).encode()


def _write(folder: Path, files: dict[str, bytes], listing: dict[str, Any]) -> list[Path]:
    if not (folder / ".nojekyll").exists():  # or else GitHub's pages leave out what it takes for its own
        files[".nojekyll"] = b""
    with disk_errors(folder, f"publishing to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_whole(folder / name, partial(_fill, content))
        write_text(folder / LISTING, json.dumps(listing, ensure_ascii=False, allow_nan=False))
        for path in folder.iterdir():  # of texts that there were before
            if re.fullmatch(r"text-\d+\.bin", path.name) and path.name not in files:
                path.unlink()
        if LAB_FILE not in files:
            (folder / LAB_FILE).unlink(missing_ok=True)
    return [folder / name for name in (*files, LISTING)]


def _fill(content: bytes, path: Path) -> None:
    path.write_bytes(content)


# The policy lets the page ask its own host alone.
INDEX = """<!doctype html>
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
<div id="page"><p>Every step of what a language model computes. One moment … If this stays, the browser has \
no scripts, or the folder was opened from the disk: <code>python -m http.server</code> in it helps.</p></div>
<script type="module" src="page.js"></script>
</body>
</html>
"""
