"""The figures of lecture 000 show what numpy computes, or what the model computed."""

from itertools import islice, pairwise

import numpy as np
import pytest
import torch

from tests.web.test_lecture_001 import NUMBER, TEXT, edit, figure, go, number, sees, softmax, table
from tests.web.visitor import percent, shows, visible

TIRED = "The chicken didn't cross the road because it was too tired."
WIDE = "The chicken didn't cross the road because it was too wide."
TRUMPET = "The trumpet didn't fit in the bucket because it was too big."


def vectors(text):
    """The numbers in a text such as [0.5, 1.25 …]."""
    return [number(each) for each in NUMBER.findall(text)]


def choose(visitor, label, option):
    visitor.page.locator(".figure").get_by_role("combobox", name=label).select_option(option)


def trace_of(model, text=TEXT):
    trace = model.inspect(text)
    return trace, lambda site: trace[site].squeeze(0).detach().numpy().astype(float)


def cosine(one, other):
    return one @ other / np.linalg.norm(one) / np.linalg.norm(other)


@pytest.mark.parametrize(
    ("pair", "texts"), [("chicken / trumpet", (TIRED, TRUMPET)), ("tired / wide", (TIRED, WIDE))]
)
def test_token_has_one_static_vector_and_two_contextual_ones(visitor, models, pair, texts):
    go(visitor, "000.1")
    visitor.button(pair).click()
    token = visitor.page.get_by_label("Token in both")
    (one, at_one), (other, at_other) = (trace_of(models["modern"], text) for text in texts)
    pieces = [trace.pieces[0] for trace in (one, other)]
    shared = [piece for piece in dict.fromkeys(pieces[0]) if piece in pieces[1]]
    offered = "options => options.map(each => each.value)"
    visitor.expect(lambda: token.locator("option").evaluate_all(offered), shared)
    for chosen in (shared[0], shared[-1]):
        token.select_option(index=shared.index(chosen))
        rows = [len(each) - 1 - each[::-1].index(chosen) for each in pieces]
        stages = [
            (at_one(site)[rows[0]], at_other(site)[rows[1]])
            for site in ("embedding", "block.0.output", "block.1.output")
        ]
        sees(visitor, "row of the embedding table", [stages[0][0][:8]], 2)
        sees(visitor, "vectors after the last block", [each[:8] for each in stages[-1]], 2)
        sees(visitor, "cosine of the two vectors", [[cosine(*each) for each in stages]], 3)
        assert cosine(*stages[0]) == pytest.approx(1)


def test_vectors_before_a_difference_are_equal(visitor, models):
    go(visitor, "000.1")
    visitor.page.get_by_label("Sentence 1").fill("The duck was too tired")
    visitor.page.get_by_label("Sentence 2").fill("The duck was too happy")
    visitor.page.get_by_label("Sentence 2").press("Enter")
    token = visitor.page.get_by_label("Token in both")
    visitor.expect(lambda: token.locator("option").count() > 2, True)
    token.select_option(index=0)
    sees(visitor, "cosine of the two vectors", [[1, 1, 1]], 3)
    visitor.page.get_by_label("Sentence 2").fill("xyz")
    visitor.page.get_by_label("Sentence 2").press("Enter")
    ours, theirs = (
        {visible(piece) for piece in models["modern"].inspect(text).pieces[0]} for text in (TEXT, "xyz")
    )
    if not ours & theirs:
        visitor.page.get_by_text("no token in common").wait_for()


