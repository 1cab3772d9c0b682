"""The measured speed of a training step, from which a timed run is planned."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from clearhead.networks import LearnerConfig, Network, make_network
from clearhead.runs.recipes import LEAST_BATCH, check_memory, choose_recipe, choose_rows, may_be_half
from clearhead.runs.request import TrainingRequest
from clearhead.runs.threads import LEAST_SPEEDUP, thread_counts, using_threads
from clearhead.text.batches import Batches
from clearhead.text.tokens import Tokens
from clearhead.training.objective import autocast, cross_entropy
from clearhead.training.trainer import Trainer

BEST_STEPS = 1200  # see `TOKENS_PER_PARAMETER` in plan.py
MEASURED_STEPS = 4


@dataclass(frozen=True)
class Measure:
    """The measured cost of a training step, in the faster precision and with the fastest number of threads."""

    rows: int  # windows per batch
    seconds_per_token: float
    seconds_per_token_read: float  # in validation, without the backward pass
    bfloat16: bool
    threads: int | None  # on a CPU

    @classmethod
    def take(
        cls,
        request: TrainingRequest,
        config: LearnerConfig,
        tokens: Tokens,
        device: torch.device,
        left: float,
        teachers: Sequence[Network] = (),
    ) -> Measure:
        """Measure with the batch that leads to about the best number of steps in the seconds left.

        A larger batch may cost less per token, and so allow an even larger one.
        """
        gpu = device.type == "cuda"
        precisions = [True] if may_be_half(config, device) else []
        if not gpu or not precisions:
            precisions.append(False)  # for a small model on a CPU, bfloat16 may be slower
        rows = request.batch or choose_rows(config, LEAST_BATCH * (16 if gpu else 1))
        while True:
            measure = min(
                (
                    cls._take(request, config, tokens, device, rows, bfloat16, teachers)
                    for bfloat16 in precisions
                ),
                key=lambda measure: measure.seconds_per_token,
            )
            if device.type == "cpu":
                again = partial(cls._take, request, config, tokens, device, rows, measure.bfloat16, teachers)
                measure = try_fewer_threads(measure, again)
            better = choose_rows(config, left / measure.seconds_per_token / BEST_STEPS)
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
        teachers: Sequence[Network],
    ) -> Measure:
        recipe = choose_recipe(request, config, MEASURED_STEPS + 1, rows, bfloat16, device)
        check_memory(config, recipe, device)
        batches = Batches(tokens, config.n_context, rows, seed=request.seed)
        network = make_network(config).to(device)
        trainer = Trainer(network, batches, recipe, teachers=teachers)
        inputs = torch.from_numpy(trainer.batches.at(0)[0]).to(device)

        def read() -> None:
            with torch.no_grad(), autocast(device, bfloat16):
                cross_entropy(network(inputs), inputs).item()

        step = _typical_seconds(trainer.take_step)
        network.eval()
        threads = torch.get_num_threads() if device.type == "cpu" else None
        return cls(rows, step / inputs.numel(), _typical_seconds(read) / inputs.numel(), bfloat16, threads)


def try_fewer_threads(best: Measure, again: Callable[[], Measure]) -> Measure:
    """Measure `again` with fewer threads, and return the fastest measure.

    On a busy machine, the threads of a step wait for each other, and fewer of them are faster.
    """
    for count in thread_counts()[1:]:
        with using_threads(count):
            measure = again()
        if best.seconds_per_token < LEAST_SPEEDUP * measure.seconds_per_token:
            break
        best = measure
    return best


def _typical_seconds(work: Callable[[], object]) -> float:
    """The median over a few calls, excluding the first, which includes setup."""
    work()
    seconds = []
    for _ in range(MEASURED_STEPS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))
