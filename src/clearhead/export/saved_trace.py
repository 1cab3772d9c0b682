"""The data of a saved page: matrices by name, and responses to the requests that the page will send.

Only the matrices from which the page computes all others of a view are stored: for a head, its block's input, its
weights and its attention pattern, and all its sites if the block is edited. For the flow, only the values
that are drawn are stored, the largest in each cell, and the others are NaN. For a comparison, the sites that
differ most are stored for both texts, up to a limit.
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

# As in the page's drawings and requests.
FLOW_CELLS = {"embedding": 18, "normed2": 7, "hidden": 24, "final": 7}
MAX_CANDIDATES = 1000  # next tokens
MAX_OTHER_CANDIDATES = 20  # next tokens of the other text in a comparison
PATTERN_CELLS = 24  # per side of a head's thumbnail
MAX_LENS = 128  # last positions
MAX_RANKED = 40  # sites per group

PATTERN_LEVELS = 512  # quantization levels; the page does not show exact values of thumbnails
MAX_EXPLAINED = 5  # most likely next tokens with attributions
MAX_DIFFERING = 2**18  # values of each text at the sites that differ most
Float32Array = np.ndarray[Any, np.dtype[np.float32]]


@dataclass
class SavedTrace:
    """One text and its stored matrices, each with the index of its first row."""

    trace: Trace
    model: str
    matrices: dict[str, tuple[Float32Array, int]] = field(default_factory=dict)

    def store(self, name: str, tensor: Tensor, first_row: int = 0) -> None:
        self.matrices.setdefault(name, (as_array(tensor), first_row))

    @property
    def text(self) -> str:
        assert self.trace.tokenizer is not None
        return self.trace.tokenizer.decode(self.trace.ids[0].tolist())

    def describe(self, client: InProcessClient, candidates: int) -> dict[str, Any]:
        """Return the model's details, the next tokens, and the names and shapes of the matrices in order."""
        details = client.request("POST", "/api/open", json.dumps({"model": self.model}))
        return {
            "text": self.text,
            "details": json.loads(details.body),
            "trace": ResponseRecorder(client, self.model, self.trace).request_json(
                "/api/trace", count=candidates, sites=False
            ),
            "matrices": [
                {"name": name, "shape": array.shape, "first": first}
                for name, (array, first) in self.matrices.items()
            ],
        }


def save_trace(
    traced: Trace | Comparison[Trace], views: SavedViews, weights: bool = True
) -> tuple[dict[str, Any], list[Float32Array]]:
    """Return the JSON header and the matrices; pass `weights=False` if the weights are stored elsewhere."""
    models = models_of(traced)
    client = InProcessClient(models)
    trace = traced.one if isinstance(traced, Comparison) else traced
    saved = SavedTrace(trace, next(iter(models)))
    recorder = ResponseRecorder(client, saved.model, trace)
    tokens = _most_likely(trace) if views.tabs_with_requests & {"why", "lens"} else []
    texts = [saved]
    if isinstance(traced, Comparison):
        texts.append(SavedTrace(traced.other, list(models)[-1]))
        _store_differing(traced, views, texts, recorder)
    _store_steps(saved, views)
    if weights:
        for name in stored_weights(trace, views):
            saved.store(name, weight(trace.network, name))
    if views.flow:
        _store_flow(saved, views, recorder)
    lens = _store_lens(saved, tokens) if "lens" in views.tabs_with_requests else []
    if "why" in views.tabs_with_requests:
        recorder.record_attributions(tokens)
        for block, head in views.heads:
            recorder.record_scores(block, head)
    if "words" in views.tabs_with_requests:
        blocks = sorted({block for block, _ in views.heads} or {0})
        recorder.record_neighbors(["embedding", *(f"block.{i}.input" for i in blocks), "final"])
    header = {
        "query": f"?{urlencode(_location(texts, views))}",
        "views": views.tabs,
        "flow": views.flow,
        "ends": views.ends,
        "blocks": views.blocks,
        "heads": views.heads,
        "edits": len(trace.edits.made),
        "tokens": tokens,
        "lens": lens,
        "exchanges": recorder.exchanges,
        "sides": [
            each.describe(client, candidates)
            for each, candidates in zip(texts, (MAX_CANDIDATES, MAX_OTHER_CANDIDATES), strict=False)
        ],
    }
    return header, [array for each in texts for array, _ in each.matrices.values()]


def _location(texts: list[SavedTrace], views: SavedViews) -> dict[str, Any]:
    """Return the page's query parameters for the view to open."""
    first = texts[0]
    block, head = next(iter(views.heads), (0, 0))
    location = {"model": first.model, "text": first.text, "view": views.opened, "block": block, "head": head}
    if views.row >= 0:
        location["row"] = views.row
    if len(texts) > 1:
        other = texts[1].model
        location |= {"other": texts[1].text, "otherModel": "" if other == first.model else other}
    return location


def _most_likely(trace: Trace) -> list[int]:
    logits = trace.read("logits", rows=-1)[0].float()
    return logits.topk(min(MAX_EXPLAINED, len(logits))).indices.tolist()


def _store_steps(saved: SavedTrace, views: SavedViews) -> None:
    trace = saved.trace
    for name in _stored_sites(trace, views):
        saved.store(name, trace[name])
    if views.flow or views.ends:
        saved.store("logits", trace.read("logits", rows=-1), len(trace) - 1)
    if views.ends:
        if "logits_raw" in trace:
            saved.store("logits_raw", trace.read("logits_raw", rows=-1), len(trace) - 1)
        saved.store("probabilities", trace.read("probabilities", rows=-1), len(trace) - 1)