@pytest.mark.parametrize("name", ["modern", "lecture", "gpt2"])
def test_lines_are_the_weights_of_a_head(visitor, models, name):
    visitor.open(model=name, text=TEXT, view="lectures", stop="000.2", block=1)
    trace, at = trace_of(models[name])
    pieces = [visible(piece) for piece in trace.pieces[0]]
    shown = visitor.page.locator(".below .weight")

    def expect_weights(head, row):
        weights = at(f"block.{head[0]}.head.{head[1]}.weights")[row, : row + 1]
        wanted = [*weights, *(None for _ in pieces[row + 1 :])]

        def matches():
            texts = shown.all_inner_texts()
            return len(texts) == len(wanted) and all(
                text == "" if weight is None else shows(text, weight, percent)
                for text, weight in zip(texts, wanted, strict=True)
            )

        visitor.expect(matches, True)
        most = int(weights.argmax())
        said = f"“{pieces[row]}” puts the most weight on “{pieces[most]}”"
        visitor.expect(lambda: said in figure(visitor), True)

    last = len(pieces) - 1
    expect_weights((1, 0), last)
    choose(visitor, "Head", "0.1")
    expect_weights((0, 1), last)
    visitor.page.locator(".tokens").first.get_by_role("button").nth(2).click()
    expect_weights((0, 1), 2)
    assert visitor.page.get_by_role("combobox", name="Token").input_value() == "2"
    visitor.button("Open in Step by step").click()
    assert visitor.site == "block.0.head.1.weights"
    assert "row=2" in visitor.url


STORY = (
    "Ella lived near the village. She had a trumpet, and it was green. One afternoon, Ella lost her trumpet."
)


@pytest.mark.parametrize("stop", ["000.2", "000.7"])
def test_tokens_stay_within_the_figure(visit, stop):
    visitor = visit(width=1280, height=720)
    visitor.open(model="modern", text=STORY, view="lectures", stop=stop)
    page = visitor.page

    def edges():
        """The right edges of the tokens, and that of the figure."""
        return page.evaluate(
            """() => [...document.querySelectorAll(".figure .tokens > *"), document.querySelector(".figure")]
                .map((each) => each.getBoundingClientRect().right)"""
        )

    def fit():
        *tokens, figure = edges()
        return len(tokens) > 8 and max(tokens) <= figure + 0.5

    page.locator(".figure .tokens").first.wait_for()
    visitor.settle()
    visitor.expect(fit, True)
    page.keyboard.press("p")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.get_by_role("dialog").locator(".figure .tokens").first.wait_for()
    visitor.settle()
    visitor.expect(fit, True)


def test_simplest_attention_by_hand(visitor):
    go(visitor, "000.3")
    x = np.array([[1, 2], [-1, 0.5], [0.5, 1.5]])
    edit(visitor, "input", x)
    for i in (2, 1, 0):
        visitor.page.get_by_role("button", name=f"i = {i + 1}").click()
        scores = x[: i + 1] @ x[i]
        weights = softmax(scores)

        def columns():
            return [[number(row[k]) for k in (1, 2, 3)] for row in table(visitor, "attention")]

        expected = np.stack([scores, np.exp(scores), weights], axis=1)
        visitor.expect(lambda: np.array(columns()), pytest.approx(expected, abs=6e-4))
        weighed = [vectors(row[4]) for row in table(visitor, "attention")]
        assert np.array(weighed) == pytest.approx(weights[:, None] * x[: i + 1], abs=6e-5)
        result = visitor.page.locator(".result b").inner_text()
        assert vectors(result) == pytest.approx(weights @ x[: i + 1], abs=6e-5)


def test_simplest_attention_on_embeddings(visitor, models):
    go(visitor, "000.3")
    visitor.button("In the model").click()
    _, at = trace_of(models["modern"])
    x = at("embedding")[:3]
    weights = softmax(x @ x[2])
    visitor.expect(
        lambda: [number(row[3]) for row in table(visitor, "attention")], pytest.approx(weights, abs=6e-6)
    )
    assert [number(row[1]) for row in table(visitor, "attention")] == pytest.approx(x @ x[2], abs=6e-4)
    result = vectors(visitor.page.locator(".result b").inner_text())
    assert result == pytest.approx((weights @ x)[:4], abs=6e-3)


def masked_softmax(scores):
    return softmax(np.where(np.tri(len(scores), dtype=bool), scores, -np.inf))


