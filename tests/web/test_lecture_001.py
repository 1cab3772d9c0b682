"""The figures of lecture 001 show what numpy computes."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

TEXT = "The duck was too tired"
NUMBER = re.compile(r"[−-]?\d+(?:[.,]\d+)?(?:e[−-]?\d+)?")
E = np.e


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def embed(digits):
    return np.array([[1.0, 0.0] if digit == "0" else [0.0, 1.0] for digit in digits])


def number(text):
    return float(text.replace("−", "-").replace(",", "."))


def go(visitor, stop, **place):
    visitor.open(model="modern", text=TEXT, view="lectures", stop=stop, **place)


def fill(visitor, **numbers):
    """Type numbers into the fields with these names."""
    for name, value in numbers.items():
        visitor.page.get_by_role("spinbutton", name=name.replace("_", " "), exact=True).fill(str(value))


def edit(visitor, matrix, entries):
    for (row, column), value in np.ndenumerate(np.array(entries)):
        label = f"{matrix}, row {row}, column {column}"
        visitor.page.get_by_role("spinbutton", name=label, exact=True).fill(str(value))


def table(visitor, name):
    rows = visitor.page.get_by_role("table", name=name, exact=True).locator("tbody tr")
    return [row.locator("td").all_inner_texts() for row in rows.all()]


def sees(visitor, name, expected, decimals):
    """Wait until the table shows these numbers."""
    wanted = pytest.approx(np.array(expected), abs=0.51 * 10**-decimals)
    visitor.expect(lambda: np.array([[number(cell) for cell in row] for row in table(visitor, name)]), wanted)


def figure(visitor):
    return visitor.page.get_by_role("group", name="Figure").inner_text()


def test_probabilities_are_counted(visitor):
    go(visitor, "001.1")
    lines = ["the cat sat", "the cat ran", "a dog ran", "the dog sat"]
    sentence = ["the", "dog", "ran"]
    visitor.page.get_by_label("Text to count").fill("\n".join(lines))
    visitor.page.get_by_label("Sentence", exact=True).fill(" ".join(sentence))
    pairs = Counter(pair for line in lines for pair in pairwise(["", *line.split()]))
    firsts = Counter(first for line in lines for first in ["", *line.split()[:-1]])
    shares = [pairs[pair] / firsts[pair[0]] for pair in pairwise(["", *sentence])]

    def products():
        return [number(row[-1]) for row in table(visitor, "probability")]

    visitor.expect(products, pytest.approx(np.cumprod(shares), abs=6e-5))
    visitor.page.get_by_label("What the model knows").select_option("all")
    visitor.expect(products, [0.75, 0.25, 0.0])  # "the dog" is never followed by "ran"
    visitor.page.get_by_text("RNNs and transformers estimate").wait_for()
    visitor.page.get_by_label("Sentence", exact=True).fill(" ".join(3 * sentence))
    visitor.expect(lambda: table(visitor, "probability")[-1], ["the whole text", "", "0"])
    visitor.page.get_by_role("rowheader", name="… 2 more").wait_for()


@pytest.mark.parametrize("text", [TEXT, f"{TEXT} to cross the road. {TEXT}."])
def test_loaded_model_gives_its_own_probabilities(visitor, models, text):
    visitor.open(model="modern", text=text, view="lectures", stop="001.1")
    visitor.page.get_by_label("What the model knows").select_option("model")
    trace = models["modern"].inspect(text)
    ids = trace.ids.flatten().tolist()
    probabilities = trace["logits"].squeeze(0).softmax(-1).detach().numpy().astype(float)
    wanted = np.array([probabilities[i, token] for i, token in enumerate(ids[1:])])
    products = np.cumprod(wanted)

    def shows(column, expected):
        cells = [cell for row in table(visitor, "probability") if (cell := row[column])]
        if "–" in cells or len(cells) != len(expected):
            return False  # not loaded yet
        tolerance = np.where(expected < 9.5e-4, 0.051 * expected, 6e-5)  # two digits, or four decimals
        return bool((np.abs(np.array([number(cell) for cell in cells]) - expected) <= tolerance).all())

    visitor.expect(lambda: shows(-2, wanted[:7]), True)
    more = len(wanted) - 7
    visitor.expect(lambda: shows(-1, np.append(products[:7], products[7:][-1:])), True)
    assert visitor.page.get_by_role("rowheader", name=f"… {more} more").count() == (more > 0)


def run_rnn(x):
    states = [np.zeros(2)]
    for e in x:
        states.append(np.tanh(e + states[-1] / 2))
    return np.array(states[1:])


def run_attention(x):
    scores = x @ x.T
    scores[np.triu_indices(len(x), 1)] = -np.inf
    return softmax(scores) @ x


def test_changed_vector_moves_the_outputs_after_it(visitor):
    go(visitor, "001.2")
    x = np.array([[0.2, 0.1], [1, -0.5], [0.6, 0.6]])
    outlined = visitor.page.locator("tr.outlined")
    for row, count in ((2, 2), (1, 4), (0, 6)):
        x[row, 0] = 2.5
        visitor.page.get_by_label(f"input, row {row}, column 0").fill("2.5")
        sees(visitor, "RNN", run_rnn(x), 3)
        sees(visitor, "attention", run_attention(x), 3)
        visitor.expect(outlined.count, count)
    visitor.button("I'm scared of bats").click()
    visitor.expect(outlined.count, 0)
    bats = run_attention(np.array([[0.3, 0.2], [-1, 0.8], [0.1, 0.1], [0.6, 0.6]]))[-1]
    visitor.expect(lambda: f"[{bats[0]:.3f}, {bats[1]:.3f}] here" in figure(visitor), True)


@pytest.mark.parametrize(("seed", "steps", "zeros"), [(4, 100, 20), (4, 100, 100), (7, 200, 200), (2, 0, 5)])
def test_probes_find_the_first_digit_or_not(visitor, seed, steps, zeros):
    from tests.web import tiny_rnn

    go(visitor, "001.3")
    fill(visitor, Zeros=zeros, Training_steps=steps, Seed=seed)
    values = visitor.page.locator(".figure dd")
    probed = tiny_rnn.probe(seed, steps, zeros)
    # Rounding may decide one or two of the 100 sequences.
    wanted = pytest.approx(probed, abs=0.021)
    visitor.expect(lambda: [number(each) for each in values.all_inner_texts()], wanted)
    assert visitor.page.locator(".cells div").count() in range(min(zeros, 20), 42)


def test_query_finds_the_one(visitor):
    go(visitor, "001.4")
    weights = visitor.page.locator(".weight span")
    results = visitor.page.locator(".figure dd")
    assert weights.all_inner_texts() == ["1/6", "1/6", "1/2", "1/6"]
    assert results.all_inner_texts() == ["[1/2, 1/2]", "[3/4, 1/4]"]
    sequence = visitor.page.get_by_label("Sequence")
    sequence.fill("0000")
    visitor.expect(results.all_inner_texts, ["[1, 0]", "[1, 0]"])
    sequence.fill("0010")
    visitor.button("e").click()
    visitor.expect(weights.all_inner_texts, ["0.17488", "0.17488", "0.47537", "0.17488"])
    sequence.fill("01101")
    fill(visitor, **{"Query, component 0": -0.5, "Query, component 1": 1.5})
    keys = embed("01101")
    expected = softmax(keys @ [-0.5, 1.5])
    visitor.expect(
        lambda: [number(each) for each in weights.all_inner_texts()], pytest.approx(expected, abs=6e-6)
    )
    result = NUMBER.findall(results.first.inner_text())
    assert [number(each) for each in result] == pytest.approx(expected @ keys, abs=6e-6)
    sequence.fill("01x")
    visitor.page.get_by_text("Enter 1 to 6 digits, each 0 or 1.").wait_for()


def test_zeros_flatten_attention_and_a_boost_sharpens_it(visitor):
    go(visitor, "001.5")
    values = visitor.page.locator(".figure dd")

    def weights():
        return [number(each) for each in values.all_inner_texts()]

    for zeros, boost in ((100, 1), (1000, 1), (1000, 10), (3, 10)):
        fill(visitor, Zeros=zeros, Key_boost=boost)
        one, *zero = softmax(np.array([boost, *zeros * [0]], dtype=float))
        visitor.expect(weights, pytest.approx([one, zero[0], sum(zero)], abs=6e-6))
    assert values.first.inner_text() == "0.99986"


def test_linear_attention_has_one_score(visitor):
    go(visitor, "001.6")
    k, q, W_K, W_Q = (np.array(each) for each in ([2, -1], [0.5, 3], [[1, 2], [3, 4]], [[0, 1], [-1, 2]]))
    edit(visitor, "key", [k])
    edit(visitor, "query", [q])
    edit(visitor, "key matrix", W_K)
    edit(visitor, "query matrix", W_Q)
    sees(visitor, "W", W_K @ W_Q.T, 2)

    def scores():
        return [number(row[-1].removeprefix("=")) for row in table(visitor, "score")]

    visitor.expect(scores, pytest.approx([k @ q, *4 * [(k @ W_K) @ (q @ W_Q)]]))


def test_self_attention_matches_numpy(visitor):
    go(visitor, "001.7")
    assert [row[2] for row in table(visitor, "A")] == 4 * ["0.99986"]
    W_Q, W_K = np.array([[0, 1], [1, -0.5]]), np.array([[2, 0], [0.5, 3]])
    edit(visitor, "query matrix", W_Q)
    edit(visitor, "key matrix", W_K)
    visitor.page.get_by_label("Sequence").fill("01101")
    x = embed("01101")
    scores = (x @ W_Q) @ (x @ W_K).T
    for name, expected, decimals in (
        ("E", x, 2),
        ("Q", x @ W_Q, 2),
        ("K", x @ W_K, 2),
        ("S", scores, 2),
        ("A", softmax(scores), 5),
    ):
        sees(visitor, name, expected, decimals)
    weight = softmax(scores)[0, [1, 2, 4]].sum()
    visitor.expect(lambda: f"Each 0 looks for 1s and puts {weight:.5f}" in figure(visitor), True)


def test_two_tokens_match_numpy(visitor):
    go(visitor, "001.8")
    assert table(visitor, "A") == [["0.99995", "0.00005"], ["0.00005", "0.99995"]]
    visitor.button("Both look for a 1").click()
    visitor.expect(lambda: table(visitor, "S"), [["0", "10"], ["0", "10"]])
    visitor.expect(lambda: table(visitor, "A"), 2 * [["0.00005", "0.99995"]])
    visitor.page.get_by_label("divide by").check()
    W_V, W_O = np.array([[1, -2], [3, 0.5]]), np.array([[0, 1], [2, 1]])
    edit(visitor, "value matrix", W_V)
    edit(visitor, "output matrix", W_O)
    weights = softmax(np.array(2 * [[0, 10]]) / np.sqrt(2))
    sees(visitor, "A", weights, 5)
    sees(visitor, "A V", weights @ W_V, 5)
    sees(visitor, "A V W^O", weights @ W_V @ W_O, 5)


def run_ordered(digits, causal, positions):
    x = embed(digits)
    i = np.arange(len(x))
    if positions:
        x = x + np.stack([np.sin(i), np.cos(i)], axis=1)
    scores = 2 * x @ x.T
    if causal:
        scores[np.triu_indices(len(x), 1)] = -np.inf
    return softmax(scores), softmax(scores) @ x


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_order_is_seen_only_with_positions(visitor, causal, positions):
    go(visitor, "001.9")
    visitor.page.get_by_label("Sequence").fill("01001")
    visitor.page.get_by_label("mask the future").set_checked(causal)
    visitor.page.get_by_label("add positions").set_checked(positions)
    lasts = []
    for digits, name in (("01001", "in this order"), ("10001", "with the first two tokens swapped")):
        weights, output = run_ordered(digits, causal, positions)
        sees(visitor, f"weights {name}", weights, 3)
        lasts.append(output[-1])
    shown = visitor.page.locator(".figure b").all_inner_texts()
    assert [[number(each) for each in NUMBER.findall(text)] for text in shown] == [
        pytest.approx(last, abs=6e-5) for last in lasts
    ]
    said = "different outputs" if positions else "the same output"
    visitor.expect(lambda: said in figure(visitor), True)
    assert ("after it" in figure(visitor)) == (not causal)
