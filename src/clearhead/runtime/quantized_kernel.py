"""The int8 matrix-vector product, compiled by numba. Shapes as in `quantization.py`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numba import get_num_threads, njit, prange, set_num_threads

from clearhead.runtime.int8 import GROUP, MOST  # constants at compile time, so that loops have a fixed length

TILE = 64  # vectors processed together, so that they stay in the cache

# Allow sums in any order, so that the compiler can vectorize them.
FAST = {"reassoc", "contract", "arcp", "nsz"}
CORES = get_num_threads()
_lock = threading.Lock()  # not all of numba's threading layers support concurrent callers


def compiled(parallel: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile on the first call, and cache the result on disk if there is a writable place for it."""

    def compile_later(function: Callable[..., Any]) -> Any:
        options: dict[str, Any] = {
            "nogil": True,
            "fastmath": FAST,
            "error_model": "numpy",
            "parallel": parallel,
        }
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:
            return njit(**options)(function)

    return compile_later


class KernelLock:
    """Serializes calls to parallel compiled code, and gives it as many threads as torch uses."""

    def __enter__(self) -> None:
        _lock.acquire()
        set_num_threads(min(torch.get_num_threads(), CORES))

    def __exit__(self, *_: object) -> None:
        _lock.release()


@compiled(parallel=True)
def multiply(matrix: Any, vectors: Any, out: Any) -> None:
    """out = vectors · (codes · scales)ᵀ + bias: B K → B N. The vectors are quantized to int8 too.

    `matrix` is a tuple of codes (N K'), scales (N G) and bias (N, or empty if there is none).
    """
    codes, scales, bias = matrix
    B, K = vectors.shape
    N, G = scales.shape
    rounded, steps = np.zeros((B, G * GROUP), np.int8), np.zeros((B, G), np.float32)
    for b in prange(B):
        for g in range(G):
            start, stop = g * GROUP, min(K, g * GROUP + GROUP)
            largest = np.float32(0)
            for k in range(start, stop):
                largest = max(largest, abs(vectors[b, k]))
            steps[b, g] = largest / np.float32(MOST)
            inverse = np.float32(MOST) / largest if largest > 0 else np.float32(0)
            for k in range(start, stop):
                rounded[b, k] = np.int8(np.rint(vectors[b, k] * inverse))
    for tile in range(0, B, TILE):
        for n in prange(N):
            row = codes[n]
            for b in range(tile, min(B, tile + TILE)):
                total = bias[n] if len(bias) else np.float32(0)
                for g in range(G):
                    weights = row[g * GROUP : (g + 1) * GROUP]
                    vector = rounded[b, g * GROUP : (g + 1) * GROUP]
                    dot = np.int32(0)
                    for k in range(GROUP):
                        dot = np.int32(dot + np.int32(weights[k]) * np.int32(vector[k]))
                    total += np.float32(dot) * (scales[n, g] * steps[b, g])
                out[b, n] = total