def test_roles_match_numpy(visitor):
    go(visitor, "000.4")
    x = np.array([[1, -1], [0.5, 2], [1.5, 1]])
    W_Q, W_K, W_V = np.array([[[1, 0.5], [0, -1]], [[2, 0], [1, 1]], [[0, 3], [-1, 1]]])
    edit(visitor, "input", x)
    for name, W in (("query", W_Q), ("key", W_K), ("value", W_V)):
        edit(visitor, f"{name} matrix", W)
    for side, weights, value in (
        ("Simplified", masked_softmax(x @ x.T), x),
        ("De-simplified", masked_softmax((x @ W_Q) @ (x @ W_K).T), x @ W_V),
    ):
        sees(visitor, f"weights, {side}", weights, 3)
        sees(visitor, f"output, {side}", weights @ value, 3)
    for name, W in (("q", W_Q), ("k", W_K), ("v", W_V)):
        sees(visitor, name, x @ W, 2)


def normals(seed):
    """Normally distributed numbers: a Park-Miller generator and the Box-Muller transform."""
    state = seed

    def uniform():
        nonlocal state
        state = state * 48271 % 2147483647
        return state / 2147483647

    while True:
        radius = np.sqrt(-2 * np.log(uniform()))
        yield radius * np.cos(2 * np.pi * uniform())


@pytest.mark.parametrize(("d_k", "seed"), [(64, 1), (9, 2), (256, 3)])
def test_dividing_keeps_the_softmax_soft(visitor, d_k, seed):
    go(visitor, "000.5")
    visitor.page.get_by_role("spinbutton", name="Width d_k").fill(str(d_k))
    for _ in range(seed - 1):
        visitor.button("Draw again").click()
    drawn = np.array(list(islice(normals(seed), 60 * 9 * d_k))).reshape(60, 9, d_k)
    scores = np.einsum("qd,qkd->qk", drawn[:, 0], drawn[:, 1:])

    def measure(scores):
        largest = softmax(scores).max(axis=1)
        return [np.sqrt((scores**2).mean()), largest.mean(), (largest * (1 - largest)).mean()]

    def shown():
        return [[number(cell) for cell in row[:3]] for row in table(visitor, "scores and weights")]

    expected = np.array([measure(scores), measure(scores / np.sqrt(d_k))])
    assert expected[0, 0] == pytest.approx(np.sqrt(d_k), rel=0.2)
    assert expected[0, 2] < expected[1, 2]
    visitor.expect(lambda: np.array(shown()), pytest.approx(expected, abs=6e-3, rel=1e-3))
    bars = visitor.page.locator(".bars").last.get_attribute("aria-label").split(" ")
    weights = softmax(scores[0] / np.sqrt(d_k))
    assert all(shows(text, weight, percent) for text, weight in zip(bars, weights, strict=True))


@pytest.mark.parametrize("name", ["modern", "lecture", "gpt2", "shared"])
def test_steps_are_revealed_one_by_one(visitor, models, name):
    visitor.open(model=name, text=TEXT, view="lectures", stop="000.6")
    choose(visitor, "Head", "1.1")
    config = models[name].config
    for said, is_true in (
        ("rotated according to their positions.", config.position == "rotary"),
        ("Queries and keys are then normalized", config.qk_norm),
    ):
        visitor.expect(lambda said=said: said in figure(visitor), is_true)
    _, at = trace_of(models[name])
    sites = ("query", "key", "value", "scores", "scaled", "weights", "mixed", "output")
    query, key, value, scores, scaled, weights, mixed, output = (
        at(f"block.1.head.1.{site}")
        if name != "shared" or site not in ("key", "value")
        else at(f"block.1.kv_head.0.{site}")
        for site in sites
    )
    i = 2
    columns = [key[:3, :3], value[:3, :3], scores[i, :3], scaled[i, :3], weights[i, :3]]
    columns.append(weights[i, :3, None] * value[:3, :3])
    steps = ["project", "compare", "divide", "softmax", "weigh", "sum", "output"]
    for k, step in enumerate(steps):
        visitor.button(f"{k + 1} {step}").click()
        expected = columns[: min(k + 2, len(columns))]

        def rows(column):
            return np.array([vectors(row[column]) for row in table(visitor, "Steps")])

        visitor.expect(lambda: len(table(visitor, "Steps")[0]), len(expected))
        for column, wanted in enumerate(expected):
            near = pytest.approx(wanted.reshape(3, -1), abs=6e-3 if wanted.ndim == 2 else 6e-4)
            visitor.expect(lambda column=column: rows(column), near)
        lines = visitor.page.locator("dd[data-line]")
        visitor.expect(lines.count, max(1, k - 3))
    for line, wanted in (("query", query), ("sum", mixed), ("write", output)):
        shown = visitor.page.locator(f"dd[data-line={line}]").inner_text()
        assert vectors(shown) == pytest.approx(wanted[i, :3], abs=6e-3)
    choose(visitor, "Token", "0")
    visitor.expect(lambda: [row[4] for row in table(visitor, "Steps")], ["1.000"])


