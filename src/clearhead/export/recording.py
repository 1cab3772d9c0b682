"""What a saved file holds: numbers by their names, and answers to what the page will ask.

Kept are the numbers from which the page's own formulas make all others of a view: of a head the stream that
enters its block, its weights (trained ones, and where it looks), and what was edited. Of the flow's stripes
only the numbers that are seen are kept, the largest of each stretch; the others are nan, not kept. Of two
texts that are compared, both sides of the sites that differ most are kept, as many as there is room for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from typing import Any
from urllib.parse import urlencode

import numpy as np
import torch
from torch import Tensor

from clearhead.export.precompute import ResponseRecorder
from clearhead.export.saved_views import SavedViews
from clearhead.inspect.comparison import Comparison
from clearhead.inspect.sites import block_names, head_names, parse_site, site_shape
from clearhead.inspect.trace import Trace
from clearhead.inspect.weights import weight, weight_names
from clearhead.server.in_process import InProcessClient, InProcessResponse, models_of

# As the page draws and asks.
STRIPES = {"embedding": 18, "normed2": 7, "hidden": 24, "final": 7}  # cells
CANDIDATES = 1000  # of the next word
BESIDE = 20  # of the other text's
CELLS = 24  # a side of a head's small picture
LENS = 128  # positions, the last ones
LISTED = 40  # sites of each group

SHADES = 512  # of those pictures: they are seen, not read
WORDS = 5  # next words that can be asked about
ROOM = 2**18  # numbers of each text, for the sites that differ most
Array = np.ndarray[Any, np.dtype[np.float32]]


@dataclass
class Side:
    """One text: what is kept of it, and from which row on."""

    trace: Trace
    model: str
    matrices: dict[str, tuple[Array, int]] = field(default_factory=dict)

    def keep(self, name: str, tensor: Tensor, first: int = 0) -> None:
        self.matrices.setdefault(name, (as_array(tensor), first))

    @property
    def text(self) -> str:
        assert self.trace.tokenizer is not None
        return self.trace.tokenizer.decode(self.trace.ids[0].tolist())

    def describe(self, routes: InProcessClient, candidates: int) -> dict[str, Any]:
        """With the config and the next words, and what its numbers are, in their order."""
        asked = json.dumps({"model": self.model})
        return {
            "text": self.text,
            "details": json.loads(routes.ask("POST", "/api/open", asked).body),
            "trace": ResponseRecorder(routes, self.model, self.trace).read(
                "/api/trace", count=candidates, sites=False
            ),
            "matrices": [
                {"name": name, "shape": array.shape, "first": first}
                for name, (array, first) in self.matrices.items()
            ],
        }


def record(
    what: Trace | Comparison[Trace], views: SavedViews, weights: bool = True
) -> tuple[dict[str, Any], list[Array]]:
    """What stands before the numbers, and the numbers; without trained weights, where they are elsewhere."""
    models = models_of(what)
    routes = InProcessClient(models)
    trace = what.one if isinstance(what, Comparison) else what
    side = Side(trace, next(iter(models)))
    interview = ResponseRecorder(routes, side.model, trace)
    words = _likeliest(trace) if views.asked & {"why", "lens"} else []
    sides = [side]
    if isinstance(what, Comparison):
        sides.append(Side(what.other, list(models)[-1]))
        _keep_differing(what, views, sides, interview)
    _keep_steps(side, views)
    if weights:
        for name in kept_weights(trace, views):
            side.keep(name, weight(trace.network, name))
    if views.flow:
        _keep_flow(side, views, interview)
    texts = _keep_lens(side, words) if "lens" in views.asked else []
    if "why" in views.asked:
        interview.keep_ways(words)
        for block, head in views.heads:
            interview.keep_arrows(block, head)
    if "words" in views.asked:
        blocks = sorted({block for block, _ in views.heads} or {0})
        interview.keep_neighbours(["embedding", *(f"block.{i}.input" for i in blocks), "final"])
    contents = {
        "query": f"?{urlencode(_place(sides, views))}",
        "views": views.tabs,
        "flow": views.flow,
        "ends": views.ends,
        "blocks": views.blocks,
        "heads": views.heads,
        "edits": len(trace.edits.made),
        "words": words,
        "lens": texts,
        "exchanges": interview.kept,
        "sides": [
            each.describe(routes, candidates)
            for each, candidates in zip(sides, (CANDIDATES, BESIDE), strict=False)
        ],
    }
    return contents, [array for each in sides for array, _ in each.matrices.values()]


def _place(sides: list[Side], views: SavedViews) -> dict[str, Any]:
    """Where it opens: an address of the page."""
    side = sides[0]
    block, head = next(iter(views.heads), (0, 0))
    place = {"model": side.model, "text": side.text, "view": views.opened, "block": block, "head": head}
    if len(sides) > 1:
        beside = sides[1].model
        place |= {"other": sides[1].text, "otherModel": "" if beside == side.model else beside}
    return place


def _likeliest(trace: Trace) -> list[int]:
    logits = trace.read("logits", rows=-1)[0].float()
    return logits.topk(min(WORDS, len(logits))).indices.tolist()


def _keep_steps(side: Side, views: SavedViews) -> None:
    trace = side.trace
    for name in _sites(trace, views):
        side.keep(name, trace[name])
    if views.flow or views.ends:
        side.keep("logits", trace.read("logits", rows=-1), len(trace) - 1)
    if views.ends:
        side.keep("probabilities", trace.read("probabilities", rows=-1), len(trace) - 1)


def _keep_flow(side: Side, views: SavedViews, interview: ResponseRecorder) -> None:
    for name in _stripes(views):
        if name not in side.matrices:
            side.matrices[name] = (thin(as_array(side.trace[name]), STRIPES[name.split(".")[-1]]), 0)
    patterns = _matrix(interview.ask("/api/patterns", cells=CELLS))
    side.matrices["patterns"] = (np.round(patterns * SHADES) / np.float32(SHADES), 0)
    side.matrices["streams"] = (_matrix(interview.ask("/api/streams")), 0)


@torch.no_grad()
def _keep_lens(side: Side, words: list[int]) -> list[list[str]]:
    """For each block how likely the likeliest word is at each position, and each of these; what it says."""
    trace, texts, shares = side.trace, [], []
    rows = list(range(max(0, len(trace) - LENS), len(trace)))
    for block in range(trace.config.n_block):
        stream = trace.read(f"block.{block}.output", rows=rows)
        probabilities = trace.unembed(stream[None])[0].float().softmax(-1)
        best = probabilities.max(-1)
        texts.append(trace.token_texts(best.indices.tolist()))
        shares.append(torch.cat((best.values[None], probabilities[:, words].T)))
    side.keep("lens", torch.stack(shares))
    return texts


def _keep_differing(
    compared: Comparison[Trace], views: SavedViews, sides: list[Side], interview: ResponseRecorder
) -> None:
    """Both sides of the heads that were named, and of what differs most."""
    other = {"model": sides[1].model, "text": compared.other.ids[0].tolist()}
    distances = interview.keep_distances(other)
    config, lengths = compared.one.config, [len(side.trace) for side in sides]
    named = [f"block.{i}.head.{j}.{name}" for i, j in views.heads for name in head_names(config)]
    room = ROOM
    for name in dict.fromkeys([*named, *_ranked(compared, distances)]):
        size = max(math.prod(site_shape(name, config, length)) for length in lengths)
        if size <= room:
            room -= size
            for side in sides:
                side.keep(name, side.trace[name])


def _ranked(compared: Comparison[Trace], distances: dict[str, float]) -> Iterator[str]:
    """The sites that the page lists: the first of each of its groups, then the second, and so on."""
    groups: list[list[str]] = [[], [], [], [], []]
    for name in sorted(distances, key=lambda name: -distances[name]):
        site = parse_site(name, compared.one.config)
        of_head = site.head is not None
        belongs = (
            True,
            site.name == "weights",
            of_head and site.name == "output",
            not of_head and site.name in ("input", "middle", "output", "embedding", "final"),
            site.name.startswith(("hidden", "feedforward")),
        )
        for group, member in zip(groups, belongs, strict=True):
            if member and distances[name] > 0 and len(group) < LISTED:
                group.append(name)
    for row in zip_longest(*groups):
        yield from (name for name in row if name is not None)


def _sites(trace: Trace, views: SavedViews) -> list[str]:
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


def _stripes(views: SavedViews) -> list[str]:
    """What the flow draws beyond what is kept, or made, for other views."""
    others = sorted({i for i, _ in views.heads} - set(views.blocks))
    ends = [] if views.ends else ["embedding", "final"]
    return ends + [f"block.{i}.{name}" for i in others for name in ("normed2", "hidden")]


def kept_weights(trace: Trace, views: SavedViews) -> list[str]:
    """Those that are trained, not their products."""
    wanted = {f"block.{i}.head.{j}" for i, j in views.heads} | {f"block.{i}" for i in views.blocks}
    wanted |= {f"block.{i}.{norm}" for i, _ in views.heads for norm in ("normed", "query_norm", "key_norm")}
    wanted |= {"final"} if views.ends else set()
    trained = [name for name in weight_names(trace.config) if not name.endswith((".QK", ".OV"))]
    return [name for name in trained if name.rpartition(".")[0] in wanted or _is_of_block(name, views)]


def _is_of_block(name: str, views: SavedViews) -> bool:
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


def as_array(tensor: Tensor) -> Array:
    return tensor.detach().float().cpu().numpy()


def _matrix(answer: InProcessResponse) -> Array:
    shape = [int(size) for size in answer.headers["x-shape"].split(",")]
    return np.frombuffer(answer.body, "<f4").reshape(shape)
