"""Sampling on the device, with the rules of `sampler.py` that follow the temperature: top_k, top_p, min_p.

A single program cannot read a vocabulary quickly, so each of many programs scans one chunk for its highest logit, its
share of the probability, and its `KEPT` highest logits. One program then picks the token. The highest logits of all
chunks nearly always suffice to find the lowest one that may be sampled; if they do not, it searches the whole row. It
inverts the cumulative distribution with the row's random number: first the chunk, then the token in it.

Ties with the lowest logit that `top_k` or `top_p` keeps are all kept.

Shapes: B sequences, V tokens in the vocabulary, N chunks of it.
"""

from __future__ import annotations

import triton
import triton.language as tl

from clearhead.generate.cuda_kernels import (
    ID,
    MIN_P,
    POSITION,
    STEP,
    TEMPERATURE,
    TOP_K,
    TOP_P,
    WIDTH,
    wait,
)

KEPT = 64


@triton.jit
def scan_logits(
    logits,
    rows,
    highest,
    masses,
    candidates,
    V,
    N: tl.constexpr,
    FILTER: tl.constexpr,
    EARLY: tl.constexpr,
    BLOCK: tl.constexpr,
    BEST: tl.constexpr,
):
    """The highest logit of a chunk, its sum of exponentials, and, with `FILTER`, its `BEST` highest logits.

    An infinite or undefined logit makes the highest infinite.
    """
    chunk, b = tl.program_id(0), tl.program_id(1)
    v = chunk * BLOCK + tl.arange(0, BLOCK)
    wait(EARLY)
    x = tl.load(logits + b.to(tl.int64) * V + v, mask=v < V, other=float("-inf"))
    broken = tl.max(((x != x) | (x == float("inf"))).to(tl.int32), 0) > 0
    x = tl.where(x == x, x, float("-inf"))
    top = tl.max(x, 0)
    tl.store(highest + b * N + chunk, tl.where(broken, float("inf"), top))
    temperature = tl.maximum(tl.load(rows + b * WIDTH + TEMPERATURE).to(tl.float32), 1e-30)
    p = tl.where(x > float("-inf"), tl.exp((x - top) / temperature), 0.0)
    tl.store(masses + b * N + chunk, tl.sum(p.to(tl.float64), 0))
    if FILTER:
        least = _search_count(x, BEST)
        above, tied = x > least, x == least
        both = above.to(tl.int32) + (tied.to(tl.int32) << 16)
        count, sums = tl.sum(above.to(tl.int32), 0), tl.cumsum(both, 0)  # of both kinds at once
        place = tl.where(above, sums & 0xFFFF, count + (sums >> 16)) - 1
        kept = (above | tied) & (place < BEST)
        tl.store(candidates + (b * N + chunk) * BEST + place, x, mask=kept)


