"""The numbers in lecture 002, checked against numpy."""

import re
from collections import Counter

import numpy as np
import pytest

from clearhead.lectures import numbers002 as numbers
from clearhead.lectures.catalog import find_stops
from clearhead.model.lectures import head_as_loops, head_as_matrices
from clearhead.text.stories import story
from tests.lectures.numpy_model import cosine, encode, model, run, softmax, weights


def compute(number):
    (stop,) = find_stops(f"002.{number}")
    return stop.compute()


def answer(number):
    (stop,) = find_stops(f"002.{number}")
    return stop.question.answer()


def values(part):
    return np.array(part.values, dtype=float)


def test_cat_and_dog_share_their_neighbors():
    result = compute(1)
    assert result.parts[0].values == [["that the gets fed"], ["that the gets fed"]]
    shares = dict(zip(result.parts[1].x, result.parts[1].lines["same kind"], strict=True))
    assert shares[1] < 0.2 < 0.9 < shares[result.findings["best width"]] == max(shares.values())
    assert shares[128] < max(shares.values())


def test_counted_vectors_have_the_dot_products_of_positive_pmi():
    """Counted independently here: how much more often than by chance two words are neighbors."""
    counts, centers = Counter(), Counter()
    for i in range(numbers.COUNTED):
        text = re.findall(r"\w+(?:'\w+)*", story(0, i).text.lower())
        for place, center in enumerate(text):
            for neighbor in (*text[max(0, place - 2) : place], *text[place + 1 : place + 3]):
                counts[center, neighbor] += 1
                centers[center] += 1
    total = centers.total()

    def pmi(word, other):
        ratio = counts[word, other] * total / centers[word] / centers[other]
        return max(0.0, np.log(ratio)) if ratio else 0.0

    words, U, strength = numbers.counted_vectors()
    assert set(words) == set(centers)
    gram = (U * strength**2) @ U.T
    for one, other in (("cat", "dog"), ("cat", "park"), ("cat", "cat")):
        expected = sum(pmi(one, word) * pmi(other, word) for word in centers)
        assert gram[words.index(one), words.index(other)] == pytest.approx(expected)


def test_training_pairs_and_learned_vectors():
    result = compute(2)
    lines = [row[0] for row in result.parts[0].values]
    assert lines[:2] == ["(the, quick) (the, brown)", "(quick, the) (quick, brown) (quick, fox)"]
    assert [line.count("(") for line in lines] == [2, 3, 4, 4, 4, 4, 4, 3, 2]
    E = weights()["embedding.weight"] - weights()["embedding.weight"].mean(0)
    shown, words = values(result.parts[1]), result.parts[1].rows
    for i, one in enumerate(words):
        for j, other in enumerate(words):
            expected = cosine(E[encode(f" {one}")[0]], E[encode(f" {other}")[0]])
            assert shown[i, j] == pytest.approx(expected)
    assert result.findings["cosine of cat and dog"] > 0.2 + result.findings["cosine of cat and park"]


def test_next_word_and_what_determines_it():
    result = compute(3)
    chances = softmax(run(encode("The quick brown fox jumps over the lazy"))["logits"][-1])
    likeliest = np.argsort(-chances)[:3]
    assert result.parts[0].rows == [text.strip() for text in model().tokenizer.pieces(likeliest.tolist())]
    assert result.parts[0].rows[0] == "dog"
    assert values(result.parts[0])[:, 0] == pytest.approx(chances[likeliest], rel=1e-2)
    her = softmax(run(encode(numbers.WILL))["logits"][-1])[encode(" her")[0]]
    assert result.findings["probability of “her”"] == pytest.approx(her, rel=1e-3)
    boy = softmax(run(encode(numbers.WILL.replace("girl", "boy")))["logits"][-1])[encode(" him")[0]]
    assert result.findings["probability of “him” after “boy”"] == pytest.approx(boy, rel=1e-3)
    swapped = values(result.parts[1])
    assert [swapped[0, 0], swapped[1, 1]] == pytest.approx([her, boy], rel=1e-3)
    effects = result.part("attribution by token")
    assert effects.rows[0] == "1 Damian"
    assert effects.rows[values(effects)[:-1, 0].argmax()] == "8 girl"
    assert numbers.DECIDERS[answer(3)] == "girl"


