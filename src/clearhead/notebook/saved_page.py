"""One file that stands alone: the page's components, and the numbers of the views that were chosen.

Kept are the numbers from which the page's own formulas make all others of a view: of a head the stream that
enters its block, its weights (trained ones, and where it looks), and what was edited. Of the flow's stripes
only the numbers that are seen are kept, the largest of each stretch; the others are nan, not kept.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from torch import Tensor

from clearhead.errors import UserError
from clearhead.files import disk_errors, write_text
from clearhead.inspect.choice import check_index
from clearhead.inspect.sites import block_names, head_names
from clearhead.inspect.state_trace import AnyTrace, StateTrace, need_heads
from clearhead.inspect.trace import Trace
from clearhead.inspect.weights import weight, weight_names
from clearhead.language_model import LanguageModel
from clearhead.notebook.built import read_built
from clearhead.notebook.routes import Answer, Routes

STRIPES = {"embedding": 18, "normed2": 7, "hidden": 24, "final": 7}  # cells, as the page draws them
CANDIDATES = 1000  # of the next word, as the page asks for them
CELLS = 24  # a side of a head's small picture
SHADES = 512  # in those pictures: they are seen, not read
NAME = "model"
Array = np.ndarray[Any, np.dtype[np.float32]]


@dataclass
class Views:
    """Which parts of a model are kept."""

    flow: bool = False
    ends: bool = False
    blocks: list[int] = field(default_factory=list)
    heads: list[tuple[int, int]] = field(default_factory=list)


def save_html(trace: AnyTrace, path: str | Path, views: Sequence[str] = ("flow", "block.0.head.0")) -> None:
    """Write one file that opens in any browser, without a network or a model.

    `views` are "flow" (the whole way, every head's picture, the next word), heads such as "block.3.head.5",
    blocks such as "block.3" (with all their heads), and "ends" (the embedding; the last norm and the next
    word). The first head or block that is named is open. Its numbers lead back to the trained weights.
    """
    if isinstance(trace, StateTrace):
        trace = need_heads(trace, "a page of a trace")
    if not isinstance(trace, Trace):
        raise UserError(
            f"save_html of a {type(trace).__name__}: expected a trace, as model.inspect(…) gives it"
        )
    trace.check_single()
    if trace.tokenizer is None:
        raise UserError("this trace has no tokenizer: inspect a text with a language model")
    path, chosen = Path(path), choose_views(views, trace)
    page = fill_page(trace, pack(*record(trace, chosen)))
    with disk_errors(path.parent, f"saving {path}"):
        write_text(path, page)


def choose_views(names: Sequence[str], trace: Trace) -> Views:
    config, views = trace.config, Views()
    if isinstance(names, str) or not names:
        raise UserError(f"views = {names!r}: expected a list, such as ['flow', 'block.0.head.0']")
    for name in names:
        found = re.fullmatch(r"block\.(\d+)(?:\.head\.(\d+))?", str(name))
        if name in ("flow", "ends"):
            setattr(views, name, True)
        elif found is None:
            raise UserError(
                f"there is no view {name!r}: expected flow, ends, a block such as block.0, or a head such as "
                "block.0.head.0"
            )
        else:
            block = check_index(int(found[1]), config.n_block, "block")
            if found[2] is None:
                views.blocks.append(block)
                views.heads += [(block, j) for j in range(config.n_head)]
            else:
                views.heads.append((block, check_index(int(found[2]), config.n_head, "head")))
    views.heads = list(dict.fromkeys(views.heads or [(0, 0)]))
    return views


def record(trace: Trace, views: Views) -> tuple[dict[str, Any], list[Array]]:
    """What the page will ask for: whole answers as they are, and numbers by their names."""
    assert trace.tokenizer is not None
    model = LanguageModel(trace.network, trace.tokenizer)
    ids = trace.ids[0].tolist()
    ask = _asker(Routes({NAME: (model, (trace,))}), ids)
    matrices: dict[str, tuple[Array, int]] = {}  # and from which row on they are kept

    def keep(name: str, tensor: Tensor, first: int = 0) -> None:
        matrices.setdefault(name, (tensor.detach().float().cpu().numpy(), first))

    for name in _sites(trace, views):
        keep(name, trace[name])
    for name in _weights(trace, views):
        keep(name, weight(trace.network, name))
    if views.flow or views.ends:
        keep("logits", trace.read("logits", rows=-1), len(trace) - 1)
    if views.ends:
        keep("probabilities", trace.read("probabilities", rows=-1), len(trace) - 1)
    if views.flow:
        for name in _stripes(views):
            cells = STRIPES[name.split(".")[-1]]
            matrices[name] = (thin(trace[name].detach().float().cpu().numpy(), cells), 0)
        patterns = _matrix(ask("/api/patterns", cells=CELLS))
        matrices["patterns"] = (np.round(patterns * SHADES) / np.float32(SHADES), 0)
        matrices["streams"] = (_matrix(ask("/api/streams")), 0)
    block, head = views.heads[0]
    answers = {
        "/api/models": json.loads(ask("/api/models").body),
        "/api/trace": json.loads(ask("/api/trace", count=CANDIDATES, sites=False).body),
    }
    contents = {
        "query": "?"
        + urlencode({"model": NAME, "text": trace.tokenizer.decode(ids), "block": block, "head": head}),
        "config": answers["/api/models"]["models"][0]["config"],
        "ids": ids,
        "flow": views.flow,
        "ends": views.ends,
        "blocks": views.blocks,
        "heads": views.heads,
        "answers": answers,
        "matrices": [
            {"name": name, "shape": array.shape, "first": first} for name, (array, first) in matrices.items()
        ],
    }
    return contents, [array for array, _ in matrices.values()]


def _sites(trace: Trace, views: Views) -> list[str]:
    """Where the formulas begin; in a block with edits, all of the view: formulas know nothing of those."""
    names = []
    for i, j in views.heads:
        names += [f"block.{i}.input", f"block.{i}.head.{j}.weights"]
        if trace.edits.of(i).made:
            names += [f"block.{i}.{name}" for name in block_names(trace.config) if name.startswith("normed")]
            names += [f"block.{i}.head.{j}.{name}" for name in head_names(trace.config)]
    for i in views.blocks:
        if trace.edits.of(i).made:
            names += [f"block.{i}.{name}" for name in block_names(trace.config)]
    if views.ends:
        names += [name for name in ("embedding", "position") if name in trace]
        names += ["block.0.input", f"block.{trace.config.n_block - 1}.output"]
        if trace.edits.of(None).made:
            names += [name for name in ("final", "final.mean", "final.scale") if name in trace]
    return list(dict.fromkeys(names))


def _stripes(views: Views) -> list[str]:
    """What the flow draws beyond what is kept, or made, for other views."""
    others = sorted({i for i, _ in views.heads} - set(views.blocks))
    ends = [] if views.ends else ["embedding", "final"]
    return ends + [f"block.{i}.{name}" for i in others for name in ("normed2", "hidden")]


def _weights(trace: Trace, views: Views) -> list[str]:
    """Those that are trained, not their products."""
    wanted = {f"block.{i}.head.{j}" for i, j in views.heads} | {f"block.{i}" for i in views.blocks}
    wanted |= {f"block.{i}.{norm}" for i, _ in views.heads for norm in ("normed", "query_norm", "key_norm")}
    wanted |= {"final"} if views.ends else set()
    trained = [name for name in weight_names(trace.config) if not name.endswith((".QK", ".OV"))]
    return [name for name in trained if name.rpartition(".")[0] in wanted or _is_of_block(name, views)]


def _is_of_block(name: str, views: Views) -> bool:
    return ".head." not in name and any(name.startswith(f"block.{i}.") for i in views.blocks)


def thin(array: Array, cells: int) -> Array:
    """Of each stretch of a row that is drawn as one cell only what is largest in size; nan elsewhere."""
    rows, columns = array.shape
    if columns <= cells:
        return array
    kept = np.full_like(array, np.nan)
    edges = [-(-cell * columns // cells) for cell in range(cells + 1)]
    for first, last in pairwise(edges):
        best = first + np.abs(array[:, first:last]).argmax(1)
        kept[np.arange(rows), best] = array[np.arange(rows), best]
    return kept


def _asker(routes: Routes, ids: list[int]) -> Callable[..., Answer]:
    def ask(path: str, **more: Any) -> Answer:
        if path == "/api/models":
            return routes.ask("GET", path)
        answer = routes.ask("POST", path, json.dumps({"model": NAME, "text": ids, **more}))
        if answer.status != 200:
            raise UserError(json.loads(answer.body)["error"]["message"])
        return answer

    return ask


def _matrix(answer: Answer) -> Array:
    shape = [int(size) for size in answer.headers["x-shape"].split(",")]
    return np.frombuffer(answer.body, "<f4").reshape(shape)


def pack(contents: dict[str, Any], arrays: Sequence[Array]) -> str:
    """As the page unpacks it. Bytes of the same place in a number are alike, and go together."""
    told = json.dumps(contents, ensure_ascii=False).encode()
    numbers = np.concatenate([array.astype("<f4").ravel() for array in arrays])
    planes = numbers.view(np.uint8).reshape(-1, 4).T.tobytes()
    packed = zlib.compress(len(told).to_bytes(4, "little") + told + planes, 9)
    return base64.b64encode(packed).decode()


def fill_page(trace: Trace, recording: str) -> str:
    """Nothing of the text stands in it as it is: base64 has no letter that HTML knows."""
    # HTML would take these for its own; in the strings of a script they mean the same with a backslash.
    script = re.sub(r"<(?=!--|/script)", r"<\\", read_built("saved.js").strip())
    style = read_built("saved.css").strip()
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
        licences=read_built("licences.md"),
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
