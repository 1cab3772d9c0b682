"""A family: how an architecture of the ecosystem names settings and tensors, and which of ours it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from clearhead.errors import UserError
from clearhead.model.config import Config

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Family:
    """`write_*` turn ours into theirs, `read_*` theirs into ours. Our tensor names are `Transformer`'s."""

    model_type: str
    holds: Callable[[Config], bool]
    write_config: Callable[[Config], dict[str, Any]]
    read_config: Callable[[dict[str, Any]], Config]
    write_tensors: Callable[[Tensors, Config], Tensors]
    read_tensors: Callable[[Tensors, Config], Tensors]


def renaming(
    ends: dict[str, str], block: dict[str, str]
) -> tuple[Callable[[Tensors, Config], Tensors], Callable[[Tensors, Config], Tensors]]:
    """`write_tensors` and `read_tensors` of a family that only renames: ours to theirs, {i} the block."""

    def names(config: Config) -> dict[str, str]:
        inside = {
            ours.format(i=i): theirs.format(i=i)
            for i in range(config.n_block)
            for ours, theirs in block.items()
        }
        return ends | inside

    def write(tensors: Tensors, config: Config) -> Tensors:
        theirs = names(config)
        return {theirs[name]: tensor for name, tensor in tensors.items()}

    def read(tensors: Tensors, config: Config) -> Tensors:
        ours = {theirs: ours for ours, theirs in names(config).items()}
        return {ours[name]: tensor for name, tensor in tensors.items()}

    return write, read


def need(settings: dict[str, Any], name: str) -> Any:
    if name not in settings:
        raise UserError(f"config.json lacks {name!r}")
    return settings[name]


def refuse_unless(settings: dict[str, Any], name: str, *usual: Any) -> None:
    """A setting that would change what is computed, in a way this family's file here does not compute."""
    if settings.get(name, usual[0]) not in usual:
        raise UserError(f"config.json has {name} = {settings[name]!r}, which is not supported")
