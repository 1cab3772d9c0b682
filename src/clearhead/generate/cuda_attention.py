"""Attention in a decoding step: one query per sequence and head, and a KV cache in slots.

Shapes: B sequences, H heads, G key-value heads, D features per head, S positions of a slot.
"""

from __future__ import annotations

import triton
import triton.language as tl

from clearhead.generate.cuda_kernels import POSITION, SLOT, WIDTH, wait

LOW = tl.constexpr(-1e30)  # below any score, and finite: the difference of two infinities is not a number


@triton.jit
def attend(
    rows,
    projected,
    keys,
    values,
    query_gain,
    key_gain,
    cosines,
    sines,
    mixed,
    parts,
    scale,
    size,
    window,
    epsilon: tl.constexpr,
    H: tl.constexpr,
    G: tl.constexpr,
    D: tl.constexpr,
    HALF: tl.constexpr,
    QK_NORM: tl.constexpr,
    SPLIT: tl.constexpr,
    EARLY: tl.constexpr,
    BD: tl.constexpr,
    BS: tl.constexpr,
):
    """Attend with one query to its slot of the KV cache, and store the new key and value there.

    `projected` is B (H + 2G)·D: queries, keys and values before QK-norm and RoPE. The cache is slots × G S D. One
    program per sequence, head and part of the past: with `SPLIT` = 1, the result goes to `mixed`, and otherwise to
    `parts`, which `linear` or `combine` adds up (https://pytorch.org/blog/flash-decoding/).

    Each of the `BS` positions of a tile starts a separate softmax over every `BS`-th position, so that nothing is
    exchanged between threads until the end.
    """
    b, h, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    shared = h // (H // G)
    d = tl.arange(0, BD)
    inside = d < D
    # Earlier steps wrote the table of rows and the past, so their loads need not wait for the previous kernel.
    position = tl.load(rows + b * WIDTH + POSITION).to(tl.int32)
    slot = tl.load(rows + b * WIDTH + SLOT).to(tl.int64)
    past = (slot * G + shared) * size * D
    first = tl.maximum(position + 1 - window, 0) // BS * BS
    each = tl.cdiv(tl.cdiv(position - first, SPLIT), BS) * BS
    begin = first + part * each
    end = tl.minimum(begin + each, position)
    s = tl.arange(0, BS)
    mask = (begin + s < end)[:, None] & inside[None, :]
    at = past + (begin + s)[:, None] * D + d[None, :]
    next_keys, next_values = (
        tl.load(keys + at, mask=mask, other=0.0),
        tl.load(values + at, mask=mask, other=0.0),
    )
    wait(EARLY)
    row = projected + b * (H + 2 * G) * D
    query, key = row + h * D, row + (H + shared) * D
    q = tl.load(query + d, mask=inside, other=0.0).to(tl.float32)
    k = tl.load(key + d, mask=inside, other=0.0).to(tl.float32)
    v = tl.load(row + (H + G + shared) * D + d, mask=inside, other=0.0).to(tl.float32)
    q_scale, k_scale = 1.0, 1.0
    if QK_NORM:
        q_scale = tl.rsqrt(tl.sum(q * q, 0) / D + epsilon)
        k_scale = tl.rsqrt(tl.sum(k * k, 0) / D + epsilon)
        q *= q_scale * tl.load(query_gain + d, mask=inside, other=0.0).to(tl.float32)
        k *= k_scale * tl.load(key_gain + d, mask=inside, other=0.0).to(tl.float32)
    if HALF:
        partner = tl.where(d < HALF, d + HALF, d - HALF)
        paired = d < 2 * HALF
        q_other = tl.load(query + partner, mask=paired, other=0.0).to(tl.float32)
        k_other = tl.load(key + partner, mask=paired, other=0.0).to(tl.float32)
        if QK_NORM:
            q_other *= q_scale * tl.load(query_gain + partner, mask=paired, other=0.0).to(tl.float32)
            k_other *= k_scale * tl.load(key_gain + partner, mask=paired, other=0.0).to(tl.float32)
        angle = position * HALF + tl.where(d < HALF, d, partner)
        cos = tl.load(cosines + angle, mask=paired, other=1.0)
        sin = tl.load(sines + angle, mask=paired, other=0.0)
        q, k = rotate(q, q_other, cos, sin, d, HALF), rotate(k, k_other, cos, sin, d, HALF)
    # Attend to the new key and value as the cache stores them, rounded.
    k, v = k.to(keys.dtype.element_ty), v.to(values.dtype.element_ty)
    if (h % (H // G) == 0) & (part == 0):
        tl.store(keys + past + position * D + d, k, mask=inside)
        tl.store(values + past + position * D + d, v, mask=inside)
    q = q.to(keys.dtype.element_ty).to(tl.float32) * scale
    best, total = tl.full((BS,), LOW, tl.float32), tl.zeros((BS,), tl.float32)
    acc = tl.zeros((BS, BD), tl.float32)
    for start in range(begin, end, BS):
        past_keys, past_values = next_keys, next_values
        following = start + BS + s  # the next tile is loaded while this one is processed
        mask = (following < end)[:, None] & inside[None, :]
        at = past + following[:, None] * D + d[None, :]
        next_keys = tl.load(keys + at, mask=mask, other=0.0)
        next_values = tl.load(values + at, mask=mask, other=0.0)
        seen = (start + s < end) & (start + s > position - window)
        scores = tl.where(seen, tl.sum(past_keys.to(tl.float32) * q[None, :], 1), LOW)
        higher = tl.maximum(best, scores)
        shrink, weights = tl.exp(best - higher), tl.where(seen, tl.exp(scores - higher), 0.0)
        total = total * shrink + weights
        acc = acc * shrink[:, None] + past_values.to(tl.float32) * weights[:, None]
        best = higher
    own = tl.sum(tl.where(inside, q * k.to(tl.float32), 0.0), 0)
    own = tl.where(part == 0, own, LOW)
    highest = tl.maximum(tl.max(best, 0), own)
    factors = tl.exp(best - highest)
    weight = tl.where(part == 0, tl.exp(own - highest), 0.0)
    sums = tl.sum(acc * factors[:, None], 0) + weight * v.to(tl.float32)
    whole = tl.sum(total * factors, 0) + weight
    if SPLIT == 1:
        tl.store(mixed + (b * H + h) * D + d, sums / whole, mask=inside)
    else:
        row = parts + b * H * SPLIT * (D + 2)
        tl.store(row + (h * SPLIT + part) * D + d, sums, mask=inside)
        statistics = row + H * SPLIT * D + (h * SPLIT + part) * 2
        tl.store(statistics, highest)
        tl.store(statistics + 1, whole)


@triton.jit
def combine(
    parts,
    mixed,
    H: tl.constexpr,
    D: tl.constexpr,
    SPLIT: tl.constexpr,
    EARLY: tl.constexpr,
    BD: tl.constexpr,
):
    """Combine the parts of each sequence and head."""
    b, h = tl.program_id(0), tl.program_id(1)
    d, s = tl.arange(0, BD), tl.arange(0, SPLIT)
    wait(EARLY)
    row = parts + b * H * SPLIT * (D + 2)
    statistics = row + H * SPLIT * D + (h * SPLIT + s) * 2
    highest = tl.load(statistics)
    factors = tl.exp(highest - tl.max(highest, 0))
    total = tl.sum(factors * tl.load(statistics + 1), 0)
    at = row + (h * SPLIT + s[:, None]) * D + d[None, :]
    sums = tl.sum(tl.load(at, mask=(d < D)[None, :], other=0.0) * factors[:, None], 0)
    tl.store(mixed + (b * H + h) * D + d, sums / total, mask=d < D)


@triton.jit
def rotate(x, other, cos, sin, feature, HALF: tl.constexpr):
    """Rotate feature i with feature i + HALF, given in `other`; features past the first 2 HALF are unchanged."""
    rotated = tl.where(feature < HALF, x * cos - other * sin, x * cos + other * sin)
    return tl.where(feature < 2 * HALF, rotated, x)
