"""LoRA adapters in PEFT's format: low-rank matrices, whose products are added to a base model's weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.files import inside, read_json
from clearhead.formats.network import TensorSource
from clearhead.formats.shards import Shards
from clearhead.model.config import MOST

SETTINGS, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
A, B = ".lora_A.weight", ".lora_B.weight"
MOST_PARTS = 30  # of a name, between dots
# Settings of other methods, which compute something else.
UNSUPPORTED = ("use_dora", "modules_to_save", "layer_replication", "lora_bias", "alora_invocation_tokens")


def is_adapter(path: Path) -> bool:
    return (path / SETTINGS).exists() and not (path / "config.json").exists()


@dataclass(frozen=True)
class Adapter:
    """A folder's matrices: pairs A (R C) and B (D R) by the name of the matrix (D C) to which s B A is added."""

    folder: Path
    base: str | None  # the name of the model that it was trained on
    scales: Mapping[str, float]
    transposed: bool  # whether the base model stores its matrices [in, out], as GPT-2 does
    source: Shards

    def apply(self, base: TensorSource) -> TensorSource:
        """The base model's tensors with the adapter added. Raises UserError if it does not fit."""
        return _Adapted(base, self)


def read_adapter(folder: Path) -> Adapter:
    """Read the settings and the names of the matrices. Raises UserError if this is not a plain LoRA adapter."""
    path = inside(folder, SETTINGS)
    settings = read_json(path)
    kind = settings.get("peft_type")
    if kind != "LORA":
        raise UserError(f"{path} has peft_type {kind!r}: only LORA adapters can be applied")
    for name in UNSUPPORTED:
        if settings.get(name):
            raise UserError(f"{path} has {name} = {str(settings[name])[:80]}, which is not supported")
    if settings.get("bias", "none") != "none":
        raise UserError(f"{path} has bias = {str(settings['bias'])[:80]!r}, which is not supported")
    if not (folder / WEIGHTS).exists():
        reason = "a pickle is never opened" if (folder / "adapter_model.bin").exists() else "copy it again"
        raise UserError(f"{folder} has no {WEIGHTS}: {reason}")
    source = Shards(folder, WEIGHTS)
    base = settings.get("base_model_name_or_path")
    return Adapter(
        folder,
        base if isinstance(base, str) and base else None,
        _scales(path, settings, source),
        settings.get("fan_in_fan_out") is True,
        source,
    )


def _scales(path: Path, settings: dict[str, Any], source: Shards) -> dict[str, float]:
    """The factor of each matrix: alpha divided by its rank, or by the square root of its rank."""
    names = {name.removesuffix(A) for name in source.shapes() if name.endswith(A)}
    extra = source.shapes().keys() - {name + part for name in names for part in (A, B)}
    if not names or extra or source.odd:
        odd = str(next(iter(sorted(extra) or sorted(source.odd)), "no LoRA matrices"))
        raise UserError(f"{source.described} has {odd}: expected pairs of LoRA matrices only")
    patterns = settings.get("alpha_pattern") or {}
    usual = settings.get("lora_alpha", 8)
    numbers: list[Any] = [usual, *patterns.values()] if isinstance(patterns, dict) else [None]
    if not all(type(number) in (int, float) and abs(number) < MOST for number in numbers):
        raise UserError(f"{path} has a lora_alpha or alpha_pattern that is not a number")
    order = {part: i for i, part in enumerate(patterns)}  # the first pattern that fits applies
    scales = {}
    for name in sorted(names):
        first, second = (source.shapes().get(name + part, ()) for part in (A, B))
        if len(first) != 2 or len(second) != 2 or first[0] != second[1] or not first[0]:
            raise UserError(f"{source.described}: the two matrices of {name} do not belong together")
        parts = name.split(".", MOST_PARTS)
        ends = (".".join(parts[i:]) for i in range(len(parts)))
        found = min((end for end in ends if end in order), key=order.__getitem__, default=None)
        alpha, rank = usual if found is None else patterns[found], first[0]
        scales[name] = alpha / (math.sqrt(rank) if settings.get("use_rslora") is True else rank)
    return scales


class _Adapted:
    """The base model's tensors, to which the adapter's products are added as they are read."""

    def __init__(self, base: TensorSource, adapter: Adapter) -> None:
        self.base, self.adapter = base, adapter
        self.described, self.odd = base.described, base.odd
        self.pairs: dict[str, str] = {}
        for name in adapter.scales:
            if (twice := self.pairs.setdefault(self._target(name), name)) != name:
                raise UserError(
                    f"{adapter.source.described} changes one matrix twice, as {twice} and as {name}"
                )

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return self.base.shapes()

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        if name not in self.pairs:
            return self.base.read(name, dtype)
        pair, source = self.pairs[name], self.adapter.source
        matrix = self.base.read(name, torch.float32)
        change = source.read(pair + B, torch.float32) @ source.read(pair + A, torch.float32)
        change = change.T if self.adapter.transposed else change
        return (matrix + self.adapter.scales[pair] * change).to(dtype)

    def _target(self, name: str) -> str:
        """The base model's tensor that a pair of matrices changes; its file may omit the first part of the name."""
        shapes = self.base.shapes()
        theirs = f"{name.removeprefix(PREFIX)}.weight"
        found = next((each for each in (theirs, theirs.partition(".")[2]) if each in shapes), None)
        if found is None:
            raise UserError(
                f"{self.adapter.source.described} changes {theirs}, which {self.described} does not have: the "
                "adapter was trained on a different model"
            )
        rows, columns = (self.adapter.source.shapes()[name + part][i] for part, i in ((B, 0), (A, 1)))
        expected = (columns, rows) if self.adapter.transposed else (rows, columns)
        if tuple(shapes[found]) != expected:
            raise UserError(
                f"{self.adapter.source.described} changes {theirs} as {rows}×{columns}, but in {self.described} it "
                f"is {'×'.join(map(str, shapes[found]))}: the adapter was trained on a different model"
            )
        return found
