"""The base of the traces of every kind of network: the tokens of a text, and the positions of its words.

Shapes: S stages, N and M occurrences of a word.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from textwrap import shorten
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from clearhead.errors import UserError
from clearhead.inspect.indexing import Selection, check_index
from clearhead.inspect.word_positions import locate
from clearhead.model.config import Config
from clearhead.networks import LearnerConfig
from clearhead.summary_table import TableCell, html_table
from clearhead.text.tokenizer import Tokenizer

NEXT_TOKENS = 5  # predicted tokens in a notebook's table
UNNAMED = "model"  # the name of a model that was not loaded from a folder or file


class BaseTrace(ABC):
    """A text as a network processed it, and the sites that can be read."""

    config: LearnerConfig
    ids: Tensor  # B T
    pieces: list[list[str]]
    single: bool  # one text, not passed as a batch
    tokenizer: Tokenizer | None
    model_name: str = UNNAMED

    @abstractmethod
    def read(self, name: str, rows: Selection = None, columns: Selection = None) -> Tensor:
        """Read a site by name. `rows` are positions; `columns` are features, or key positions."""

    @property
    def tokens(self) -> Any:
        """The text of each token; for a batch, one list per sequence."""
        return self.pieces[0] if self.single else self.pieces

    @abstractmethod
    def sites(self) -> list[str]:
        """Return the names of all sites."""

    def _describe_text(self) -> str:
        """Return the text in quotes, shortened, or the number of texts."""
        shown = shorten("".join(self.pieces[0]), 60, placeholder=" …")
        return repr(shown) if self.single else f"{len(self.ids)} texts"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, TableCell]] = [
            ("text", self._describe_text()),
            ("model", self.model_name),
            ("positions", len(self)),
            ("blocks", self.config.n_block),
            ("sites", len(self.sites())),
        ]
        if isinstance(self.config, Config):
            rows.insert(4, ("heads per block", self.config.n_head))
        if self.single and self.config.causal:
            rows.append(("next token", self._describe_next()))
        return html_table((), rows, type(self).__name__)

    @torch.no_grad()
    def _describe_next(self) -> str:
        """Return the most likely next tokens, with their probabilities."""
        probabilities = self.read("logits", rows=-1)[0].softmax(-1)
        best = probabilities.topk(min(NEXT_TOKENS, self.config.n_vocab))
        texts = self.token_texts(best.indices.tolist())
        pairs = zip(texts, best.values.tolist(), strict=True)
        return ", ".join(f"{text!r} {probability:.1%}" for text, probability in pairs)

    def __len__(self) -> int:
        """The number of positions, including padding."""
        return self.ids.shape[1]

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each of these tokens."""
        return self.tokenizer.pieces(ids) if self.tokenizer is not None else [str(i) for i in ids]

    def token_id(self, token: str | int) -> int:
        if not isinstance(token, str):
            number = check_index(token, self.config.n_vocab, "token")
            if number != int(token):
                raise UserError(f"token {token} does not exist: expected 0 to {self.config.n_vocab - 1}")
            return number
        assert self.tokenizer is not None, "a token given as text needs a tokenizer"
        ids = self.tokenizer.encode(token)
        if len(ids) != 1:
            message = f"{token!r} is {len(ids)} tokens ({self.token_texts(ids)}), expected a single one"
            raise UserError(message, "not_one_token", word=token, count=len(ids))
        return ids[0]

    def check_position(self, position: int) -> int:
        return check_index(position, len(self), "position")

    def check_single(self) -> None:
        if not self.single:
            raise UserError("this needs a trace of one text, but the trace is a batch: inspect a single text")

    def position_of(self, word: str, occurrence: int | None = None) -> int:
        """Return the position of a word: that of its last token."""
        positions = self.positions_of(word)
        if occurrence is None and len(positions) > 1:
            listed = ", ".join(map(str, positions))
            raise UserError(f"{word!r} occurs at positions {listed}: pass occurrence=0, 1, … to choose one")
        if not 0 <= (occurrence or 0) < len(positions):
            last = len(positions) - 1
            raise UserError(f"occurrence {occurrence} of {word!r} does not exist: expected 0 to {last}")
        return positions[occurrence or 0]

    def positions_of(self, word: str) -> list[int]:
        """Return the position of every occurrence of a word: that of its last token."""
        self.check_single()
        return locate(word, self.pieces[0], self.ids[0].tolist(), self.tokenizer)

    def cosines(self, word: str, other: BaseTrace | None = None) -> Tensor:
        """Return the cosines between the occurrences of a word here and, if given, in another trace: S N M.

        The stages S are the static vector (the embedding), the contextual vector at the input of each block,
        and the final vector; in a recurrent network, the static vector and the state of each block. Static
        vectors of one word are all equal; contextual ones differ between its senses.
        """
        other = self if other is None else other
        if type(other) is not type(self) or other.config.n_block != self.config.n_block:
            raise UserError(
                "the other trace differs in kind or number of blocks: expected a model of the same shape"
            )
        rows, other_rows = self.positions_of(word), other.positions_of(word)
        tables = []
        for stage in stages(self.config):
            first, second = self.read(stage, rows=rows), other.read(stage, rows=other_rows)
            tables.append(normalize(first, dim=-1) @ normalize(second, dim=-1).T)
        return torch.stack(tables)


def stages(config: LearnerConfig) -> list[str]:
    """Return the sites of a token's vector in order: static, at the input of each block, and final.

    For a recurrent network: the static vector and the state of each block, the last of which is final.
    """
    if not isinstance(config, Config):
        return ["embedding", *(f"block.{i}.state" for i in range(config.n_block))]
    return ["embedding", *(f"block.{i}.input" for i in range(config.n_block)), "final"]
