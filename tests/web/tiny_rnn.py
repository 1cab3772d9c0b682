"""The page's recurrent network for "was any digit a 1?" in numpy, with its random numbers and settings."""

from itertools import islice

import numpy as np

from clearhead.lectures.random_numbers import draw
from tests.web.skip_gram import uniform

C, NOISE, BATCH = 4, 0.3, 16
PROBED, PROBE_SEED = 200, 7


def noisy(digits, random):
    return digits + NOISE * (2 * np.fromiter(islice(random, len(digits)), float) - 1)


def run(parameters, digits):
    """The states for B T digits, of shape T + 1 B C, including the state before the first digit."""
    w, U, b, _, _ = unpack(parameters)
    states = [np.zeros((len(digits), C))]
    for column in digits.T:
        states.append(np.tanh(column[:, None] * w + states[-1] @ U + b))
    return np.array(states)


def unpack(parameters):
    w, U, b, v, c = np.split(parameters, np.cumsum([C, C * C, C, C]))
    return w, U.reshape(C, C), b, v, c


def gradient(parameters, digits, answers):
    """The gradient of the mean loss, by backpropagation through time."""
    _, U, _, v, c = unpack(parameters)
    states = run(parameters, digits)
    slope = 1 / (1 + np.exp(-(states[-1] @ v + c))) - answers
    d_w, d_U, d_b = np.zeros(C), np.zeros((C, C)), np.zeros(C)
    back = slope[:, None] * v
    for t in range(digits.shape[1], 0, -1):
        through = back * (1 - states[t] ** 2)
        d_w += digits[:, t - 1] @ through
        d_U += states[t - 1].T @ through
        d_b += through.sum(0)
        back = through @ U.T
    return np.concatenate([d_w, d_U.ravel(), d_b, slope @ states[-1], [slope.sum()]]) / len(digits)


def single(numbers):
    """Round to single precision, so that the page and numpy do not drift apart."""
    return numbers.astype(np.float32).astype(float)


def train(seed, steps):
    parameters = single(uniform(1 / np.sqrt(C), seed, C * C + 3 * C + 1))
    mean, square = np.zeros_like(parameters), np.zeros_like(parameters)
    random = draw(seed + 1000)
    answers = np.arange(BATCH) % 2
    for step in range(1, steps + 1):
        T = 5 + int(next(random) * 16)
        rows = []
        for answer in answers:
            digits = np.zeros(T)
            digits[int(next(random) * (T // 2))] = answer
            rows.append(noisy(digits, random))
        slope = gradient(parameters, np.array(rows), answers)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        deviation = np.sqrt(square / (1 - 0.999**step)) + 1e-8
        parameters = single(parameters - 0.02 * mean / (1 - 0.9**step) / deviation)
    return parameters


def probe_sequences(zeros):
    random = draw(PROBE_SEED)
    return np.array([noisy(np.eye(1, zeros + 1)[0] * (k % 2), random) for k in range(PROBED)])


def accuracy(vectors):
    """The accuracy of a linear probe for the first digit: fitted to half of the B C vectors, tested on the rest."""
    x, y = np.hstack([vectors, np.ones((PROBED, 1))]), np.arange(PROBED) % 2
    fit, rest = slice(0, PROBED // 2), slice(PROBED // 2, None)
    weights = np.linalg.solve(x[fit].T @ x[fit] + 1e-6 * np.eye(x.shape[1]), x[fit].T @ (2 * y[fit] - 1))
    return ((x[rest] @ weights > 0) == y[rest]).mean()


def probe(seed, steps, zeros, longest=200, boost=10):
    """The probe's accuracy on the state after this many zeros, and on the output of attention there."""
    digits = probe_sequences(longest)[:, : zeros + 1]
    powers = np.exp(boost * digits)
    attended = (powers * digits).sum(1) / powers.sum(1)
    return accuracy(run(train(seed, steps), digits)[-1]), accuracy(attended[:, None])
