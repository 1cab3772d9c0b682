"""The processes that train together, each on its share of every batch; alone, there is one.

Started by torchrun. Gradients are averaged by PyTorch's DDP; or, sharded, by its FSDP2, where each process
holds a share of every weight, gradient and moment. Everything else that they must agree on goes through here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from clearhead.errors import OwnError, UserError

_LOST = re.compile(r"gloo|NCCL|Socket|Connection (closed|reset)|store", re.IGNORECASE)
PATIENCE = timedelta(hours=6)  # while the first one prepares a long text
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class ProcessGroup:
    """This process's number among how many there are."""

    number: int = 0
    count: int = 1

    @classmethod
    def join(cls, device: torch.device) -> ProcessGroup:
        """Meet the others that torchrun started; where it started none, be alone."""
        count = int(os.environ.get("WORLD_SIZE", "1"))
        if count == 1:
            return cls()
        if device.type == "cuda":
            local, here = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
            if local >= here:
                raise UserError(f"process {local} has no GPU of its own: start at most {here} a machine")
            torch.cuda.set_device(local)
        if not dist.is_initialized():
            # What is agreed on goes between the CPUs, so that no GPU waits for it.
            backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
            dist.init_process_group(backend, timeout=PATIENCE)
        return cls(dist.get_rank(), count)

    @property
    def first(self) -> bool:
        """The one that prepares, writes files and speaks to the user."""
        return self.number == 0

    @property
    def restarted(self) -> bool:
        """Whether torchrun started the processes again, after one of them had died."""
        return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"

    @contextmanager
    def together(self) -> Iterator[None]:
        """Inside, one that dies takes the others with it, which then say so."""
        try:
            yield
        except RuntimeError as error:
            if self.count == 1 or not _LOST.search(str(error)):
                raise
            raise OwnError(
                "another of the processes ended, and so must this one; the same command with --resume goes on"
            ) from None

    def leave(self) -> None:
        """All together: one that goes before the others are done would pull them down."""
        if self.count > 1:
            self.wait()
            dist.destroy_process_group()

    def wait(self) -> None:
        """Until all have come here."""
        self.add(0)

    def add(self, number: float) -> float:
        """The sum of what each gives."""
        if self.count == 1:
            return number
        total = torch.tensor(number, dtype=torch.float64)
        dist.all_reduce(total)
        return float(total)

    def any(self, is_so: bool) -> bool:
        """Whether it is so for one of them at least."""
        return self.add(is_so) > 0

    def agree(self, answer: Answer) -> Answer:
        """What the first one gives."""
        if self.count == 1:
            return answer
        said = [answer]
        dist.broadcast_object_list(said, src=0)
        return said[0]

    def lead(self, work: Callable[[], Answer]) -> Answer:
        """What came of the first one's work; a mistake of the user's or the disk's stops all."""
        if self.count == 1:
            return work()
        answer: Any = None
        if self.first:
            try:
                answer = work()
            except (UserError, OSError) as error:
                self.agree(error)
                raise
        answer = self.agree(answer)
        if isinstance(answer, UserError | OSError):
            raise answer
        return answer

    def after_first(self, work: Callable[[], Answer]) -> Answer:
        """The same work for each, after the first one has done it and left what can be found ready."""
        answers: list[Answer] = []
        self.lead(lambda: answers.append(work()))
        return answers[0] if self.first else work()

    def check_share(self, rows: int, parts: int) -> None:
        """Whether so many rows, gathered in so many parts, can be shared equally."""
        if rows % (self.count * parts):
            gathered = f" in {parts} parts" if parts > 1 else ""
            raise UserError(
                f"a batch of {rows} cannot be shared equally by {self.count} processes{gathered}: choose "
                "another --batch or another number of processes"
            )

    def spread(self, network: nn.Module, sharded: bool) -> nn.Module:
        """What to call in the network's stead, so that gradients come out averaged over all."""
        if self.count == 1:
            return network
        device = next(network.parameters()).device
        if not sharded:
            return DistributedDataParallel(network, device_ids=[device] if device.type == "cuda" else None)
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(device.type, (self.count,))
        blocks = network.blocks
        assert isinstance(blocks, nn.ModuleList)
        for block in blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(network, mesh=mesh)
        return network


def averaging(module: nn.Module, on: bool) -> AbstractContextManager[object]:
    """Inside, gradients are averaged if on, and else only gathered up."""
    if isinstance(module, DistributedDataParallel) and not on:
        return module.no_sync()
    set_averaging = getattr(module, "set_requires_gradient_sync", None)  # FSDP2's
    if set_averaging is not None:
        set_averaging(on)
    return nullcontext()


# A sharded tensor is a DTensor, whose module takes most of a second to import and so is not asked for.


def held(tensor: Tensor) -> Tensor:
    """What this process holds of a tensor; the whole of one that is not sharded."""
    local = getattr(tensor, "to_local", None)
    return tensor if local is None else local()


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor, gathered from the processes that share it, which must all ask."""
    full = getattr(tensor, "full_tensor", None)
    return tensor if full is None else full()
