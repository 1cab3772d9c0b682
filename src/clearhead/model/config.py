"""The configuration of a transformer, validated when it is created."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, get_args

from clearhead.errors import UserError, guess

NormKind = Literal["layer", "rms"]
PositionKind = Literal["learned", "sinusoidal", "rotary", "none"]
RopeScalingKind = Literal["linear", "llama3", "yarn"]
# Limits far above any existing model, so that a damaged or hostile file cannot request a huge one.
MOST = 2**24
MOST_BLOCKS = 1000
BLOCK_LISTS = ("local_blocks", "unrotated_blocks")

FeedForwardKind = Literal["relu", "gelu", "gelu_tanh", "swiglu", "geglu"]


@dataclass(frozen=True)
class RopeScaling:
    """How RoPE frequencies are scaled for a context longer than the one the model was first trained on.

    `linear` divides every frequency by the factor. `llama3` divides only the low ones, which complete fewer
    than `low_freq_factor` turns within `original_context`; those with more than `high_freq_factor` turns are
    unchanged, and those in between are interpolated. `yarn` (https://arxiv.org/abs/2309.00071) does the same, except
    that it interpolates by the index of the frequency, and multiplies rotated vectors by `attention_factor`.
    """

    kind: RopeScalingKind
    factor: float
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_context: int = 8192
    attention_factor: float = 1.0

    def __post_init__(self) -> None:
        check_kind("rope_scaling.kind", self.kind, get_args(RopeScalingKind))
        for name in ("factor", "low_freq_factor", "high_freq_factor", "attention_factor"):
            check_number(f"rope_scaling.{name}", getattr(self, name), above=0.0, below=1e6)
        check_count("rope_scaling.original_context", self.original_context, at_least=1)
        if not self.low_freq_factor < self.high_freq_factor:
            raise UserError(
                f"rope_scaling: low_freq_factor = {self.low_freq_factor} must be less than "
                f"high_freq_factor = {self.high_freq_factor}"
            )


@dataclass(frozen=True)
class Config:
    """The shape of a transformer. Zero selects the default given in the comment."""

    n_vocab: int
    n_context: int
    n_block: int
    n_head: int
    d_model: int
    n_kv_head: int = 0  # key-value heads (GQA); default: n_head
    d_head: int = 0  # default: d_model / n_head
    d_hidden: int = 0  # default: 4 · d_model; 8/3 · d_model if gated, because of the third matrix
    norm: NormKind = "layer"
    norm_epsilon: float = 1e-5
    position: PositionKind = "learned"
    rotary_base: float = 10_000.0
    rotary_dim: int = 0  # rotated features of each head; default: all
    rope_scaling: RopeScaling | None = None
    window: int = 0  # positions that a token attends to in a local block, including its own
    local_blocks: tuple[int, ...] = ()  # blocks with sliding-window attention
    local_rotary_base: float = 0.0  # RoPE base of those blocks, unscaled; default: rotary_base
    unrotated_blocks: tuple[int, ...] = ()  # blocks without positions in a model with rotary ones (NoPE)
    d_k: int = 0  # scores are divided by √d_k; default: d_head
    score_cap: float | None = None  # soft-capping: divided scores s become cap · tanh(s / cap)
    feedforward: FeedForwardKind = "relu"
    causal: bool = True
    qk_norm: bool = False
    qk_norm_joint: bool = False  # over the queries, or keys, of all heads together
    qkv_bias: bool = True
    output_bias: bool = True  # bias of W^O
    feedforward_bias: bool = True
    parallel: bool = False  # attention and feed-forward both read the block's input
    pre_norm: bool = True  # normalize the input of attention and feed-forward
    post_norm: bool = False  # normalize the output of attention and feed-forward before adding it
    embedding_scale: float = 1.0  # multiplies the token vectors
    logit_cap: float | None = None  # soft-capping of the logits
    tied: bool = True  # share one matrix between embedding and unembedding
    dropout: float = 0.0  # on the embedding and on each branch added to the residual stream

    def __post_init__(self) -> None:
        for name in ("n_vocab", "n_context", "n_block", "n_head", "d_model"):
            check_count(name, getattr(self, name), at_least=1)
        for name in ("n_kv_head", "d_head", "d_hidden", "rotary_dim", "window", "d_k"):
            check_count(name, getattr(self, name), at_least=0)
        for name, kinds in (("norm", NormKind), ("position", PositionKind), ("feedforward", FeedForwardKind)):
            check_kind(name, getattr(self, name), get_args(kinds))
        for name, field in self.__dataclass_fields__.items():
            if isinstance(field.default, bool) and not isinstance(getattr(self, name), bool):
                raise UserError(f"{name} = {getattr(self, name)!r}: expected true or false")
        check_number("norm_epsilon", self.norm_epsilon, above=0.0, below=1.0)
        check_number("rotary_base", self.rotary_base, above=1.0, below=1e12)
        check_number("embedding_scale", self.embedding_scale, above=0.0, below=1e6)
        for name in ("score_cap", "logit_cap"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), above=0.0, below=1e6)
        if self.local_rotary_base != 0:
            check_number("local_rotary_base", self.local_rotary_base, above=1.0, below=1e12)
        if self.dropout != 0:
            check_number("dropout", self.dropout, above=0.0, below=1.0)
        if self.d_head == 0 and self.d_model % self.n_head != 0:
            lower = self.d_model // self.n_head * self.n_head
            raise UserError(
                f"width {self.d_model} is not a multiple of {self.n_head} heads: "
                f"choose a width of {lower or self.n_head} "
                f"or {lower + self.n_head}, or a different number of heads",
                "width_uneven",
                width=self.d_model,
                heads=self.n_head,
                lower=lower or self.n_head,
                upper=lower + self.n_head,
            )
        self._fill("n_kv_head", self.n_head)
        self._fill("d_head", self.d_model // self.n_head)
        self._fill("d_hidden", _round_up(8 * self.d_model / 3, 32) if self.gated else 4 * self.d_model)
        if self.n_head % self.n_kv_head != 0:
            raise UserError(
                f"{self.n_head} heads cannot share {self.n_kv_head} key-value heads evenly: "
                "the number of key-value heads must divide the number of heads"
            )
        self._fill("d_k", self.d_head)
        if self.qk_norm_joint and not (self.qk_norm and self.norm == "rms"):
            raise UserError("qk_norm_joint requires qk_norm and RMSNorm")
        if self.position == "rotary":
            self._fill("rotary_dim", self.d_head)
            if self.rotary_dim % 2 != 0 or self.rotary_dim > self.d_head:
                raise UserError(
                    f"rotary positions rotate pairs of features: rotary_dim = {self.rotary_dim} "
                    f"must be even and at most d_head = {self.d_head}"
                )
        for name in BLOCK_LISTS:
            self._check_blocks(name, getattr(self, name))
        if self.local_blocks and (self.window == 0 or not self.causal):
            raise UserError("local_blocks require a window and a causal model")
        if self.unrotated_blocks and self.position != "rotary":
            raise UserError("unrotated_blocks require rotary positions")

    def _check_blocks(self, name: str, blocks: object) -> None:
        if not isinstance(blocks, tuple | list) or any(type(i) is not int for i in blocks):
            raise UserError(f"{name} = {blocks!r}: expected a list of block numbers")
        object.__setattr__(self, name, tuple(sorted(set(blocks))))
        if blocks and not (min(blocks) >= 0 and max(blocks) < self.n_block):
            raise UserError(f"{name} = {blocks!r}: this model has blocks 0 to {self.n_block - 1}")

    def _fill(self, name: str, value: int) -> None:
        if getattr(self, name) == 0:
            object.__setattr__(self, name, value)

    @property
    def kind(self) -> str:
        return "transformer"

    @property
    def gated(self) -> bool:
        return self.feedforward in ("swiglu", "geglu")

    @property
    def capped(self) -> bool:
        """Whether scores or logits are soft-capped."""
        return self.score_cap is not None or self.logit_cap is not None

    @property
    def n_parameter(self) -> int:
        """The number of trainable parameters."""
        d = self.d_model
        ends = self.n_vocab * d * (1 if self.tied else 2) + d * (2 if self.norm == "layer" else 1)
        ends += self.n_context * d if self.position == "learned" else 0
        return ends + self.n_block * self.n_parameter_per_block

    @property
    def n_parameter_per_block(self) -> int:
        d, queries, shared = self.d_model, self.n_head * self.d_head, self.n_kv_head * self.d_head
        norm = d * (2 if self.norm == "layer" else 1)
        attention = d * (queries + 2 * shared) + queries * d
        attention += self.qkv_bias * (queries + 2 * shared) + self.output_bias * d
        attention += self.qk_norm * (queries + shared if self.qk_norm_joint else 2 * self.d_head)
        feedforward = d * self.d_hidden * (3 if self.gated else 2)
        feedforward += self.feedforward_bias * (self.d_hidden * (2 if self.gated else 1) + d)
        return 2 * (self.pre_norm + self.post_norm) * norm + attention + feedforward

    def to_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), **{name: list(getattr(self, name)) for name in BLOCK_LISTS}}

    @classmethod
    def from_json(cls, settings: dict[str, Any]) -> Config:
        """Read what `to_json` wrote. Raises an error that names an unknown or missing setting."""
        check_names(settings, cls)
        scaling = settings.get("rope_scaling")
        if scaling is not None:
            known = {field.name for field in dataclasses.fields(RopeScaling)}
            if not isinstance(scaling, dict) or not {"kind", "factor"} <= scaling.keys() <= known:
                optional = ", ".join(sorted(known - {"kind", "factor"}))
                raise UserError(
                    f"rope_scaling = {scaling!r}: expected kind and factor, and optionally {optional}"
                )
            settings = {**settings, "rope_scaling": RopeScaling(**scaling)}
        return cls(**settings)


PRESETS: dict[str, dict[str, Any]] = {
    # The lectures' block: LayerNorm with γ and β, ReLU, learned positions. Saved as GPT-2.
    "lecture": {"norm": "layer", "position": "learned", "feedforward": "relu"},
    "gpt2": {"norm": "layer", "position": "learned", "feedforward": "gelu_tanh"},
    # Saved as Qwen3.
    "modern": {
        "norm": "rms",
        "norm_epsilon": 1e-6,
        "position": "rotary",
        "feedforward": "swiglu",
        "qk_norm": True,
        "qkv_bias": False,
        "output_bias": False,
        "feedforward_bias": False,
    },
}


def preset(name: str, **settings: Any) -> Config:
    """A config with the settings of a preset, overridden by those given."""
    check_kind("preset", name, tuple(PRESETS))
    return Config.from_json({**PRESETS[name], **settings})


def check_names(settings: dict[str, Any], of: type) -> None:
    """Raise an error that names an unknown or missing setting of the dataclass."""
    fields = {field.name: field for field in dataclasses.fields(of)}
    for name in settings:
        if name not in fields:
            raise UserError(f"unknown setting {name!r}{guess(name, fields)}")
    for name, field in fields.items():
        if field.default is dataclasses.MISSING and name not in settings:
            raise UserError(f"setting {name!r} is missing")


def check_count(name: str, value: object, at_least: int) -> None:
    at_most = MOST_BLOCKS if name == "n_block" else MOST
    if not isinstance(value, int) or isinstance(value, bool) or not at_least <= value <= at_most:
        raise UserError(f"{name} = {value!r}: expected an integer from {at_least} to {at_most}")


def check_number(name: str, value: object, above: float, below: float) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not above < value < below:
        raise UserError(f"{name} = {value!r}: expected a number between {above:g} and {below:g}")


def check_kind(name: str, value: object, kinds: tuple[str, ...]) -> None:
    if value not in kinds:
        raise UserError(f"{name} = {value!r}: expected one of {', '.join(kinds)}{guess(str(value), kinds)}")


def _round_up(value: float, multiple: int) -> int:
    return -int(-value // multiple) * multiple
