"""Build a network from the tensors of any file format; names and shapes are checked before reading."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from clearhead.classics.ngram import NGram
from clearhead.errors import UserError
from clearhead.formats.families.family import Family, Named
from clearhead.model.config import Config
from clearhead.networks import Learner, LearnerConfig, SingleNetwork, make_network
from clearhead.runtime.device import memory_of
from clearhead.summary_table import plural

# Minimum number of tensors per block: two norms; query, key and value in one matrix, and output; two in the
# feed-forward network. For a recurrent block: the matrices and biases for input and state.
LEAST_PER_BLOCK, RECURRENT_PER_BLOCK = 6, 4


class TensorSource(Protocol):
    """A source of tensors. `described` names it in messages."""

    described: str
    odd: dict[str, str]  # tensors that cannot be read, and their types

    def shapes(self) -> Mapping[str, tuple[int, ...]]: ...

    def read(self, name: str, dtype: torch.dtype) -> Tensor: ...


class _Read(Mapping[str, Tensor]):
    """A family's tensors, each read on access and not kept."""

    def __init__(self, source: TensorSource, stored: dict[str, str], dtype: torch.dtype) -> None:
        self.source, self.stored, self.dtype = source, stored, dtype

    def __getitem__(self, name: str) -> Tensor:
        tensor = self.source.read(self.stored[name], self.dtype)
        low, high = tensor.aminmax() if tensor.numel() else (tensor.sum(), tensor.sum())
        if not (low.isfinite() and high.isfinite()):
            raise UserError(f"{self.source.described}: {name} has non-finite values; the model is damaged")
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)


class _Uninitialized(TorchFunctionMode):
    """Skips initialization, which takes most of the time and is overwritten by loading."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", "") == torch.nn.init.__name__:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


def outline(config: LearnerConfig) -> Learner:
    """A network of names and shapes only, without data."""
    with torch.device("meta"), _Uninitialized():
        return make_network(config)


def check_tensors(described: str, n_tensor: int, config: LearnerConfig, dtype: torch.dtype) -> None:
    """Before creating a network, raise an error if the tensors cannot belong to this model or do not fit in
    memory.
    """
    least = LEAST_PER_BLOCK if isinstance(config, Config) else RECURRENT_PER_BLOCK
    if n_tensor < least * config.n_block:
        raise UserError(
            f"{described} has {n_tensor} tensors, too few for the {config.n_block} blocks in its "
            "settings: copy it again from its source"
        )
    needed, memory = config.n_parameter * dtype.itemsize, memory_of(torch.device("cpu"))
    if memory is not None and needed > memory:
        raise UserError(
            f"{described} needs {needed / 1e9:.1f} GB of memory, but this machine has {memory / 1e9:.1f}: "
            "use a smaller model"
        )


def read_network(
    source: TensorSource, network: Learner, family: Family, dtype: torch.dtype = torch.float32
) -> Learner:
    """Fill an outline tensor by tensor, so that memory holds the model and little more."""
    config = network.config
    expected = family.write_tensors(own_tensors(network), config)
    stored = _find(source, expected, family.prefix, config.n_block)
    ours = family.read_tensors(_Read(source, stored, dtype), config)
    for name in ours:
        ours[name] = ours[name].contiguous()
    if config.tied:
        ours["unembedding.weight"] = ours["embedding.weight"]
    network.load_state_dict(ours, assign=True)
    if config.tied:
        network.unembedding.weight = network.embedding.weight
    return network.eval()


def own_tensors(network: SingleNetwork) -> Named:
    """Tensors by our names; a tied unembedding is listed once, as the embedding."""
    tensors = {name: tensor.detach() for name, tensor in network.state_dict().items()}
    if not isinstance(network, NGram) and network.config.tied:
        del tensors["unembedding.weight"]
    return tensors


def _find(source: TensorSource, expected: Named, prefix: str, n_block: int) -> dict[str, str]:
    """The stored name of each expected tensor. Missing tensors and wrong shapes are errors."""
    found, stored = source.shapes(), {}
    for name, tensor in expected.items():
        short = name.removeprefix(prefix)
        stored[name] = short if name not in found and short in found else name
        if stored[name] in source.odd or name in source.odd:
            kind = source.odd.get(name) or source.odd[stored[name]]
            raise UserError(
                f"{source.described}: {name} is {kind}, expected floats; use the original, unquantized "
                "model, or a GGUF file"
            )
        if stored[name] not in found:
            raise UserError(f"{source.described} has no {name}: it does not match its settings")
        shape = found[stored[name]]
        if tuple(shape) != tuple(tensor.shape):
            raise UserError(
                f"{source.described}: {name} is {'×'.join(map(str, shape))}, but its settings require "
                f"{'×'.join(map(str, tensor.shape))}; the weights and the settings belong to different models"
            )
    if more := [name for name in found if _block_of(name) >= n_block]:
        raise UserError(
            f"{source.described} has {more[0]}, but its settings specify {plural(n_block, 'block')}; "
            "the weights and the settings belong to different models"
        )
    return stored


def _block_of(name: str) -> int:
    """The block number in a tensor's name, or -1."""
    found = re.search(r"\b(?:layers|h|blocks)\.(\d{1,9})\.", name)
    return int(found[1]) if found else -1
