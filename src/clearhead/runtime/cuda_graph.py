"""CUDA graphs: capture repeated GPU work once and replay it as a whole.

A step of a small model is hundreds of short kernels. When they are launched one by one, the GPU mostly waits.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import torch
from torch import nn

WARM_UPS = 2  # before capture, so that libraries have done their one-time initialization


class CudaGraph:
    """Captures and replays graphs on a separate stream, with one memory pool for all of them."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.stream = device, torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.pool = torch.cuda.graph_pool_handle()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the enclosed work on this stream, ordered after earlier and before later work."""
        current = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            yield
        current.wait_stream(self.stream)

    def capture(
        self,
        work: Callable[[], None],
        warm_up: Callable[[], None] | None = None,
        error_mode: Literal["global", "thread_local"] = "global",
    ) -> Callable[[], None]:
        """Capture `work` and return a function that replays it on the current contents of its inputs.

        Capturing executes nothing. Tensors that the work allocates and keeps must not be freed. With the error
        mode `thread_local`, other threads may use CUDA in the meantime.
        """
        if warm_up is not None:
            with self.running():
                for _ in range(WARM_UPS):
                    warm_up()
        graph = torch.cuda.CUDAGraph()
        with (
            _no_garbage_collection(),
            torch.cuda.graph(graph, pool=self.pool, stream=self.stream, capture_error_mode=error_mode),
        ):
            work()
        return graph.replay


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Disable the cyclic garbage collector: freeing an earlier graph would invalidate the capture."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def compiled(blocks: Sequence[nn.Module]) -> Iterator[None]:
    """Run the blocks compiled by Inductor; those that are alike share one compilation."""
    for block in blocks:
        block.compile(dynamic=False)
    try:
        yield
    finally:
        for block in blocks:
            block._compiled_call_impl = None  # set by nn.Module.compile, which has no inverse
