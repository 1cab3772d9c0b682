"""Skip-gram in numpy, with the page's random numbers, sentences and settings."""

from collections import Counter
from itertools import count, islice

import numpy as np

from tests.web.test_lecture_001 import softmax

WIDTHS = [1, 2, 4, 8, 16, 32]
PEOPLE = ["I", "you", "we", "they"]
OPENINGS = [f"{verb} to make sure that" for verb in ("forgot", "have", "want")] + ["know that", "hope that"]
GROUPS = [
    (["cat", "dog", "horse", "rabbit"], ["fed", "brushed", "petted"]),
    (["car", "truck", "bike", "boat"], ["washed", "parked", "repaired"]),
    (["rose", "tree", "lawn", "hedge"], ["watered", "planted", "cut"]),
]


def mulberry(seed):
    """Uniform numbers from 0 to 1, as the page draws them."""
    mask = 2**32 - 1
    for i in count(1):
        state = (seed + i * 0x6D2B79F5) & mask
        t = (state ^ state >> 15) * (state | 1) & mask
        t ^= t + (t ^ t >> 7) * (t | 61) & mask
        yield (t ^ t >> 14) / 2**32


def uniform(size, seed, *shape):
    drawn = np.fromiter(islice(mulberry(seed), int(np.prod(shape))), float)
    return size * (2 * drawn - 1).reshape(shape)


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


def make_sentences(amount, seed):
    drawn = mulberry(seed)

    def choose(options):
        return options[int(next(drawn) * len(options))]

    made = []
    for _ in range(amount):
        person, opening, (things, ends) = choose(PEOPLE), choose(OPENINGS), choose(GROUPS)
        thing, end = choose(things), choose(ends)
        made.append(f"{person} {opening} the {thing} gets {end}".split())
    return made


def sweep(amount, seed):
    """The losses on new sentences and on the training sentences, by width."""
    made = make_sentences(amount + 200, seed)
    vocabulary = sorted({word for words in made for word in words})
    training, new = (count_pairs(part, vocabulary, 2) for part in (made[:amount], made[amount:]))
    tables = [train(training, width, 100, seed) for width in WIDTHS]
    return np.array([[evaluate(each, counts)[0] for each in tables] for counts in (new, training)])
