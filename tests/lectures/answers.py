"""The answers to the questions at all stops, computed in numpy: a number, or the index of the correct option."""

import numpy as np

FOX, CAT, DOG = (
    sentence.split()
    for sentence in (
        "the quick brown fox jumps over the lazy dog",
        "i have to make sure that the cat gets fed",
        "i forgot to make sure that the dog gets fed",
    )
)


def softmax(scores):
    powers = np.exp(np.array(scores, float))
    return powers / powers.sum()


def around(word, sentence):
    i = sentence.index(word)
    return {*sentence[i - 2 : i], *sentence[i + 1 : i + 3]}


ANSWERS = {
    "000.1": {2},
    "000.2": np.dot([0.5, 0.25, 0.25], [2, 4, 10]).item(),
    "000.3": softmax(np.array([[2, 0], [0, 1], [1, 0]]) @ [1, 0])[0].item(),
    "000.4": 1 / 3,
    "000.5": np.sqrt(64 / 4).item(),
    "000.6": softmax(np.array([2, 0, 2]) / np.sqrt(4))[2].item(),
    "000.7": 64,
    "000.8": (2 / np.std([2, 4, 6])).item(),
    "000.9": 14 * 128,
    "000.10": {0},
    "001.1": 2 / 4 * 1 / 2,
    "001.2": {1},
    "001.3": next(n for n in range(100) if 0.9**n < 0.01),
    "001.4": 3 / (3 + 3 + 1 + 1),
    "001.5": np.log(100).item(),
    "001.6": (np.array([0, 1]) @ [[1, 2], [3, 4]] @ [1, 0]).item(),
    "001.7": {1},
    "001.8": np.e / (np.e + 1),
    "001.9": {0},
    "002.1": len(around("cat", CAT) & around("dog", DOG)),
    "002.2": sum(i != j and abs(i - j) <= 3 for i in range(9) for j in range(9)),
    "002.3": {1},
    "002.4": next(i for i in range(6, 99) if i - 8 > 5),
    "002.5": len(set(FOX[:8])),
    "002.6": {1},
    "002.7": 3 / (3 + 1),
    "002.8": 1 / 4 * 4 + 3 / 4 * 8,
    "002.9": 8 * 8 * 32,
    "002.10": softmax([0, 10, 10, 10, 0])[2].item(),
    "002.11": 1 / 4 - 1,
}
