"""The numbers in lecture 000, checked against a forward pass in numpy and against arithmetic."""

from functools import cache
from itertools import islice

import numpy as np
import pytest

from clearhead.lectures import blocks000 as blocks
from clearhead.lectures import numbers000 as numbers
from clearhead.lectures.catalog import find_stops
from clearhead.lectures.inputs import inputs_of
from clearhead.lectures.scaled_scores import draw_scores
from tests.lectures.numpy_model import cosine, encode, model, run, softmax, unembed, weights
from tests.web.test_lecture_000 import layer_norm, normals, run_induction

IT = 12  # the position of "it" in the text about Ella
CLOSE = {"rel": 2e-3, "abs": 2e-4}  # the model computes in single precision


def compute(number):
    (stop,) = find_stops(f"000.{number}")
    return stop.compute()


def answer(number):
    (stop,) = find_stops(f"000.{number}")
    return stop.question.answer()


def values(part):
    return np.array(part.values, dtype=float)


def test_static_vectors_are_equal_and_contextual_ones_depend_on_the_words_before():
    shown = values(compute(1).part("cosine of the two vectors"))
    assert shown[:, 0] == pytest.approx([1, 1, 1])
    tired, wide, trumpet = (run(encode(text)) for text in (numbers.TIRED, numbers.WIDE, numbers.TRUMPET))
    for row, (other, one_place, other_place) in enumerate(((wide, 8, 8), (wide, -1, -1), (trumpet, 8, 9))):
        for block in range(4):
            a, b = (each["blocks"][block]["h"] for each in (tired, other))
            assert shown[row, block + 1] == pytest.approx(cosine(a[one_place], b[other_place]), **CLOSE)
    assert shown[0, 4] == pytest.approx(1)
    assert shown[1, 4] < 0.95
    assert shown[2, 4] < 0.95


def test_head_sums_the_tokens_up_to_it():
    result = compute(2)
    block, head = (int(number) for number in str(result.findings["head"]).replace(",", "").split()[1::2])
    expected = run(encode(numbers.ELLA))["blocks"][block]["heads"][head]["weights"][IT, : IT + 1]
    assert values(result.parts[0])[:, 0] == pytest.approx(expected, **CLOSE)
    assert result.findings["weight on the trumpet"] == pytest.approx(expected.max(), **CLOSE)
    assert result.findings["error of Σ weight · value, relative"] < 1e-5


X = np.array([[2, 0.5], [-0.5, 1.5], [1.5, 0]])
Q, K, V = (X @ np.array(W) for W in ([[0, 2], [0, 1]], [[1, 0], [0, 1]], [[0, 1], [1, 0]]))
PAST = np.tri(3, dtype=bool)


def test_simplest_attention_needs_no_matrices():
    result = compute(3)
    alpha = softmax(np.where(PAST, X @ X.T, -np.inf))
    assert values(result.part("weights, hand-chosen vectors")) == pytest.approx(alpha)
    assert values(result.part("outputs, hand-chosen vectors")) == pytest.approx(alpha @ X)
    assert result.findings["weight of “it” on “chicken”"] == pytest.approx(alpha[2, 0])
    E = weights()["embedding.weight"][encode("Ella lived near")]
    assert result.part("scores, embeddings from the model").rows == ["1 Ella", "2 lived", "3 near"]
    assert values(result.part("scores, embeddings from the model")) == pytest.approx(E @ E.T, rel=1e-4)
    assert values(result.part("weights, embeddings from the model")).diagonal() == pytest.approx([1, 1, 1])


def test_roles_make_scores_asymmetric():
    result = compute(4)
    assert values(result.part("three roles")) == pytest.approx(np.hstack((X, Q, K, V)))
    plain, full = (softmax(np.where(PAST, scores, -np.inf)) for scores in (X @ X.T, Q @ K.T))
    assert values(result.part("simplified weights")) == pytest.approx(plain)
    assert values(result.part("simplified outputs")) == pytest.approx(plain @ X)
    assert values(result.part("weights")) == pytest.approx(full)
    assert values(result.part("outputs")) == pytest.approx(full @ V)
    assert (result.findings["score of 1 with 2"], result.findings["score of 2 with 1"]) == (6.75, 0.25)


