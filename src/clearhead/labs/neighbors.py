"""Similar contexts give similar vectors: skip-gram on the stories, where cat and dog are neighbors."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from clearhead.classics.skip_gram import Settings, pairs
from clearhead.labs.lab import Points, Result, Table, Value, Watch
from clearhead.text.corpus import Document
from clearhead.text.stories import ANIMALS, PLACES, THINGS, story
from clearhead.text.word_corpus import split_words
from clearhead.word_vectors import WordVectors, learn_words

FOX = "The quick brown fox jumps over the lazy dog"
GROUPS = {"animals": ANIMALS, "places": PLACES, "things": THINGS}
CENTER = "cat"


def run(
    word: str, count: int, stories: int, window: int, width: int, epochs: int, seed: int, watch: Watch
) -> Result:
    """Train with one worker, so that a seed gives the same vectors each time."""
    text = "\n\n".join(story(0, number).text for number in range(stories))
    settings = Settings(width=width, window=window, epochs=epochs, seed=seed, workers=1)
    vectors = learn_words([Document.of("stories", text)], settings, lambda _: watch())
    nearest = vectors.nearest(word.lower(), count)
    alike = {
        name: [vectors.cosine(CENTER, each) for each in _others(words)] for name, words in GROUPS.items()
    }
    closest = [name for name, _ in vectors.nearest(CENTER, len(ANIMALS) - 1)]
    return Result(
        lab="neighbors",
        settings={
            "word": word,
            "count": count,
            "stories": stories,
            "window": window,
            "width": width,
            "epochs": epochs,
            "seed": seed,
        },
        findings={
            "cosine between cat and dog": vectors.cosine(CENTER, "dog"),
            "smallest cosine between cat and an animal": min(alike["animals"]),
            "largest cosine between cat and a place": max(alike["places"]),
            "largest cosine between cat and a thing": max(alike["things"]),
            f"animals among the {len(closest)} nearest to cat": len(set(closest) & set(ANIMALS)),
        },
        parts=[
            Table(
                f"nearest to {word.lower()}",
                [name for name, _ in nearest],
                ["cosine", "group"],
                [[cosine, _group(name)] for name, cosine in nearest],
            ),
            _map(vectors),
            Table(
                "cosine with cat",
                list(alike),
                ["smallest", "mean", "largest"],
                [[min(each), sum(each) / len(each), max(each)] for each in alike.values()],
                shaded=True,
            ),
            _samples(window),
        ],
    )


def _others(words: tuple[str, ...]) -> list[str]:
    return [word for word in words if word != CENTER]


def _group(word: str) -> str | None:
    return next((name for name, words in GROUPS.items() if word in words), None)


def _map(vectors: WordVectors) -> Points:
    """The words in the groups, mapped to the first two principal components of their vectors (PCA)."""
    labels = [word for words in GROUPS.values() for word in words]
    each = np.stack([vectors[word] for word in labels]).astype(np.float64)
    units = each / np.linalg.norm(each, axis=1, keepdims=True)
    middle = units - units.mean(0)
    _, _, directions = np.linalg.svd(middle, full_matrices=False)
    # The sign of a component is arbitrary: its largest entry is made positive, so that the map does not flip.
    first = directions[:2] * np.sign(directions[range(2), np.abs(directions[:2]).argmax(1)])[:, None]
    places = [(float(x), float(y)) for x, y in middle @ first.T]
    return Points("map", labels, [_group(word) or "" for word in labels], places)


def _samples(window: int) -> Table:
    """The lecture's (center, neighbor) pairs: the training examples of skip-gram."""
    samples = [list(of) for _, of in groupby(pairs(split_words(FOX), window), key=lambda pair: pair[0])]
    most = max(map(len, samples))
    filled: list[list[Value]] = [
        [f"({center}, {neighbor})" for center, neighbor in of] + [None] * (most - len(of)) for of in samples
    ]
    return Table("training pairs", split_words(FOX), [str(i + 1) for i in range(most)], filled)
