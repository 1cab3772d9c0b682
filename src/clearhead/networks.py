"""The kinds of network: each maps token ids to logits and has a config."""

from __future__ import annotations

from typing import Any, get_args

from clearhead.classics.ngram import NGram
from clearhead.classics.ngram_config import NGramConfig
from clearhead.classics.recurrent import Recurrent
from clearhead.classics.recurrent_cell import CellKind
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.errors import UserError
from clearhead.model.config import Config, check_kind
from clearhead.model.transformer import Transformer
from clearhead.summary_table import plural

KINDS = ("transformer", *get_args(CellKind), "ngram")

# Networks trained by gradient descent, and all networks, including the n-gram model, which counts instead.
LearnerConfig = Config | RecurrentConfig
Learner = Transformer | Recurrent
AnyConfig = LearnerConfig | NGramConfig
Network = Learner | NGram


def make_network(config: LearnerConfig) -> Learner:
    """A network with randomly initialized weights."""
    return Transformer(config) if isinstance(config, Config) else Recurrent(config)


def config_from_json(settings: dict[str, Any]) -> AnyConfig:
    """Read what any config's `to_json` wrote; the kind defaults to transformer."""
    kind = settings.get("kind", "transformer")
    check_kind("kind", kind, KINDS)
    if kind == "ngram":
        return NGramConfig.from_json(settings)
    return Config.from_json(settings) if kind == "transformer" else RecurrentConfig.from_json(settings)


def learner_config_from_json(settings: dict[str, Any]) -> LearnerConfig:
    """Like `config_from_json`, for a network trained by gradient descent."""
    config = config_from_json(settings)
    if isinstance(config, NGramConfig):
        raise UserError(f"kind = {config.kind!r}: expected a kind that is trained by gradient descent")
    return config


def describe_shape(config: AnyConfig) -> str:
    """Describe the size of a network, such as “4 blocks of 3 heads”."""
    if isinstance(config, NGramConfig):
        return f"{config.n_ngram:,} n-grams of up to {config.order} tokens"
    if isinstance(config, Config):
        blocks = f"{plural(config.n_block, 'block')} of {plural(config.n_head, 'head')}"
    else:
        blocks = plural(config.n_block, f"{config.kind} block")
    return f"{config.n_parameter:,} parameters: {blocks}, width {config.d_model}, context {config.n_context}"


def need_causal(config: AnyConfig) -> None:
    """Raise an error for a bidirectional network, which cannot generate."""
    if not config.causal:
        raise UserError("this model is bidirectional: it fills in blanks and cannot generate text")


def need_transformer(config: AnyConfig, what: str) -> Config:
    """Raise an error unless the config is a transformer's; `what` names the feature."""
    if not isinstance(config, Config):
        raise UserError(f"{what} requires a transformer; this model is of kind {config.kind}")
    return config
