"""Triton kernels of a decoding step, with one token for each of a few sequences.

A step is bound by memory bandwidth: it reads every weight once and computes little with it. There are
therefore few kernels, each starts to read its weights before the previous one has ended, and norms,
activations and additions are fused into them. `cuda_attention.py` and `cuda_sampling.py` have the others.

Every kernel reads what it needs about its sequence from a row of one table, float64 so that it also holds
ids and positions exactly. One copy from the CPU describes a whole step.

Shapes: B sequences, C features of the residual stream, K input and N output features of a matrix, H heads, D features
per head.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from clearhead.generate.cuda_step import COLUMNS

NORMS = {"none": 0, "layer": 1, "rms": 2}
ACTIVATIONS = {"none": 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "swiglu": 4, "geglu": 5}  # 4 and 5 are gated

WIDTH = tl.constexpr(COLUMNS)  # of a row: eight that are named here, and random numbers
ID, POSITION, SLOT, STEP, TEMPERATURE, TOP_K, TOP_P, MIN_P = (tl.constexpr(i) for i in range(8))


@triton.jit
def wait(EARLY: tl.constexpr):
    """Wait for the previous kernel. Code before this call must not read what that kernel writes.

    An `EARLY` kernel starts while the previous one still runs, and loads its weights in the meantime.
    """
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()


@triton.jit
def embed(
    rows,
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
    token = tl.load(rows + b * WIDTH + ID).to(tl.int64)
    x = tl.load(table + token * C + c, mask=c < C).to(tl.float32) * scale
    if P:
        position = tl.load(rows + b * WIDTH + POSITION).to(tl.int64)
        x += tl.load(position_table + position * C + c, mask=c < C).to(tl.float32)
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
def linear(
    x,
    parts,
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
    SPLIT: tl.constexpr,
    D: tl.constexpr,
    EARLY: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """out = f(norm(x) Wᵀ + b), or out += …, for one sequence. For a gated f, the gate's N rows follow those of W.

    A program takes `BN` whole rows of W: `BK` is at least K. Whatever needs only weights is done before the wait:
    norm(x) Wᵀ = (x · γW - μ Σ γW) / σ + βW, so that afterward μ, σ and x · γW are three sums side by side. With
    `SPLIT`, x is the attention's output in that many parts, to be combined.
    """
    n, k = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    valid, inside = n < N, k < K
    both = valid[:, None] & inside[None, :]
    at = weight + n[:, None].to(tl.int64) * K + k[None, :]
    W = tl.load(at, mask=both, other=0.0).to(tl.float32)
    G = W
    if ACTIVATION >= 4:
        G = tl.load(at + N * K, mask=both, other=0.0).to(tl.float32)
    base = tl.zeros((BN,), tl.float32)
    gate_base = tl.zeros((BN,), tl.float32)
    if BIAS:
        base += tl.load(bias + n, mask=valid, other=0.0).to(tl.float32)
        if ACTIVATION >= 4:
            gate_base += tl.load(bias + N + n, mask=valid, other=0.0).to(tl.float32)
    sums = tl.zeros((BN,), tl.float32)
    gate_sums = tl.zeros((BN,), tl.float32)
    if NORM:
        gains = tl.load(gain + k, mask=inside, other=0.0).to(tl.float32)[None, :]
        if NORM == 1:
            shifts = tl.load(shift + k, mask=inside, other=0.0).to(tl.float32)[None, :]
            base += tl.sum(W * shifts, 1)
            if ACTIVATION >= 4:
                gate_base += tl.sum(G * shifts, 1)
        W *= gains
        if ACTIVATION >= 4:
            G *= gains
        if NORM == 1:
            sums = tl.sum(W, 1)
            if ACTIVATION >= 4:
                gate_sums = tl.sum(G, 1)
    wait(EARLY)
    if SPLIT > 1:
        vector = _combine(parts, k, inside, SPLIT, D, K // D).to(x.dtype.element_ty).to(tl.float32)
    else:
        vector = tl.load(x + k, mask=inside, other=0.0).to(tl.float32)
    acc = tl.sum(vector[None, :] * W, 1)
    gate = acc
    if ACTIVATION >= 4:
        gate = tl.sum(vector[None, :] * G, 1)
    if NORM:
        squares = tl.sum(vector * vector, 0) / K
        if NORM == 1:
            mean = tl.sum(vector, 0) / K
            squares -= mean * mean
            acc -= mean * sums
            gate -= mean * gate_sums
        scale = tl.rsqrt(squares + epsilon)
        acc *= scale
        gate *= scale
    acc = activate(acc + base, gate + gate_base, ACTIVATION)
    if ADD:
        acc += tl.load(out + n, mask=valid, other=0.0)
    tl.store(out + n, acc, mask=valid)


@triton.jit
def _combine(parts, k, inside, SPLIT: tl.constexpr, D: tl.constexpr, H: tl.constexpr):
    """Combine the attention's parts: H SPLIT D sums of values, then H SPLIT 2 maxima and totals."""
    start, statistics = k // D * SPLIT, parts + H * SPLIT * D
    best = tl.load(statistics + start * 2, mask=inside, other=0.0)
    for s in tl.static_range(1, SPLIT):
        best = tl.maximum(best, tl.load(statistics + (start + s) * 2, mask=inside, other=0.0))
    total, vector = best * 0.0, best * 0.0
    for s in tl.static_range(SPLIT):
        factor = tl.exp(tl.load(statistics + (start + s) * 2, mask=inside, other=0.0) - best)
        total += factor * tl.load(statistics + (start + s) * 2 + 1, mask=inside, other=1.0)
        vector += factor * tl.load(parts + (start + s) * D + k % D, mask=inside, other=0.0)
    return vector / total


