"""The numbers in lecture 002, checked against numpy."""

import re

import numpy as np
import pytest

from clearhead.lectures import numbers002 as numbers
from clearhead.lectures.catalog import find_stops
from clearhead.lectures.inputs import inputs_of
from clearhead.model.lectures import head_as_loops, head_as_matrices
from tests.lectures.numpy_model import cosine, softmax
from tests.web.skip_gram import WIDTHS, count_pairs, sweep, train, uniform
from tests.web.test_lecture_002 import follow, predict, relate, run_head


def compute(number):
    (stop,) = find_stops(f"002.{number}")
    return stop.compute()


def answer(number):
    (stop,) = find_stops(f"002.{number}")
    return stop.question.answer()


def values(part):
    return np.array(part.values, dtype=float)


def test_cat_and_dog_share_their_neighbors():
    assert compute(1).parts[0].values == [["that the gets fed"], ["that the gets fed"]]


def test_widths_are_trained_and_compared():
    result = compute(1)
    losses = sweep(60, 1)
    lines = result.part("loss by width")
    assert lines.x == [*WIDTHS]
    assert np.array([*lines.lines.values()]) == pytest.approx(losses, abs=1e-5)
    assert result.findings["best width"] == WIDTHS[losses[0].argmin()] == 8
    assert result.findings["its loss on new sentences"] == pytest.approx(losses[0].min(), abs=1e-5)


def test_training_pairs_and_learned_vectors():
    result = compute(2)
    lines = [row[0] for row in result.parts[0].values]
    assert lines[:2] == ["(the, quick) (the, brown)", "(quick, the) (quick, brown) (quick, fox)"]
    assert [line.count("(") for line in lines] == [2, 3, 4, 4, 4, 4, 4, 3, 2]
    sentences = [line.lower().split() for line in inputs_of("002.2")["text"]]
    vocabulary = sorted({word for words in sentences for word in words})
    E = train(count_pairs(sentences, vocabulary, 2), 8, 100, seed=1)[0]
    cosines = {
        word: cosine(E[vocabulary.index("cat")], vector) for word, vector in zip(vocabulary, E, strict=True)
    }
    nearest = result.part("nearest to cat")
    assert nearest.rows == sorted(set(vocabulary) - {"cat"}, key=cosines.get, reverse=True)[:5]
    assert values(nearest)[:, 0] == pytest.approx([cosines[word] for word in nearest.rows], abs=1e-5)
    assert nearest.rows[0] == "dog"
    assert result.findings["cosine of cat and dog"] == pytest.approx(cosines["dog"], abs=1e-5)


def test_next_word_and_what_determines_it():
    result = compute(3)
    lines, past = inputs_of("002.3")["text"], re.findall(r"\w+", inputs_of("002.3")["prompt"].lower())
    expected = predict(lines, past)
    chances = dict(zip(result.parts[0].rows, values(result.parts[0])[:, 0], strict=True))
    assert chances == pytest.approx(expected)
    assert next(iter(chances)) == result.findings["next word"] == "her"
    left = [predict(lines, past[:i] + past[i + 1 :])["her"] for i in range(len(past))]
    assert values(result.parts[1])[:, 0] == pytest.approx(expected["her"] - np.array(left))
    without = result.findings["its probability without “girl”"]
    assert without == pytest.approx(left[past.index("girl")])
    assert without < 0.5
    assert numbers.DECIDERS[answer(3)] == "girl"


def test_window_slides_and_forgets():
    result = compute(4)
    text = inputs_of("002.4")["text"].split()
    for length, count in ((8, 5), (2, 20)):
        words, rows = text[:8], []
        for _ in range(count):
            word, times = follow(text, words[-length:])
            rows.append([" ".join(words[-length:]), word, times])
            words.append(word)
        assert result.part(f"context length {length}").values == rows[:5]
        assert result.findings[f"context length {length}"] == " ".join(words)
    assert result.parts[0].rows[:2] == ["w1 … w8 → w9", "w2 … w9 → w10"]
    assert result.findings["context length 8"] == " ".join(text[:13])
    assert not " ".join(text).startswith(result.findings["context length 2"])


WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy"]


