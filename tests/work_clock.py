"""A clock driven by the work a test does, so that timed training is the same on any machine."""

import time

import pytest
from torch import nn

OVERHEAD = 0.03  # seconds per forward pass
SPEED = 1e9  # multiply-adds per second
TICK = 1e-6  # seconds per reading, so that no duration is zero


class WorkClock:
    """A context manager that replaces `time.perf_counter`.

    Each forward pass advances the clock by `OVERHEAD` plus the network's parameters times the tokens, divided by
    `SPEED`; training triples this work. `advance` adds seconds chosen by the test.
    """

    def __init__(self):
        self.now, self.factor = 0.0, 1.0

    def __enter__(self):
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(time, "perf_counter", self.read)
        self._hook = nn.modules.module.register_module_forward_hook(self._count)
        return self

    def __exit__(self, *_):
        self._hook.remove()
        self._patch.undo()

    def read(self):
        self.advance(TICK)
        return self.now

    def advance(self, seconds):
        self.now += self.factor * seconds

    def _count(self, module, inputs, _):
        if hasattr(module, "unembedding"):
            work = module.config.n_parameter * inputs[0].numel() * (3 if module.training else 1)
            self.advance(OVERHEAD + work / SPEED)