@triton.jit
def normalize(
    stream,
    branch,
    branch_gain,
    branch_shift,
    gain,
    shift,
    out,
    B,
    C: tl.constexpr,
    epsilon: tl.constexpr,
    PARTS: tl.constexpr,
    BRANCH_NORM: tl.constexpr,
    NORM: tl.constexpr,
    EARLY: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """out = norm(x), after x += branch, or x += norm(branch); one program per sequence.

    A branch is the sum of its `PARTS` (PARTS B C); with 0, there is none.
    """
    b = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    inside = c < C
    wait(EARLY)
    x = tl.load(stream + b * C + c, mask=inside, other=0.0)
    if PARTS:
        y = tl.load(branch + b * C + c, mask=inside, other=0.0).to(tl.float32)
        for part in tl.static_range(1, PARTS):
            y += tl.load(branch + (part * B + b) * C + c, mask=inside, other=0.0).to(tl.float32)
        if BRANCH_NORM:
            y = _norm(y, branch_gain, branch_shift, c, inside, C, epsilon, BRANCH_NORM)
        x += y
        tl.store(stream + b * C + c, x, mask=inside)
    if NORM:
        tl.store(out + b * C + c, _norm(x, gain, shift, c, inside, C, epsilon, NORM), mask=inside)


@triton.jit
def _norm(x, gain, shift, c, inside, C: tl.constexpr, epsilon: tl.constexpr, KIND: tl.constexpr):
    if KIND == 1:
        x = tl.where(inside, x - tl.sum(x, 0) / C, 0.0)
    x *= tl.rsqrt(tl.sum(x * x, 0) / C + epsilon) * tl.load(gain + c, mask=inside, other=0.0).to(tl.float32)
    if KIND == 1:
        x += tl.load(shift + c, mask=inside, other=0.0).to(tl.float32)
    return x


@triton.jit
def activate_many(x, out, N, KIND: tl.constexpr, EARLY: tl.constexpr, BLOCK: tl.constexpr):
    """out = f(x) of B N; for a gated f, x is B 2N and its second half is the gate."""
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    b = tl.program_id(1)
    wait(EARLY)
    row = x + b * (2 * N if KIND >= 4 else N)
    value = tl.load(row + n, mask=n < N, other=0.0).to(tl.float32)
    gate = value
    if KIND >= 4:
        gate = tl.load(row + N + n, mask=n < N, other=0.0).to(tl.float32)
    tl.store(out + b * N + n, activate(value, gate, KIND), mask=n < N)


@triton.jit
def linear_many(
    x,
    weight,
    bias,
    out,
    B,
    N,
    K: tl.constexpr,
    ACTIVATION: tl.constexpr,
    BIAS: tl.constexpr,
    SPLIT: tl.constexpr,
    EARLY: tl.constexpr,
    ROWS: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """out = f(x Wᵀ + b) for many sequences, `ROWS` (at least 16) per program.

    With `SPLIT` above 1, K is divided among that many programs, which write parts that are still to be added
    (SPLIT B N).
    """
    start, part = tl.program_id(0) * BN, tl.program_id(2)
    n, b = start + tl.arange(0, BN), tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    row, valid = b < B, n < N
    KP: tl.constexpr = (K + SPLIT * BK - 1) // (SPLIT * BK) * BK
    begin = part * KP
    if EARLY:  # noqa: SIM102 (one is decided when the kernel is compiled)
        if (start + BN <= N) & (begin + KP <= K):
            _prefetch(weight + start.to(tl.int64) * K + begin, K, BN, KP)
            if ACTIVATION >= 4:
                _prefetch(weight + (N + start).to(tl.int64) * K + begin, K, BN, KP)
    wait(EARLY)
    acc, gate = tl.zeros((ROWS, BN), tl.float32), tl.zeros((ROWS, BN), tl.float32)
    for first in range(0, KP, BK):
        k = begin + first + tl.arange(0, BK)
        inside = k < K
        tile = tl.load(x + b[:, None] * K + k[None, :], mask=row[:, None] & inside[None, :], other=0.0)
        at = weight + n[None, :].to(tl.int64) * K + k[:, None]
        both = valid[None, :] & inside[:, None]
        acc = tl.dot(tile, tl.load(at, mask=both, other=0.0), acc, input_precision="ieee")
        if ACTIVATION >= 4:
            gate = tl.dot(tile, tl.load(at + N * K, mask=both, other=0.0), gate, input_precision="ieee")
    if BIAS:
        share = tl.where(part == 0, 1.0, 0.0)
        acc += share * tl.load(bias + n, mask=valid, other=0.0).to(tl.float32)[None, :]
        if ACTIVATION >= 4:
            gate += tl.load(bias + N + n, mask=valid, other=0.0).to(tl.float32)[None, :]
    acc = activate(acc, gate, ACTIVATION)
    tl.store(out + (part * B + b[:, None]) * N + n[None, :], acc, mask=row[:, None] & valid[None, :])


@triton.jit
def _prefetch(start, K: tl.constexpr, ROWS: tl.constexpr, COUNT: tl.constexpr):
    """Prefetch `COUNT` numbers of each of `ROWS` rows of K numbers into the L2 cache, 128 bytes at a time."""
    EACH: tl.constexpr = 128 // (start.dtype.element_ty.primitive_bitwidth // 8)
    LINES: tl.constexpr = (COUNT + EACH - 1) // EACH
    BLOCK: tl.constexpr = 128
    for first in range(0, ROWS * LINES, BLOCK):
        i = tl.minimum(first + tl.arange(0, BLOCK), ROWS * LINES - 1)
        at = (start + i // LINES * K + i % LINES * EACH).to(tl.uint64)
        tl.inline_asm_elementwise(
            "{ prefetch.global.L2 [$1]; mov.u32 $0, 0; }", "=r,l", [at], dtype=tl.int32, is_pure=False, pack=1
        )
