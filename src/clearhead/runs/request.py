"""What the user asked a training run for. What is None, the plan chooses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clearhead.errors import UserError
from clearhead.model.config import PRESETS
from clearhead.model.machine import pick_device
from clearhead.text.tokenizer import KINDS
from clearhead.training.recipe import OPTIMISERS, RECIPES

MOST_MINUTES = 60 * 24 * 365


@dataclass(frozen=True)
class Request:
    """Sizes, time and recipe of a run."""

    minutes: float | None = None
    steps: int | None = None
    preset: str = "modern"
    both_ways: bool = False  # see what comes after too, and learn to fill in blanks
    blocks: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    width: int | None = None
    context: int | None = None
    tokenizer: str | None = None
    vocab: int | None = None
    batch: int | None = None
    accumulation: int = 1
    dropout: float | None = None
    recipe: str = "fast"
    optimiser: str | None = None
    learning_rate: float | None = None
    # A fraction of the text's end, or files of their own.
    validation: float | str | Path | Sequence[str | Path] | None = None
    seed: int = 0
    device: str | None = None

    def __post_init__(self) -> None:
        if self.minutes is not None and self.steps is not None:
            raise UserError("both minutes and steps were given; give one of them")
        if self.minutes is not None and not 0 < self.minutes <= MOST_MINUTES:
            raise UserError(
                f"minutes = {self.minutes}: expected a number above 0, such as 3, and at most a year"
            )
        if self.recipe not in RECIPES:
            raise UserError(f"recipe = {self.recipe!r}: expected one of {', '.join(RECIPES)}")
        if self.optimiser is not None and self.optimiser not in OPTIMISERS:
            raise UserError(f"optimiser = {self.optimiser!r}: expected one of {', '.join(OPTIMISERS)}")
        if self.recipe == "classic" and self.optimiser == "muon":
            raise UserError("the classic recipe trains with adamw: leave out the optimiser, or the recipe")
        for name in ("steps", "blocks", "heads", "kv_heads", "width", "context", "vocab", "batch"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} = {value}: expected at least 1")
        if self.preset not in PRESETS:
            raise UserError(f"preset = {self.preset!r}: expected one of {', '.join(PRESETS)}")
        if self.tokenizer is not None and self.tokenizer not in KINDS:
            raise UserError(f"tokenizer = {self.tokenizer!r}: expected one of {', '.join(KINDS)}")
        if isinstance(self.validation, float) and not 0 < self.validation < 1:
            raise UserError(f"validation = {self.validation}: expected a fraction between 0 and 1")
        if self.learning_rate is not None and not 0 < self.learning_rate < math.inf:
            raise UserError(f"learning_rate = {self.learning_rate}: expected a number above 0")
        if not 0 <= self.seed < 2**32:
            raise UserError(f"seed = {self.seed}: expected 0 to {2**32 - 1}")
        pick_device(self.device)
