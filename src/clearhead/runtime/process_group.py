"""The process group of distributed training, started by torchrun; a single process is a group of one.

Gradients are averaged by PyTorch's DDP, or by FSDP2 if sharded, where each rank holds a shard of every
weight, gradient and optimizer state. All other coordination between ranks goes through here.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from clearhead.errors import OwnError, UserError
from clearhead.runtime.heartbeat import Heartbeat, Meeting, connect, describe_lost, end_process

_LOST = re.compile(r"gloo|NCCL|Socket|Connection (closed|reset)|store", re.IGNORECASE)
TIMEOUT = timedelta(hours=6)  # rank 0 may take a long time to prepare a text
T = TypeVar("T")


@dataclass(frozen=True)
class ProcessGroup:
    """This process's rank, and the number of processes."""

    rank: int = 0
    world_size: int = 1

    @classmethod
    def join(cls, device: torch.device) -> ProcessGroup:
        """Join the processes that torchrun started; without torchrun, return a group of one."""
        world_size = int(os.environ.get("WORLD_SIZE", "1"))
        if world_size == 1:
            return cls()
        if device.type == "cuda":
            local_rank, n_gpu = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
            if local_rank >= n_gpu:
                raise UserError(f"process {local_rank} has no GPU: start at most {n_gpu} per machine")
            torch.cuda.set_device(local_rank)
        if not dist.is_initialized():
            # Coordination runs over gloo on the CPU, so that no GPU waits for it.
            backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
            dist.init_process_group(backend, timeout=TIMEOUT)
        return cls(dist.get_rank(), world_size)

    def _start_heartbeat(self) -> Heartbeat | None:
        """Start exchanging heartbeats with the other processes; None if they cannot be reached."""
        host = os.environ.get("MASTER_ADDR", "localhost")
        peers: dict[int, socket.socket] = {}
        meeting = None
        with suppress(OSError):
            meeting = Meeting(host) if self.is_main else None
        place = self.broadcast(None if meeting is None else (meeting.port, meeting.secret))
        with suppress(OSError):
            if meeting is not None:
                peers = meeting.accept(self.world_size)
            elif place is not None:
                peers = {0: connect(host, *place, self.rank)}
        if self.any(not peers):
            return None
        return Heartbeat(self.rank, peers, end_process)

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, which prepares the text, writes files and prints."""
        return self.rank == 0

    @property
    def restarted(self) -> bool:
        """Whether torchrun restarted the processes after one of them died."""
        return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"

    @contextmanager
    def report_lost(self) -> Iterator[None]:
        """End this process, with a message that names the rank, if another one is killed or hangs."""
        if self.world_size == 1:
            yield
            return
        heartbeat = self._start_heartbeat()
        try:
            yield
        except RuntimeError as error:
            if not _LOST.search(str(error)):
                raise
            raise OwnError(describe_lost(heartbeat.find_lost() if heartbeat else None)) from None
        except UserError as error:
            if heartbeat and not isinstance(error, OwnError):  # all processes raise it
                heartbeat.leave()
            raise
        else:
            if heartbeat:
                heartbeat.leave()

    def shutdown(self) -> None:
        """Leave the group after a barrier: leaving early would abort the other ranks."""
        if self.world_size > 1:
            self.barrier()
            dist.destroy_process_group()

    def barrier(self) -> None:
        """Wait until all ranks arrive here."""
        self.sum(0)

    def sum(self, number: float) -> float:
        """The sum of `number` over all ranks."""
        if self.world_size == 1:
            return number
        total = torch.tensor(number, dtype=torch.float64)
        dist.all_reduce(total)
        return float(total)

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on at least one rank."""
        return self.sum(flag) > 0

    def broadcast(self, value: T) -> T:
        """Rank 0's value, on all ranks."""
        if self.world_size == 1:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=0)
        return values[0]

    def run_on_main(self, work: Callable[[], T]) -> T:
        """Run `work` on rank 0 and return its result on all ranks; a UserError or OSError is raised on all."""
        if self.world_size == 1:
            return work()
        result: Any = None
        if self.is_main:
            try:
                result = work()
            except (UserError, OSError) as error:
                self.broadcast(error)
                raise
        result = self.broadcast(result)
        if isinstance(result, UserError | OSError):
            raise result
        return result

    def main_first(self, work: Callable[[], T]) -> T:
        """Run `work` on rank 0, then on the other ranks, which can reuse what it left behind (caches, files)."""
        results: list[T] = []
        self.run_on_main(lambda: results.append(work()))
        return results[0] if self.is_main else work()

    def check_batch(self, rows: int, parts: int) -> None:
        """Raise an error unless a batch, accumulated in parts, divides evenly among the ranks."""
        if rows % (self.world_size * parts):
            accumulated = f" in {parts} parts" if parts > 1 else ""
            raise UserError(
                f"a batch of {rows} cannot be divided equally among {self.world_size} processes{accumulated}: choose "
                "a different `batch` or number of processes"
            )

    def wrap(self, network: nn.Module, sharded: bool) -> nn.Module:
        """The network wrapped in DDP, or sharded by FSDP2, so that gradients are averaged over ranks."""
        if self.world_size == 1:
            return network
        device = next(network.parameters()).device
        if not sharded:
            return DistributedDataParallel(network, device_ids=[device] if device.type == "cuda" else None)
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(device.type, (self.world_size,))
        blocks = network.blocks
        assert isinstance(blocks, nn.ModuleList)
        for block in blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(network, mesh=mesh)
        return network


def gradient_sync(module: nn.Module, on: bool) -> AbstractContextManager[object]:
    """Synchronize gradients in the enclosed backward pass if `on`; otherwise only accumulate them."""
    if isinstance(module, DistributedDataParallel) and not on:
        return module.no_sync()
    set_sync = getattr(module, "set_requires_gradient_sync", None)  # FSDP2
    if set_sync is not None:
        set_sync(on)
    return nullcontext()


# Sharded tensors are DTensors, recognized by their methods: importing DTensor takes most of a second.


def is_sharded(network: nn.Module) -> bool:
    """Whether each rank holds only a shard of each weight, which is complete only while the network runs."""
    return any(hasattr(weight, "to_local") for weight in network.parameters())


def local_shard(tensor: Tensor) -> Tensor:
    """This rank's shard of a tensor; the tensor itself if it is not sharded."""
    local = getattr(tensor, "to_local", None)
    return tensor if local is None else local()


def full_tensor(tensor: Tensor) -> Tensor:
    """The full tensor, gathered from all ranks, which must all call this."""
    full = getattr(tensor, "full_tensor", None)
    return tensor if full is None else full()
