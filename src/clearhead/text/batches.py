"""Batches: which tokens a step of training sees, what is hidden of them, how evaluation walks through a text.

B is the rows of a batch, T the positions of a row (`n_context`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from clearhead.errors import UserError
from clearhead.text.tokens import IGNORED, Tokens

Batch = tuple[NDArray[np.int64], NDArray[np.int64]]  # inputs and targets, both B×T

BLANKED = 0.15  # of a row's positions, and at least one
MASKED, CHANGED = 0.8, 0.1  # of those; the rest stay as they are


@dataclass(frozen=True)
class Blanks:
    """Words to be guessed, as BERT has them: hidden behind the mask token, behind another one, or not at all.

    Every row has as many, so that parts of a batch weigh the same.
    """

    mask_id: int  # the last id: a changed token is one of those below

    def cut(self, tokens: NDArray[np.int64], random: np.random.Generator) -> Batch:
        """B×T tokens to inputs with blanks, and targets only there."""
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
        return inputs, targets


@dataclass(frozen=True)
class Batches:
    """Every window of the text once an epoch, in random order: a pure function of the seed and the step.

    A window is T + 1 tokens, the last of which is the first of the next window. Each epoch begins at its own
    random offset below T, so that over the epochs every token is seen at every position. A window in which
    nothing is to be learned gives its place to the next one in which something is.
    """

    tokens: Tokens
    n_context: int
    batch_size: int
    seed: int
    blanks: Blanks | None = None  # then the targets are what was hidden, and not the next tokens

    def __post_init__(self) -> None:
        assert self.n_context > 0, f"n_context is {self.n_context}, expected 1 or more"
        assert self.batch_size > 0, f"batch_size is {self.batch_size}, expected 1 or more"
        if self.seed < 0:
            raise UserError(f"seed is {self.seed}, expected 0 or more; choose another")
        if self.windows < 1:
            raise UserError(
                f"the text has {len(self.tokens)} tokens, but a context of {self.n_context} needs at least "
                f"{2 * self.n_context}; give more text, or a shorter context with --context",
                "training_text_short",
                count=len(self.tokens),
                context=self.n_context,
                least=2 * self.n_context,
            )

    @property
    def windows(self) -> int:
        """How many windows an epoch has, whatever its offset."""
        return (len(self.tokens) - self.n_context) // self.n_context

    def at(self, step: int, worker: int = 0, workers: int = 1) -> Batch:
        """The inputs and targets of a step, or one worker's equal share of their rows."""
        assert self.batch_size % workers == 0, (
            f"{workers} workers cannot share {self.batch_size} rows equally"
        )
        assert 0 <= worker < workers, f"worker {worker} of {workers}"
        rows = self.batch_size // workers
        first = step * self.batch_size + worker * rows
        T = self.n_context
        inputs, targets = np.empty((2, rows, T), dtype=np.int64)
        for row in range(rows):
            epoch, place = divmod(first + row, self.windows)
            offset, order = _shuffle(self.seed, epoch, self.windows, T)
            for further in range(1 if self.tokens.all_count else self.windows):
                start = offset + int(order[(place + further) % self.windows]) * T
                inputs[row] = self.tokens[start : start + T]
                targets[row] = self.tokens.targets[start + 1 : start + T + 1]
                if (targets[row] != IGNORED).any():
                    break
        return (inputs, targets) if self.blanks is None else self._with_blanks(inputs, step, worker * rows)

    def _with_blanks(self, tokens: NDArray[np.int64], step: int, first: int) -> Batch:
        """The blanks of the whole step are drawn, whichever of its rows are asked for."""
        assert self.blanks is not None
        rows, T = tokens.shape
        whole = np.zeros((self.batch_size, T), dtype=np.int64)
        share = slice(first, first + rows)
        whole[share] = tokens
        inputs, targets = self.blanks.cut(whole, _generator(self.seed, step))
        return inputs[share], targets[share]


def windows_for_evaluation(
    tokens: Tokens, n_context: int, batch_size: int, before: int, blanks: Blanks | None = None
) -> Iterator[Batch]:
    """Disjoint windows in which each token is a target once; `before` is the id that precedes the first.

    What is left after the last whole window comes as a batch of its own, of one shorter row. With `blanks`,
    each token is in a window once, and the targets are those that a window's number alone hides.
    """
    T = n_context
    whole = len(tokens) // T * T
    edges = [*range(0, whole, batch_size * T), whole]
    if whole < len(tokens):
        edges.append(len(tokens))
    for start, stop in pairwise(edges):
        ids, targets = tokens[start:stop], tokens.targets[start:stop]
        inputs = np.concatenate(([before], ids[:-1]))
        before = int(ids[-1])
        shape = (-1, min(T, stop - start))
        if blanks is None:
            yield inputs.reshape(shape), targets.reshape(shape)
        else:
            rows = enumerate(targets.reshape(shape), start // T)
            cut = [blanks.cut(row[None], _generator(0, number)) for number, row in rows]
            yield np.concatenate([one for one, _ in cut]), np.concatenate([other for _, other in cut])


def _generator(seed: int, number: int) -> np.random.Generator:
    """For the blanks of a step or a window; the 1 sets it apart from that of an epoch's order."""
    return np.random.Generator(np.random.PCG64([seed, number, 1]))


# Two, since a batch may span the end of an epoch.
@lru_cache(maxsize=2)
def _shuffle(seed: int, epoch: int, windows: int, n_context: int) -> tuple[int, NDArray[np.int64]]:
    random = np.random.Generator(np.random.PCG64([seed, epoch]))
    offset = int(random.integers(n_context))
    order = random.permutation(windows)
    order.flags.writeable = False
    return offset, order
