"""Fine-tuning: start from the network and tokenizer of a model, with a plan that keeps its shape."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from clearhead.classics.ngram import NGram
from clearhead.classics.recurrent import Recurrent
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.errors import UserError
from clearhead.formats.opening import open_model
from clearhead.model.block import Block
from clearhead.model.config import Config
from clearhead.networks import Learner, LearnerConfig, need_transformer
from clearhead.runs.measure import Measure, try_fewer_threads
from clearhead.runs.pace import Schedule
from clearhead.runs.plan import DEFAULT_STEPS, FEW_STEPS, Plan
from clearhead.runs.recipes import check_memory, list_dtypes
from clearhead.runs.request import TrainingRequest
from clearhead.runs.sizes import fitting_context
from clearhead.text.batches import Batches
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokens import Tokens
from clearhead.training.lora import adapt
from clearhead.training.objective import autocast, cross_entropy
from clearhead.training.recipe import Recipe
from clearhead.training.trainer import Trainer

# Learning rates of AdamW for all weights and for adapters, and of Muon (see docs/experiments.md).
FULL_RATE, LORA_RATE, MUON_RATE = 3e-4, 1e-3, 0.002
LORA_RATE_FOR_FEW_STEPS = 3e-3

WINDOW_ON_CPU, WINDOW = 256, 1024  # tokens
LEAST_WINDOW = 64  # if there is time for only a few steps
BEST_STEPS = 200
LEAST_BATCH, MOST_BATCH = 256, 16384  # tokens
DEFAULT_BATCH = 1024
LONG = 1.0  # seconds; a measurement that takes this long on a CPU is not repeated
TRIAL_SHARE = 0.05  # of the time; fewer threads are not tried if a step takes longer
READING = 1 / 3  # forward pass as a fraction of a training step; the backward pass takes twice as long


@dataclass(frozen=True)
class Start:
    """The model to fine-tune."""

    network: Learner
    tokenizer: Tokenizer
    training: dict[str, Any] | None = None  # how it was trained, if we trained it


def open_start(request: TrainingRequest) -> Start | None:
    """The model to fine-tune, if any."""
    if request.start is None:
        return None
    saved = open_model(request.start)
    if not saved.network.config.causal:
        raise UserError(
            f"{request.start} is bidirectional: it fills in blanks and cannot be fine-tuned to generate"
        )
    if isinstance(saved.network, NGram):
        raise UserError(
            f"{request.start} is an n-gram model, which cannot be fine-tuned: choose another model for `start`"
        )
    if request.lora is not None or request.sharded:
        need_transformer(saved.network.config, "`sharded`" if request.sharded else "`lora`")
    return Start(saved.network, saved.tokenizer, saved.training)


def prepare(network: Learner, config: LearnerConfig, lora: int | None) -> Learner:
    """The network ready for training: with the plan's dropout, and adapters if requested."""
    assert replace(config, dropout=0.0) == replace(network.config, dropout=0.0)
    if isinstance(network, Recurrent):
        assert isinstance(config, RecurrentConfig)
        network.config = config
        return network
    assert isinstance(config, Config)
    network.config = config
    for block in network.blocks:
        assert isinstance(block, Block)
        block.dropout.p = config.dropout
    return network if lora is None else adapt(network, lora)


def plan_start(
    request: TrainingRequest,
    network: Learner,
    tokens: Tokens,
    n_validation: int,
    device: torch.device,
    left: float | None,
) -> Plan:
    """Choose window, batch and steps; the model keeps its shape. `left` is the number of seconds left."""
    config = replace(network.config, dropout=request.dropout or 0.0)
    window = WINDOW_ON_CPU if device.type == "cpu" else WINDOW
    context = request.context or min(config.n_context, window, fitting_context(tokens))
    if context > config.n_context:
        raise UserError(
            f"context = {context}: the context of {request.start} is {config.n_context} tokens; choose fewer"
        )
    if left is None:
        steps = request.steps or DEFAULT_STEPS
        recipe = _recipe(request, config, steps, request.batch or _rows(DEFAULT_BATCH, context), device)
        _check_memory(request, config, context, recipe, device)
        return Plan(config, recipe, min(steps, 5), None, context)
    began = time.perf_counter()
    # The weights of the base model must not change.
    network = prepare(deepcopy(network), config, request.lora).to(device)
    measure = measure_start(request, network, context, tokens, left)
    rows, learning = measure.rows, measure.seconds_per_token
    left -= time.perf_counter() - began
    if left / (learning * rows * context) < FEW_STEPS and request.context is None:
        # More steps of fewer tokens: the loss falls faster (see docs/experiments.md).
        rows = request.batch or request.accumulation
        while context >= 2 * LEAST_WINDOW and left / (learning * rows * context) < FEW_STEPS:
            context //= 2
    reading = measure.seconds_per_token_read
    schedule = Schedule.fit(left, learning * rows * context, reading, n_validation, context)
    recipe = _recipe(request, config, schedule.steps, rows, device)
    threads = measure.threads
    return Plan(config, recipe, seconds=left, context=context, threads=threads, **schedule.to_plan())


