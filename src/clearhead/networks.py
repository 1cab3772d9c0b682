"""The kinds of networks that there are. Ids in, logits out, and a config: more they do not have in common."""

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

KINDS = ("transformer", *get_args(CellKind), "ngram")

# Those that learn step by step, by gradients; and all, with the one that counts.
LearnerConfig = Config | RecurrentConfig
Learner = Transformer | Recurrent
AnyConfig = LearnerConfig | NGramConfig
Network = Learner | NGram


def make_network(config: LearnerConfig) -> Learner:
    """With its first weights, as chance has it."""
    return Transformer(config) if isinstance(config, Config) else Recurrent(config)


def config_from_json(settings: dict[str, Any]) -> AnyConfig:
    """The config that some kind's `to_json` wrote; what says nothing of a kind is a transformer's."""
    kind = settings.get("kind", "transformer")
    check_kind("kind", kind, KINDS)
    if kind == "ngram":
        return NGramConfig.from_json(settings)
    return Config.from_json(settings) if kind == "transformer" else RecurrentConfig.from_json(settings)


def learner_config_from_json(settings: dict[str, Any]) -> LearnerConfig:
    """The same of a network that learns step by step."""
    config = config_from_json(settings)
    if isinstance(config, NGramConfig):
        raise UserError(f"kind = {config.kind!r}: expected one that is trained step by step")
    return config


def need_causal(config: AnyConfig) -> None:
    """Refuse to write on with a network that sees what comes after."""
    if not config.causal:
        raise UserError("this model sees both ways: it fills in blanks and cannot write on")


def need_transformer(config: AnyConfig, what: str) -> Config:
    """Refuse a network of another kind what only a transformer has."""
    if not isinstance(config, Config):
        raise UserError(f"{what}: only a transformer has that, and this model is of kind {config.kind}")
    return config
