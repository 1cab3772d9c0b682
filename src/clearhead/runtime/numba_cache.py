"""Functions compiled by numba, and cached on disk."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import IndexDataCacheFile

# Allow sums in any order, so that the compiler can vectorize them; infinities are preserved.
FAST = {"reassoc", "contract", "arcp", "nsz"}
_DIGEST = hashlib.sha256().digest_size


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile on the first call, and cache the result on disk if there is a writable place for it."""

    def compile_later(function: Callable[..., Any]) -> Any:
        try:
            made = njit(cache=True, nogil=True, fastmath=FAST, **options)(function)
        except RuntimeError:
            return njit(nogil=True, fastmath=FAST, **options)(function)
        if (cache := getattr(made, "_cache", None)) is not None:  # there is none if numba is turned off
            cache._cache_file.__class__ = _CheckedFile
        return made

    return compile_later


class _CheckedFile(IndexDataCacheFile):
    """A cache whose files end with their hash. A damaged one, which numba would run, counts as missing."""

    def _dump(self, content: object) -> bytes:
        data: bytes = super()._dump(content)  # type: ignore[no-untyped-call]
        return data + hashlib.sha256(data).digest()

    def _load_index(self) -> dict[Any, str]:
        version = pickle.dumps(self._version, protocol=-1)
        try:
            data = Path(self._index_path).read_bytes()
        except FileNotFoundError:
            return {}
        if not data.startswith(version) or not _is_whole(data[len(version) :]):
            return {}
        found: dict[Any, str] = super()._load_index()  # type: ignore[no-untyped-call]
        return found

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)  # type: ignore[no-untyped-call]
        if not _is_whole(Path(path).read_bytes()):
            raise FileNotFoundError(name)
        return super()._load_data(name)  # type: ignore[no-untyped-call]


def _is_whole(data: bytes) -> bool:
    return hashlib.sha256(data[:-_DIGEST]).digest() == data[-_DIGEST:]
