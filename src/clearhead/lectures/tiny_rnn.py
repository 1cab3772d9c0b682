"""A small recurrent network that learns "was any digit a 1?", and linear probes for the first digit.

As on the page (`web/src/model/tinyRnn.ts`): digits come with noise, as if each vector carried other information too.
Shapes: B sequences, T digits, C units.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.lectures.random_numbers import draw, uniform

UNITS = 4  # C
NOISE = 0.3  # added to each digit, from -NOISE to NOISE
SHORTEST, LONGEST = 5, 20  # lengths of training sequences
BATCH = 16
LEARNING_RATE = 0.02
PROBED, PROBE_SEED = 200, 7  # sequences; a probe is fitted to half of them and tested on the others
RIDGE = 1e-6


def train_rnn(seed: int, steps: int) -> Tensor:
    """The parameters after this many steps of Adam, rounded to single precision after each one."""
    rnn = _single(uniform(UNITS**-0.5, seed, UNITS**2 + 3 * UNITS + 1)).requires_grad_()
    optimizer = torch.optim.Adam([rnn], lr=LEARNING_RATE)
    random = draw(seed + 1000)
    answers = torch.arange(BATCH).double() % 2
    for _ in range(steps):
        digits = _training_sequences(answers, random)
        v, c = rnn[-UNITS - 1 : -1], rnn[-1]
        loss = F.binary_cross_entropy_with_logits(run_rnn(rnn, digits)[:, -1] @ v + c, answers)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        rnn.data = _single(rnn.data)
    return rnn.detach()


def run_rnn(rnn: Tensor, digits: Tensor) -> Tensor:
    """The state h = tanh(x w + h U + b) after each digit: B T → B T C."""
    w, U, b, _ = torch.split(rnn, [UNITS, UNITS**2, UNITS, UNITS + 1])
    state, states = torch.zeros(len(digits), UNITS, dtype=digits.dtype), []
    for x in digits.T:
        state = torch.tanh(x[:, None] * w + state @ U.view(UNITS, UNITS) + b)
        states.append(state)
    return torch.stack(states, dim=1)


def _training_sequences(answers: Tensor, random: Iterator[float]) -> Tensor:
    """Half of the sequences are all 0s; the others have a 1 in their first half."""
    T = SHORTEST + int(next(random) * (LONGEST - SHORTEST + 1))
    digits = []
    for answer in answers.tolist():
        place = int(next(random) * (T // 2))
        digits.append([_noisy(answer if t == place else 0.0, random) for t in range(T)])
    return torch.tensor(digits, dtype=torch.float64)


def probe_sequences(zeros: int) -> Tensor:
    """Sequences that start with a 0 or a 1, in turn, followed by zeros: B T."""
    random = draw(PROBE_SEED)
    digits = [[_noisy(float(t == 0 and k % 2), random) for t in range(zeros + 1)] for k in range(PROBED)]
    return torch.tensor(digits, dtype=torch.float64)


def attended(digits: Tensor, boost: float) -> Tensor:
    """What attention passes on at each position, the softmax of boosted digits times the digits: B T → B T 1."""
    powers = (boost * digits).exp()
    return ((powers * digits).cumsum(1) / powers.cumsum(1))[:, :, None]


def probe_accuracy(vectors: Tensor) -> float:
    """The accuracy of a linear probe for the first digit, fitted to half of the vectors by least squares: B C → 1."""
    x = torch.cat((vectors, torch.ones(PROBED, 1, dtype=vectors.dtype)), dim=1)
    is_one = torch.arange(PROBED) % 2 == 1
    fit, rest = slice(0, PROBED // 2), slice(PROBED // 2, None)
    targets = 2 * is_one[fit].double() - 1
    ridge = RIDGE * torch.eye(x.shape[1], dtype=x.dtype)
    weights = torch.linalg.solve(x[fit].T @ x[fit] + ridge, x[fit].T @ targets)
    return ((x[rest] @ weights > 0) == is_one[rest]).double().mean().item()


def _noisy(digit: float, random: Iterator[float]) -> float:
    return digit + NOISE * (2 * next(random) - 1)


def _single(numbers: Tensor) -> Tensor:
    return numbers.float().double()
