"""One decoding step of an int8 network, compiled by numba: one call per block.

Shapes: C features of the residual stream, H heads, G key-value heads, D features per head, S positions of the
KV cache, V tokens in the vocabulary.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import prange

from clearhead.runtime.numba_cache import compiled
from clearhead.runtime.quantized_kernel import multiply

RELU, GELU, GELU_TANH, SWIGLU, GEGLU = range(5)
ACTIVATIONS = {"relu": RELU, "gelu": GELU, "gelu_tanh": GELU_TANH, "swiglu": SWIGLU, "geglu": GEGLU}


@compiled(error_model="numpy")
def decode_block(
    stream: Any,
    norms: Any,
    projections: Any,
    gains: Any,
    rotation: Any,
    cache: Any,
    position: int,
    output: Any,
    feedforward: Any,
    activation: int,
    epsilon: float,
    scale: float,
) -> None:
    """Compute `Block` for one token, in place on the residual stream, 1 C."""
    keys, values = cache
    G, _, D = keys.shape
    normed = np.empty_like(stream)
    normalize(stream, norms[0], epsilon, normed)
    query = np.empty((1, projections[0][0].shape[0]), np.float32)
    key, value = np.empty((1, G * D), np.float32), np.empty((1, G * D), np.float32)
    multiply(projections[0], normed, query)
    multiply(projections[1], normed, key)
    multiply(projections[2], normed, value)
    queries, new = query.reshape((-1, D)), key.reshape((G, D))
    rotate(queries, gains[0], rotation, position, epsilon)
    rotate(new, gains[1], rotation, position, epsilon)
    keys[:, position] = new
    values[:, position] = value.reshape((G, D))
    mixed = np.empty_like(query)
    attend(queries, keys, values, position + 1, scale, mixed.reshape((-1, D)))
    added = np.empty_like(stream)
    multiply(output, mixed, added)
    stream += added
    normalize(stream, norms[1], epsilon, normed)
    first, gate, second = feedforward
    hidden = np.empty((1, first[0].shape[0]), np.float32)
    multiply(first, normed, hidden)
    gated = np.empty((1, gate[0].shape[0]), np.float32)
    if activation >= SWIGLU:
        multiply(gate, normed, gated)
    activate(hidden[0], gated[0], activation)
    multiply(second, hidden, added)
    stream += added


@compiled(error_model="numpy")
def unembed(stream: Any, norm: Any, epsilon: float, unembedding: Any, logits: Any) -> None:
    """Compute the final norm and the logits of the next token: 1 V."""
    normed = np.empty_like(stream)
    normalize(stream, norm, epsilon, normed)
    multiply(unembedding, normed, logits)


@compiled(error_model="numpy")
def normalize(x: Any, norm: Any, epsilon: float, out: Any) -> None:
    """Compute `Norm`, as RMSNorm if there is no shift. Sums are in float64."""
    gain, shift = norm
    C = x.shape[1]
    mean = 0.0
    if len(shift):
        for c in range(C):
            mean += x[0, c]
        mean /= C
    squares = 0.0
    for c in range(C):
        squares += (x[0, c] - mean) ** 2
    inverse = 1 / math.sqrt(squares / C + epsilon)
    for c in range(C):
        out[0, c] = (x[0, c] - mean) * inverse * gain[c]
        if len(shift):
            out[0, c] += shift[c]


@compiled(error_model="numpy")
def rotate(heads: Any, gain: Any, rotation: Any, position: int, epsilon: float) -> None:
    """Apply the QK-norm, if there is a gain, and RoPE, if there is a rotation, to each head's vector."""
    cosines, sines = rotation
    half = cosines.shape[1]
    H, D = heads.shape
    for h in range(H):
        if len(gain):
            squares = 0.0
            for d in range(D):
                squares += heads[h, d] ** 2
            inverse = 1 / math.sqrt(squares / D + epsilon)
            for d in range(D):
                heads[h, d] *= inverse * gain[d]
        for d in range(half):
            cos, sin = cosines[position, d], sines[position, d]
            first, second = heads[h, d], heads[h, d + half]
            heads[h, d] = first * cos - second * sin
            heads[h, d + half] = second * cos + first * sin


@compiled(parallel=True, error_model="numpy")
def attend(queries: Any, keys: Any, values: Any, length: int, scale: float, mixed: Any) -> None:
    """Attend with one query per head to the KV cache: H D, G S D → H D."""
    H, D = queries.shape
    shared = H // keys.shape[0]
    for h in prange(H):
        key, value = keys[h // shared], values[h // shared]
        weights = np.empty(length, np.float32)
        highest = np.float32(-np.inf)
        for s in range(length):
            score = np.float32(0)
            for d in range(D):
                score += queries[h, d] * key[s, d]
            weights[s] = score * np.float32(scale)
            highest = max(highest, weights[s])
        total = np.float32(0)
        for s in range(length):
            weights[s] = np.exp(weights[s] - highest)
            total += weights[s]
        mixed[h] = np.float32(0)
        for s in range(length):
            for d in range(D):
                mixed[h, d] += weights[s] * value[s, d]
        for d in range(D):
            mixed[h, d] /= total


@compiled(parallel=True, error_model="numpy")
def activate(hidden: Any, gate: Any, activation: int) -> None:
    """Apply the activation in place; if gated, apply it to the gate and multiply by the result."""
    one = np.float32(1)
    for n in prange(len(hidden)):
        x = gate[n] if activation >= SWIGLU else hidden[n]
        if activation == RELU:
            y = max(x, np.float32(0))
        elif activation == GELU:
            y = np.float32(0.5) * x * (one + np.float32(math.erf(x * np.float32(0.7071067811865476))))
        elif activation == SWIGLU:
            y = x / (one + np.exp(-x))
        else:  # tanh(u) = 2 σ(2u) - 1
            u = np.float32(1.5957691216057308) * (x + np.float32(0.044715) * x * x * x)
            y = x / (one + np.exp(-u))
        hidden[n] = y * hidden[n] if activation >= SWIGLU else y
