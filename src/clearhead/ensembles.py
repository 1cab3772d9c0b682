"""Ensembles: several models as one, which predicts the mean of their probabilities."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from clearhead.errors import UserError
from clearhead.formats.folder import CONFIG
from clearhead.formats.opening import RUN_FILE
from clearhead.language_model import LanguageModel, load
from clearhead.networks import Ensemble, SingleNetwork, need_single


def ensemble(
    models: str | Path | Sequence[str | Path | LanguageModel],
    device: str | torch.device | None = None,
    dtype: str | torch.dtype = "float32",
) -> LanguageModel:
    """Combine causal models that share a tokenizer into one model, whose probabilities are the mean of theirs.

    Each model is a folder, a name, a folder of models such as `"runs/my/teachers"`, a pattern, or a loaded model;
    `device` and `dtype` are those of `load`. The result evaluates and generates like any model, with the shortest of
    their contexts, and its `logits` are the log of the mean probabilities. It cannot be saved, exported or inspected.
    """
    if not isinstance(models, str | Path | Sequence | LanguageModel):
        raise UserError(f"{models!r}: expected a list of models, or a pattern such as 'runs/my/teachers/*'")
    given = [models] if isinstance(models, str | Path | LanguageModel) else list(models)
    found = [each for model in given for each in _match(model)]
    if not found:
        raise UserError("an ensemble needs at least one model: name folders that contain one")
    loaded = [each if isinstance(each, LanguageModel) else load(each, device, dtype) for each in found]
    labels = [each.name if isinstance(each, LanguageModel) else str(each) for each in found]
    networks = [
        _check(model, label, loaded[0], labels[0]) for model, label in zip(loaded, labels, strict=True)
    ]
    opening = (loaded[0].training or {}).get("opening_ids")
    training = None if opening is None else {"opening_ids": opening}
    return LanguageModel(Ensemble(networks), loaded[0].tokenizer, training, f"ensemble-of-{len(loaded)}")


def expand_models(model: str | Path | LanguageModel) -> list[str | LanguageModel]:
    """The names of the models that a pattern matches or a folder contains, or the models of an ensemble; else the
    model itself.
    """
    if isinstance(model, LanguageModel) and isinstance(model.network, Ensemble):
        members, tokenizer = model.network.members, model.tokenizer
        return [
            LanguageModel(each, tokenizer, name=f"{model.name}-{i + 1}") for i, each in enumerate(members)
        ]
    return [each if isinstance(each, LanguageModel) else str(each) for each in _match(model)]


def _match(model: str | Path | LanguageModel) -> Sequence[str | Path | LanguageModel]:
    """The models that a pattern matches, or that a folder contains; anything else stands for itself."""
    text = "" if isinstance(model, LanguageModel) else str(model)
    single = (CONFIG, RUN_FILE)  # a run contains models, but is itself one
    if os.path.isdir(text) and not any((Path(text) / name).exists() for name in single):  # noqa: PTH112 (long names)
        return _find_models(Path(text).iterdir()) or [model]
    if not glob.has_magic(text) or os.path.exists(text):  # noqa: PTH110
        return [model]
    folders = _find_models(map(Path, glob.glob(text, recursive=True)))  # noqa: PTH207 (it may be absolute)
    if not folders:
        raise UserError(f"{text} matches no model folder: name folders that `clearhead train` saved")
    return folders


def _find_models(folders: Iterable[Path]) -> list[Path]:
    return sorted(each for each in folders if (each / CONFIG).is_file())


def _check(model: LanguageModel, label: str, first: LanguageModel, first_label: str) -> SingleNetwork:
    """The network of a model that can be averaged with the first one."""
    network = need_single(model.network, "a member of an ensemble")
    if not network.config.causal:
        raise UserError(
            f"{label} is bidirectional: an ensemble predicts the next token, so use causal models"
        )
    if model.tokenizer.to_json() != first.tokenizer.to_json():
        raise UserError(
            f"{label} has a different tokenizer from {first_label}: the models of an ensemble must share one"
        )
    if network.config.n_vocab != first.config.n_vocab:
        raise UserError(
            f"{label} has {network.config.n_vocab:,} tokens, but {first_label} has {first.config.n_vocab:,}: "
            "the models of an ensemble must share one vocabulary"
        )
    if model.device != first.device:
        raise UserError(
            f"{label} is on {model.device} and {first_label} on {first.device}: load them on one device"
        )
    return network