def test_removing_a_head_changes_the_loss(visitor, models):
    go(visitor, "000.7")
    model = models["modern"]
    response = visitor.page.request.post(
        f"{visitor.server.url}/api/heads",
        data={"model": "modern"},
        headers={"Authorization": f"Bearer {visitor.server.credentials.token}"},
    ).json()
    trace, _ = trace_of(model)
    ids = trace.ids[0]

    def token_probabilities(trace):
        return trace.logits.squeeze(0)[:-1].softmax(-1).gather(1, ids[1:, None])[:, 0].detach()

    pieces = [visible(piece) for piece in trace.pieces[0]]
    values = visitor.page.locator(".figure dd")
    for kind, button in (("induction", "induction"), ("previous", "previous token")):
        visitor.button(button).click()
        scores = np.array(response["kinds"][kind], dtype=float)
        block, head = np.unravel_index(scores.argmax(), scores.shape)
        before = token_probabilities(trace)
        after = token_probabilities(trace.edit({f"block.{block}.head.{head}.output": 0.0}))
        losses = [-torch.log(each).mean().item() for each in (before, after)]
        wanted = pytest.approx([scores.max(), response["chance"][kind], *losses], abs=6e-4)
        visitor.expect(lambda: [number(each) for each in values.all_inner_texts()], wanted)
        assert f"Block {block}, head {head}" in figure(visitor)
        drops = before - after
        worst = int(drops.argmax())
        if drops[worst] >= 0.006:
            said = f"The probability falls most at “{pieces[worst + 1]}” after “{pieces[worst]}”"
            visitor.expect(lambda said=said: said in figure(visitor), True)
    visitor.button("Use a story").click()
    visitor.expect(lambda: visitor.prompt.input_value().startswith("Ella lived near the village."), True)


def layer_norm(x, gain, shift):
    x = np.asarray(x, dtype=float)
    return gain * (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True) + shift


@pytest.mark.parametrize("relu", [True, False])
def test_block_matches_numpy(visitor, relu):
    go(visitor, "000.8")
    x = np.array([[2, -1, 0.5], [1, 4, -2]])
    gain, shift = np.array([[1, 2, 0.5], [0, 1, -1]])
    W_1, W_2 = np.array([[[1, 0, 2], [-1, 1, 0], [0.5, 0, 1]], [[0, 1, 0], [2, 0, 0], [1, 1, -1]]])
    edit(visitor, "input", x)
    edit(visitor, "gain and shift", [gain, shift])
    edit(visitor, "W_1", W_1)
    edit(visitor, "W_2", W_2)
    visitor.page.get_by_label("ReLU").set_checked(relu)
    t1 = layer_norm(x, gain, shift)
    t2 = masked_softmax(t1 @ t1.T / np.sqrt(3)) @ t1
    t3 = t2 + x
    t4 = layer_norm(t3, gain, shift)
    hidden = t4 @ W_1
    t5 = (np.maximum(hidden, 0) if relu else hidden) @ W_2
    expected = np.array([x, t1, t2, t3, t4, t5, t5 + t3])[:, 1]

    def lines():
        return np.array([vectors(row[0]) for row in table(visitor, "lines of the block")])

    visitor.expect(lines, pytest.approx(expected, abs=6e-4))
    mean, deviation, *scores = vectors(visitor.page.locator("[data-line=norm]").inner_text())[-5:]
    assert (mean, deviation) == (pytest.approx(1), pytest.approx(np.sqrt(6), abs=6e-4))
    assert scores == pytest.approx((x[1] - 1) / np.sqrt(6), abs=6e-4)
    if not relu:
        sees(visitor, "W_1 W_2", W_1 @ W_2, 2)