def measure_start(
    request: TrainingRequest, network: Learner, context: int, tokens: Tokens, left: float
) -> Measure:
    """Measure with the batch that leads to about the best number of steps in the seconds left."""
    device = network.embedding.weight.device
    rows = request.batch or _rows(LEAST_BATCH * (1 if device.type == "cpu" else 16), context)
    while True:
        measure = _measure(request, network, context, tokens, rows)
        if device.type == "cpu" and measure.seconds_per_token * rows * context < TRIAL_SHARE * left:
            measure = try_fewer_threads(measure, partial(_measure, request, network, context, tokens, rows))
        better = _rows(left / measure.seconds_per_token / BEST_STEPS, context)
        if request.batch or better <= rows:
            return measure
        rows = min(better, 4 * rows)


def _measure(request: TrainingRequest, network: Learner, context: int, tokens: Tokens, rows: int) -> Measure:
    device = network.embedding.weight.device
    recipe = _recipe(request, network.config, 2, rows, device)
    _check_memory(request, network.config, context, recipe, device)
    trainer = Trainer(network.train(), Batches(tokens, context, rows, seed=request.seed), recipe)
    inputs = torch.from_numpy(trainer.batches.at(0)[0]).to(device)

    def read() -> None:
        with torch.no_grad(), autocast(device, recipe.bfloat16):
            cross_entropy(network(inputs), inputs).item()

    learning = _seconds(trainer.take_step, device)
    network.eval()
    reading = learning * READING if learning > LONG else _seconds(read, device)
    n, threads = inputs.numel(), torch.get_num_threads() if device.type == "cpu" else None
    return Measure(rows, learning / n, reading / n, recipe.bfloat16, threads)


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    """The duration without setup: that of a second call, unless the first takes long on a CPU."""
    seconds = 0.0
    for _ in range(2):
        began = time.perf_counter()
        work()
        seconds = time.perf_counter() - began
        if seconds > LONG and device.type == "cpu":
            break
    return seconds


def _rows(batch_tokens: float, context: int) -> int:
    """The number of windows per step: a power of two that gives about this many tokens, within bounds."""
    return max(1, 2 ** round(np.log2(np.clip(batch_tokens, LEAST_BATCH, MOST_BATCH) / context)))


def _recipe(
    request: TrainingRequest, config: LearnerConfig, steps: int, rows: int, device: torch.device
) -> Recipe:
    """The recipe: a low learning rate, and no weight decay, which would pull pretrained weights toward zero."""
    few = LORA_RATE_FOR_FEW_STEPS
    recipe = Recipe(
        steps=steps,
        batch_size=rows,
        accumulation=request.accumulation,
        optimizer=request.optimizer or "adamw",
        learning_rate=FULL_RATE if request.lora is None else few if steps < FEW_STEPS else LORA_RATE,
        matrix_rate=MUON_RATE,
        weight_decay=0.0,
        warmup=min(20, max(1, steps // 10)),
        bfloat16=list_dtypes(request, config, device)[0] == "bfloat16",
        seed=request.seed,
    )
    rate = request.learning_rate
    if rate is None:
        return recipe
    muon = request.optimizer == "muon"
    return replace(recipe, matrix_rate=rate) if muon else replace(recipe, learning_rate=rate)


def _check_memory(
    request: TrainingRequest, config: LearnerConfig, context: int, recipe: Recipe, device: torch.device
) -> None:
    # Each weight with its gradient and two moments; with adapters, the frozen and the merged weights.
    bytes_per_weight = 16 if request.lora is None else 8
    check_memory(config, recipe, device, context, bytes_per_weight)
