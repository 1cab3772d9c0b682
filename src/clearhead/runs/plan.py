"""The plan of a run: what the request leaves open, chosen for the text and the measured speed of the machine."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from clearhead.classics.ngram_config import NGramConfig
from clearhead.errors import UserError
from clearhead.model.config import Config
from clearhead.networks import LearnerConfig, SingleConfig, learner_config_from_json
from clearhead.runs.measure import Measure
from clearhead.runs.pace import Schedule
from clearhead.runs.recipes import (
    LEAST_BATCH,
    LEAST_READ,
    MOST_EPOCHS,
    REPEATED_EPOCHS,
    best_batch,
    check_memory,
    choose_recipe,
    choose_rows,
    count_epochs,
    list_dtypes,
    regularize,
)
from clearhead.runs.request import TrainingRequest
from clearhead.runs.sizes import fitting_context, list_sizes, usual_size
from clearhead.runs.teachers import Teachers
from clearhead.runtime.device import can_compile, has_fast_bfloat16
from clearhead.text.tokens import Tokens
from clearhead.training.recipe import Recipe

DEFAULT_STEPS = 1000

# Measured over budgets of 1 to 150 TFLOP on 1 MB of plays (docs/experiments.md): the loss is lowest at 5 to
# 16 training tokens per parameter of the blocks, in 1,000 to 2,000 steps. In a few minutes on a CPU with matrix
# units, which a narrow model does not use fully, it is lowest at 2 to 4.
TOKENS_PER_PARAMETER, TOKENS_PER_PARAMETER_ON_MATRIX_UNITS = 8.0, 2.5
MOST_PARAMETERS_PER_TOKEN = 11  # of the text; beyond this a model overfits
# The same for a text of BPE tokens that is repeated more than MOST_EPOCHS times (docs/experiments.md); a
# character-level text allows more.
MOST_PARAMETERS_IF_REPEATED = 1.5
LEAST_REPEATED_VOCABULARY = 512
# The same for a student: its teachers show it more than the text does (docs/experiments.md).
STUDENT_TOKENS_PER_PARAMETER, MOST_STUDENT_PARAMETERS_PER_TOKEN = 4.0, 26
TEACHER_EPOCHS = 24  # are enough for a teacher of any size

# Sizes of a text in bytes, and the BPE vocabulary for a shorter one. Measured on 0.1 to 30 MB (docs/experiments.md).
VOCABULARIES = ((100_000, 512), (300_000, 1024), (600_000, 2048))
LARGEST_VOCABULARY = 4096

# The context of characters, if the text is read several times and a batch still has some windows. The plays gain from
# it; a novel in bytes, whose loss rose, keeps the context of its size (docs/experiments.md).
MOST_CONTEXT, MOST_CONTEXT_ON_CPU, LEAST_WINDOWS = 1024, 512, 8

FEW_TOKENS = 20_000  # of a text too short to learn a language from
FEW_STEPS = 20  # fewer are worth a warning
VALIDATED_IF_LONGER, FEW_VALIDATIONS = 60.0, 3  # seconds; number of validations in a shorter run

# Compiling takes about 15 seconds, less for a student whose teachers have just been compiled, and halves the time of a
# step on CUDA. If only steps are given, their time is not known in advance, but their amount of computation is.
WORTH_COMPILING, WORTH_COMPILING_STUDENT = 60.0, 10.0  # seconds of training
WORTH_COMPILING_STEPS = 1e16  # FLOPs
COMPILED_SPEEDUP = 2

MEASURING_SHARE = 0.15  # of the time
MOST_ASKING_SHARE = 0.3  # of a student's time, for its teachers
MOST_SHARED = 256  # tokens of context that a student shares by default with teachers from elsewhere


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
    threads: int | None = None  # on a CPU, for a timed run; default: as many as torch uses

    def __post_init__(self) -> None:
        object.__setattr__(self, "context", self.context or self.config.n_context)

    def epochs(self, n_tokens: int) -> float:
        """The number of epochs over a text of this many tokens."""
        return count_epochs(self.context, self.recipe, n_tokens)

    def with_few_validations(self, only_last: bool) -> Plan:
        """This plan, validated only a few times, or only at the end, if there is little time.

        Each validation also saves the best model and a checkpoint.
        """
        if self.seconds is None or self.seconds >= VALIDATED_IF_LONGER:
            return self
        return replace(self, validations=1 if only_last else min(self.validations, FEW_VALIDATIONS))

    def warnings(self, n_tokens: int, fine_tuned: bool = False) -> list[str]:
        """Warnings about training this long on a text of this many tokens."""
        messages, epochs = [], self.epochs(n_tokens)
        steps = self.recipe.steps - self.recipe.first_step
        if self.seconds is not None and steps < FEW_STEPS:
            only = f"there is time for only about {steps} step{'' if steps == 1 else 's'}: train for longer"
            messages.append(only + (", or fine-tune adapters or a smaller model" if fine_tuned else ""))
        if self.share < 1:
            messages.append(
                f"there is not enough time to tokenize the whole text: only 1/{1 / self.share:.0f} of it is "
                "used, sampled throughout; train for more minutes to use more"
            )
        if epochs >= MOST_EPOCHS:
            start = (
                ", and so would a pretrained model fine-tuned on it "
                "(clearhead pull smollm2, then --from smollm2)"
            )
            messages.append(
                f"the text is short: {epochs:,.0f} epochs may overfit; more text would help more than more time"
                + (start if n_tokens < FEW_TOKENS and not fine_tuned else "")
            )
        return messages

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
            optional = {name: settings[name] for name in ("seconds", "validated")}
            return cls(config, recipe, **optional, threads=settings.get("threads"), **numbers)
        except (ArithmeticError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"the plan of the run is damaged ({error}): start in another folder") from None


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
    teachers: Teachers | None = None,
    is_teacher: bool = False,
) -> Plan:
    """Choose size, batch, precision and steps. `left` is the number of seconds that the run may still take."""
    networks = () if teachers is None else teachers.networks
    if teachers is not None:
        request = _like_teachers(request, teachers, tokens)
    if left is None:
        return _plan_steps(request, tokens, n_vocab, device)
    start = time.perf_counter()
    candidates = list_sizes(request, tokens, n_vocab)
    per_parameter, most_per_token = TOKENS_PER_PARAMETER, MOST_PARAMETERS_PER_TOKEN
    if device.type == "cpu" and has_fast_bfloat16(device):
        per_parameter = TOKENS_PER_PARAMETER_ON_MATRIX_UNITS
    enough = TEACHER_EPOCHS * len(tokens) if is_teacher else math.inf
    if teachers is not None:
        per_parameter, most_per_token = STUDENT_TOKENS_PER_PARAMETER, MOST_STUDENT_PARAMETERS_PER_TOKEN
        if _pays(request, candidates[0], device, left >= _worth_compiling(request)):
            per_parameter /= COMPILED_SPEEDUP  # measured before compiling
        if request.teachers or is_teacher:
            least = min(_block_parameters(each.config) for each in teachers.networks)
            candidates = [each for each in candidates if _block_parameters(each) >= least] or candidates[-1:]
    # On a CPU, a thorough measurement takes seconds: only the chosen size gets one.
    quick = device.type == "cpu" and len(candidates) > 1
    take = partial(Measure.take, request, tokens=tokens, device=device, left=left, teachers=networks)
    config, measure = candidates[0], take(config=candidates[0], quick=quick)
    if teachers is not None:
        left -= min(MOST_ASKING_SHARE * left, _asking(config, measure, teachers, tokens))
    rest = [each for each in candidates[1:] if _block_parameters(each) <= most_per_token * len(tokens)]
    began = time.perf_counter()  # after the first measurement, which on a GPU includes setup
    while rest and time.perf_counter() - began < MEASURING_SHARE * left:
        # The cost per token grows at most in proportion to the parameters.
        at_most = {
            each: measure.seconds_per_token * _block_parameters(each) / _block_parameters(config)
            for each in rest
        }
        rest = [each for each in rest if not _overfits(at_most[each], each, tokens, left)]
        if not rest:
            break
        sure = [each for each in rest if _is_enough(at_most[each], each, left, per_parameter, enough)]
        larger = sure[-1] if sure else rest[0]
        its_measure = take(config=larger, quick=quick)
        if not _is_enough(its_measure.seconds_per_token, larger, left, per_parameter, enough):
            break
        if _overfits(its_measure.seconds_per_token, larger, tokens, left):
            rest = rest[: rest.index(larger)]
            continue
        config, measure = larger, its_measure
        rest = rest[rest.index(larger) + 1 :]
    longer = _with_long_context(request, config, tokens, left / measure.seconds_per_token, device)
    if quick or longer != config:
        config, measure = longer, take(config=longer)
    left -= time.perf_counter() - start
    return _plan_time(request, tokens, n_validation, left, config, measure, device)


def _with_long_context(
    request: TrainingRequest, config: LearnerConfig, tokens: Tokens, seen: float, device: torch.device
) -> LearnerConfig:
    """The config with a longer context if it reads one text in characters several times; `seen` counts its tokens."""
    if request.context or request.tokenizer != "char" or tokens.are_documents:
        return config
    if not isinstance(config, Config) or not config.causal or config.position != "rotary":
        return config
    most: float = MOST_CONTEXT_ON_CPU if device.type == "cpu" else MOST_CONTEXT
    most = min(most, fitting_context(tokens), best_batch(seen, len(tokens), device) / LEAST_WINDOWS)
    if seen < LEAST_READ * len(tokens) or most <= config.n_context:
        return config
    return replace(config, n_context=2 ** int(math.log2(most)))


def largest_size(request: TrainingRequest, tokens: Tokens, n_vocab: int, device: torch.device) -> Config:
    """The largest transformer that suits the text."""
    sizes = list_sizes(request, tokens, n_vocab)
    suitable = [each for each in sizes if _block_parameters(each) <= MOST_PARAMETERS_PER_TOKEN * len(tokens)]
    config = _with_long_context(request, (suitable or sizes[:1])[-1], tokens, math.inf, device)
    assert isinstance(config, Config)
    return config


def smaller_size(request: TrainingRequest, plan: Plan, tokens: Tokens, seconds: float) -> Config:
    """The size for a part of the planned time: the cost of a token is taken to grow with the parameters."""
    assert isinstance(plan.config, Config)
    assert plan.seconds is not None
    most = _block_parameters(plan.config)
    seen = plan.recipe.steps * plan.recipe.batch_size * plan.context  # tokens in the planned time
    sizes = list_sizes(request, tokens, plan.config.n_vocab)
    chosen = sizes[0]
    for each in sizes[1:]:
        n_parameter = _block_parameters(each)
        fitting = seen * seconds / plan.seconds * most / n_parameter
        if n_parameter <= most and fitting >= TOKENS_PER_PARAMETER * n_parameter:
            chosen = each
    assert isinstance(chosen, Config)
    return chosen


def scale_plan(
    request: TrainingRequest,
    plan: Plan,
    config: LearnerConfig,
    tokens: Tokens,
    n_validation: int,
    device: torch.device,
) -> Plan:
    """The plan of a timed run of a different size, from one that was measured: a token's cost is taken to grow with
    the parameters.
    """
    assert plan.seconds is not None
    assert request.minutes is not None
    recipe, seconds = plan.recipe, 60 * request.minutes
    larger = _block_parameters(config) / _block_parameters(plan.config)
    a_step = plan.seconds / (recipe.steps + plan.validations * plan.steps_per_validation)
    per_token = larger * a_step / (recipe.batch_size * plan.context)
    read = larger * a_step * plan.steps_per_validation / (plan.validated or n_validation)
    rows = request.batch or min(
        recipe.batch_size, choose_rows(config, best_batch(seconds / per_token, len(tokens), device))
    )
    measure = Measure(rows, per_token, read, recipe.bfloat16, plan.threads)
    return _plan_time(request, tokens, n_validation, seconds, config, measure, device)


def _like_teachers(request: TrainingRequest, teachers: Teachers, tokens: Tokens) -> TrainingRequest:
    """The request, with a context that the teachers can read and, if known, the batch of the first one."""
    most = teachers.n_context
    if request.context is not None and request.context > most:
        raise UserError(f"context = {request.context}: the teachers read at most {most} tokens; choose fewer")
    shared = most if request.teachers else min(most, MOST_SHARED)
    context = request.context or min(shared, fitting_context(tokens))
    return replace(request, context=context, batch=request.batch or teachers.batch)


def _asking(config: LearnerConfig, measure: Measure, teachers: Teachers, tokens: Tokens) -> float:
    """The estimated seconds that the teachers take to read each batch once, until the batches repeat."""
    read = sum(_block_parameters(each.config) for each in teachers.networks) / _block_parameters(config)
    return REPEATED_EPOCHS * len(tokens) * read * measure.seconds_per_token_read


def _block_parameters(config: SingleConfig) -> int:
    return 0 if isinstance(config, NGramConfig) else config.n_block * config.n_parameter_per_block


def _is_enough(
    seconds_per_token: float, config: LearnerConfig, left: float, tokens_per_parameter: float, enough: float
) -> bool:
    """Whether a model of this size would see enough tokens in the remaining seconds to be worth it."""
    return left / seconds_per_token >= min(tokens_per_parameter * _block_parameters(config), enough)


def _overfits(seconds_per_token: float, config: LearnerConfig, tokens: Tokens, left: float) -> bool:
    """Whether a model of this size would repeat the text so often that a smaller one learns more."""
    epochs = left / seconds_per_token / len(tokens)
    has_limit = config.n_vocab >= LEAST_REPEATED_VOCABULARY and epochs >= MOST_EPOCHS
    return has_limit and _block_parameters(config) > MOST_PARAMETERS_IF_REPEATED * len(tokens)


def _plan_steps(request: TrainingRequest, tokens: Tokens, n_vocab: int, device: torch.device) -> Plan:
    config = usual_size(request, tokens, n_vocab)
    steps = request.steps or DEFAULT_STEPS
    rows = request.batch or choose_rows(config, LEAST_BATCH)
    recipe = choose_recipe(
        request, config, steps, rows, list_dtypes(request, config, device)[0] == "bfloat16", device
    )
    check_memory(config, recipe, device)
    work = 6.0 * config.n_parameter * steps * rows * config.n_context
    recipe = replace(recipe, compiled=_pays(request, config, device, work >= WORTH_COMPILING_STEPS))
    return Plan(*regularize(request, config, recipe, tokens, device), validations=min(steps, 5), seconds=None)


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
    recipe = choose_recipe(request, config, schedule.steps, measure.rows, measure.bfloat16, device)
    recipe = replace(recipe, compiled=_pays(request, config, device, left >= _worth_compiling(request)))
    # The speed was measured before compiling.
    expected = COMPILED_SPEEDUP * recipe.steps if recipe.compiled else recipe.steps
    config, regularized = regularize(request, config, replace(recipe, steps=expected), tokens, device)
    recipe = replace(regularized, steps=recipe.steps)
    return Plan(config, recipe, seconds=left, threads=measure.threads, **schedule.to_plan())


def _worth_compiling(request: TrainingRequest) -> float:
    return WORTH_COMPILING_STUDENT if request.teachers else WORTH_COMPILING


def _pays(request: TrainingRequest, config: LearnerConfig, device: torch.device, is_long: bool) -> bool:
    """Whether to compile: as requested, or if the run is long enough."""
    if request.compiled is not None:
        return request.compiled
    return is_long and isinstance(config, Config) and can_compile(device)


def share_batch(plan: Plan, request: TrainingRequest, processes: int) -> Plan:
    """The plan, with a default batch that divides evenly among the processes."""
    recipe = plan.recipe
    if request.batch is not None:
        return plan
    equal = processes * recipe.accumulation
    return replace(plan, recipe=replace(recipe, batch_size=-(-recipe.batch_size // equal) * equal))
