"""Token arrays, possibly on disk in shards, and which of their tokens are targets."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clearhead.errors import UserError

IGNORED = -100  # marks positions without a target, as in torch's cross entropy


class Tokens:
    """A read-only array of ids over any number of shards.

    `n_bytes` is the length of the text in bytes of UTF-8, known only for a whole text. `targets` is the array
    itself, or one of the same length with IGNORED at positions that are not targets. Several documents are told
    apart by `separator`, the token before each, or by `starts`, where each begins; with neither, there is one document.
    """

    def __init__(
        self,
        shards: Sequence[NDArray[Any]],
        start: int,
        stop: int,
        n_bytes: int | None = None,
        targets: "Tokens | None" = None,
        separator: int | None = None,
        starts: NDArray[np.int64] | None = None,
    ) -> None:
        self._shards = shards
        self._ends = np.cumsum([len(shard) for shard in shards])
        assert 0 <= start <= stop <= (self._ends[-1] if shards else 0), (
            f"{start}:{stop} is outside the shards"
        )
        self._start = start
        self._stop = stop
        self.n_bytes = n_bytes
        assert targets is None or len(targets) == len(self)
        self._targets = targets
        self._separator, self._starts = separator, starts  # `starts` in order, counted from the first shard

    @classmethod
    def of(
        cls,
        ids: NDArray[Any] | Sequence[int],
        targets: "Tokens | None" = None,
        separator: int | None = None,
        starts: Sequence[int] | None = None,
    ) -> "Tokens":
        """Tokens from ids in memory."""
        array = np.asarray(ids, dtype=np.int64) if not isinstance(ids, np.ndarray) else ids
        assert array.ndim == 1, f"ids have shape {array.shape}, expected one dimension"
        places = None if starts is None else np.array(starts, np.int64)
        return cls([array], 0, len(array), targets=targets, separator=separator, starts=places)

    @property
    def targets(self) -> "Tokens":
        return self if self._targets is None else self._targets

    @property
    def all_count(self) -> bool:
        """Whether every token is a target."""
        return self._targets is None

    @property
    def are_documents(self) -> bool:
        """Whether these are several documents, or part of a text with several."""
        return self._separator is not None or self._starts is not None

    def document_starts(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Whether a document starts at each position: at the token that precedes it, if there is a separator."""
        start, stop, _ = slice(start, stop).indices(len(self))
        if self._separator is not None:
            return self[start:stop] == self._separator
        found = np.zeros(max(0, stop - start), bool)
        if self._starts is not None:
            first, last = np.searchsorted(self._starts, (self._start + start, self._start + max(start, stop)))
            found[self._starts[first:last] - self._start - start] = True
        return found

    def __len__(self) -> int:
        return self._stop - self._start

    def __getitem__(self, where: slice) -> NDArray[np.int64]:
        start, stop, step = where.indices(len(self))
        assert step == 1, f"tokens can be sliced in steps of 1 only, got {step}"
        start, stop = self._start + start, self._start + max(start, stop)
        out = np.empty(stop - start, dtype=np.int64)
        at = 0
        for part in self._slices(start, stop):
            out[at : at + len(part)] = part
            at += len(part)
        return out

    def part(self, start: int, stop: int | None = None) -> "Tokens":
        """A slice, without copying."""
        start, stop, _ = slice(start, stop).indices(len(self))
        targets = None if self._targets is None else self._targets.part(start, stop)
        return Tokens(
            self._shards,
            self._start + start,
            self._start + max(start, stop),
            targets=targets,
            separator=self._separator,
            starts=self._starts,
        )

    def keep(self, spans: Sequence[tuple[int, int]]) -> "Tokens":
        """Only these spans (start, stop), joined, without copying."""
        shards: list[NDArray[Any]] = []
        starts, length = [], 0
        for start, stop in spans:
            shards += self._slices(self._start + start, self._start + stop)
            if self._starts is not None:
                first, last = np.searchsorted(self._starts, (self._start + start, self._start + stop))
                starts.append(self._starts[first:last] - self._start - start + length)
            length += stop - start
        targets = None if self._targets is None else self._targets.keep(spans)
        places = None if self._starts is None else np.concatenate([np.empty(0, np.int64), *starts])
        return Tokens(shards, 0, length, targets=targets, separator=self._separator, starts=places)

    def _slices(self, start: int, stop: int) -> Iterator[NDArray[Any]]:
        """The parts of the shards from `start` to `stop`, counted from the first shard."""
        shard = int(np.searchsorted(self._ends, start, side="right"))
        while start < stop:
            first = int(self._ends[shard]) - len(self._shards[shard])
            until = min(stop, int(self._ends[shard]))
            yield self._shards[shard][start - first : until - first]
            start, shard = until, shard + 1

    def documents(self) -> list[tuple[int, int]]:
        """The documents that `starts` tells apart, as spans (start, stop)."""
        starts = np.empty(0, np.int64) if self._starts is None else self._starts - self._start
        inner = starts[(starts > 0) & (starts < len(self))].tolist()
        return list(pairwise([0, *inner, len(self)]))

    def split(self, fraction: float) -> tuple["Tokens", "Tokens"]:
        """All but the last `fraction` for training, and the rest for validation, without copying.

        Conversations are kept whole.
        """
        if not 0 <= fraction < 1:
            raise UserError(f"validation = {fraction}: expected at least 0 and below 1, such as 0.1")
        middle = int(len(self) * (1 - fraction))
        if self._starts is not None and fraction:
            inner = self._starts[(self._starts > self._start) & (self._starts < self._stop)] - self._start
            middle = int(inner[np.abs(inner - middle).argmin()]) if len(inner) else middle
        return self.part(0, middle), self.part(middle)