@pytest.mark.parametrize("name", ["lecture", "modern"])
def test_block_of_the_model(visitor, models, name):
    visitor.open(model=name, text=TEXT, view="lectures", stop="000.8", block=1)
    visitor.button("In the model").click()
    choose(visitor, "Token", "1")
    _, at = trace_of(models[name])
    sites = ("input", "normed", "attention", "middle", "normed2", "feedforward", "output")
    expected = np.array([at(f"block.1.{site}")[1, :5] for site in sites])

    def lines():
        return [vectors(row[0]) for row in table(visitor, "lines of the block")]

    visitor.expect(lambda: {len(line) for line in lines()}, {5})
    visitor.expect(lambda: np.array(lines()), pytest.approx(expected, abs=6e-4))
    assert ("RMSNorm" in figure(visitor)) == (name == "modern")


def test_stack_keeps_the_width(visitor, models):
    go(visitor, "000.9")
    choose(visitor, "Token", "1")
    trace, at = trace_of(models["modern"])
    sites = ("block.1.output", "block.0.output", "block.0.input")
    streams = [at(site)[1] for site in sites]

    def rows():
        return [(row[0], number(row[2])) for row in table(visitor, "the stack") if row[2] != ""]

    visitor.expect(rows, [("1 × 12", pytest.approx(np.linalg.norm(each), abs=6e-3)) for each in streams])
    *cosines, lowest = [row[3] for row in table(visitor, "the stack") if row[2] != ""]
    assert [number(each) for each in cosines] == pytest.approx(
        [cosine(*pair) for pair in pairwise(streams)], abs=6e-3
    )
    assert lowest == ""
    assert visitor.page.locator(".strip span").first.locator("i").count() == 12
    assert f"With {len(trace)} tokens, {len(trace)} × 12 numbers enter" in figure(visitor)


def run_induction(letters, previous, induction):
    own = np.array([[float(letter == token) for letter in "ABCD"] for token in ["", *letters]])
    count = len(own)
    before = masked_softmax(10 * np.eye(count, k=-1)) @ own * previous
    weights = masked_softmax(10 * own @ before.T)
    copied = weights @ own * induction
    return own, before, copied, weights[-1], softmax(10 * copied[-1])


@pytest.mark.parametrize("induction", [True, False])
@pytest.mark.parametrize("previous", [True, False])
@pytest.mark.parametrize("letters", ["ABCA", "DCBDC"])
def test_induction_circuit_and_its_ablations(visitor, letters, previous, induction):
    go(visitor, "000.10")
    visitor.page.get_by_label("Letters").fill(letters.lower())
    visitor.page.get_by_role("checkbox", name="previous-token head").set_checked(previous)
    visitor.page.get_by_role("checkbox", name="induction head").set_checked(induction)
    own, before, copied, weights, prediction = run_induction(letters, previous, induction)
    for name, expected in (("own letter", own), ("letter before", before), ("letter that followed", copied)):
        sees(visitor, name, expected, 2)

    def values(name):
        return [number(cell.split()[-1]) for cell in table(visitor, name)[0]]

    assert values("induction head, last token") == pytest.approx(weights, abs=6e-4)
    assert values("prediction") == pytest.approx(prediction, abs=6e-4)
    follows = dict(pairwise(letters))[letters[-1]]
    assert (prediction["ABCD".index(follows)] > 0.9) == (previous and induction)
    visitor.page.get_by_label("Letters").fill("AX")
    visitor.page.get_by_text("Enter 1 to 6 of the letters A, B, C and D.").wait_for()
