"""What a transformer is made of: every choice, checked when it is made."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, get_args

from clearhead.errors import UserError, guess

NormKind = Literal["layer", "rms"]
PositionKind = Literal["learned", "sinusoidal", "rotary", "none"]
RopeScalingKind = Literal["linear", "llama3"]
# Far above any model there is; a damaged or hostile file must not make us build more.
MOST = 2**24
MOST_BLOCKS = 1000

FeedForwardKind = Literal["relu", "gelu", "gelu_tanh", "swiglu", "geglu"]


@dataclass(frozen=True)
class RopeScaling:
    """How rotary positions were stretched for a longer context than a model first learned.

    `linear`: every position divided by the factor. `llama3`: only slow turns are; those that went round more
    than `fast` times in the `context` first learned stay, those under `slow` times are divided.
    """

    kind: RopeScalingKind
    factor: float
    slow: float = 1.0
    fast: float = 4.0
    context: int = 8192

    def __post_init__(self) -> None:
        check_kind("rotary_stretch.kind", self.kind, get_args(RopeScalingKind))
        for name in ("factor", "slow", "fast"):
            check_number(f"rotary_stretch.{name}", getattr(self, name), above=0.0, below=1e6)
        check_count("rotary_stretch.context", self.context, at_least=1)
        if not self.slow < self.fast:
            raise UserError(f"rotary_stretch: slow = {self.slow} must be less than fast = {self.fast}")


@dataclass(frozen=True)
class Config:
    """The shape of a transformer. Zero means the usual value wherever a comment says "unless said"."""

    n_vocab: int
    n_context: int
    n_block: int
    n_head: int
    d_model: int
    n_kv_head: int = 0  # heads that share keys and values; as many as n_head unless said
    d_head: int = 0  # d_model / n_head unless said
    d_hidden: int = 0  # 4 · d_model unless said; a gated one has a third matrix, so 8/3 · d_model
    norm: NormKind = "layer"
    norm_epsilon: float = 1e-5
    position: PositionKind = "learned"
    rotary_base: float = 10_000.0
    rotary_dim: int = 0  # features of each head that are turned; all unless said
    rotary_stretch: RopeScaling | None = None
    window: int = 0  # how many positions a local block sees, its own included
    local_blocks: tuple[int, ...] = ()  # the blocks that see no further
    local_rotary_base: float = 0.0  # of those blocks, unstretched; as in the others unless said
    d_k: int = 0  # scores are divided by its root; d_head unless said
    feedforward: FeedForwardKind = "relu"
    causal: bool = True
    qk_norm: bool = False
    qkv_bias: bool = True
    output_bias: bool = True  # of the attention's W^O
    feedforward_bias: bool = True
    parallel: bool = False  # attention and feed-forward both read the block's input
    after_norm: bool = False  # what each half of a block adds is normed once more
    embedding_scale: float = 1.0  # token vectors are multiplied by it
    tied: bool = True  # the unembedding is the embedding
    dropout: float = 0.0  # on the embedding and on what each half of a block adds to the stream

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
        if self.local_rotary_base != 0:
            check_number("local_rotary_base", self.local_rotary_base, above=1.0, below=1e12)
        if self.dropout != 0:
            check_number("dropout", self.dropout, above=0.0, below=1.0)
        if self.d_head == 0 and self.d_model % self.n_head != 0:
            lower = self.d_model // self.n_head * self.n_head
            raise UserError(
                f"width {self.d_model} is not a multiple of {self.n_head} heads: "
                f"choose a width of {lower or self.n_head} "
                f"or {lower + self.n_head}, or another number of heads",
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
                "n_kv_head must divide n_head"
            )
        self._fill("d_k", self.d_head)
        if self.position == "rotary":
            self._fill("rotary_dim", self.d_head)
            if self.rotary_dim % 2 != 0 or self.rotary_dim > self.d_head:
                raise UserError(
                    f"rotary positions turn pairs of features: rotary_dim = {self.rotary_dim} "
                    f"must be even and at most d_head = {self.d_head}"
                )
        self._check_local()

    def _check_local(self) -> None:
        blocks = self.local_blocks
        if not isinstance(blocks, tuple | list) or any(type(i) is not int for i in blocks):
            raise UserError(f"local_blocks = {blocks!r}: expected a list of block numbers")
        object.__setattr__(self, "local_blocks", tuple(sorted(set(blocks))))
        if blocks and not (min(blocks) >= 0 and max(blocks) < self.n_block):
            raise UserError(f"local_blocks = {blocks!r}: this model has blocks 0 to {self.n_block - 1}")
        if blocks and (self.window == 0 or not self.causal):
            raise UserError("local_blocks need a window, and a model that sees only what came before")

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
    def n_parameter(self) -> int:
        """How many numbers training may change."""
        d = self.d_model
        ends = self.n_vocab * d * (1 if self.tied else 2) + d * (2 if self.norm == "layer" else 1)
        ends += self.n_context * d if self.position == "learned" else 0
        return ends + self.n_block * self.n_parameter_a_block

    @property
    def n_parameter_a_block(self) -> int:
        d, queries, shared = self.d_model, self.n_head * self.d_head, self.n_kv_head * self.d_head
        norm = d * (2 if self.norm == "layer" else 1)
        attention = d * (queries + 2 * shared) + queries * d
        attention += self.qkv_bias * (queries + 2 * shared) + self.output_bias * d
        attention += self.qk_norm * 2 * self.d_head
        feedforward = d * self.d_hidden * (3 if self.gated else 2)
        feedforward += self.feedforward_bias * (self.d_hidden * (2 if self.gated else 1) + d)
        return (4 if self.after_norm else 2) * norm + attention + feedforward

    def to_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "local_blocks": list(self.local_blocks)}

    @classmethod
    def from_json(cls, settings: dict[str, Any]) -> Config:
        """The config that `to_json` wrote. A setting it does not know, or lacks, is refused by name."""
        check_names(settings, cls)
        stretch = settings.get("rotary_stretch")
        if stretch is not None:
            known = {field.name for field in dataclasses.fields(RopeScaling)}
            if not isinstance(stretch, dict) or not {"kind", "factor"} <= stretch.keys() <= known:
                raise UserError(f"rotary_stretch = {stretch!r}: expected {', '.join(sorted(known))}")
            settings = {**settings, "rotary_stretch": RopeScaling(**stretch)}
        return cls(**settings)


PRESETS: dict[str, dict[str, Any]] = {
    # The lectures' block: LayerNorm with γ and β, ReLU, learned positions. A GPT-2 to the ecosystem.
    "lecture": {"norm": "layer", "position": "learned", "feedforward": "relu"},
    "gpt2": {"norm": "layer", "position": "learned", "feedforward": "gelu_tanh"},
    # A Qwen3 to the ecosystem.
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
    """A config with a preset's choices, and the sizes (or other choices) given."""
    check_kind("preset", name, tuple(PRESETS))
    return Config.from_json({**PRESETS[name], **settings})


def check_names(settings: dict[str, Any], of: type) -> None:
    """Refuse settings by name that a dataclass does not know, or must have and are not there."""
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
        raise UserError(
            f"{name} = {value!r}: expected a whole number of at least {at_least}, at most {at_most}"
        )


def check_number(name: str, value: object, above: float, below: float) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not above < value < below:
        raise UserError(f"{name} = {value!r}: expected a number between {above:g} and {below:g}")


def check_kind(name: str, value: object, kinds: tuple[str, ...]) -> None:
    if value not in kinds:
        raise UserError(f"{name} = {value!r}: expected one of {', '.join(kinds)}{guess(str(value), kinds)}")


def _round_up(value: float, multiple: int) -> int:
    return -int(-value // multiple) * multiple
