"""What a recurrent network is made of: every choice, checked when it is made."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from clearhead.classics.recurrent_cell import CELLS, GATES, CellKind
from clearhead.errors import UserError
from clearhead.model.config import check_count, check_kind, check_names, check_number


@dataclass(frozen=True)
class RecurrentConfig:
    """The shape of a recurrent network, each of whose blocks carries a state of `d_model` features along."""

    kind: CellKind
    n_vocab: int
    n_context: int  # words of a window that it learns from; when it writes, the past has no end
    n_block: int
    d_model: int
    tied: bool = True  # the unembedding is the embedding
    dropout: float = 0.0  # on the embedding and on what each block gives the next

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
        """Its past is all that it ever sees."""
        return True

    @property
    def n_parameter(self) -> int:
        """How many numbers training may change."""
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
        """The config that `to_json` wrote. A setting it does not know, or lacks, is refused by name."""
        check_names(settings, cls)
        return cls(**settings)
