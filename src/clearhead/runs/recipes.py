"""The recipe of a run: batch, optimizer, learning rates and regularization, chosen for the network and the text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from clearhead.classics.recurrent_cell import GATES
from clearhead.errors import UserError
from clearhead.model.config import Config
from clearhead.networks import LearnerConfig
from clearhead.runs.request import TrainingRequest
from clearhead.runtime.device import has_fast_bfloat16, memory_of
from clearhead.text.tokens import Tokens
from clearhead.training.distillation import TRUE_SHARE
from clearhead.training.recipe import Recipe

LEAST_BATCH, MOST_BATCH = 1024, 65536  # tokens
# For a text that is read this many times, the best batch on a CPU grows with the root of the tokens read (measured for
# 3 to 12 million, see docs/experiments.md). Otherwise, and on a GPU, where a small batch wastes time, the number of
# steps is fixed: see `TOKENS_PER_PARAMETER` in plan.py.
LEAST_READ, BATCH_PER_ROOT, BEST_STEPS = 4, 1.25, 1200

# The more epochs a run has, and the more parameters per token of its text, the more it memorizes (`memorization`). Each
# row has the value of that up to which it applies, then dropout, weight decay and token noise. Measured for 1 to 11
# parameters per token and 3 to 32 epochs (docs/experiments.md).
REGULARIZATION = (
    (10, 0.0, 0.1, 0.0),
    (18, 0.05, 0.1, 0.02),
    (32, 0.1, 0.1, 0.02),
    (130, 0.2, 0.4, 0.05),
)
MAX_REGULARIZATION = (0.3, 0.4, 0.1)
# For a student, whose teachers regularize it: measured on character-level texts (see docs/experiments.md).
STUDENT, STUDENT_IF_REPEATED = (0.1, 0.2, 0.05), (0.1, 0.4, 0.05)
# A student's batches repeat after this many epochs, at least a few, if its teachers' predictions for them fit into
# a share of the memory (see docs/experiments.md).
REPEATED_EPOCHS, LEAST_REPEATED_EPOCHS, KEPT_SHARE = 32, 4, 0.1
REPETITIONS = 4  # of a batch, unless that leaves fewer than LEAST_REPEATED_EPOCHS
MOST_EPOCHS = 40  # beyond this, no regularization helps for long, and the user is warned

ADAMW_RATE = 0.006  # learning rate if AdamW trains the matrices too

# The classic recipe is nanoGPT's: learning rate and beta2 of its small config (train_shakespeare_char.py) below
# this size, and of train.py, which is for 124 million parameters, above.
SMALL = 30_000_000
CLASSIC_SMALL, CLASSIC_LARGE = (1e-3, 0.99), (6e-4, 0.95)
CLASSIC_DROPOUT, CLASSIC_EPOCHS = 0.2, 16  # dropout if the text is repeated this often; otherwise none


def choose_recipe(
    request: TrainingRequest,
    config: LearnerConfig,
    steps: int,
    rows: int,
    bfloat16: bool,
    device: torch.device,
) -> Recipe:
    """The recipe for this many steps of this many windows, before regularization."""
    recipe = Recipe(
        steps=steps,
        batch_size=rows,
        accumulation=request.accumulation,
        name=request.recipe,
        optimizer=request.optimizer or ("adamw" if request.recipe == "classic" else "muon"),
        warmup=choose_warmup(request.recipe, steps),
        bfloat16=bfloat16,
        seed=request.seed,
    )
    if request.recipe == "classic":
        rate, beta2 = CLASSIC_SMALL if config.n_parameter < SMALL else CLASSIC_LARGE
        return replace(
            recipe,
            learning_rate=request.learning_rate or rate,
            beta2=beta2,
            decay_embeddings=True,
            schedule="cosine",
            final_lr_scale=0.1,
        )
    if recipe.optimizer == "muon":
        recipe = replace(recipe, matrix_rate=request.learning_rate or recipe.matrix_rate)
        share = 1.0 if config.tied else (64 / config.d_model) ** 0.5
        # These values were best for transformers trained for minutes on a CPU (see docs/experiments.md);
        # they were not tried on a GPU or with recurrent networks.
        if isinstance(config, Config) and device.type == "cpu":
            share = 1.0 if config.tied else 2 * min(1.0, 64 / config.d_model)
            recipe = replace(recipe, momentum=0.9, normalize_rows=True)
        return replace(recipe, learning_rate=share * recipe.learning_rate)
    return replace(recipe, learning_rate=request.learning_rate or ADAMW_RATE)


def choose_warmup(recipe_name: str, steps: int) -> int:
    """The number of steps over which the learning rate rises."""
    return min(100, max(1, steps // 20)) if recipe_name == "classic" else min(20, max(1, steps // 10))


def list_dtypes(request: TrainingRequest, config: LearnerConfig, device: torch.device) -> list[str]:
    """The data types that matrix products may have, the one that is usually faster first.

    For a small model on a CPU, bfloat16 may be slower. A recurrent state, which passes through every token, must not
    be rounded.
    """
    if request.dtype is not None:
        return [request.dtype]
    if not isinstance(config, Config) or not has_fast_bfloat16(device):
        return ["float32"]
    return ["bfloat16"] if device.type == "cuda" else ["bfloat16", "float32"]


def choose_rows(config: LearnerConfig, batch_tokens: float) -> int:
    """The number of windows per step: a power of two that gives about this many tokens, within bounds."""
    return max(1, 2 ** round(np.log2(np.clip(batch_tokens, LEAST_BATCH, MOST_BATCH) / config.n_context)))


def best_batch(seen: float, n_tokens: int, device: torch.device) -> float:
    """The tokens per step that suit a run that sees this many tokens of a text of `n_tokens`; if its time is up, it
    sees fewer than none.
    """
    if device.type == "cpu" and seen >= LEAST_READ * n_tokens:
        return BATCH_PER_ROOT * float(seen**0.5)
    return seen / BEST_STEPS


def count_epochs(context: int, recipe: Recipe, n_tokens: int) -> float:
    return recipe.steps * recipe.batch_size * context / n_tokens


def memorization(config: LearnerConfig, epochs: float, n_tokens: int) -> float:
    """How strongly a model of this size tends to memorize a text of this many tokens in this many epochs."""
    return float(epochs * (config.n_parameter / n_tokens) ** 0.5)


def regularize(
    request: TrainingRequest, config: LearnerConfig, recipe: Recipe, tokens: Tokens, device: torch.device
) -> tuple[LearnerConfig, Recipe]:
    """Regularize more strongly the more often the text is repeated, and the larger the model is for it."""
    epochs = count_epochs(config.n_context, recipe, len(tokens))
    memorized = memorization(config, epochs, len(tokens))
    dropout, decay, noise = next(
        (rest for most, *rest in REGULARIZATION if memorized < most), MAX_REGULARIZATION
    )
    if request.is_student:
        dropout, decay, noise = STUDENT if epochs < MOST_EPOCHS else STUDENT_IF_REPEATED
        repeat_after = choose_repetition(config, recipe, len(tokens), device)
        recipe = replace(recipe, true_share=TRUE_SHARE, repeat_after=repeat_after)
    if request.recipe == "classic":
        dropout, decay, noise = (
            CLASSIC_DROPOUT if epochs >= CLASSIC_EPOCHS else 0.0,
            recipe.weight_decay,
            0.0,
        )
    if request.dropout is None:
        config = replace(config, dropout=dropout)
    if request.bidirectional or not isinstance(config, Config):
        noise = 0.0  # masked tokens already act as noise; noise was not tried with recurrent networks
    return config, replace(recipe, weight_decay=decay, token_noise=noise)


def choose_repetition(config: LearnerConfig, recipe: Recipe, n_tokens: int, device: torch.device) -> int:
    """The number of steps after which a student's batches repeat, so that predictions can be kept; 0: never."""
    batch = recipe.batch_size * config.n_context
    memory = memory_of(device) or 0
    fitting = int(KEPT_SHARE * memory / (batch * (8 + 2 * config.n_vocab)))
    least, most = (-(-epochs * n_tokens // batch) for epochs in (LEAST_REPEATED_EPOCHS, REPEATED_EPOCHS))
    return 0 if fitting < least else max(least, min(most, fitting, recipe.steps // REPETITIONS))


def check_memory(
    config: LearnerConfig, recipe: Recipe, device: torch.device, context: int = 0, bytes_per_weight: int = 16
) -> None:
    """Raise an error if the model or batch does not fit in memory.

    16 bytes per weight: the weight itself, its gradient, and two moments, in float32.
    """
    memory, context = memory_of(device), context or config.n_context
    weights = bytes_per_weight * config.n_parameter
    rows = recipe.batch_size // recipe.accumulation
    if isinstance(config, Config):
        per_block = 10 * config.d_model + 3 * config.d_hidden
    else:
        per_block = (2 + 3 * len(GATES[config.kind])) * config.d_model
    each = config.n_block * per_block + 2 * config.n_vocab
    activations = 4 * rows * context * each
    if memory is not None and weights + activations > memory:
        raise UserError(
            f"{config.n_parameter:,} parameters and batches of {rows}×{context} tokens need about "
            f"{(weights + activations) / 1e9:,.0f} GB of memory, but this device has only {memory / 1e9:,.0f} GB: "
            "choose a smaller `width`, `blocks`, `context` or `batch`, or a larger `accumulation`",
            "memory_short",
            needed=round((weights + activations) / 1e9),
            there=round(memory / 1e9),
        )
