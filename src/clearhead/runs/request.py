"""The settings of a training run as requested. The plan chooses those that are None."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self, TypedDict

from clearhead.classics.ngram_config import check_order
from clearhead.ensembles import expand_models
from clearhead.errors import UserError, guess
from clearhead.formats.opening import hash_weights
from clearhead.language_model import LanguageModel
from clearhead.model.config import MOST, MOST_BLOCKS, PRESETS, check_kind
from clearhead.networks import KINDS as NETWORKS
from clearhead.runs.teacher_folders import MOST_TEACHERS
from clearhead.runs.teachers import hash_network
from clearhead.runtime.device import can_compile, pick_device
from clearhead.text.tokenizer_kinds import KINDS
from clearhead.training.recipe import OPTIMIZERS, RECIPES

# Names of settings in other libraries.
ALIASES = {
    "lr": "; did you mean 'learning_rate'?",
    "epochs": "; training is measured in 'steps' or 'minutes'",
}
MOST_MINUTES = 60 * 24 * 365
MOST_RANK = 1024
DTYPES = ("float32", "bfloat16")
COUNTS = ("steps", "blocks", "heads", "kv_heads", "width", "context", "vocab", "batch")
LARGEST = {"blocks": MOST_BLOCKS, "heads": MOST, "kv_heads": MOST, "width": MOST, "context": MOST}
LOADED = "loaded: "  # before the name of a teacher that was passed as a model, not by name
# Settings that are fixed by the model to fine-tune.
SHAPE = ("blocks", "heads", "kv_heads", "width", "tokenizer", "vocab", "preset", "kind", "bidirectional")
# Settings that apply only to transformers.
OF_TRANSFORMERS = ("heads", "kv_heads", "bidirectional", "sharded", "preset")
# Settings that apply only to networks trained by gradient descent.
OF_LEARNERS = (
    *("minutes", "steps", "blocks", "width", "context", "batch", "accumulation", "dropout"),
    *("recipe", "optimizer", "learning_rate", "compiled", "dtype", "deterministic", "teachers"),
    *("from_teachers", "keep_teachers"),
)


class TrainingSettings(TypedDict, total=False):
    """The settings of `TrainingRequest` as keyword arguments, for editors and type checkers."""

    minutes: float | None
    steps: int | None
    start: str | None
    lora: int | None
    teachers: int | None
    from_teachers: str | Path | LanguageModel | Sequence[str | Path | LanguageModel] | None
    keep_teachers: bool
    kind: str
    order: int | None
    preset: str
    bidirectional: bool
    blocks: int | None
    heads: int | None
    kv_heads: int | None
    width: int | None
    context: int | None
    tokenizer: str | None
    vocab: int | None
    batch: int | None
    accumulation: int
    dropout: float | None
    recipe: str
    optimizer: str | None
    learning_rate: float | None
    validation: float | str | Path | Sequence[str | Path] | None
    seed: int
    sharded: bool
    compiled: bool | None
    dtype: str | None
    deterministic: bool
    device: str | None


@dataclass(frozen=True)
class TrainingRequest:
    """Size, time and recipe of a run."""

    minutes: float | None = None
    steps: int | None = None
    start: str | None = None  # the model to fine-tune: a folder, a GGUF file, or a name
    start_sha256: str = ""  # hash of its weights; computed by default
    lora: int | None = None  # rank of the low-rank adapters to train instead of all weights
    teachers: int | None = None  # models to train first and learn from; default: none, or as the plan chooses
    # Models whose predictions to learn: loaded ones, or their names, folders or patterns.
    from_teachers: str | Path | LanguageModel | Sequence[str | Path | LanguageModel] | None = None
    teachers_sha256: Sequence[str] | None = None  # hashes of their weights; computed by default
    keep_teachers: bool = True  # if false, delete the teachers that the run trained, once it is finished
    kind: str = "transformer"
    order: int | None = None  # order of an n-gram model
    preset: str = "modern"
    bidirectional: bool = False  # train a masked language model, which fills in blanks
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
    optimizer: str | None = None  # default: the recipe's; adamw for fine-tuning
    learning_rate: float | None = None
    # The fraction of the text to hold out from its end, or separate files.
    validation: float | str | Path | Sequence[str | Path] | None = None
    seed: int = 0
    sharded: bool = False  # shard the weights across processes (FSDP2)
    compiled: bool | None = None  # CUDA only; default: if it pays off
    dtype: str | None = None  # of matrix products: one of DTYPES; default: the faster one
    deterministic: bool = False  # deterministic on CUDA too, at some cost in speed
    device: str | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """The request with these settings; an unknown one raises an error that suggests the closest."""
        known = [field.name for field in fields(cls)]
        for name in settings:
            if name not in known:
                raise UserError(f"unknown setting {name!r}{ALIASES.get(name) or guess(name, known)}")
        return cls(**settings)

    def __post_init__(self) -> None:
        if self.minutes is not None and self.steps is not None:
            raise UserError("`minutes` and `steps` are mutually exclusive: set only one")
        for name in ("minutes", "dropout", "learning_rate"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise UserError(f"{name} = {value!r}: expected a number")
        for name in (*COUNTS, "accumulation", "lora", "teachers", "seed"):
            value = getattr(self, name)
            if value is not None and type(value) is not int:
                raise UserError(f"{name} = {value!r}: expected an integer")
        if self.minutes is not None and not 0 < self.minutes <= MOST_MINUTES:
            raise UserError(
                f"minutes = {self.minutes}: expected a number above 0, such as 3, and at most a year"
            )
        check_kind("recipe", self.recipe, RECIPES)
        if self.dtype is not None:
            check_kind("dtype", self.dtype, DTYPES)
        if self.optimizer is not None:
            check_kind("optimizer", self.optimizer, OPTIMIZERS)
        if self.recipe == "classic" and self.optimizer == "muon":
            raise UserError("the classic recipe trains with adamw: omit `optimizer`, or `recipe`")
        for name in COUNTS:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} = {value}: expected at least 1")
            if value is not None and value > LARGEST.get(name, value):
                raise UserError(f"{name} = {value}: expected at most {LARGEST[name]}")
        check_kind("preset", self.preset, tuple(PRESETS))
        self._check_network()
        if self.tokenizer is not None:
            check_kind("tokenizer", self.tokenizer, KINDS)
        if isinstance(self.validation, float) and not 0 < self.validation < 1:
            raise UserError(f"validation = {self.validation}: expected a fraction between 0 and 1")
        if self.learning_rate is not None and not 0 < self.learning_rate < math.inf:
            raise UserError(f"learning_rate = {self.learning_rate}: expected a number above 0")
        if not 0 <= self.seed < 2**32:
            raise UserError(f"seed = {self.seed}: expected 0 to {2**32 - 1}")
        device = pick_device(self.device)
        if self.compiled and not can_compile(device):
            raise UserError(f"`compiled` requires CUDA with Triton and a C compiler (device: {device})")
        self._check_start()
        self._check_teachers()
        if self.sharded and self.recipe == "fast" and self.optimizer != "adamw":
            raise UserError(
                "sharded training cannot use muon, which needs whole matrices: set `optimizer` to adamw or "
                "`recipe` to classic, or omit `sharded`"
            )
        if self.sharded and self.lora is not None:
            raise UserError("adapters are small and are not sharded: omit `sharded` or `lora`")

    def _check_network(self) -> None:
        check_kind("kind", self.kind, NETWORKS)
        if self.kind != "transformer" and (given := self._given(OF_TRANSFORMERS)):
            raise UserError(
                f"`{given[0]}` applies to transformers only: omit either it or the kind {self.kind!r}"
            )
        if self.kind != "transformer" and self.dtype == "bfloat16":
            raise UserError(f"a network of the kind {self.kind!r} is trained in float32: omit `dtype`")
        if self.order is not None:
            if self.kind != "ngram":
                raise UserError("`order` applies only to n-gram models: omit it, or use the kind 'ngram'")
            check_order(self.order)
        if self.kind == "ngram" and (given := self._given(OF_LEARNERS)):
            raise UserError(f"`{given[0]}` does not apply to an n-gram model: omit it")

    def _given(self, names: Sequence[str]) -> list[str]:
        """The settings among these that differ from their defaults."""
        return [name for name in names if getattr(self, name) != getattr(type(self), name)]

    def _check_start(self) -> None:
        if self.lora is not None and not 1 <= self.lora <= MOST_RANK:
            raise UserError(f"lora = {self.lora}: expected a rank of 1 to {MOST_RANK}, such as 8")
        if self.start is None:
            if self.lora is not None:
                raise UserError("`lora` fine-tunes an existing model: name it with `start`")
            return
        if given := self._given(SHAPE):
            raise UserError(f"`{given[0]}` applies to a new model only, not to a fine-tuned one: omit it")
        if self.optimizer is None:
            object.__setattr__(self, "optimizer", "adamw")
        if self.lora is not None and self.optimizer != "adamw":
            raise UserError(f"`lora` trains with adamw, not with {self.optimizer}: omit `optimizer`")
        object.__setattr__(self, "start", str(self.start))
        if not self.start_sha256:
            object.__setattr__(self, "start_sha256", hash_weights(self.start))

    @property
    def is_student(self) -> bool:
        """Whether the model learns from the predictions of others."""
        return bool(self.teachers or self.from_teachers)

    @property
    def given_teachers(self) -> list[str | LanguageModel]:
        """The models in `from_teachers`."""
        given: Any = self.from_teachers
        several = [given] if isinstance(given, str | Path | LanguageModel) else given or []
        return [each if isinstance(each, LanguageModel) else str(each) for each in several]

    @property
    def teacher_names(self) -> list[str]:
        """The names of the teachers, as recorded in the run."""
        return [
            f"{LOADED}{each.name}" if isinstance(each, LanguageModel) else each
            for each in self.given_teachers
        ]

    @property
    def discards_teachers(self) -> bool:
        return bool(self.teachers) and not self.keep_teachers

    def _check_teachers(self) -> None:
        if self.teachers is not None and not 0 <= self.teachers <= MOST_TEACHERS:
            raise UserError(f"teachers = {self.teachers}: expected 0 to {MOST_TEACHERS}")
        if self.teachers and (given := self._given(("start", "from_teachers", "bidirectional", "sharded"))):
            raise UserError(f"`{given[0]}` cannot be combined with `teachers`: omit one of them")
        if self.from_teachers is None:
            return
        named: Any = self.from_teachers
        several = [named] if isinstance(named, str | Path | LanguageModel) else named
        if not isinstance(several, Sequence) or not all(
            isinstance(each, str | Path | LanguageModel) for each in several
        ):
            raise UserError("`from_teachers`: expected models, or their names or folders")
        teachers = [each for given in self.given_teachers for each in expand_models(given)]
        if loaded := [each for each in teachers if isinstance(each, str) and each.startswith(LOADED)]:
            raise UserError(
                f"the run learned from a loaded model ({loaded[0].removeprefix(LOADED)}), of which only the name was "
                "recorded: pass it again as `from_teachers`"
            )
        if not teachers:
            raise UserError("`from_teachers` names no models: give at least one, or omit it")
        if given := self._given(("start", "tokenizer", "vocab", "bidirectional", "sharded")):
            raise UserError(f"`{given[0]}` cannot be combined with `from_teachers`: omit one of them")
        if not self.keep_teachers:
            raise UserError(
                "`keep_teachers=False` is for teachers that the run trains itself; those in `from_teachers` are always "
                "kept: omit `keep_teachers=False`"
            )
        object.__setattr__(self, "from_teachers", teachers)
        if self.teachers_sha256 is None:
            hashes = [
                hash_network(each.network) if isinstance(each, LanguageModel) else hash_weights(each)
                for each in teachers
            ]
            object.__setattr__(self, "teachers_sha256", hashes)


def with_time(request: TrainingRequest, minutes: float = 3) -> TrainingRequest:
    """The request, with a time limit if it has neither minutes nor steps."""
    return replace(request, minutes=minutes) if request.minutes is None and request.steps is None else request
