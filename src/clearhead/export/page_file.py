"""What the page shows, as one HTML file: the models run in it if they are small, or else its numbers are stored."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from clearhead.api.page_file import PageFileRequest
from clearhead.export.inline import fill_page
from clearhead.export.live_page import BYTES, MAX_ONE_FILE, live_html
from clearhead.export.saved_page import RECORDING, pack
from clearhead.export.saved_trace import save_trace
from clearhead.export.saved_views import choose_views
from clearhead.language_model import LanguageModel
from clearhead.server.queries import Query

STORED_TABS = ("why", "lens", "words")  # the views that can be stored for one text


def write_page(body: PageFileRequest, query: Query) -> str:
    """Return the HTML of a page that opens at the same place, with the same numbers."""
    names = dict.fromkeys([body.model, *([body.other.model] if body.other else [])])
    models = [_named(query.model(name), name) for name in names]
    size = sum(model.transformer("the page").config.n_parameter for model in models) * BYTES["float32"]
    if size > MAX_ONE_FILE:
        return _write_numbers(body, query)
    return live_html(models, query=body.query, language=body.language)


def _named(model: LanguageModel, name: str) -> LanguageModel:
    """Return the model under the name by which the page knows it."""
    return LanguageModel(model.network, model.tokenizer, model.training, name)


def _write_numbers(body: PageFileRequest, query: Query) -> str:
    """Return a page with the numbers of the flow, of the selected head, and of the open view."""
    trace = query.trace(body)
    compared = body.view == "compare" and body.other is not None
    what = trace.compare(query.trace(body.other)) if compared and body.other else trace
    names = ["flow", f"block.{body.block}.head.{body.head}"]
    if body.view in STORED_TABS:
        names.append(body.view)
    views = choose_views(names, what)
    header, arrays = save_trace(what, views)
    place = dict(parse_qsl(body.query.removeprefix("?")))
    place.pop("edits", None)  # the stored numbers are those with the edits
    if body.view not in (*views.tabs, "heads"):
        place.pop("view", None)
    header["query"] = f"?{urlencode({**dict(parse_qsl(header['query'][1:])), **place})}"
    title = "".join(trace.tokens)[:60].strip()
    return fill_page(title, {RECORDING: pack(header, arrays)}, language=body.language)
