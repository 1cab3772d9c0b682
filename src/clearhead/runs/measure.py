"""The measured speed of a training step, from which a timed run is planned."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from clearhead.networks import LearnerConfig, Network, make_network
from clearhead.runs.recipes import (
    LEAST_BATCH,
    MOST_BATCH,
    best_batch,
    check_memory,
    choose_recipe,
    choose_rows,
    list_dtypes,
)
from clearhead.runs.request import TrainingRequest
from clearhead.runs.threads import LEAST_SPEEDUP, thread_counts, using_threads
from clearhead.text.batches import Batches
from clearhead.text.tokens import Tokens
from clearhead.training.objective import autocast, cross_entropy
from clearhead.training.trainer import Trainer

MEASURED_STEPS = 4
MOST_PREDICTED = 2**27  # probabilities of a student's batch, of which several copies are in memory


@dataclass(frozen=True)
class Measure:
    """The measured cost of a training step, in the faster precision, with the number of threads that is fastest."""

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
        quick: bool = False,
    ) -> Measure:
        """Measure with about the best batch for the tokens that can be read in the seconds left.

        A larger batch may cost less per token, and so allow an even larger one. If `quick`, try neither another batch
        nor fewer threads.
        """
        gpu = device.type == "cuda"
        # A student's batch must fit into memory together with its teachers' predictions over the whole vocabulary.
        window = config.n_context * config.n_vocab
        most = max(1, MOST_PREDICTED // window) if teachers else MOST_BATCH
        rows = request.batch or min(most, choose_rows(config, LEAST_BATCH * (16 if gpu else 1)))
        while True:
            measure = min(
                (
                    cls._take(request, config, tokens, device, rows, dtype == "bfloat16", teachers)
                    for dtype in list_dtypes(request, config, device)
                ),
                key=lambda measure: measure.seconds_per_token,
            )
            if quick:
                return measure
            if device.type == "cpu":
                again = partial(cls._take, request, config, tokens, device, rows, measure.bfloat16, teachers)
                measure = try_fewer_threads(measure, again)
            better = choose_rows(config, best_batch(left / measure.seconds_per_token, len(tokens), device))
            better = min(better, most)
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
        if teachers:
            recipe = replace(recipe, repeat_after=1)  # a step that uses predictions made earlier
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
    """Measure `again` with fewer threads, and return the fastest measurement.

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
