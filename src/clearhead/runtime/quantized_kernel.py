"""The int8 matrix-vector product, compiled by numba. Shapes as in `quantization.py`."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import torch
from numba import config, prange, set_num_threads

from clearhead.runtime.int8 import GROUP, MOST  # constants at compile time, so that loops have a fixed length
from clearhead.runtime.numba_cache import compiled

TILE = 64  # vectors processed together, so that they stay in the cache
CORES: int = config.NUMBA_NUM_THREADS  # type: ignore[attr-defined] # which numba sets when it is imported
_lock = threading.Lock()  # not all of numba's threading layers support concurrent callers


class KernelLock:
    """Serializes calls to parallel compiled code, and gives it as many threads as torch uses."""

    def __enter__(self) -> None:
        _lock.acquire()
        self.threads = torch.get_num_threads()
        set_num_threads(min(self.threads, CORES))

    def __exit__(self, *_: object) -> None:
        torch.set_num_threads(self.threads)  # with OpenMP, numba's first parallel call sets it to all cores
        _lock.release()


@compiled(parallel=True, error_model="numpy")
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
