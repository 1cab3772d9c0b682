"""The kinds of network: each maps token ids to logits and has a config."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import log
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from clearhead.classics.ngram import NGram
from clearhead.classics.ngram_config import NGramConfig
from clearhead.classics.recurrent import Recurrent
from clearhead.classics.recurrent_cell import CellKind
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.errors import UserError
from clearhead.model.config import Config, check_kind
from clearhead.model.mask import LONG
from clearhead.model.transformer import Transformer
from clearhead.runtime.long_sequences import is_long, run_in_parts
from clearhead.runtime.process_group import is_sharded
from clearhead.summary_table import plural

KINDS = ("transformer", *get_args(CellKind), "ngram")
LOGITS_AT_ONCE = 2**24  # 64 MB in float32

# Networks trained by gradient descent; all networks that can be stored, including the n-gram model, which counts
# instead; and ensembles of these.
LearnerConfig = Config | RecurrentConfig
Learner = Transformer | Recurrent
SingleConfig = LearnerConfig | NGramConfig
SingleNetwork = Learner | NGram


@dataclass(frozen=True)
class EnsembleConfig:
    """The members of an ensemble, which share a vocabulary."""

    members: tuple[SingleConfig, ...]

    @property
    def kind(self) -> Literal["ensemble"]:
        return "ensemble"

    @property
    def n_vocab(self) -> int:
        return self.members[0].n_vocab

    @property
    def n_context(self) -> int:
        """The shortest context of its transformers; the windows of other networks set no limit."""
        limited = [each.n_context for each in self.members if isinstance(each, Config)]
        return min(limited or [each.n_context for each in self.members])

    @property
    def causal(self) -> bool:
        """Always true."""
        return True

    @property
    def n_parameter(self) -> int:
        return sum(each.n_parameter for each in self.members)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "members": [each.to_json() for each in self.members]}


class Ensemble(nn.Module):
    """Token ids in, logits out; here, the logits are the log of the mean of its members' probabilities."""

    def __init__(self, members: Sequence[SingleNetwork]) -> None:
        super().__init__()
        self.members = tuple(members)
        self.networks = nn.ModuleList(members)  # for `parameters`, `to` and `eval`
        self.config = EnsembleConfig(tuple(each.config for each in members))

    def forward(self, ids: Tensor, documents: Tensor | None = None) -> Tensor:
        """B T ids to B T V logits. `documents` (B T) numbers the documents of each row."""
        return log_mean([each(ids, documents=documents) for each in self.members])


def log_mean(logits: Sequence[Tensor]) -> Tensor:
    """The log of the mean of the probabilities that these logits stand for, at least in float32."""
    wide = (each if each.dtype == torch.float64 else each.float() for each in logits)
    return reduce(torch.logaddexp, (each.log_softmax(-1) for each in wide)) - log(len(logits))


AnyConfig = SingleConfig | EnsembleConfig
Network = SingleNetwork | Ensemble


def logits_in_parts(
    network: Network, ids: Tensor, documents: Tensor | None = None, at_once: int = LOGITS_AT_ONCE
) -> Iterator[tuple[int, Tensor]]:
    """The logits of the whole sequence, `network(ids)`, as pairs of a first position and the logits from there, B t V.

    About `at_once` logits are in memory at a time, but at least one position of every row, and long sequences run
    through a transformer in parts. A network sharded among processes is the exception: its weights are only complete
    while all of it runs.
    """
    B, T = ids.shape
    if isinstance(network, Ensemble):
        share = at_once // len(network.members)
        members = (logits_in_parts(each, ids, documents, share) for each in network.members)
        for parts in zip(*members, strict=True):
            yield parts[0][0], log_mean([part for _, part in parts])
        return
    width = max(1, at_once // max(1, B * network.config.n_vocab))
    starts = range(0, T, width)
    if isinstance(network, NGram):
        contexts = network.contexts(ids, documents)
        for start in starts:
            yield start, network.predict([each[:, start : start + width] for each in contexts])
    elif is_sharded(network) or (width >= T and T <= LONG):
        logits = network(ids, documents=documents)
        for start in starts:
            yield start, logits[:, start : start + width]
    else:
        if isinstance(network, Transformer) and is_long(network, ids):
            final = network.hidden_states(ids, documents=documents, run_block=run_in_parts)
        else:
            final = network.hidden_states(ids, documents=documents)
        for start in starts:
            yield start, network.unembed(final[:, start : start + width])


def make_network(config: LearnerConfig) -> Learner:
    """A network with randomly initialized weights."""
    return Transformer(config) if isinstance(config, Config) else Recurrent(config)


def config_from_json(settings: dict[str, Any]) -> SingleConfig:
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
    if isinstance(config, EnsembleConfig):
        networks = plural(len(config.members), "network")
        return f"ensemble of {networks}: {config.n_parameter:,} parameters, context {config.n_context}"
    if isinstance(config, Config):
        blocks = f"{plural(config.n_block, 'block')} of {plural(config.n_head, 'head')}"
    else:
        blocks = plural(config.n_block, f"{config.kind} block")
    return f"{config.n_parameter:,} parameters: {blocks}, width {config.d_model}, context {config.n_context}"


def need_causal(config: AnyConfig) -> None:
    """Raise an error for a bidirectional network, which cannot generate."""
    if not config.causal:
        raise UserError("this model is bidirectional: it fills in blanks and cannot generate text")


def need_single(network: Network, what: str) -> SingleNetwork:
    """Raise an error for an ensemble; `what` names the feature."""
    if isinstance(network, Ensemble):
        raise UserError(f"{what} requires a single model; this is an ensemble: use one of its models")
    return network


def need_transformer(config: AnyConfig, what: str) -> Config:
    """Raise an error unless the config is a transformer's; `what` names the feature."""
    if not isinstance(config, Config):
        raise UserError(f"{what} requires a transformer; this model is of kind {config.kind}")
    return config
