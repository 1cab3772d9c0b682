"""The start token, which some models expect at the beginning of every window, even one from the middle of a text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokens import IGNORED, Tokens


@dataclass(frozen=True)
class StartToken:
    """The id of the start token, and of the end token that it replaces before a document."""

    id: int
    end_id: int | None

    @classmethod
    def of(cls, tokenizer: Tokenizer, tokens: Tokens) -> StartToken | None:
        """The start token with which windows of these tokens begin, if the model expects one.

        Conversations stay as rendered by the chat template: if they begin without it, so do their windows.
        """
        if not tokenizer.start_ids:
            return None
        start = cls(tokenizer.start_ids[-1], tokenizer.end_id)
        return start if tokens.all_count or tokens[:1].tolist() == [start.id] else None

    def is_opening(self, token: int) -> bool:
        """Whether a window that begins with this token needs no further one."""
        return token in (self.id, self.end_id)

    def replace_ends(self, inputs: NDArray[np.int64], tokens: Tokens) -> None:
        """Put the start token in place of end tokens before documents. Within conversations, end tokens end turns."""
        if tokens.all_count and self.end_id is not None:
            inputs[inputs == self.end_id] = self.id

    def prepend(
        self, inputs: NDArray[np.int64], targets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The window preceded by the start token, from which alone nothing is predicted."""
        return np.concatenate(([self.id], inputs)), np.concatenate(([IGNORED], targets))


def split_opening(tokens: Tokens, tokenizer: Tokenizer) -> tuple[Tokens, int]:
    """The tokens to predict in a whole text, and the token before them.

    That is the end token with which the text begins or, without one, the start token. With neither, the first token
    of the text is not predicted.
    """
    if tokenizer.end_id is None and tokenizer.start_ids:
        return tokens, tokenizer.start_ids[-1]
    return tokens.part(1), int(tokens[:1][0])