def test_division_keeps_the_spread_of_scores():
    result = compute(5)
    drawn = np.array(list(islice(normals(1), 60 * 9 * 64))).reshape(60, 9, 64)
    scores = np.einsum("qd,qkd->qk", drawn[:, 0], drawn[:, 1:])
    for row, each in zip(values(result.parts[0]), (scores, scores / 8), strict=True):
        largest = softmax(each).max(axis=1)
        expected = [np.sqrt((each**2).mean()), largest.mean(), (largest * (1 - largest)).mean()]
        assert row == pytest.approx(expected)
    lines = result.part("largest weight by width")
    assert lines.x == [2**i for i in range(10)]
    assert lines.lines["undivided"][6] == pytest.approx(values(result.parts[0])[0, 1])
    assert lines.lines["undivided"][-1] > 0.9
    assert max(lines.lines["divided by √d_k"]) < 0.4
    deviations = {d_k: np.sqrt(draw_scores(d_k, 1).square().mean().item()) for d_k in (4, 64)}
    assert deviations[64] / deviations[4] == pytest.approx(answer(5), rel=0.1)


def test_steps_for_the_third_token():
    result = compute(6)
    assert result.findings["head"] == compute(2).findings["head"] == "block 2, head 1"
    projected, steps, vectors = map(values, result.parts)
    head = run(encode(numbers.ELLA))["blocks"][2]["heads"][1]
    value, alpha = head["value"][:3], head["weights"][2, :3]
    assert projected[:, 3:] == pytest.approx(value[:, :3], **CLOSE)
    scores = head["scores"][2, :3]
    expected = np.stack((scores, scores / np.sqrt(32), alpha), axis=1)
    assert steps == pytest.approx(np.hstack((expected, (alpha[:, None] * value)[:, :3])), **CLOSE)
    assert vectors[1] == pytest.approx((alpha @ value)[:3], **CLOSE)
    assert result.parts[1].rows == ["1 Ella", "2 lived", "3 near"]


@cache
def repetition(*ablated):
    """The loss on the second occurrence, and the induction head's weight on its target, without some heads."""
    losses, found = [], []
    again = np.arange(blocks.LENGTH, 2 * blocks.LENGTH)
    for ids in blocks.repeated_tokens().ids.numpy():
        result = run(ids, ablated)
        chosen = np.log(softmax(result["logits"]))[range(len(ids) - 1), ids[1:]]
        losses.append(-chosen[blocks.LENGTH :])
        found.append(result["blocks"][2]["heads"][1]["weights"][again, again - blocks.LENGTH + 1])
    return np.mean(losses), np.mean(found)


def text_loss(text, *ablated):
    ids = np.array(encode(text))
    return -np.log(softmax(run(ids, ablated)["logits"]))[range(len(ids) - 1), ids[1:]].mean()


def test_heads_have_roles_and_ablating_them_raises_the_loss():
    result = compute(7)
    table = result.parts[0]
    heads = [tuple(int(n) for n in row[0].replace(",", "").split()[1::2]) for row in table.values]
    assert dict(zip(table.rows, heads, strict=True)) == {
        "previous": (0, 0),
        "antecedent": (2, 1),
        "induction": (2, 1),
    }
    for (_, weight, chance, *losses), head in zip(table.values, heads, strict=True):
        assert weight > 3 * chance
        expected = [
            text_loss(text, *without) for text in (numbers.ELLA, blocks.STORY) for without in ((), (head,))
        ]
        assert losses == pytest.approx(expected, rel=1e-3)
        assert losses[3] > 1.3 * losses[2]


