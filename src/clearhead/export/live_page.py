"""A live page: the models themselves, which the visitor's browser runs on any text.

`live.json` lists the models. Each has its own folder with its config, tokenizer and weights, and the
answers that were computed beforehand: what the page opens with, texts to try, and the scores of all heads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast, get_args

from clearhead.errors import UserError
from clearhead.export.inline import fill_page
from clearhead.export.live_weights import NumberType, live_files
from clearhead.export.site import LIVE_INDEX, check_file, check_folder, check_texts, page_files, write_site
from clearhead.export.site_labs import LAB_FILE, run_labs
from clearhead.files import disk_errors, write_text
from clearhead.inspect.state_trace import need_heads
from clearhead.labs.opening import find_head
from clearhead.language_model import LanguageModel
from clearhead.model.config import check_kind
from clearhead.server.in_process import InProcessClient

MAX_ONE_FILE = 32_000_000  # bytes of a model in one HTML file, which grows by a third
RECORDED = ("/api/opening", "/api/examples", "/api/heads")


def publish_live(
    models: Sequence[LanguageModel],
    folder: Path,
    numbers: NumberType = "float32",
    texts: Sequence[str] | None = None,
    labs: bool = True,
    log: Callable[[str], object] = lambda _: None,
) -> list[Path]:
    """Write a folder in which the models run, and return the files written.

    `numbers` is the type of the stored weights. By default, the texts that visitors can choose are examples
    that suit each model. A folder that was published before is overwritten; other files in it are left alone.
    """
    check_folder(folder)
    index: dict[str, Any] = {"live": True, "models": _describe(models, texts, log), "labs": labs}

    def files() -> Iterator[tuple[str, bytes]]:
        yield from page_files(live=True).items()
        if labs:
            yield LAB_FILE, run_labs(log)
        for number, model in enumerate(models):
            log(f"writing {model.name} …")
            for name, content in _hashed(live_files(model, numbers), index["models"][number]):
                yield f"{_model_folder(number)}/{name}", content

    return write_site(folder, files(), LIVE_INDEX, index)


def check_numbers(name: str) -> NumberType:
    """Return the number type of that name, or raise UserError."""
    check_kind("numbers", name, get_args(NumberType))
    return cast("NumberType", name)


def save_live_html(
    model: LanguageModel, path: Path, numbers: NumberType = "float32", texts: Sequence[str] | None = None
) -> None:
    """Save a model as one HTML file that runs it, without network access."""
    check_file(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"{path}: expected a name that ends in .html, so that a browser opens it")
    size = model.transformer("saving a live page").config.n_parameter * BYTES[numbers]
    smallest = size // BYTES[numbers] * BYTES["int8"]
    if size > MAX_ONE_FILE:
        raise UserError(
            f"{model.name} has {size / 1e6:,.0f} MB of weights; the limit for one file is "
            f"{MAX_ONE_FILE / 1e6:.0f} MB: publish a folder instead (clearhead publish --live)"
            + (", or choose a smaller number type (float16, int8)" if smallest <= MAX_ONE_FILE else "")
        )
    page = live_html([model], numbers, texts)
    with disk_errors(path.parent, f"{path} was not saved"):
        write_text(path, page)


def live_html(
    models: Sequence[LanguageModel],
    numbers: NumberType = "float32",
    texts: Sequence[str] | None = None,
    query: str = "",
    language: str | None = None,
) -> str:
    """Return the HTML of a page in which the models run. It opens at the place in the query, if there is one, and
    in this language, or else in the reader's.
    """
    index: dict[str, Any] = {"live": True, "models": _describe(models, texts), "labs": False, "query": query}
    files = {
        f"{_model_folder(number)}/{name}": content
        for number, model in enumerate(models)
        for name, content in _hashed(live_files(model, numbers), index["models"][number])
    }
    files[LIVE_INDEX] = json.dumps(index, ensure_ascii=False, allow_nan=False).encode()
    return fill_page(models[0].name, files, live=True, language=language)


def _hashed(files: Iterator[tuple[str, bytes]], entry: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield the same files, and add the hashes of the JSON files to `entry`; one of them lists those of the weights."""
    for name, content in files:
        if name.endswith(".json"):
            entry["sha256"][name] = hashlib.sha256(content).hexdigest()
        yield name, content


BYTES: dict[NumberType, int] = {"float32": 4, "float16": 2, "int8": 1}


def _model_folder(number: int) -> str:
    return f"model-{number}"


def _describe(
    models: Sequence[LanguageModel],
    texts: Sequence[str] | None,
    log: Callable[[str], object] = lambda _: None,
) -> list[dict[str, Any]]:
    """Return the index entry of each model."""
    names = [model.name for model in models]
    if twice := next((name for i, name in enumerate(names) if name in names[:i]), None):
        raise UserError(f"two models are called {twice!r}: rename the folder of one")
    _check(models, texts)
    entries = []
    for number, model in enumerate(models):
        log(f"scoring the heads of {model.name} …")
        client = InProcessClient({model.name: (model, ())})
        answers = {path: _request(client, path, model.name) for path in RECORDED}
        if texts:
            answers["/api/examples"]["texts"] = list(texts)
            answers["/api/opening"] = _opening(model, texts[0])
        details = _request(client, "/api/open", model.name)
        ends = list(model.tokenizer.end_ids)
        entries.append(
            {
                "details": details,
                "folder": _model_folder(number),
                "ends": ends,
                "answers": answers,
                "sha256": {},  # filled in when the files are written
            }
        )
    return entries


def _check(models: Sequence[LanguageModel], texts: Sequence[str] | None) -> None:
    """Before any heads are scored, raise UserError if a model cannot be published or cannot run one of the texts."""
    if texts is not None:
        check_texts(texts)
    for model in models:
        model.transformer("publishing")
        for text in texts or ():
            model.inspect(text)


def _opening(model: LanguageModel, text: str) -> dict[str, Any]:
    found = find_head(need_heads(model.inspect(text), "a page"))
    return {
        "text": text,
        "position": found.row,
        "block": found.block,
        "head": found.head,
        "role": found.role,
        "weight": found.weight,
    }


def _request(client: InProcessClient, path: str, model: str) -> Any:
    response = client.request("POST", path, json.dumps({"model": model}))
    assert response.status == 200, response.body
    return json.loads(response.body)