@triton.jit
def pick(
    logits,
    rows,
    highest,
    masses,
    candidates,
    uniforms,
    sampled,
    V,
    stride,
    N: tl.constexpr,
    FILTER: tl.constexpr,
    EARLY: tl.constexpr,
    CHUNKS: tl.constexpr,
    BEST: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Pick the next token of each sequence and move the sequence on by one position; one program per sequence.

    With `FILTER`, the lowest logit that may be sampled is found first.
    """
    b = tl.program_id(0)
    c = tl.arange(0, CHUNKS)
    wait(EARLY)
    row, line = rows + b * WIDTH, logits + b.to(tl.int64) * V
    tops = tl.load(highest + b * N + c, mask=c < N, other=float("-inf"))
    top = tl.max(tops, 0)
    broken = (top == float("inf")) | (top == float("-inf"))
    exact = tl.load(row + TEMPERATURE).to(tl.float32)
    temperature = tl.maximum(exact, 1e-30)
    step = tl.load(row + STEP).to(tl.int32)
    uniform, position = tl.load(uniforms + b * stride + step), tl.load(row + POSITION)
    mass = tl.load(masses + b * N + c, mask=c < N, other=0.0)
    mass *= tl.where(mass > 0.0, tl.exp((tops - top) / temperature), 0.0).to(tl.float64)
    bound = float("-inf")
    if FILTER:  # noqa: SIM102 (one is decided when the kernel is compiled)
        if (exact > 0.0) & (broken == 0):
            k, p, min_p = tl.load(row + TOP_K).to(tl.int32), tl.load(row + TOP_P), tl.load(row + MIN_P)
            if (k > 0) | (p > 0.0) | (min_p > 0.0):
                best = tl.arange(0, BEST)
                kept = candidates + (b * N + c[:, None]) * BEST + best[None, :]
                tile = (tl.load(kept, mask=(c < N)[:, None], other=float("-inf")) - top) / temperature
                missing = tl.max(tl.min(tile, 1), 0)  # every logit above this one is a candidate
                bound = _find_least(line, tile, mass, k, p, min_p, missing, top, temperature, V, BLOCK)
                if bound > missing:
                    mass = tl.sum(tl.where(tile >= bound, tl.exp(tile), 0.0).to(tl.float64), 1)
                elif bound > float("-inf"):
                    for i in range(N):
                        at = i * CHUNK + tl.arange(0, CHUNK)
                        x = tl.load(line + at, mask=at < V, other=float("-inf"))
                        one = tl.sum(_probabilities(x, top, temperature, bound).to(tl.float64), 0)
                        mass = tl.where(c == i, one, mass)
    sums = tl.cumsum(mass, 0)
    number = uniform * tl.sum(mass, 0)
    chunk = tl.sum((sums <= number).to(tl.int32), 0)
    chunk = tl.minimum(chunk, tl.max(tl.where(mass > 0.0, c, 0), 0))
    chunk = tl.where(exact > 0.0, chunk, tl.min(tl.where(tops == top, c, N - 1), 0))
    before = tl.sum(tl.where(c < chunk, mass, 0.0), 0)
    offset = tl.arange(0, CHUNK)
    v = chunk * CHUNK + offset
    x = tl.load(line + v, mask=v < V, other=float("-inf"))
    p_token = _probabilities(x, top, temperature, bound)
    picked = tl.sum((before + tl.cumsum(p_token.to(tl.float64), 0) <= number).to(tl.int32), 0)
    # Rounding must not select a token past the last possible one.
    picked = tl.minimum(picked, tl.max(tl.where(p_token > 0.0, offset, 0), 0))
    picked = tl.where(exact > 0.0, picked, tl.min(tl.where(x == top, offset, CHUNK - 1), 0))
    picked = tl.minimum(chunk * CHUNK + picked, V - 1)
    tl.store(sampled + b * stride + step, tl.where(broken, -1, picked))
    tl.store(row + ID, picked.to(tl.float64))
    tl.store(row + POSITION, position + 1.0)
    tl.store(row + STEP, (step + 1).to(tl.float64))


@triton.jit
def _find_least(line, tile, mass, k, p, min_p, missing, top, temperature, V, BLOCK: tl.constexpr):
    """The lowest logit that may be sampled, relative to the highest and divided by the temperature.

    `tile` holds the candidates of each chunk; `mass` is each chunk's sum of exponentials.
    """
    CHUNKS: tl.constexpr = tile.shape[0]
    BEST: tl.constexpr = tile.shape[1]
    x = tl.reshape(tile, (CHUNKS * BEST,))
    bound = float("-inf")
    if (k > 0) & (k < V):
        bound = _search_count(x, k)
        if (k > BEST) & (bound <= missing):
            bound = _search_row(line, V, top, temperature, k, float("-inf"), False, BLOCK)
    if (p > 0.0) & (p < 1.0):
        total = tl.sum(mass, 0)
        if (k > 0) & (k < V):
            total = tl.sum(tl.where(x >= bound, tl.exp(x), 0.0).to(tl.float64), 0)
            if bound <= missing:
                total = _sum_row(line, V, top, temperature, bound, BLOCK)
        wanted = (p * total).to(tl.float32)
        found = _search_weight(x, wanted, bound)
        if found <= missing:
            found = _search_row(line, V, top, temperature, wanted, bound, True, BLOCK)
        bound = tl.maximum(bound, found)
    if min_p > 0.0:
        bound = tl.maximum(bound, tl.log(min_p.to(tl.float32)))
    return bound


@triton.jit
def _probabilities(x, top, temperature, least):
    scaled = (x - top) / temperature
    return tl.where((scaled >= least) & (x > float("-inf")), tl.exp(scaled), 0.0)


@triton.jit
def _ordered(x):
    """The bits of x as an integer that is ordered as x is."""
    bits = x.to(tl.int32, bitcast=True)
    return tl.where(bits < 0, ~bits, bits ^ -2147483648).to(tl.uint32, bitcast=True)


@triton.jit
def _number(ordered):
    ordered = tl.maximum(ordered, tl.full((), 0x007FFFFF, tl.uint32))  # -inf; what is below is not a number
    bits = ordered.to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ -2147483648, ~bits).to(tl.float32, bitcast=True)


@triton.jit
def _search_count(x, wanted):
    """A threshold that `wanted` elements of x reach, and more only if they equal it; -inf if too few are finite.

    Each round counts how many elements reach two thresholds, which divide the rest of the range into thirds.
    """
    low, high = tl.min(tl.where(x > float("-inf"), x, float("inf")), 0), tl.max(x, 0)
    reached, of_high = _count_both(x, low, high)
    few, many = reached < wanted, of_high >= wanted
    low = tl.where(few, float("-inf"), tl.where(many, high, low))
    reached = tl.where(few | many, wanted, reached)
    one, other = _thirds(low, high)
    while (reached > wanted) & (((one > low) & (one < high)) | ((other > low) & (other < high))):
        of_one, of_other = _count_both(x, one, other)
        upper, middle = of_other >= wanted, of_one >= wanted
        reached = tl.where(upper, of_other, tl.where(middle, of_one, reached))
        high = tl.where(upper, high, tl.where(middle, other, one))
        low = tl.where(upper, other, tl.where(middle, one, low))
        one, other = _thirds(low, high)
    return low


@triton.jit
def _count_both(x, one, other):
    """How many elements, fewer than 2¹⁵, reach each threshold, in one reduction."""
    both = tl.sum((x >= one).to(tl.int32) + ((x >= other).to(tl.int32) << 16), 0)
    return both & 0xFFFF, both >> 16


@triton.jit
def _thirds(low, high):
    third = high / 3 - low / 3
    one, other = low + third, high - third
    return tl.minimum(one, other), tl.maximum(one, other)


@triton.jit
def _search_weight(x, wanted, floor):
    """The largest threshold for which the exponentials of the elements that reach both it and `floor` sum to `wanted`.

    Found from the highest bit down.
    """
    ordered, weights = _ordered(x), tl.where(x >= floor, tl.exp(x), 0.0)
    threshold, bit = tl.full((), 0, tl.uint32), tl.full((), 31, tl.int32)
    while bit >= 0:
        tried = threshold | (tl.full((), 1, tl.uint32) << bit.to(tl.uint32))
        enough = tl.sum(tl.where(ordered >= tried, weights, 0.0), 0) >= wanted
        threshold = tl.where(enough, tried, threshold)
        bit -= 1
    return _number(threshold)


@triton.jit
def _search_row(line, V, top, temperature, wanted, floor, BY_WEIGHT: tl.constexpr, BLOCK: tl.constexpr):
    """The lowest of a row's `wanted` highest logits or, with `BY_WEIGHT`, of the highest whose exponentials sum to it.

    Only logits that reach `floor` count. The row is read again for each bit.
    """
    threshold, bit = tl.full((), 0, tl.uint32), tl.full((), 31, tl.int32)
    while bit >= 0:
        tried = threshold | (tl.full((), 1, tl.uint32) << bit.to(tl.uint32))
        sums = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, V, BLOCK):
            v = start + tl.arange(0, BLOCK)
            x = (tl.load(line + v, mask=v < V, other=float("-inf")) - top) / temperature
            reached = (_ordered(x) >= tried) & (x >= floor) & (v < V)
            sums += tl.where(reached, tl.exp(x) if BY_WEIGHT else 1.0, 0.0)
        threshold = tl.where(tl.sum(sums, 0) >= wanted, tried, threshold)
        bit -= 1
    return _number(threshold)


@triton.jit
def _sum_row(line, V, top, temperature, floor, BLOCK: tl.constexpr):
    """The sum of exponentials of the logits of a row that are at least `floor`."""
    sums = tl.zeros((BLOCK,), tl.float64)
    for start in range(0, V, BLOCK):
        v = start + tl.arange(0, BLOCK)
        x = (tl.load(line + v, mask=v < V, other=float("-inf")) - top) / temperature
        sums += tl.where((x >= floor) & (v < V), tl.exp(x), 0.0).to(tl.float64)
    return tl.sum(sums, 0)