def test_block_in_six_lines():
    result = compute(8)
    inputs = {name: np.array(each, float) for name, each in inputs_of("000.8").items()}
    x, gain, shift, W_1, W_2 = inputs.values()
    t1 = layer_norm(x, gain, shift)
    t3 = softmax(np.where(np.tri(2, dtype=bool), t1 @ t1.T / np.sqrt(3), -np.inf)) @ t1 + x
    t4 = layer_norm(t3, gain, shift)
    t5, linear = np.maximum(t4 @ W_1, 0) @ W_2, t4 @ W_1 @ W_2
    expected = [each[1] for each in (x, t1, t3 - x, t3, t4, t5, t5 + t3)]
    assert values(result.part("the block")) == pytest.approx(np.array(expected))
    assert values(result.part("without ReLU")) == pytest.approx(np.array([linear[1], (linear + t3)[1]]))
    assert values(result.part("W1 W2")) == pytest.approx(W_1 @ W_2)
    assert [*result.findings.values()] == pytest.approx([1, np.sqrt(8 / 3)])
    block = run(encode(numbers.ELLA))["blocks"][2]
    lines = np.stack([block[name][IT, :5] for name in ("x", "t1", "t2", "t3", "t4", "t5", "h")])
    assert values(result.parts[-1]) == pytest.approx(lines, **CLOSE)


def test_every_block_has_the_same_width():
    result = compute(9)
    stack = run(encode(numbers.ELLA))["blocks"]
    below, *rows = result.parts[0].values
    assert below == ["1 × 128", pytest.approx(np.linalg.norm(stack[0]["x"][IT]), **CLOSE), None, None, None]
    for (shape, length, similar, token, probability), block in zip(rows, stack, strict=True):
        into, out = block["x"][IT], block["h"][IT]
        assert shape == "1 × 128"
        assert (length, similar) == pytest.approx((np.linalg.norm(out), cosine(into, out)), **CLOSE)
        chances = softmax(unembed(block["h"])[IT])
        assert token == model().tokenizer.pieces([int(chances.argmax())])[0].strip()
        assert probability == pytest.approx(chances.max(), **CLOSE)
    assert [*result.findings.values()] == [128, 14, 14 * 128]


CASES = ((True, True), (False, True), (True, False), (False, False))  # which of the two heads work


def test_circuit_completes_a_repeated_pair():
    result = compute(10)
    *streams, weights, prediction = run_induction("ABCA", True, True)
    for part, expected in zip(result.parts[:3], streams, strict=True):
        assert values(part) == pytest.approx(expected)
    attended = values(result.part("what the induction head attends to, last token"))
    assert attended == pytest.approx(np.array([weights, np.full(5, 0.2)]))
    expected = [run_induction("ABCA", *working)[-1] for working in CASES]
    assert values(result.part("prediction")) == pytest.approx(np.array(expected))
    assert prediction.argmax() == "ABCD".index("B")


def test_only_heads_move_information_between_streams():
    ids, everything = encode(numbers.ELLA), [(i, j) for i in range(4) for j in range(4)]
    moved = run(ids, zeroed=0)["final"] - run(ids)["final"]
    assert np.linalg.norm(moved[-1]) > 1
    still = run(ids, everything, zeroed=0)["final"] - run(ids, everything)["final"]
    assert np.abs(still[1:]).max() < 1e-6 < np.abs(still[0]).max()
    assert answer(10) == 0


def test_induction_circuit_of_the_model_needs_both_heads():
    result = compute(10)
    rows = result.parts[-1].values
    for (weight, loss), ablated in zip(rows, ((), ((0, 0),), ((2, 1),), ((0, 0), (2, 1))), strict=True):
        expected_loss, expected_weight = repetition(*ablated)
        assert loss == pytest.approx(expected_loss, rel=1e-3)
        if (2, 1) in ablated:  # a head that is removed has no weight
            assert weight is None
        else:
            assert weight == pytest.approx(expected_weight, rel=1e-3)
    assert rows[0][0] == pytest.approx(compute(7).parts[0].values[2][1], rel=1e-5)
    assert rows[1][0] < 0.2 * rows[0][0]  # without the previous-token head, the induction head finds little
    guessing = result.findings["loss of uniform guessing"]
    assert guessing == pytest.approx(np.log(len(weights()["embedding.weight"])))
    assert rows[0][1] < guessing < min(row[1] for row in rows[1:])
