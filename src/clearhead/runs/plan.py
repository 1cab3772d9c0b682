"""The plan of a run: what the request leaves open, chosen for the text and the measured speed of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from clearhead.classics.recurrent_cell import GATES
from clearhead.errors import UserError
from clearhead.model.config import Config
from clearhead.networks import LearnerConfig, learner_config_from_json, make_network
from clearhead.runs.pace import Schedule
from clearhead.runs.request import TrainingRequest
from clearhead.runs.sizes import list_sizes, usual_size
from clearhead.runtime.device import can_compile, has_fast_bfloat16, memory_of
from clearhead.text.batches import Batches
from clearhead.text.tokens import Tokens
from clearhead.training.objective import autocast, cross_entropy
from clearhead.training.recipe import Recipe
from clearhead.training.trainer import Trainer

DEFAULT_STEPS = 1000

# Measured over budgets of 1 to 150 TFLOP on 1 MB of plays (docs/experiments.md): the loss is lowest at 5 to
# 16 training tokens per parameter of the blocks, in 1,000 to 2,000 steps.
TOKENS_PER_PARAMETER = 8
BEST_STEPS = 1200
LEAST_BATCH, MOST_BATCH = 1024, 65536  # tokens
MOST_PARAMETERS_PER_TOKEN = 10  # of the text; beyond this a model overfits

# Sizes of a text in bytes, and the BPE vocabulary for a shorter one. Measured on 0.1 to 30 MB (docs/experiments.md).
VOCABULARIES = ((100_000, 512), (300_000, 1024), (600_000, 2048))
LARGEST_VOCABULARY = 4096

# Maximum number of epochs, then dropout, weight decay and token noise. Measured at 32
# epochs (see docs/experiments.md); the values for 8 to 16 are interpolated.
REGULARIZATION = ((8, 0.0, 0.1, 0.0), (16, 0.1, 0.1, 0.02), (40, 0.2, 0.4, 0.05))
MAX_REGULARIZATION = (0.3, 0.4, 0.1)
MOST_EPOCHS = REGULARIZATION[-1][0]  # beyond this, no regularization helps for long, and the user is warned

FEW_TOKENS = 20_000  # of a text too short to learn a language from
FEW_STEPS = 20  # fewer are worth a warning

# Compiling takes about 15 seconds and halves the time of a step on CUDA. If only steps are
# given, their time is not known in advance, but their amount of computation is.
WORTH_COMPILING = 60.0  # seconds of training
WORTH_COMPILING_STEPS = 1e16  # FLOPs

ADAMW_RATE = 0.006  # learning rate if AdamW trains the matrices too

# The classic recipe is nanoGPT's: learning rate and beta2 of its small config (train_shakespeare_char.py) below
# this size, and of train.py, which is for 124 million parameters, above.
SMALL = 30_000_000
CLASSIC_SMALL, CLASSIC_LARGE = (1e-3, 0.99), (6e-4, 0.95)
CLASSIC_DROPOUT = 0.2  # if the text is repeated; otherwise none

MEASURED_STEPS = 4
MEASURING_SHARE = 0.15  # of the time


@dataclass(frozen=True)
class Plan:
    """All settings of a run, saved with it."""

    config: LearnerConfig
    recipe: Recipe
    validations: int  # number of validations, including the one at the end
    seconds: float | None  # seconds available for training when this was planned, for a timed run
    context: int = 0  # tokens per window; default: the model's context
    share: float = 1.0  # share of the text that is used, spread over all of it, if time is short
    validated: int | None = None  # tokens of the validation text used each time; default: all
    steps_per_validation: float = 0.0  # estimated

    def __post_init__(self) -> None:
        object.__setattr__(self, "context", self.context or self.config.n_context)

    def epochs(self, n_tokens: int) -> float:
        """The number of epochs over a text of this many tokens."""
        return _epochs(self.context, self.recipe, n_tokens)

    def warnings(self, n_tokens: int, fine_tuned: bool = False) -> list[str]:
        """Warnings about training this long on a text of this many tokens."""
        words, epochs = [], self.epochs(n_tokens)
        steps = self.recipe.steps - self.recipe.first_step
        if self.seconds is not None and steps < FEW_STEPS:
            only = f"there is time for only about {steps} step{'' if steps == 1 else 's'}: train for longer"
            words.append(only + (", or fine-tune adapters or a smaller model" if fine_tuned else ""))
        if self.share < 1:
            words.append(
                f"there is not enough time to tokenize the whole text: only 1/{1 / self.share:.0f} of it is "
                "used, sampled throughout; train for more minutes to use more"
            )
        if epochs >= MOST_EPOCHS:
            start = (
                ", and so would a pretrained model fine-tuned on it "
                "(clearhead pull smollm2, then --from smollm2)"
            )
            words.append(
                f"the text is short: {epochs:,.0f} epochs may overfit; more text would help more than more time"
                + (start if n_tokens < FEW_TOKENS and not fine_tuned else "")
            )
        return words

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "config"} | {
            "recipe": vars(self.recipe)
        }

    @classmethod
    def from_json(cls, settings: dict[str, Any]) -> Plan:
        """Read the plan that was saved with its config when a run started."""
        try:
            config, recipe = learner_config_from_json(settings["config"]), Recipe(**settings["recipe"])
            kinds = {"validations": int, "context": int, "share": float, "steps_per_validation": float}
            numbers = {name: kind(settings[name]) for name, kind in kinds.items()}
            seconds, validated = settings["seconds"], settings["validated"]
            return cls(config, recipe, seconds=seconds, validated=validated, **numbers)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"the plan of the run is damaged ({error}): start in another folder") from None


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


def choose_tokenizer(request: TrainingRequest, n_bytes: int) -> tuple[str, int | None]:
    """The tokenizer and vocabulary size: bytes for a small text, otherwise BPE with a size that grows with the text."""
    kind = request.tokenizer or ("byte" if request.vocab is None and n_bytes < 50_000 else "bpe")
    if kind != "bpe":
        return kind, request.vocab
    return kind, request.vocab or next(
        (size for most, size in VOCABULARIES if n_bytes < most), LARGEST_VOCABULARY
    )


def make_plan(
    request: TrainingRequest,
    tokens: Tokens,
    n_validation: int,
    n_vocab: int,
    device: torch.device,
    left: float | None,
) -> Plan:
    """Choose size, batch, precision and steps. `left` is the number of seconds that the run may still take."""
    if left is None:
        return _plan_steps(request, tokens, n_vocab, device)
    start = time.perf_counter()
    candidates = list_sizes(request, tokens, n_vocab)
    config, measure = candidates[0], Measure.take(request, candidates[0], tokens, device, left)
    rest = [
        each for each in candidates[1:] if _block_parameters(each) <= MOST_PARAMETERS_PER_TOKEN * len(tokens)
    ]
    began = time.perf_counter()  # after the first measurement, which on a GPU includes setup
    while rest and time.perf_counter() - began < MEASURING_SHARE * left:
        # The cost per token grows at most in proportion to the parameters, so these are sure to be small enough.
        sure = [
            each
            for each in rest
            if _is_enough(
                measure.seconds_per_token * _block_parameters(each) / _block_parameters(config), each, left
            )
        ]
        larger = sure[-1] if sure else rest[0]
        its_measure = Measure.take(request, larger, tokens, device, left)
        if not _is_enough(its_measure.seconds_per_token, larger, left):
            break
        config, measure = larger, its_measure
        rest = rest[rest.index(larger) + 1 :]
    left -= time.perf_counter() - start
    return _plan_time(request, tokens, n_validation, left, config, measure, device)


def _block_parameters(config: LearnerConfig) -> int:
    return config.n_block * config.n_parameter_per_block


def _is_enough(seconds_per_token: float, config: LearnerConfig, left: float) -> bool:
    """Whether a model of this size would see enough tokens in the remaining seconds to be worth it."""
    return left / seconds_per_token >= TOKENS_PER_PARAMETER * _block_parameters(config)


@dataclass(frozen=True)
class Measure:
    """The measured cost of a training step, in the faster precision."""

    rows: int  # windows per batch
    seconds_per_token: float
    seconds_per_token_read: float  # in validation, without the backward pass
    bfloat16: bool

    @classmethod
    def take(
        cls,
        request: TrainingRequest,
        config: LearnerConfig,
        tokens: Tokens,
        device: torch.device,
        left: float,
    ) -> Measure:
        """Measure with the batch that leads to about the best number of steps in the seconds left.

        A larger batch may cost less per token, and so allow an even larger one.
        """
        gpu = device.type == "cuda"
        precisions = [True] if may_be_half(config, device) else []
        if not gpu or not precisions:
            precisions.append(False)  # for a small model on a CPU, bfloat16 may be slower
        rows = request.batch or _rows(config, LEAST_BATCH * (16 if gpu else 1))
        while True:
            measure = min(
                (cls._take(request, config, tokens, device, rows, bfloat16) for bfloat16 in precisions),
                key=lambda measure: measure.seconds_per_token,
            )
            better = _rows(config, left / measure.seconds_per_token / BEST_STEPS)
            if request.batch or better <= rows:
                return measure
            rows = min(better, 4 * rows)

    @classmethod
    def _take(
        cls,
        request: TrainingRequest,
        config: LearnerConfig,
        tokens: Tokens,
        device: torch.device,
        rows: int,
        bfloat16: bool,
    ) -> Measure:
        recipe = _recipe(request, config, MEASURED_STEPS + 1, rows, bfloat16, device)
        check_memory(config, recipe, device)
        batches = Batches(tokens, config.n_context, rows, seed=request.seed)
        network = make_network(config).to(device)
        trainer = Trainer(network, batches, recipe)
        inputs = torch.from_numpy(trainer.batches.at(0)[0]).to(device)

        def read() -> None:
            with torch.no_grad(), autocast(device, bfloat16):
                cross_entropy(network(inputs), inputs).item()

        step = _typical_seconds(trainer.take_step)
        network.eval()
        return cls(rows, step / inputs.numel(), _typical_seconds(read) / inputs.numel(), bfloat16)


def _typical_seconds(work: Callable[[], object]) -> float:
    """The median over a few calls, excluding the first, which includes setup."""
    work()
    seconds = []
    for _ in range(MEASURED_STEPS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def _plan_steps(request: TrainingRequest, tokens: Tokens, n_vocab: int, device: torch.device) -> Plan:
    config = usual_size(request, tokens, n_vocab)
    steps = request.steps or DEFAULT_STEPS
    rows = request.batch or _rows(config, LEAST_BATCH)
    recipe = _recipe(request, config, steps, rows, may_be_half(config, device), device)
    check_memory(config, recipe, device)
    work = 6.0 * config.n_parameter * steps * rows * config.n_context
    recipe = replace(recipe, compiled=_pays(request, config, device, work >= WORTH_COMPILING_STEPS))
    return Plan(*regularize(request, config, recipe, tokens), validations=min(steps, 5), seconds=None)


def _plan_time(
    request: TrainingRequest,
    tokens: Tokens,
    n_validation: int,
    left: float,
    config: LearnerConfig,
    measure: Measure,
    device: torch.device,
) -> Plan:
    seconds_per_step = measure.seconds_per_token * measure.rows * config.n_context
    schedule = Schedule.fit(
        left, seconds_per_step, measure.seconds_per_token_read, n_validation, config.n_context
    )
    recipe = _recipe(request, config, schedule.steps, measure.rows, measure.bfloat16, device)
    recipe = replace(recipe, compiled=_pays(request, config, device, left >= WORTH_COMPILING))
    return Plan(*regularize(request, config, recipe, tokens), seconds=left, **schedule.to_plan())


def _pays(request: TrainingRequest, config: LearnerConfig, device: torch.device, is_long: bool) -> bool:
    """Whether to compile: as requested, or if the run is long enough."""
    if request.compiled is not None:
        return request.compiled
    return is_long and isinstance(config, Config) and can_compile(device)


def may_be_half(config: LearnerConfig, device: torch.device) -> bool:
    """Whether bfloat16 may be used. A recurrent state, which passes through every token, must not be rounded."""
    return isinstance(config, Config) and has_fast_bfloat16(device)


def _rows(config: LearnerConfig, batch_tokens: float) -> int:
    """The number of windows per step: a power of two that gives about this many tokens, within bounds."""
    return max(1, 2 ** round(np.log2(np.clip(batch_tokens, LEAST_BATCH, MOST_BATCH) / config.n_context)))


def _epochs(context: int, recipe: Recipe, n_tokens: int) -> float:
    return recipe.steps * recipe.batch_size * context / n_tokens


def regularize(
    request: TrainingRequest, config: LearnerConfig, recipe: Recipe, tokens: Tokens
) -> tuple[LearnerConfig, Recipe]:
    """Regularize more strongly the more often the text is repeated."""
    epochs = _epochs(config.n_context, recipe, len(tokens))
    dropout, decay, noise = next(
        (rest for most, *rest in REGULARIZATION if epochs < most), MAX_REGULARIZATION
    )
    if request.recipe == "classic":
        dropout, decay, noise = (
            CLASSIC_DROPOUT if dropout >= CLASSIC_DROPOUT else 0.0,
            recipe.weight_decay,
            0.0,
        )
    if request.dropout is None:
        config = replace(config, dropout=dropout)
    if request.bidirectional or not isinstance(config, Config):
        noise = 0.0  # masked tokens already act as noise; noise was not tried with recurrent networks
    return config, replace(recipe, weight_decay=decay, token_noise=noise)


def _recipe(
    request: TrainingRequest,
    config: LearnerConfig,
    steps: int,
    rows: int,
    bfloat16: bool,
    device: torch.device,
) -> Recipe:
    recipe = Recipe(
        steps=steps,
        batch_size=rows,
        accumulation=request.accumulation,
        name=request.recipe,
        optimizer=request.optimizer or ("adamw" if request.recipe == "classic" else "muon"),
        warmup=min(20, max(1, steps // 10)),
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
            warmup=min(100, max(1, steps // 20)),
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
