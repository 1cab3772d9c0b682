"""Work on a device that is the same each time: with CUDA recorded once and then replayed whole.

A step of a small model is hundreds of short kernels; started one by one, the device mostly waits for them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

WARM_UPS = 2  # before recording: libraries then have made all that they make on first use


class CudaGraph:
    """Where a device's recorded work runs: a stream of its own, and memory that all of it shares."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.stream = device, torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.pool = torch.cuda.graph_pool_handle()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Inside, work goes on this stream, after what was asked for before and before what comes after."""
        current = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            yield
        current.wait_stream(self.stream)

    def record(
        self, work: Callable[[], None], warm_up: Callable[[], None] | None = None
    ) -> Callable[[], None]:
        """What does this work each time it is called, on whatever then lies where it lay when recorded.

        Recording itself does nothing; what the work makes and keeps must not be set free.
        """
        if warm_up is not None:
            with self.running():
                for _ in range(WARM_UPS):
                    warm_up()
        graph = torch.cuda.CUDAGraph()
        with _nothing_freed(), torch.cuda.graph(graph, pool=self.pool, stream=self.stream):
            work()
        return graph.replay


@contextmanager
def _nothing_freed() -> Iterator[None]:
    """Inside, Python frees no rings of objects: an earlier graph among them would spoil the recording."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def compiled(blocks: nn.ModuleList) -> Iterator[None]:
    """Inside, the blocks run as Inductor compiles them: one of them for all, since they are alike."""
    for block in blocks:
        block.compile(dynamic=False)
    try:
        yield
    finally:
        for block in blocks:
            block._compiled_call_impl = None  # which nn.Module.compile sets, and no call of its takes back
