"""Batches: the tokens of each training step, and masked tokens.

B is the number of rows in a batch, T the number of positions in a row (`n_context`).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from clearhead.errors import UserError
from clearhead.text.start_token import StartToken
from clearhead.text.tokens import IGNORED, Tokens


class Batch(NamedTuple):
    """Inputs and targets, both B×T.

    If rows hold several documents, `documents` (B×T) has the number of each token's document within its row.
    """

    inputs: NDArray[np.int64]
    targets: NDArray[np.int64]
    documents: NDArray[np.int64] | None = None


class BatchSource(Protocol):
    """A batch for every step."""

    @property
    def n_context(self) -> int: ...

    @property
    def batch_size(self) -> int: ...

    def at(self, step: int, rank: int = 0, world_size: int = 1) -> Batch: ...


BLANKED = 0.15  # share of a row's positions; at least one
MASKED, CHANGED = 0.8, 0.1  # shares of those; the rest are kept


@dataclass(frozen=True)
class Blanks:
    """Masked tokens as in BERT: replaced by the mask token, by a random token, or kept.

    Every row has the same number of targets, so that parts of a batch have equal weight.
    """

    mask_id: int  # the last id: random replacements are below it

    def cut(self, tokens: NDArray[np.int64], random: np.random.Generator) -> Batch:
        """Turn B×T tokens into inputs with masked tokens, and targets at these positions only."""
        B, T = tokens.shape
        order = np.argsort(random.random((B, T)), axis=1)
        chosen = order[:, : max(1, round(BLANKED * T))]
        targets = np.full_like(tokens, IGNORED)
        hidden = np.take_along_axis(tokens, chosen, axis=1)
        np.put_along_axis(targets, chosen, hidden, axis=1)
        fate, others = random.random(chosen.shape), random.integers(self.mask_id, size=chosen.shape)
        shown = np.where(fate < MASKED, self.mask_id, np.where(fate < MASKED + CHANGED, others, hidden))
        inputs = tokens.copy()
        np.put_along_axis(inputs, chosen, shown, axis=1)
        return Batch(inputs, targets)


@dataclass(frozen=True)
class Batches:
    """Every window of the text once per epoch, in random order: a pure function of seed and step.

    A window is T + 1 tokens; its last token is the first of the next window. Each epoch starts at its own
    random offset below T, so that over the epochs, every token is seen at every position. A window without any
    target is replaced by the next one that has any. In a text of several documents, each window records which of
    its tokens belong together. `start`, if given, begins every window, which then holds one fewer token of the text,
    unless the start token replaces an end token.
    """

    tokens: Tokens
    n_context: int
    batch_size: int
    seed: int
    blanks: Blanks | None = None  # if given, the targets are the masked tokens instead of the next tokens
    start: StartToken | None = None

    def __post_init__(self) -> None:
        assert self.n_context > 0, f"n_context = {self.n_context}: expected 1 or more"
        assert self.batch_size > 0, f"batch_size = {self.batch_size}: expected 1 or more"
        if self.seed < 0:
            raise UserError(f"seed = {self.seed}: expected 0 or more")
        if self.windows < 1:
            raise UserError(
                f"the text has {len(self.tokens)} tokens, but a context of {self.n_context} needs at least "
                f"{2 * self.n_context}: provide more text, or choose a shorter `context`",
                "training_text_short",
                count=len(self.tokens),
                context=self.n_context,
                least=2 * self.n_context,
            )

    @property
    def windows(self) -> int:
        """The number of windows in an epoch, which does not depend on its offset."""
        return (len(self.tokens) - self.n_context) // self.n_context

    def at(self, step: int, rank: int = 0, world_size: int = 1) -> Batch:
        """The inputs and targets of a step, or one rank's equal share of their rows."""
        assert self.batch_size % world_size == 0, (
            f"{world_size} ranks cannot share {self.batch_size} rows equally"
        )
        assert 0 <= rank < world_size, f"rank {rank} of {world_size}"
        rows = self.batch_size // world_size
        first = step * self.batch_size + rank * rows
        T = self.n_context
        inputs, targets = np.empty((2, rows, T), dtype=np.int64)
        documents = np.zeros((rows, T), dtype=np.int64) if self.tokens.are_documents else None
        for row in range(rows):
            epoch, place = divmod(first + row, self.windows)
            offset, order = _shuffle(self.seed, epoch, self.windows, T)
            for further in range(1 if self.tokens.all_count else self.windows):
                start = offset + int(order[(place + further) % self.windows]) * T
                window = self._window(start)
                if (window.targets != IGNORED).any():
                    break
            inputs[row], targets[row] = window.inputs, window.targets
            if documents is not None and window.documents is not None:
                documents[row] = window.documents
        if self.blanks is None:
            return Batch(inputs, targets, documents)
        return self._with_blanks(inputs, step, rank * rows)._replace(documents=documents)

    def _window(self, start: int) -> Batch:
        """The window that starts at this token: T inputs and T targets."""
        T = self.n_context
        inputs, targets = self.tokens[start : start + T], self.tokens.targets[start + 1 : start + T + 1]
        documents = self._documents(start) if self.tokens.are_documents else None
        if self.start is None:
            return Batch(inputs, targets, documents)
        self.start.replace_ends(inputs, self.tokens)
        if inputs[0] == self.start.id:
            return Batch(inputs, targets, documents)
        inputs, targets = self.start.prepend(inputs[:-1], targets[:-1])
        if documents is not None:
            documents = np.concatenate((documents[:1], documents[:-1]))
        return Batch(inputs, targets, documents)

    def _documents(self, start: int) -> NDArray[np.int64]:
        """The number of each token's document within the window that starts here.

        The end token between two documents starts the second. For a bidirectional model, it ends the first.
        """
        starts = self.tokens.document_starts(start, start + self.n_context)
        if self.blanks is not None:
            starts = np.concatenate(([False], starts[:-1]))
        return starts.cumsum()

    def _with_blanks(self, tokens: NDArray[np.int64], step: int, first: int) -> Batch:
        """Mask tokens for the whole step, so that the result does not depend on which rows are requested."""
        assert self.blanks is not None
        rows, T = tokens.shape
        whole = np.zeros((self.batch_size, T), dtype=np.int64)
        share = slice(first, first + rows)
        whole[share] = tokens
        inputs, targets, _ = self.blanks.cut(whole, blank_generator(self.seed, step))
        return Batch(inputs[share], targets[share])


def blank_generator(seed: int, number: int) -> np.random.Generator:
    """The random generator for masking in a step or window; the 1 sets it apart from that of `_shuffle`."""
    return np.random.Generator(np.random.PCG64([seed, number, 1]))


# Two epochs, because a batch can span the end of one.
@lru_cache(maxsize=2)
def _shuffle(seed: int, epoch: int, windows: int, n_context: int) -> tuple[int, NDArray[np.int64]]:
    random = np.random.Generator(np.random.PCG64([seed, epoch]))
    offset = int(random.integers(n_context))
    order = random.permutation(windows)
    order.flags.writeable = False
    return offset, order
