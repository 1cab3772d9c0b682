"""Triton kernels of a decoding step with one token for each of a few sequences.

A step is bound by memory bandwidth: it reads every weight once and computes little with it. There are
therefore few kernels, and each norm, activation and addition is fused into a kernel that reads weights.

Shapes: B sequences, C features of the residual stream, K input and N output features of a matrix, D features
per head, V tokens in the vocabulary.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

NORMS = {"none": 0, "layer": 1, "rms": 2}
ACTIVATIONS = {"none": 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "swiglu": 4, "geglu": 5}  # 4 and 5 are gated


@triton.jit
def embed(
    ids,
    positions,
    table,
    position_table,
    stream,
    scale,
    C: tl.constexpr,
    P: tl.constexpr,
    EARLY: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """x = E[id] (+ P[position]), one program per sequence."""
    b = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    wait(EARLY)
    x = tl.load(table + tl.load(ids + b) * C + c, mask=c < C).to(tl.float32) * scale
    if P:
        x += tl.load(position_table + tl.load(positions + b) * C + c, mask=c < C).to(tl.float32)
    tl.store(stream + b * C + c, x, mask=c < C)


@triton.jit
def activate(x, gate, KIND: tl.constexpr):
    if KIND == 1:
        x = tl.maximum(x, 0.0)
    if KIND == 2:
        x = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    if KIND == 3:
        x = _gelu_tanh(x)
    if KIND == 4:
        x = gate * tl.sigmoid(gate) * x
    if KIND == 5:
        x = _gelu_tanh(gate) * x
    return x


@triton.jit
def _gelu_tanh(x):
    # tanh(u) = 2 σ(2u) - 1
    return x * tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


@triton.jit
def wait(EARLY: tl.constexpr):
    """Wait for the previous kernel. Code before this call must not read what that kernel writes.

    An `EARLY` kernel starts while the previous one still runs, and loads its weights in the meantime.
    """
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()


@triton.jit
def linear(
    x,
    weight,
    bias,
    gain,
    shift,
    out,
    N,
    K: tl.constexpr,
    epsilon: tl.constexpr,
    NORM: tl.constexpr,
    ACTIVATION: tl.constexpr,
    BIAS: tl.constexpr,
    ADD: tl.constexpr,
    EARLY: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """out = f(norm(x) Wᵀ + b), or out += …, for one sequence. For a gated f, the gate's N rows follow those of W.

    A program takes `BN` whole rows of W: `BK` is at least K.
    """
    n, k = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    valid, inside = n < N, k < K
    both = valid[:, None] & inside[None, :]
    at = weight + n[:, None].to(tl.int64) * K + k[None, :]
    W = tl.load(at, mask=both, other=0.0)
    if ACTIVATION >= 4:
        G = tl.load(at + N * K, mask=both, other=0.0)
    wait(EARLY)
    x_row = tl.load(x + k, mask=inside, other=0.0).to(tl.float32)
    if NORM == 1:
        x_row = tl.where(inside, x_row - tl.sum(x_row, 0) / K, 0.0)
    if NORM:
        x_row *= tl.rsqrt(tl.sum(x_row * x_row, 0) / K + epsilon)
        x_row *= tl.load(gain + k, mask=inside, other=0.0).to(tl.float32)
    if NORM == 1:
        x_row += tl.load(shift + k, mask=inside, other=0.0).to(tl.float32)
    acc = tl.sum(x_row[None, :] * W.to(tl.float32), 1)
    gate = acc
    if ACTIVATION >= 4:
        gate = tl.sum(x_row[None, :] * G.to(tl.float32), 1)
    if BIAS:
        acc += tl.load(bias + n, mask=valid, other=0.0).to(tl.float32)
        if ACTIVATION >= 4:
            gate += tl.load(bias + N + n, mask=valid, other=0.0).to(tl.float32)
    acc = activate(acc, gate, ACTIVATION)
    if ADD:
        acc += tl.load(out + n, mask=valid, other=0.0)
    tl.store(out + n, acc, mask=valid)


@triton.jit
def linear_many(
    x,
    weight,
    bias,
    gain,
    shift,
    out,
    B,
    N,
    K: tl.constexpr,
    epsilon: tl.constexpr,
    NORM: tl.constexpr,
    ACTIVATION: tl.constexpr,
    BIAS: tl.constexpr,
    ADD: tl.constexpr,
    EARLY: tl.constexpr,
    ROWS: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """`linear` for many sequences, `ROWS` (at least 16) per program, with tiled matrix products."""
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    b = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    row, valid = b < B, n < N
    wait(EARLY)
    mean, scale = tl.zeros((ROWS,), tl.float32), tl.full((ROWS,), 1.0, tl.float32)
    if NORM:
        total, squares = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
        for start in range(0, K, BK):
            k = start + tl.arange(0, BK)
            tile = tl.load(x + b[:, None] * K + k[None, :], mask=row[:, None] & (k < K)[None, :], other=0.0)
            total += tl.sum(tile, 1)
            squares += tl.sum(tile * tile, 1)
        if NORM == 1:
            mean = total / K
        scale = tl.rsqrt(squares / K - mean * mean + epsilon)
    acc, gate = tl.zeros((ROWS, BN), tl.float32), tl.zeros((ROWS, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        inside = k < K
        tile = tl.load(x + b[:, None] * K + k[None, :], mask=row[:, None] & inside[None, :], other=0.0)
        if NORM:
            tile = (tile - mean[:, None]) * scale[:, None]
            tile *= tl.load(gain + k, mask=inside, other=0.0).to(tl.float32)[None, :]
            if NORM == 1:
                tile += tl.load(shift + k, mask=inside, other=0.0).to(tl.float32)[None, :]
        both = valid[:, None] & inside[None, :]
        at = weight + n[:, None].to(tl.int64) * K + k[None, :]
        acc += _times(tile, tl.load(at, mask=both, other=0.0))
        if ACTIVATION >= 4:
            gate += _times(tile, tl.load(at + N * K, mask=both, other=0.0))
    if BIAS:
        acc += tl.load(bias + n, mask=valid, other=0.0).to(tl.float32)[None, :]
        if ACTIVATION >= 4:
            gate += tl.load(bias + N + n, mask=valid, other=0.0).to(tl.float32)[None, :]
    acc = activate(acc, gate, ACTIVATION)
    where, kept = out + b[:, None] * N + n[None, :], row[:, None] & valid[None, :]
    if ADD:
        acc += tl.load(where, mask=kept, other=0.0)
    tl.store(where, acc, mask=kept)


@triton.jit
def _times(x, weight):
    """Multiply x by the transposed weight: ROWS K, BN K → ROWS BN."""
    return tl.dot(x.to(weight.dtype), tl.trans(weight), input_precision="ieee")


@triton.jit
def rotate(x, other, cos, sin, feature, HALF: tl.constexpr):
    """Rotate feature i with feature i + HALF, given in `other`; features past the first 2 HALF are unchanged."""
    rotated = tl.where(feature < HALF, x * cos - other * sin, x * cos + other * sin)
    return tl.where(feature < 2 * HALF, rotated, x)


@triton.jit
def attend(
    projected,
    keys,
    values,
    positions,
    query_gain,
    key_gain,
    cosines,
    sines,
    mixed,
    scale,
    size,
    epsilon: tl.constexpr,
    H: tl.constexpr,
    G: tl.constexpr,
    D: tl.constexpr,
    HALF: tl.constexpr,
    QK_NORM: tl.constexpr,
    EARLY: tl.constexpr,
    BD: tl.constexpr,
    BS: tl.constexpr,
):
    """Attend with one query to its KV cache, one program per sequence and head; store the new key and value.

    `projected` is B (H + 2G)·D: queries, keys and values before QK-norm and RoPE. The cache is B G S D.
    """
    b, h = tl.program_id(0), tl.program_id(1)
    shared = h // (H // G)
    d = tl.arange(0, BD)
    inside = d < D
    wait(EARLY)
    position = tl.load(positions + b)
    row = projected + b * (H + 2 * G) * D
    query, key = row + h * D, row + (H + shared) * D
    q, k = tl.load(query + d, mask=inside, other=0.0), tl.load(key + d, mask=inside, other=0.0)
    v = tl.load(row + (H + G + shared) * D + d, mask=inside, other=0.0)
    q_scale, k_scale = 1.0, 1.0
    if QK_NORM:
        q_scale = tl.rsqrt(tl.sum(q * q, 0) / D + epsilon)
        k_scale = tl.rsqrt(tl.sum(k * k, 0) / D + epsilon)
        q *= q_scale * tl.load(query_gain + d, mask=inside, other=0.0).to(tl.float32)
        k *= k_scale * tl.load(key_gain + d, mask=inside, other=0.0).to(tl.float32)
    if HALF:
        partner = tl.where(d < HALF, d + HALF, d - HALF)
        paired = d < 2 * HALF
        q_other = tl.load(query + partner, mask=paired, other=0.0)
        k_other = tl.load(key + partner, mask=paired, other=0.0)
        if QK_NORM:
            q_other *= q_scale * tl.load(query_gain + partner, mask=paired, other=0.0).to(tl.float32)
            k_other *= k_scale * tl.load(key_gain + partner, mask=paired, other=0.0).to(tl.float32)
        angle = position * HALF + tl.where(d < HALF, d, partner)
        cos = tl.load(cosines + angle, mask=paired, other=1.0)
        sin = tl.load(sines + angle, mask=paired, other=0.0)
        q, k = rotate(q, q_other, cos, sin, d, HALF), rotate(k, k_other, cos, sin, d, HALF)
    # Attend to the new key and value as the cache stores them, rounded.
    k, v = k.to(keys.dtype.element_ty), v.to(values.dtype.element_ty)
    past = (b * G + shared).to(tl.int64) * size * D
    if h % (H // G) == 0:
        tl.store(keys + past + position * D + d, k, mask=inside)
        tl.store(values + past + position * D + d, v, mask=inside)
    q = q.to(keys.dtype.element_ty).to(tl.float32) * scale
    best = tl.sum(tl.where(inside, q * k.to(tl.float32), 0.0), 0)
    total = 1.0
    acc = v.to(tl.float32)
    for start in range(0, position, BS):
        s = start + tl.arange(0, BS)
        visible = (s < position)[:, None] & inside[None, :]
        at = past + s[:, None] * D + d[None, :]
        scores = tl.sum(tl.load(keys + at, mask=visible, other=0.0).to(tl.float32) * q[None, :], 1)
        scores = tl.where(s < position, scores, float("-inf"))
        higher = tl.maximum(best, tl.max(scores, 0))
        shrink, weights = tl.exp(best - higher), tl.exp(scores - higher)
        total = total * shrink + tl.sum(weights, 0)
        past_values = tl.load(values + at, mask=visible, other=0.0).to(tl.float32)
        acc = acc * shrink + tl.sum(past_values * weights[:, None], 0)
        best = higher
    tl.store(mixed + (b * H + h) * D + d, acc / total, mask=inside)


@triton.jit
def sample(
    logits,
    uniforms,
    ids,
    positions,
    sampled,
    first,
    steps,
    V,
    top_k,
    temperature,
    log_min_p,
    GREEDY: tl.constexpr,
    TOP_K: tl.constexpr,
    MIN_P: tl.constexpr,
    EARLY: tl.constexpr,
    BLOCK: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Sample the next token of each sequence with its uniform random number; one program per sequence.

    Inverts the cumulative distribution over the vocabulary. `positions` are those of the last tokens
    processed; `first` is the position of the first token to be sampled.
    """
    b = tl.program_id(0)
    row = logits + b.to(tl.int64) * V
    v = tl.arange(0, BLOCK)
    wait(EARLY)
    x = tl.load(row + v, mask=v < V, other=float("-inf"))
    highest = tl.max(x, 0)
    position = tl.load(positions + b) + 1
    at = b * steps + position - first
    if GREEDY:
        picked = tl.min(tl.where((x == highest) & (v < V), v, V), 0)
    else:
        least = float("-inf")
        scaled = (x - highest) / temperature
        if TOP_K:
            least = _kth(scaled, top_k)
        if MIN_P:
            least = tl.maximum(least, log_min_p)
        total = tl.sum(tl.where(scaled >= least, tl.exp(scaled), 0.0).to(tl.float64), 0)
        number = tl.load(uniforms + at) * total
        before, picked, last = total * 0.0, 0, 0
        for start in range(0, BLOCK, CHUNK):
            w = start + tl.arange(0, CHUNK)
            y = (tl.load(row + w, mask=w < V, other=float("-inf")) - highest) / temperature
            p = tl.where(y >= least, tl.exp(y), 0.0)
            sums = before + tl.cumsum(p.to(tl.float64), 0)
            picked += tl.sum((sums <= number).to(tl.int32), 0)
            last = tl.maximum(last, tl.max(tl.where(p > 0.0, w, 0), 0))
            before = tl.max(sums, 0)
        picked = tl.minimum(picked, last)  # rounding must not select a token past the last possible one
    tl.store(ids + b, picked)
    tl.store(sampled + at, picked)
    tl.store(positions + b, position)


@triton.jit
def _kth(x, k):
    """Find, from the highest bit down, a threshold that only the k largest elements of x, and ties, reach."""
    bits = x.to(tl.int32, bitcast=True)
    ordered = (tl.where(bits < 0, ~bits, bits ^ -2147483648)).to(tl.uint32, bitcast=True)
    threshold, bit, above = tl.full((), 0, tl.uint32), tl.full((), 31, tl.int32), tl.full((), -1, tl.int32)
    while (bit >= 0) & (above != k):  # exactly k at or above: lower bits do not matter
        tried = threshold | (tl.full((), 1, tl.uint32) << bit.to(tl.uint32))
        count = tl.sum((ordered >= tried).to(tl.int32), 0)
        threshold, above = tl.where(count >= k, tried, threshold), tl.where(count >= k, count, above)
        bit -= 1
    threshold = threshold.to(tl.int32, bitcast=True)
    return tl.where(threshold < 0, threshold ^ -2147483648, ~threshold).to(tl.float32, bitcast=True)
