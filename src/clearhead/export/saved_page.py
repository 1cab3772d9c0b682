"""A page saved as one self-contained HTML file: the explorer's code and the data of the chosen views."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clearhead.errors import UserError
from clearhead.evaluation.model_report import ModelReport
from clearhead.export.inline import fill_page
from clearhead.export.live_page import save_live_html
from clearhead.export.report_page import save_report
from clearhead.export.saved_trace import Float32Array, save_trace
from clearhead.export.saved_views import choose_views
from clearhead.export.site import check_file
from clearhead.files import disk_errors, write_text
from clearhead.inspect.comparison import Comparison
from clearhead.inspect.state_trace import AnyTrace, StateTrace, need_heads
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel

RECORDING = "recording"  # the file inside the page


def save_html(
    what: LanguageModel | AnyTrace | Comparison[Trace] | ModelReport | Sequence[ModelReport],
    path: str | Path,
    views: Sequence[str] | None = None,
) -> None:
    """Save a model, a trace, a comparison or a report as one HTML file that opens in any browser, without network
    access.

    A model runs in the browser, on any text. Otherwise, the file contains numbers computed when it is saved. Reports
    on several models, in a list, are shown side by side.

    `views` selects what the file contains: "flow" (the whole model, with a thumbnail of every head and the
    next token), a head such as "block.3.head.5", a block such as "block.3" with all its heads, "ends" (the
    embedding, the final norm and the next token), "lens" (the logit lens), "why" (attributions of the most
    likely next tokens, and of the heads' scores) and "words" (the nearest neighbors of each token). The
    default is the flow and the head with the clearest role in this text. A comparison shows its two traces
    side by side; other views show its first trace. The page opens with the comparison, or else with the
    first view. A head's numbers can be traced back to the trained weights.
    """
    if isinstance(what, LanguageModel):
        if views is not None:
            raise UserError("a saved model has all views: leave out views=…")
        save_live_html(what, Path(path))
        return
    if isinstance(what, ModelReport | list | tuple):
        if views is not None:
            raise UserError("a saved report has no views: leave out views=…")
        save_report(what, Path(path))
        return
    if isinstance(what, StateTrace):
        what = need_heads(what, "save_html")
    if not isinstance(what, Trace | Comparison):
        raise UserError(
            f"save_html of a {type(what).__name__}: expected a model, a trace from model.inspect(…), "
            "a comparison from trace.compare(…), or a report from report(…)"
        )
    trace = what.one if isinstance(what, Comparison) else what
    trace.check_single()
    if trace.tokenizer is None:
        raise UserError("this trace has no tokenizer: inspect a text with a language model")
    path, chosen = Path(path), choose_views(views, what)
    check_file(path)
    title = "".join(trace.tokens)[:60].strip()
    page = fill_page(title, {RECORDING: pack(*save_trace(what, chosen))})
    with disk_errors(path.parent, f"{path} was not saved"):
        write_text(path, page)


def pack(header: dict[str, Any], arrays: Sequence[Float32Array]) -> bytes:
    """Compress a JSON header and float32 arrays, in the format that the page unpacks.

    The bytes of the numbers are grouped by significance, which compresses better.
    """
    encoded = json.dumps(header, ensure_ascii=False).encode()
    numbers = np.concatenate([np.empty(0, "<f4"), *(array.astype("<f4").ravel() for array in arrays)])
    planes = numbers.view(np.uint8).reshape(-1, 4).T.tobytes()
    return zlib.compress(len(encoded).to_bytes(4, "little") + encoded + planes, 9)