def test_window_slides_and_forgets():
    result = compute(4)
    steps = result.part("step by step")
    assert steps.rows[:2] == ["w1 … w8 → w9", "w2 … w9 → w10"]
    short, whole = (row[0] for row in result.part("generated text").values)
    assert "trumpet" in whole
    assert "trumpet" not in short
    ids = list(encode(numbers.ELLA))
    for _, generated in steps.values:
        ids.append(int(run(np.array(ids[-8:]))["logits"][-1].argmax()))
        assert model().tokenizer.pieces([ids[-1]])[0] == generated


WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy"]


def test_words_are_rows_of_a_table():
    result = compute(5)
    one_hot, vectors = result.parts
    assert values(one_hot).sum(1).tolist() == [1] * 8
    assert [one_hot.columns[int(row.argmax())] for row in values(one_hot)] == WORDS
    E = numbers.vocabulary()[1].numpy()
    assert values(vectors) == pytest.approx((values(one_hot) @ E)[:, [0, 1, 2, 3, 31]])
    assert result.findings["numbers in the matrix"] == 8 * 32


@pytest.fixture
def head():
    """Scores, weights, values and output in numpy, one number at a time."""
    x = numbers.word_vectors().numpy()
    W_Q, W_K, W_V = (W.numpy() for W in numbers.matrices())
    S = np.array([[(x[i] @ W_Q) @ (x[j] @ W_K) for j in range(8)] for i in range(8)])
    P = np.zeros((8, 8))
    for i in range(8):
        powers = np.exp(S[i, : i + 1] / np.sqrt(32))
        P[i, : i + 1] = powers / powers.sum()
    return S, P, x @ W_V, np.array([sum(P[i, j] * (x[j] @ W_V) for j in range(i + 1)) for i in range(8)])


def test_cells_are_dot_products(head):
    result = compute(6)
    assert values(result.parts[0]) == pytest.approx(head[0])
    assert (result.findings["query matrix"], result.findings["transposed key matrix"]) == ("8 × 32", "32 × 8")
    assert result.findings["q2 · k4"] == pytest.approx(head[0][1, 3])


def test_future_is_masked(head):
    result = compute(7)
    masked, shown = map(values, result.parts)
    past = np.tri(8, dtype=bool)
    assert masked[past] == pytest.approx(head[0][past] / np.sqrt(32))
    assert np.isneginf(masked[~past]).all()
    assert shown == pytest.approx(head[1])
    assert list(result.findings.values()) == pytest.approx([1, 1])


def test_output_is_a_weighted_sum_of_values(head):
    result = compute(8)
    value, output = map(values, result.parts)
    assert value == pytest.approx(head[2])
    assert output == pytest.approx(head[3])
    assert output[1] == pytest.approx(result.findings["P21"] * value[0] + result.findings["P22"] * value[1])


def test_loops_and_matrices_agree_and_differ_in_products(head):
    result = compute(9)
    assert result.findings["largest difference"] < 1e-12
    x, Ws = numbers.word_vectors(), numbers.matrices()
    for compute_head in (head_as_loops, head_as_matrices):
        assert compute_head(x, *Ws).numpy() == pytest.approx(head[3])
    for (loops, matrices), T in zip(result.part("products").values, (2, 4, 8, 16), strict=True):
        assert loops == T + 3 * T * (T + 1) / 2
        assert matrices == 5


def test_heads_relate_tokens():
    result = compute(10)
    blocks = run(encode(numbers.ELLA))["blocks"]
    previous, antecedent = (blocks[i]["heads"][j]["weights"] for i, j in ((0, 0), (2, 1)))
    table = result.parts[0]
    for i, (first, weight, second, other) in enumerate(table.values):
        assert first == table.rows[previous[i].argmax()]
        assert second == table.rows[antecedent[i].argmax()]
        assert (weight, other) == pytest.approx((previous[i].max(), antecedent[i].max()), rel=1e-2)
    assert [row[0] for row in table.values[1:]] == table.rows[:-1]
    related = {name.split()[1]: row[2].split()[1] for name, row in zip(table.rows, table.values, strict=True)}
    assert (related["She"], related["it"], related["her"]) == ("Ella", "trumpet", "trumpet")
