"""A folder that any web host can serve: the page, a model's weights, and precomputed traces of some texts.

`model.bin` holds the weights once. Each text has its own file, which the page fetches when the text is
selected. `publication.json` is written last and marks the folder as a published one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from clearhead.errors import UserError
from clearhead.export.precompute import Exchange, ResponseRecorder
from clearhead.export.saved_page import pack
from clearhead.export.saved_trace import Float32Array, as_array, save_trace, stored_weights
from clearhead.export.saved_views import REQUEST_TABS, SavedViews
from clearhead.export.site import INDEX_FILE, check_folder, check_texts, page_files, write_site
from clearhead.export.site_labs import LAB_FILE, run_labs
from clearhead.inspect.comparison import align
from clearhead.inspect.indexing import check_index
from clearhead.inspect.state_trace import need_heads
from clearhead.inspect.trace import Trace
from clearhead.inspect.weights import weight, weight_names
from clearhead.labs.opening import find_head
from clearhead.language_model import LanguageModel
from clearhead.model.config import Config
from clearhead.server.in_process import InProcessClient
from clearhead.text.examples import as_tokenized

MODEL_FILE = "model.bin"
MAX_WEIGHTS = 8_000_000  # 32 MB, an acceptable download for a web page

# In the style of the built-in stories, on which the demo's model is trained.
TEXTS = (
    "The chicken didn't cross the road because it was too tired.",
    "The chicken didn't cross the road because it was too wide.",
    "The trumpet didn't fit in the bucket because it was too big.",
    "Ella lived near the village. She had a trumpet, and it was green. One afternoon, Ella lost her",
    "Ben lived near the orchard. Ben and Rosa played with the ball until",
    "Tom was happy, and Anna was",
)

Heads = Sequence[tuple[int, int]]


def publish(
    model: LanguageModel,
    folder: Path,
    texts: Sequence[str] | None = None,
    heads: Heads | None = None,
    labs: bool = True,
    log: Callable[[str], object] = lambda _: None,
) -> list[Path]:
    """Write the folder and return the files written. The steps of all heads, or of `heads`, can be inspected.

    By default, the texts are sentences in the style of the stories, in the form the model's tokenizer
    encodes best, without those that exceed its context.

    A folder that was published before is overwritten; other files in it are left alone.
    """
    check_folder(folder)
    config = model.transformer("publishing").config
    if texts is None:
        offered = [as_tokenized(model.tokenizer, text) or text for text in TEXTS]
        fitting = [text for text in offered if len(model.tokenizer.encode(text)) <= config.n_context]
        texts = fitting or offered[:1]
    traces = _inspect(model, texts)
    views = _choose_views(config, heads, len(traces) > 1)
    weights = _collect_weights(traces[0], views, whole=heads is None)
    files = page_files()
    log(f"running {model.name} on {len(traces)} {'text' if len(traces) == 1 else 'texts'} …")
    client = InProcessClient({model.name: (model, tuple(traces))})
    files[MODEL_FILE] = pack({"matrices": _describe(weights)}, list(weights.values()))
    for number, trace in enumerate(traces):
        header, arrays = save_trace(trace, views, weights=False)
        header["beside"] = [_compare(client, model.name, trace, other) for other in traces]
        files[_text_file(number)] = pack(header, arrays)
    if labs:
        files[LAB_FILE] = run_labs(log)
    opening = find_head(traces[0], views.heads)
    index = {
        "details": _request(client, "/api/open", model.name),
        "views": [*views.tabs, "lectures", "tiny", *(["labs"] if labs else [])],
        "texts": [
            {"text": text, "ids": trace.ids[0].tolist(), "file": _text_file(number)}
            for number, (text, trace) in enumerate(zip(texts, traces, strict=True))
        ],
        "opening": {"block": opening.block, "head": opening.head, "row": opening.row},
        "heads": _request(client, "/api/heads", model.name),
        "labs": labs,
    }
    return write_site(folder, files.items(), INDEX_FILE, index)


def _inspect(model: LanguageModel, texts: Sequence[str]) -> list[Trace]:
    check_texts(texts)
    return [need_heads(model.inspect(text), "a page") for text in texts]


def _choose_views(config: Config, heads: Heads | None, several: bool) -> SavedViews:
    tabs = set(REQUEST_TABS) if several else set(REQUEST_TABS) - {"compare"}
    if heads is None:
        every = [(i, j) for i in range(config.n_block) for j in range(config.n_head)]
        return SavedViews(True, True, list(range(config.n_block)), every, tabs, "steps")
    for block, head in heads:
        check_index(block, config.n_block, "block")
        check_index(head, config.n_head, "head")
    return SavedViews(True, heads=list(dict.fromkeys(heads)), tabs_with_requests=tabs, opened="steps")


def _collect_weights(trace: Trace, views: SavedViews, whole: bool) -> dict[str, Float32Array]:
    """Return the weights that the views need, or all of them; a tied embedding is stored once."""
    names = stored_weights(trace, views)
    if whole:
        names = [name for name in weight_names(trace.config) if not name.endswith((".QK", ".OV"))]
    if trace.config.tied:
        names = [name for name in names if name != "unembedding.W"]
    network = trace.network
    count = network.config.n_parameter if whole else sum(weight(network, name).numel() for name in names)
    if count > MAX_WEIGHTS:
        raise UserError(
            f"a page with all of {trace.model_name} would contain {count:,} weights; the limit is "
            f"{MAX_WEIGHTS:,}: select some heads, such as 3.5"
        )
    return {name: as_array(weight(network, name)) for name in names}


def _describe(weights: dict[str, Float32Array]) -> list[dict[str, Any]]:
    return [{"name": name, "shape": array.shape, "first": 0} for name, array in weights.items()]


def _text_file(number: int) -> str:
    return f"text-{number}.bin"


def _compare(client: InProcessClient, model: str, one: Trace, other: Trace) -> list[Exchange]:
    if one is other:
        return []
    if not align(one.pieces[0], other.pieces[0]):
        return []  # without a token in common, there is nothing to compare
    recorder = ResponseRecorder(client, model, one)
    recorder.record_distances({"model": model, "text": other.ids[0].tolist()})
    return recorder.exchanges


def _request(client: InProcessClient, path: str, model: str) -> Any:
    response = client.request("POST", path, json.dumps({"model": model}))
    assert response.status == 200, response.body
    return json.loads(response.body)
