"""The trace of a recurrent network: the state after each token, and its gates.

Stores the states that the network computed; every other site is computed from them on demand with the
formulas of `classics/recurrent_cell.py`.

Shapes, for one sequence: T positions, C features, V tokens in the vocabulary; a batch has B in front.
"""

from __future__ import annotations

import re
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.classics.recurrent import Recurrent, RecurrentBlock
from clearhead.classics.recurrent_cell import GATES, next_cell, next_state, take_gates
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.errors import UserError, guess
from clearhead.inspect.base_trace import UNNAMED, BaseTrace
from clearhead.inspect.block_views import Parts
from clearhead.inspect.indexing import Selection, index_tensor, select_indices
from clearhead.inspect.sites import SiteError
from clearhead.inspect.trace import Trace
from clearhead.summary_table import plural
from clearhead.text.tokenizer import Tokenizer

ENDS = ("embedding", "final", "logits", "probabilities")


def block_names(config: RecurrentConfig) -> tuple[str, ...]:
    """Return the sites of a block: its input, its gates, the cell of an LSTM, and its state."""
    gates = tuple(name for name in GATES[config.kind] if name != "state")
    return ("input", *gates, *(("cell",) if config.kind == "lstm" else ()), "state")


class StateTrace(BaseTrace):
    """The result of inspecting a recurrent network on a text."""

    config: RecurrentConfig

    def __init__(
        self,
        network: Recurrent,
        ids: Tensor,
        tokens: list[list[str]],
        single: bool = True,
        tokenizer: Tokenizer | None = None,
        model_name: str = UNNAMED,
    ) -> None:
        self.network, self.config, self.ids = network, network.config, ids
        self.pieces, self.single = tokens, single
        self.tokenizer, self.model_name = tokenizer, model_name
        self.grad = torch.is_grad_enabled()
        # cuDNN's kernel supports the backward pass only in training mode.
        with torch.backends.cudnn.flags(enabled=not self.grad):
            self.states = network.states(ids)

    def __repr__(self) -> str:
        positions, sites = plural(len(self), "position"), plural(len(self.sites()), "site")
        return f"StateTrace({self._describe_text()}: {positions}, {sites})"

    def sites(self) -> list[str]:
        """Return the names of all sites."""
        names = block_names(self.config)
        inside = [f"block.{i}.{name}" for i in range(self.config.n_block) for name in names]
        return [ENDS[0], *inside, *ENDS[1:]]

    def __contains__(self, name: object) -> bool:
        return name in self.sites()

    @property
    def block(self) -> Parts[StateView]:
        return Parts("block", (StateView(self, i) for i in range(self.config.n_block)))

    def __getitem__(self, name: str) -> Tensor:
        return self.read(name)

    def __getattr__(self, name: str) -> Any:
        """Return a site outside the blocks."""
        if name.startswith("_") or "config" not in vars(self):
            raise AttributeError(f"a trace has no {name!r}")
        if name not in ENDS:
            raise SiteError(f"a trace has no {name!r}: {_describe_kind(self.config)}")
        return self.read(name)

    def read(self, name: str, rows: Selection = None, columns: Selection = None) -> Tensor:
        """Read a site by name. `rows` are positions, `columns` are features or tokens in the vocabulary."""
        block, site = self._parse(name)
        down = index_tensor(select_indices(rows, len(self), "row"), self.ids.device)
        with torch.set_grad_enabled(self.grad):
            tensor = self._end(site, down) if block is None else self._inside(block, site)
            if down is not None and (block is not None or site in ("embedding", "final")):
                tensor = tensor[:, down]
            across = index_tensor(select_indices(columns, tensor.shape[-1], "column"), self.ids.device)
            tensor = tensor if across is None else tensor[..., across]
        return tensor[0] if self.single else tensor

    def _parse(self, name: object) -> tuple[int | None, str]:
        """Parse a site name; the error for an unknown one lists the valid names."""
        known = self.sites()
        if not isinstance(name, str) or name not in known:
            match = re.fullmatch(r"block\.(\d+)\.([a-z_]+)", str(name))
            if match and match[2] in block_names(self.config):
                raise SiteError(f"site {name!r}: this model has blocks 0 to {self.config.n_block - 1}")
            meant = guess(str(name).rpartition(".")[2], [*block_names(self.config), *ENDS])
            raise SiteError(f"no site {name!r}: {_describe_kind(self.config)}{meant}")
        if name in ENDS:
            return None, name
        _, block, site = name.split(".")
        return int(block), site

    def _end(self, site: str, rows: Tensor | None) -> Tensor:
        if site in ("embedding", "final"):
            return self.states[0 if site == "embedding" else -1]
        last = self.states[-1] if rows is None else self.states[-1][:, rows]
        logits = self.network.unembedding(last)
        return logits if site == "logits" else logits.softmax(-1)

    def _inside(self, block: int, site: str) -> Tensor:
        if site in ("input", "state"):
            return self.states[block if site == "input" else block + 1]
        gates = self._gates(block)
        return self._cells(gates) if site == "cell" else gates[site]

    def _gates(self, block: int) -> dict[str, Tensor]:
        """Compute the gates at all positions at once, from the known previous states."""
        module = self.network.blocks[block]
        assert isinstance(module, RecurrentBlock)
        return take_gates(self.config.kind, *module.sums(self.states[block], self._before(block)))

    def _before(self, block: int) -> Tensor:
        """Return the state before each token: zeros before the first."""
        return F.pad(self.states[block + 1], (0, 0, 1, 0))[:, :-1]

    def _cells(self, gates: dict[str, Tensor]) -> Tensor:
        cells: list[Tensor] = []
        cell = torch.zeros_like(gates["proposal"][:, 0])
        for t in range(len(self)):
            cell = next_cell({name: gate[:, t] for name, gate in gates.items()}, cell)
            cells.append(cell)
        return torch.stack(cells, dim=1)

    @torch.no_grad()
    def verify(self) -> float:
        """Return the largest relative error ‖difference‖/‖value‖ of the formulas, compared with the network."""
        errors = []
        for i in range(self.config.n_block):
            gates = self._gates(i)
            cells = self._cells(gates) if self.config.kind == "lstm" else None
            states = next_state(self.config.kind, gates, self._before(i), cells)
            errors.append(_relative_error(states, self.states[i + 1]))
        errors.append(
            _relative_error(self.states[-1] @ self.network.unembedding.weight.T, self.network(self.ids))
        )
        return float(torch.stack(errors).max())

    def vector(self, word: str, block: int | None = None, occurrence: int | None = None) -> Tensor:
        """Return the state of a block after a word, by default that of the last block.

        The site `embedding` holds the static vector.
        """
        name = "final" if block is None else f"block.{block}.state"
        return self.read(name, rows=self.position_of(word, occurrence))[0]


AnyTrace = Trace | StateTrace


def need_heads(trace: AnyTrace, what: str) -> Trace:
    """Return the trace of a transformer; for a different network, raise an error that names `what`."""
    if not isinstance(trace, Trace):
        raise UserError(f"{what} requires a transformer: {_describe_kind(trace.config)}")
    return trace


class StateView:
    """A block of a trace: its sites as attributes."""

    def __init__(self, trace: StateTrace, block: int) -> None:
        self._trace, self._block = trace, block

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._trace.read(f"block.{self._block}.{name}")

    def __dir__(self) -> list[str]:
        return list(block_names(self._trace.config))

    def __repr__(self) -> str:
        return f"block {self._block}: {', '.join(block_names(self._trace.config))}"


def _describe_kind(config: RecurrentConfig) -> str:
    names = ", ".join([*(f"block.i.{name}" for name in block_names(config)), *ENDS])
    return f"this model is of kind {config.kind}, whose sites are {names}"


def _relative_error(actual: Tensor, expected: Tensor) -> Tensor:
    return ((actual - expected).norm(dim=-1) / expected.norm(dim=-1).clamp(min=1e-30)).max()
