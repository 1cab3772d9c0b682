"""Token arrays, possibly on disk in shards, and which of their tokens are targets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clearhead.errors import UserError

IGNORED = -100  # marks positions without a target, as in torch's cross entropy


class Tokens:
    """A read-only array of ids over any number of shards.

    `n_bytes` is the length of the text in bytes of UTF-8, known only for a whole text. `targets` is the array
    itself, or one of the same length with IGNORED at positions that are not targets.
    """

    def __init__(
        self,
        shards: Sequence[NDArray[Any]],
        start: int,
        stop: int,
        n_bytes: int | None = None,
        targets: "Tokens | None" = None,
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

    @classmethod
    def of(cls, ids: NDArray[Any] | Sequence[int], targets: "Tokens | None" = None) -> "Tokens":
        """Tokens from ids in memory."""
        array = np.asarray(ids, dtype=np.int64) if not isinstance(ids, np.ndarray) else ids
        assert array.ndim == 1, f"ids have shape {array.shape}, expected one dimension"
        return cls([array], 0, len(array), targets=targets)

    @property
    def targets(self) -> "Tokens":
        return self if self._targets is None else self._targets

    @property
    def all_count(self) -> bool:
        """Whether every token is a target."""
        return self._targets is None

    def __len__(self) -> int:
        return self._stop - self._start

    def __getitem__(self, where: slice) -> NDArray[np.int64]:
        start, stop, step = where.indices(len(self))
        assert step == 1, f"tokens can be sliced in steps of 1 only, got {step}"
        start, stop = self._start + start, self._start + max(start, stop)
        out = np.empty(stop - start, dtype=np.int64)
        shard = int(np.searchsorted(self._ends, start, side="right"))
        at = start
        while at < stop:
            first = int(self._ends[shard]) - len(self._shards[shard])
            until = min(stop, int(self._ends[shard]))
            out[at - start : until - start] = self._shards[shard][at - first : until - first]
            at, shard = until, shard + 1
        return out

    def part(self, start: int, stop: int | None = None) -> "Tokens":
        """A slice, without copying."""
        start, stop, _ = slice(start, stop).indices(len(self))
        targets = None if self._targets is None else self._targets.part(start, stop)
        return Tokens(self._shards, self._start + start, self._start + max(start, stop), targets=targets)

    def split(self, fraction: float) -> tuple["Tokens", "Tokens"]:
        """All but the last `fraction` for training, and the rest for validation, without copying."""
        if not 0 <= fraction < 1:
            raise UserError(f"validation = {fraction}: expected at least 0 and below 1, such as 0.1")
        middle = int(len(self) * (1 - fraction))
        return self.part(0, middle), self.part(middle)
