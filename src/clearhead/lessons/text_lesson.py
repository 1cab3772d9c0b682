"""The lesson of a text of your own: what one training step on it would do to a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.trace_factory import PaddedBatch
from clearhead.language_model import LanguageModel
from clearhead.lessons.lesson import Lesson
from clearhead.lessons.recorder import mirror, own_parameters
from clearhead.model.transformer import Transformer
from clearhead.runtime.quantization import need_exact
from clearhead.text.batches import Batch, Blanks, blank_generator
from clearhead.text.inputs import encode_text, split_texts
from clearhead.text.tokens import IGNORED
from clearhead.training.recipe import Recipe
from clearhead.training.trainer import Trainer

# The recipe for a model that Clearhead did not train: that of fine-tuning.
DEFAULTS = {"optimizer": "adamw", "learning_rate": 3e-4, "matrix_rate": 0.002, "weight_decay": 0.0}
DTYPES = (torch.float32, torch.float64)


def learn(
    model: LanguageModel,
    text: str | Sequence[str] | Sequence[int] | Tensor,
    *,
    optimizer: str | None = None,
    learning_rate: float | None = None,
    weight_decay: float | None = None,
    seed: int = 0,
) -> Lesson:
    """Compute one training step on a text, or on several as one batch; the model does not change.

    The step is the first of a new training run with the model's own recipe, at the full learning rate and without
    dropout; for a model that Clearhead did not train, the recipe is that of fine-tuning. `optimizer` is muon or
    adamw, and `learning_rate` that of the matrices. For a bidirectional model, `seed` selects the tokens that
    are masked.
    """
    if not isinstance(model, LanguageModel):
        raise UserError(f"{model!r:.60} is not a model: expected one that ch.load or ch.train returned")
    network = model.transformer("a lesson")
    need_exact(network, "a lesson")
    if network.embedding.weight.dtype not in DTYPES:
        dtype = str(network.embedding.weight.dtype).removeprefix("torch.")
        raise UserError(
            f"the weights are {dtype}: load the model with dtype float32 to compute a training step"
        )
    if not any(parameter.requires_grad for parameter in network.parameters()):
        raise UserError(
            "all weights are frozen, so nothing can be learned: call requires_grad_() on some of them"
        )
    batch, single = make_batch(model, text, seed)
    rows, T = batch.inputs.shape
    if network.config.n_context < T:
        raise UserError(f"{T} tokens exceed the context of {network.config.n_context}: pass fewer")
    recipe = make_recipe(model, rows, optimizer, learning_rate, weight_decay)
    trainer = TextTrainer(_own(network), SameBatch(batch), recipe)
    return Lesson(trainer, model.tokenizer, model.name, single)


@dataclass(frozen=True)
class SameBatch:
    """The same batch at every step."""

    batch: Batch

    @property
    def batch_size(self) -> int:
        return len(self.batch.inputs)

    @property
    def n_context(self) -> int:
        return self.batch.inputs.shape[1]

    def at(self, step: int, rank: int = 0, world_size: int = 1) -> Batch:  # noqa: ARG002
        return self.batch


class TextTrainer(Trainer):
    """Trains on one batch at the full learning rate."""

    def lr_scale(self) -> float:
        return 1.0


def make_batch(model: LanguageModel, text: Any, seed: int = 0) -> tuple[Batch, bool]:
    """The texts as a batch, and whether a single one was given. Padding has no targets."""
    tokenizer, n_vocab = model.tokenizer, model.config.n_vocab
    texts, single = split_texts(text)
    padded = PaddedBatch([encode_text(each, tokenizer, n_vocab) for each in texts], tokenizer, "right")
    inputs = padded.ids.numpy()
    real = np.ones(inputs.shape, dtype=bool) if padded.padding_mask is None else padded.padding_mask.numpy()
    if not model.config.causal:
        return _masked(inputs, real, tokenizer.mask_id, seed), single
    targets = np.full_like(inputs, IGNORED)
    targets[:, :-1] = np.where(real[:, 1:], inputs[:, 1:], IGNORED)
    if not (targets != IGNORED).any():
        raise UserError(
            "a text of one token has no next token to learn: expected at least two tokens", "one_token"
        )
    return Batch(inputs, targets), single


def _masked(inputs: np.ndarray, real: np.ndarray, mask_id: int | None, seed: int) -> Batch:
    """Mask tokens as in training. Padding is a separate document, which the text does not see."""
    if mask_id is None:
        raise UserError(
            "the tokenizer of this bidirectional model has no mask token, so the model cannot be trained"
        )
    cut, targets = inputs.copy(), np.full_like(inputs, IGNORED)
    for row, length in enumerate(real.sum(1)):
        own = Blanks(mask_id).cut(inputs[row : row + 1, :length], blank_generator(seed, row))
        cut[row, :length], targets[row, :length] = own.inputs[0], own.targets[0]
    return Batch(cut, targets, None if real.all() else (~real).astype(np.int64))


def make_recipe(
    model: LanguageModel,
    rows: int,
    optimizer: str | None,
    learning_rate: float | None,
    weight_decay: float | None,
) -> Recipe:
    """The model's own recipe, or the default one, for one step on this many rows."""
    saved = (model.training or {}).get("recipe")
    fields: dict[str, Any] = {"steps": 1, "batch_size": rows, **DEFAULTS}
    if isinstance(saved, dict):
        own = ("optimizer", "learning_rate", "matrix_rate", "momentum", "normalize_rows", "beta2", "weight_decay",
               "decay_embeddings", "clip")  # fmt: skip
        fields |= {name: _checked(name, saved[name]) for name in own if name in saved}
    if optimizer is not None:
        fields["optimizer"] = optimizer
    recipe = Recipe(**fields)
    _check_number("learning_rate", learning_rate)
    _check_number("weight_decay", weight_decay, may_be_zero=True)
    if learning_rate is not None and recipe.optimizer == "muon":
        recipe = replace(recipe, matrix_rate=learning_rate)
    elif learning_rate is not None:
        recipe = replace(recipe, learning_rate=learning_rate)
    return recipe if weight_decay is None else replace(recipe, weight_decay=weight_decay)


def _check_number(name: str, value: float | None, may_be_zero: bool = False) -> None:
    if value is None:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value < math.inf
    if not is_number or not (value > 0 or (may_be_zero and value == 0)):
        least = "of at least 0" if may_be_zero else "above 0"
        raise UserError(f"{name} = {value!r}: expected a finite number {least}")


def _checked(name: str, value: Any) -> Any:
    """A saved value of a recipe, which may be damaged."""
    kind = type(getattr(Recipe, name))
    if type(value) is not kind and (kind, type(value)) != (float, int):
        raise UserError(f"the recipe saved with the model is damaged: {name} = {value!r:.60}")
    return value


def _own(network: Transformer) -> Transformer:
    """A network that shares the weights but not their gradients, without dropout."""
    own = mirror(network, own_parameters(network))
    own.config = replace(network.config, dropout=0.0)
    for block in own.blocks:
        block.dropout.p = 0.0  # type: ignore[union-attr]
    return own
