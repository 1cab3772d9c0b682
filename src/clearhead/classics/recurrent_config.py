"""The configuration of a recurrent network, validated when it is created."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from clearhead.classics.recurrent_cell import CELLS, GATES, CellKind
from clearhead.errors import UserError
from clearhead.model.config import check_count, check_kind, check_names, check_number


@dataclass(frozen=True)
class RecurrentConfig:
    """The shape of a recurrent network whose blocks each carry a state of `d_model` features."""

    kind: CellKind
    n_vocab: int
    n_context: int  # tokens of a training window; generation has no such limit
    n_block: int
    d_model: int
    tied: bool = True  # share one matrix between embedding and unembedding
    dropout: float = 0.0  # on the embedding and between blocks

    def __post_init__(self) -> None:
        check_kind("kind", self.kind, CELLS)
        for name in ("n_vocab", "n_context", "n_block", "d_model"):
            check_count(name, getattr(self, name), at_least=1)
        if not isinstance(self.tied, bool):
            raise UserError(f"tied = {self.tied!r}: expected true or false")
        if self.dropout != 0:
            check_number("dropout", self.dropout, above=0.0, below=1.0)

    @property
    def causal(self) -> bool:
        """Always true."""
        return True

    @property
    def n_parameter(self) -> int:
        """The number of trainable parameters."""
        return (
            self.n_vocab * self.d_model * (1 if self.tied else 2) + self.n_block * self.n_parameter_per_block
        )

    @property
    def n_parameter_per_block(self) -> int:
        return len(GATES[self.kind]) * 2 * (self.d_model * self.d_model + self.d_model)

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, settings: dict[str, Any]) -> RecurrentConfig:
        """Read what `to_json` wrote. Raises an error that names any unknown or missing settings."""
        check_names(settings, cls)
        return cls(**settings)
