"""The numbers in lecture 001, checked against arithmetic in numpy and fractions."""

from fractions import Fraction

import numpy as np
import pytest

from clearhead.lectures import numbers001 as numbers
from clearhead.lectures.catalog import find_stops
from tests.lectures.numpy_model import encode, run, softmax
from tests.web import tiny_rnn

EMBEDDING = {"0": [1.0, 0.0], "1": [0.0, 1.0]}


def compute(number):
    (stop,) = find_stops(f"001.{number}")
    return stop.compute()


def answer(number):
    (stop,) = find_stops(f"001.{number}")
    return stop.question.answer()


def values(part):
    return np.array(part.values, dtype=float)


def embed(digits):
    return np.array([EMBEDDING[digit] for digit in digits])


def test_sentences_are_products_of_conditional_probabilities():
    result = compute(1)
    bigram, whole, model = result.parts
    assert [row[3] for row in bigram.values] == pytest.approx([1, 2 / 4, 1 / 2, 1 / 2])
    assert bigram.values[-1][4] == pytest.approx(1 / 8)
    assert [row[3] for row in whole.values] == pytest.approx([1, 2 / 3, 1 / 2, 0])
    assert answer(1) == pytest.approx(float(Fraction(1, 4)))
    ids = encode(numbers.SENTENCE)
    chances = softmax(run(ids)["logits"])[range(len(ids) - 1), ids[1:]]
    assert values(model)[:, 0] == pytest.approx(chances, rel=1e-3)
    assert values(model)[:, 1] == pytest.approx(chances.cumprod(), rel=1e-3)
    assert result.findings["probability under the model"] == pytest.approx(chances.prod(), rel=1e-3)


def test_rnn_and_attention_contextualize_the_same_vectors():
    result = compute(2)
    for part in result.parts:
        x = np.array([numbers.STATIC[word] for word in part.name.split()])
        state, states = np.zeros(2), []
        for e in x:
            state = np.tanh(e + state / 2)
            states.append(state)
        mixed = softmax(np.where(np.tri(len(x), dtype=bool), x @ x.T, -np.inf)) @ x
        assert values(part) == pytest.approx(np.hstack((x, states, mixed)))
    assert result.findings["distance between the two vectors of bats before"] == 0
    assert result.findings["distance after the RNN"] > 0.1
    assert result.findings["distance after attention"] > 0.1
    assert answer(2) == 1  # e2' and e3'


def test_state_fades_and_attention_does_not():
    lines = compute(3).parts[0]
    expected = [tiny_rnn.probe(4, 100, int(zeros)) for zeros in lines.x]
    shown = zip(*lines.lines.values(), strict=True)
    for found, wanted in zip(shown, expected, strict=True):
        assert found == pytest.approx(
            wanted, abs=0.021
        )  # two of a hundred sequences may be decided by rounding
    assert lines.x[-1] == 100
    assert lines.lines["output of attention"][-1] - lines.lines["state of the RNN"][-1] > 0.1
    assert answer(3) == np.ceil(np.log(0.01) / np.log(0.9)) == 44


def test_one_query_in_base_3_and_base_e():
    result = compute(4)
    assert values(result.part("0010, base 3")).tolist() == [
        pytest.approx(row) for row in ([0, 1, 1 / 6], [0, 1, 1 / 6], [1, 3, 1 / 2], [0, 1, 1 / 6])
    ]
    assert values(result.part("result of 0010, base 3")) == pytest.approx(
        np.array([[0.5, 0.5], [0.75, 0.25]])
    )
    assert values(result.part("0010, base e"))[:, 2] == pytest.approx(
        [0.17488, 0.17488, 0.47537, 0.17488], abs=5e-6
    )
    assert values(result.part("result of 0010, base e"))[0] == pytest.approx([0.52463, 0.47537], abs=5e-6)
    assert values(result.part("0000, base e"))[:, 2] == pytest.approx([0.25] * 4)
    assert values(result.part("result of 0000, base e"))[0] == pytest.approx([1, 0])
    assert answer(4) == pytest.approx(3 / 8)


def test_long_sequences_need_longer_keys():
    result = compute(5)
    zeros = np.array([1, 3, 10, 30, 100, 300, 1000])
    expected = np.stack([np.exp(boost) / (np.exp(boost) + zeros) for boost in (1, 10)], axis=1)
    assert values(result.parts[0]) == pytest.approx(expected)
    assert result.findings["boosted keys, 3 zeros"] == pytest.approx(0.99986, abs=5e-6)
    assert np.exp(answer(5)) == pytest.approx(100)


def test_matrix_may_be_on_either_side():
    findings = compute(6).findings
    k, q = embed("1")[0], embed("0")[0]
    assert findings.pop("k · q") == k @ q == 0
    W = 10 * np.eye(2) @ np.array([[0, 1], [0, 1]]).T
    assert list(findings.values()) == [k @ W @ q] * 4 == [10] * 4
    assert answer(6) == k @ np.array([[1, 2], [3, 4]]) @ q == 3


def test_every_token_looks_for_a_one():
    result = compute(7)
    E = embed("0010")
    assert values(result.parts[0]) == pytest.approx(np.hstack((E, [[0, 1]] * 4, 10 * E)))
    assert values(result.part("S = Q Kᵀ")).tolist() == [[0, 0, 10, 0]] * 4
    row = softmax(np.array([0.0, 0, 10, 0]))
    assert values(result.part("A = softmax of each row")) == pytest.approx(np.stack([row] * 4))
    assert answer(7) == 1  # 1s


def test_two_tokens_through_the_whole_head():
    own, ones = compute(8).parts
    for part, Q in ((own, np.eye(2)), (ones, np.array([[0.0, 1], [0, 1]]))):
        S = Q @ (10 * embed("01")).T
        A = softmax(S)
        assert values(part) == pytest.approx(np.hstack((S, A, A @ embed("01"), softmax(S / np.sqrt(2)))))
    assert values(own)[0, 2:4] == pytest.approx([0.99995, 0.00005], abs=5e-6)
    assert values(ones)[:, 2:4] == pytest.approx(np.array([[0.00005, 0.99995]] * 2), abs=5e-6)
    assert answer(8) == pytest.approx(np.e / (np.e + 1))


def ordered_head(digits, causal, positions):
    x, i = embed(digits), np.arange(len(digits))
    if positions:
        x = x + np.stack((np.sin(i), np.cos(i)), axis=1)
    scores = x @ (2 * x).T
    A = softmax(np.where(np.tri(len(x), dtype=bool), scores, -np.inf) if causal else scores)
    return A, A @ x


def test_mask_and_positions():
    result = compute(9)
    assert values(result.part("weights with the mask")) == pytest.approx(ordered_head("0110", True, False)[0])
    assert values(result.part("weights without the mask")) == pytest.approx(
        ordered_head("0110", False, False)[0]
    )
    rows = values(result.part("output of the last token"))
    for row, case in zip(rows, ((True, False), (True, True), (False, False), (False, True)), strict=True):
        one, other = (ordered_head(digits, *case)[1][-1] for digits in ("0110", "1010"))
        assert row == pytest.approx([*one, *other, abs(one - other).max()], abs=1e-6)
        assert (row[-1] > 0.1) == case[1]
    assert answer(9) == 0  # the same output
