"""The numbers in lecture 002, checked against numpy."""

import numpy as np
import pytest

from clearhead.lectures import numbers002 as numbers
from clearhead.lectures.catalog import find_stops
from clearhead.model.lectures import head_as_loops, head_as_matrices
from tests.lectures.numpy_model import cosine, encode, model, run, softmax, weights
from tests.web.skip_gram import WIDTHS, sweep
from tests.web.test_lecture_002 import run_head


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


def test_loops_and_matrices_agree_and_differ_in_products():
    result = compute(9)
    assert result.findings["largest difference"] < 1e-12
    x, Ws = numbers.word_vectors(), numbers.matrices()
    for compute_head in (head_as_loops, head_as_matrices):
        assert compute_head(x, *Ws).numpy() == pytest.approx(run_head(WORDS, divided=True)["A"])
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
