"""A text as a model has read it: its tokens, its words, where they stand, and how alike their vectors are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.choice import Choice, check_index
from clearhead.inspect.words import cosines, locate
from clearhead.networks import LearnerConfig
from clearhead.text.tokenizer import Tokenizer

UNNAMED = "model"  # one that comes from no folder or file


class ReadText(ABC):
    """What every trace is, whatever the network."""

    config: LearnerConfig
    ids: Tensor  # B T
    pieces: list[list[str]]
    single: bool  # of one text, which was not given as a batch
    tokenizer: Tokenizer | None
    model_name: str = UNNAMED

    @abstractmethod
    def read(self, name: str, rows: Choice = None, columns: Choice = None) -> Tensor:
        """A site by name. `rows` are positions; `columns` features, or what is looked at."""

    @property
    def tokens(self) -> Any:
        """The pieces of text, one a position; of a batch, a list for each sequence."""
        return self.pieces[0] if self.single else self.pieces

    def __len__(self) -> int:
        """Positions, padding and all."""
        return self.ids.shape[1]

    def words(self, ids: Sequence[int]) -> list[str]:
        """The text of these tokens."""
        return self.tokenizer.pieces(ids) if self.tokenizer is not None else [str(i) for i in ids]

    def token_id(self, token: str | int) -> int:
        if not isinstance(token, str):
            number = check_index(token, self.config.n_vocab, "token")
            if number != int(token):
                raise UserError(f"token {token} does not exist: there are 0 to {self.config.n_vocab - 1}")
            return number
        assert self.tokenizer is not None, "a token in words needs a tokenizer"
        ids = self.tokenizer.encode(token)
        if len(ids) != 1:
            message = f"{token!r} is {len(ids)} tokens ({self.words(ids)}), expected one of them"
            raise UserError(message, "not_one_token", word=token, count=len(ids))
        return ids[0]

    def check_position(self, position: int) -> int:
        return check_index(position, len(self), "position")

    def check_single(self) -> None:
        if not self.single:
            raise UserError("this is asked of one text: the trace is of several, inspect one alone")

    def position_of(self, word: str, occurrence: int | None = None) -> int:
        """Where a word stands: the position of the last of its tokens."""
        found = self.positions_of(word)
        if occurrence is None and len(found) > 1:
            places = ", ".join(map(str, found))
            raise UserError(f"{word!r} stands at positions {places}: say which, with occurrence=0 and so on")
        if not 0 <= (occurrence or 0) < len(found):
            last = len(found) - 1
            raise UserError(f"occurrence {occurrence} of {word!r} does not exist: there are 0 to {last}")
        return found[occurrence or 0]

    def positions_of(self, word: str) -> list[int]:
        """Every place where a word stands, each the position of the last of its tokens."""
        self.check_single()
        return locate(self, word)

    def cosines(self, word: str, other: ReadText | None = None) -> Tensor:
        """The cosines between a word's occurrences here and, if given, in another trace: S N M.

        The stages S are the static vector (the embedding), the contextual one entering each block, and the
        one at the end; in a recurrent network the static vector and the state of each block. Static vectors
        of one word are all alike; contextual ones tell its senses apart.
        """
        there = self if other is None else other
        if type(there) is not type(self) or there.config.n_block != self.config.n_block:
            raise UserError("the other is no trace of a model with as many blocks")
        return cosines(self, there, word)
