"""The number of threads of a timed run on a CPU: the fastest one, which on a busy machine need not be the largest."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import torch

LEAST_SPEEDUP = 1.1  # below this, the number of threads is not changed
TRIAL_STEPS = 3  # for each number of threads
IDLE = 0.5  # load of other programs that is not worth mentioning


def thread_counts() -> list[int]:
    """The numbers of threads to choose from: all that torch may use, then half as many, and so on down to 1."""
    counts = [torch.get_num_threads()]
    while counts[-1] > 1:
        counts.append(counts[-1] // 2)
    return counts


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def competing_load(threads: int) -> float:
    """The average number, over the last minute, of other programs' threads that compete with ours for cores."""
    if not hasattr(os, "getloadavg"):
        return 0.0
    own = min(threads, time.process_time() / 60)
    spare = max(0, (os.cpu_count() or 1) - threads)
    return max(0.0, os.getloadavg()[0] - own - spare)


def describe_load(threads: int) -> str | None:
    """A message for the user if other programs keep the machine busy."""
    if competing_load(threads) <= IDLE:
        return None
    return (
        f"other programs are using the processor (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores): "
        "the model learns less in the same time"
    )


class ThreadTrial:
    """Watches the steps of a run and changes the number of threads when another number is faster.

    Other numbers are tried with steps of the run itself, so no work is lost.
    """

    def __init__(self, count: int, counts: list[int]) -> None:
        self.count = count
        self.counts = counts
        self._queue: list[int] = []  # the numbers of threads for the coming steps
        self._seconds: dict[int, list[float]] = {}

    def begin(self) -> None:
        """Try the next larger and smaller numbers, if the machine is busy or has been."""
        if self._queue or (self.count == self.counts[0] and competing_load(self.count) <= IDLE):
            return
        i = self.counts.index(self.count)
        self._seconds = {count: [] for count in self.counts[max(0, i - 1) : i + 2]}
        # The first step after a change is slower, and is not counted.
        self._queue = [count for count in self._seconds for _ in range(TRIAL_STEPS + 1)]
        torch.set_num_threads(self._queue[0])

    def note(self, seconds: float) -> None:
        """Record the duration of a step and set the number of threads of the next one."""
        if not self._queue:
            return
        self._seconds[self._queue.pop(0)].append(seconds)
        if not self._queue:
            typical = {count: median(times[1:]) for count, times in self._seconds.items()}
            fastest = min(typical, key=lambda count: typical[count])
            if typical[self.count] >= LEAST_SPEEDUP * typical[fastest]:
                self.count = fastest
        torch.set_num_threads(self._queue[0] if self._queue else self.count)
