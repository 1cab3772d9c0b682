"""The models of a page that runs them: a folder for each, and `live.json`, which lists them.

Beside its weights, a model's folder holds `answers.json`: responses that depend on the model alone and that the
page cannot compute, such as the scores of its heads. Folders are numbered, because a name may be anything.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from clearhead.errors import UserError
from clearhead.export.live_weights import NumberType, write_live_model
from clearhead.files import disk_errors, write_text
from clearhead.language_model import LanguageModel
from clearhead.server.in_process import InProcessClient

LIVE_FILE, ANSWERS_FILE, MODELS_FOLDER = "live.json", "answers.json", "models"
ANSWERED = ("/api/heads", "/api/examples", "/api/opening")


def write_live_models(
    models: Sequence[LanguageModel],
    folder: Path,
    numbers: NumberType = "float32",
    log: Callable[[str], object] = lambda _: None,
) -> list[Path]:
    """Write the models and return the files. `numbers` is the type of their matrices. The list is written last."""
    _check_names(models)
    paths, entries = [], []
    for number, model in enumerate(models):
        own = Path(MODELS_FOLDER) / str(number)
        log(f"writing {model.name} …")
        paths += write_live_model(model, folder / own, numbers)
        client = InProcessClient({model.name: (model, ())})
        answers = {path: _request(client, path, model.name) for path in ANSWERED}
        paths.append(_write_json(folder / own / ANSWERS_FILE, answers))
        details = _request(client, "/api/open", model.name)
        ends = list(model.tokenizer.end_ids)
        entries.append({"details": details, "folder": own.as_posix(), "ends": ends})
    paths.append(_write_json(folder / LIVE_FILE, {"models": entries}))
    _remove_others(folder / MODELS_FOLDER, len(models))
    return paths


def _check_names(models: Sequence[LanguageModel]) -> None:
    if not models:
        raise UserError("no model to publish: name at least one")
    names = [model.name for model in models]
    if twice := next((name for i, name in enumerate(names) if name in names[:i]), None):
        raise UserError(f"two models are named {twice[:80]!r}: rename the folder of one of them")


def _write_json(path: Path, document: dict[str, Any]) -> Path:
    with disk_errors(path.parent, "the model was not published"):
        write_text(path, json.dumps(document, ensure_ascii=False, allow_nan=False))
    return path


def _request(client: InProcessClient, path: str, model: str) -> Any:
    response = client.request("POST", path, json.dumps({"model": model}))
    assert response.status == 200, response.body
    return json.loads(response.body)


def _remove_others(folder: Path, count: int) -> None:
    """Remove the models of an earlier publication."""
    for path in folder.iterdir():
        if re.fullmatch(r"\d+", path.name) and int(path.name) >= count and (path / ANSWERS_FILE).is_file():
            shutil.rmtree(path)