def test_words_are_rows_of_a_table():
    result = compute(5)
    one_hot, vectors = result.parts
    assert values(one_hot).sum(1).tolist() == [1] * 8
    assert [one_hot.columns[int(row.argmax())] for row in values(one_hot)] == WORDS
    assert values(vectors) == pytest.approx(run_head(WORDS)["X"][:, [0, 1, 2, 3, 31]])
    assert result.findings["numbers in the matrix"] == 8 * 32


@pytest.fixture
def head():
    return run_head(WORDS)


def test_cells_are_dot_products():
    result = compute(6)
    scores = run_head(WORDS, causal=False)["S"]
    assert values(result.parts[0]) == pytest.approx(scores)
    assert (result.findings["query matrix"], result.findings["transposed key matrix"]) == ("8 × 32", "32 × 8")
    assert (result.findings["q2 · k1"], result.findings["q1 · k2"]) == pytest.approx(
        (scores[1, 0], scores[0, 1])
    )


def test_future_is_masked(head):
    result = compute(7)
    masked, shown = map(values, result.parts)
    past = np.tri(8, dtype=bool)
    assert masked[past] == pytest.approx(head["S"][past])
    assert np.isneginf(masked[~past]).all()
    assert shown == pytest.approx(head["P"])
    assert list(result.findings.values()) == pytest.approx([1, 1])


def test_output_is_a_weighted_sum_of_values(head):
    result = compute(8)
    value, output = map(values, result.parts)
    assert value == pytest.approx(head["V"])
    assert output == pytest.approx(head["A"])
    assert output[1] == pytest.approx(result.findings["P21"] * value[0] + result.findings["P22"] * value[1])


def test_loops_and_matrices_agree_and_differ_in_multiplications():
    result = compute(9)
    assert result.findings["largest difference"] < 1e-12
    T, C, d_v = 64, 32, 8
    products = [T * C * C, T * C * C, T * C * d_v, T * T * C, T * T * d_v]
    assert [row[1] for row in result.parts[0].values] == products
    pairs = T * (T + 1) // 2
    (loops, _), (matrices, _) = result.parts[1].values
    assert matrices == sum(products)
    assert loops == T * C * C + pairs * (C + 1) * (C + d_v)
    x, W_Q, W_K, W_V = (each.numpy() for each in numbers.random_head())
    assert np.allclose(x, uniform(1, 1, 64, 32))
    assert np.allclose(W_V, uniform(32**-0.5, 4, 32, 8))
    for divided in (False, True):
        S = (x @ W_Q) @ (x @ W_K).T / (C**0.5 if divided else 1)
        expected = softmax(np.where(np.tri(T, dtype=bool), S, -np.inf)) @ x @ W_V
        for compute_head in (head_as_loops, head_as_matrices):
            assert compute_head(*numbers.random_head(), divided).numpy() == pytest.approx(expected)


def test_heads_relate_kinds_of_words():
    result = compute(10)
    kinds = (("noun", "adj."), ("verb", "noun"), ("prep.", "verb"))
    for part, pair in zip(result.parts, kinds, strict=True):
        assert values(part) == pytest.approx(relate(pair))
    assert result.findings["4 fox attends to"] == "2 quick 0.500, 3 brown 0.500"


def test_loss_of_one_token_falls_along_its_gradient():
    result = compute(11)
    z, eta, dog = np.array([0.0, 1, 0, 0]), 1, 0
    losses, first = [], None
    for _ in range(11):
        p = softmax(z)
        losses.append(-np.log(p[dog]))
        y = np.eye(4)[dog]
        # The gradient by central differences, without the formula p - y.
        d = 1e-6
        slope = [
            (-np.log(softmax(z + d * e)[dog]) + np.log(softmax(z - d * e)[dog])) / (2 * d) for e in np.eye(4)
        ]
        moved = z - eta * np.array(slope)
        first = np.stack([z, p, y, slope, moved, softmax(moved)], axis=1) if first is None else first
        z = moved
    assert values(result.parts[0]) == pytest.approx(first, abs=1e-8)
    assert result.parts[1].lines["loss"] == pytest.approx(losses, abs=1e-7)
    assert result.findings["loss"] == pytest.approx(np.log(3 + np.e))
    assert losses == sorted(losses, reverse=True)