def _store_flow(saved: SavedTrace, views: SavedViews, recorder: ResponseRecorder) -> None:
    for name in _flow_sites(views):
        if name not in saved.matrices:
            cells = FLOW_CELLS[name.split(".")[-1]]
            saved.matrices[name] = (keep_drawn(as_array(saved.trace[name]), cells), 0)
    patterns = _matrix(recorder.request("/api/patterns", cells=PATTERN_CELLS))
    saved.matrices["patterns"] = (np.round(patterns * PATTERN_LEVELS) / np.float32(PATTERN_LEVELS), 0)
    saved.matrices["streams"] = (_matrix(recorder.request("/api/streams")), 0)


@torch.no_grad()
def _store_lens(saved: SavedTrace, tokens: list[int]) -> list[list[str]]:
    """Store the logit lens, blocks × (1 + tokens) × positions: the probabilities of the best token and of
    `tokens`.

    Returns the text of the best token for each block and position.
    """
    trace, texts, probabilities = saved.trace, [], []
    rows = list(range(max(0, len(trace) - MAX_LENS), len(trace)))
    for block in range(trace.config.n_block):
        stream = trace.read(f"block.{block}.output", rows=rows)
        distribution = trace.unembed(stream[None])[0].float().softmax(-1)
        best = distribution.max(-1)
        texts.append(trace.token_texts(best.indices.tolist()))
        probabilities.append(torch.cat((best.values[None], distribution[:, tokens].T)))
    saved.store("lens", torch.stack(probabilities))
    return texts


def _store_differing(
    compared: Comparison[Trace], views: SavedViews, texts: list[SavedTrace], recorder: ResponseRecorder
) -> None:
    """Store both traces' values at the chosen heads and at the sites that differ most."""
    other = {"model": texts[1].model, "text": compared.other.ids[0].tolist()}
    distances = recorder.record_distances(other)
    config, lengths = compared.one.config, [len(saved.trace) for saved in texts]
    chosen = [f"block.{i}.head.{j}.{name}" for i, j in views.heads for name in head_names(config)]
    budget = MAX_DIFFERING
    for name in dict.fromkeys([*chosen, *_ranked(compared, distances)]):
        size = max(math.prod(site_shape(name, config, length)) for length in lengths)
        if size <= budget:
            budget -= size
            for saved in texts:
                saved.store(name, saved.trace[name])


def _ranked(compared: Comparison[Trace], distances: dict[str, float]) -> Iterator[str]:
    """Yield the sites that the page lists: the first of each group, then the second of each, and so on."""
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
            if member and distances[name] > 0 and len(group) < MAX_RANKED:
                group.append(name)
    for row in zip_longest(*groups):
        yield from (name for name in row if name is not None)


def _stored_sites(trace: Trace, views: SavedViews) -> list[str]:
    """Return the sites from which the page computes the others; in an edited block, all sites of the views."""
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


def _flow_sites(views: SavedViews) -> list[str]:
    """Return the sites that the flow draws and that no other view stores or computes."""
    others = sorted({i for i, _ in views.heads} - set(views.blocks))
    ends = [] if views.ends else ["embedding", "final"]
    return ends + [f"block.{i}.{name}" for i in others for name in ("normed2", "hidden")]


def stored_weights(trace: Trace, views: SavedViews) -> list[str]:
    """Return the names of the weights that the views need, without the products QK and OV."""
    owners = {f"block.{i}.head.{j}" for i, j in views.heads} | {f"block.{i}" for i in views.blocks}
    owners |= {f"block.{i}.{norm}" for i, _ in views.heads for norm in ("normed", "query_norm", "key_norm")}
    owners |= {"final"} if views.ends else set()
    trained = [name for name in weight_names(trace.config) if not name.endswith((".QK", ".OV"))]
    kept = [name for name in trained if name.rpartition(".")[0] in owners or _is_of_block(name, views)]
    if trace.config.qk_norm_joint:  # the queries and keys of all heads are normalized together
        parts = ("W_Q", "W_K", "b_Q", "b_K")
        of_heads = tuple(f"block.{i}.head." for i, _ in views.heads)
        kept += [name for name in trained if name.startswith(of_heads) and name.endswith(parts)]
    return list(dict.fromkeys(kept))


def _is_of_block(name: str, views: SavedViews) -> bool:
    return ".head." not in name and any(name.startswith(f"block.{i}.") for i in views.blocks)


def keep_drawn(array: Float32Array, cells: int) -> Float32Array:
    """Keep the value of largest magnitude in each run of columns drawn as one cell; the others become NaN."""
    rows, columns = array.shape
    if columns <= cells:
        return array
    kept = np.full_like(array, np.nan)
    edges = [-(-cell * columns // cells) for cell in range(cells + 1)]
    for start, stop in pairwise(edges):
        best = start + np.abs(array[:, start:stop]).argmax(1)
        kept[np.arange(rows), best] = array[np.arange(rows), best]
    return kept


def as_array(tensor: Tensor) -> Float32Array:
    return tensor.detach().float().cpu().numpy()


def _matrix(response: InProcessResponse) -> Float32Array:
    shape = [int(size) for size in response.headers["x-shape"].split(",")]
    return np.frombuffer(response.body, "<f4").reshape(shape)
