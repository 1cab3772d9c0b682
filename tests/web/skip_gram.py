"""Skip-gram in numpy, with the page's random numbers, sentences and settings."""

from collections import Counter

import numpy as np

from clearhead.lectures import random_numbers
from clearhead.lectures.width_sweep import HELD_OUT, STEPS, WIDTHS, WINDOW, make_sentences
from tests.web.test_lecture_001 import softmax


def uniform(size, seed, *shape):
    return random_numbers.uniform(size, seed, *shape).numpy()


def count_pairs(sentences, vocabulary, window):
    pairs = Counter(
        (center, words[j])
        for words in sentences
        for i, center in enumerate(words)
        for j in range(max(0, i - window), min(len(words), i + window + 1))
        if i != j
    )
    return np.array([[pairs[center, neighbor] for neighbor in vocabulary] for center in vocabulary], float)


def evaluate(tables, counts):
    """The mean cross-entropy, and its gradient with respect to both tables."""
    inputs, outputs = tables
    chances = softmax(inputs @ outputs.T)
    slopes = (counts.sum(1, keepdims=True) * chances - counts) / counts.sum()
    seen = counts > 0
    loss = -(counts[seen] * np.log(chances[seen])).sum() / counts.sum()
    return loss, np.stack([slopes @ outputs, slopes.T @ inputs])


def train(counts, width, steps, seed):
    """The input and output tables after this many steps of Adam."""
    tables = uniform(1 / width**0.5, seed, 2, len(counts), width)
    mean, square = np.zeros_like(tables), np.zeros_like(tables)
    for step in range(1, steps + 1):
        _, gradient = evaluate(tables, counts)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        deviation = np.sqrt(square / (1 - 0.999**step)) + 1e-8
        tables = tables - 0.05 * mean / (1 - 0.9**step) / deviation
    return tables


def sweep(amount, seed):
    """The losses on new sentences and on the training sentences, by width."""
    made = make_sentences(amount + HELD_OUT, seed)
    vocabulary = sorted({word for words in made for word in words})
    training, new = (count_pairs(part, vocabulary, WINDOW) for part in (made[:amount], made[amount:]))
    tables = [train(training, width, STEPS, seed) for width in WIDTHS]
    return np.array([[evaluate(each, counts)[0] for each in tables] for counts in (new, training)])
