"""The page opens the stops with the numbers that the terminal prints: same vectors, random numbers, text and head."""

import numpy as np
import pytest

import clearhead as ch
from clearhead.labs.opening import find_opening
from clearhead.lectures.catalog import find_stops
from tests.serving import make_registry, running
from tests.web.test_lecture_000 import choose, vectors
from tests.web.test_lecture_001 import figure, number, sees, table
from tests.web.test_lecture_002 import heat_map, parse
from tests.web.visitor import percent, shows


@pytest.fixture(scope="module")
def stories():
    return ch.load("stories", device="cpu")


@pytest.fixture(scope="module")
def served(stories):
    registry = make_registry(slots=1, stories=stories)
    with running(registry) as server:
        yield server
    registry.close(cancel=True)


@pytest.fixture
def compare(visit, served):
    """Open a stop as a reader does who has changed nothing, and compute it as the terminal does."""

    def at(stop):
        visitor = visit(served)
        visitor.open(model="stories", view="lectures", stop=stop)
        visitor.page.get_by_role("heading", name=stop).wait_for()
        visitor.settle()
        (terminal,) = find_stops(stop)
        return visitor, terminal.compute()

    return at


def values(result, part):
    return np.array(result.part(part).values, dtype=float)


def read(visitor, name, columns):
    return np.array([[number(row[k]) for k in columns] for row in table(visitor, name)])


def test_static_and_contextual_vectors(compare):
    visitor, result = compare("000.1")
    sees(visitor, "cosine of the two vectors", values(result, "cosine of the two vectors")[2:], 3)
    visitor.button("tired / wide").click()
    choose(visitor, "Token in both", " it")
    sees(visitor, "cosine of the two vectors", values(result, "cosine of the two vectors")[:1], 3)


def test_weights_from_the_pronoun(compare, stories):
    visitor, result = compare("000.2")
    opening = find_opening(stories)
    assert result.findings["head"] == f"block {opening.block}, head {opening.head}"
    weights = values(result, "attention from “it”")[:, 0]
    assert len(weights) == opening.row + 1
    shown = visitor.page.locator(".below .weight").all_inner_texts()[: len(weights)]
    for text, weight in zip(shown, weights, strict=True):
        assert shows(text, weight, percent) or (text == "<0.01%" and weight < 1e-4)


def test_simplest_attention(compare):
    visitor, result = compare("000.3")
    for source in ("hand-chosen vectors", "embeddings from the model"):
        scores, weights = (values(result, f"{kind}, {source}")[2] for kind in ("scores", "weights"))
        visitor.expect(lambda: read(visitor, "attention", [3])[:, 0], pytest.approx(weights, abs=6e-6))
        assert read(visitor, "attention", [1])[:, 0] == pytest.approx(scores, abs=6e-3)
        if source == "hand-chosen vectors":
            shown = vectors(visitor.page.locator(".result b").inner_text())
            assert shown == pytest.approx(values(result, f"outputs, {source}")[2], abs=6e-5)
            visitor.button("In the model").click()


def test_three_roles(compare):
    visitor, result = compare("000.4")
    for name, part in (
        ("weights, Simplified", "simplified weights"),
        ("output, Simplified", "simplified outputs"),
        ("weights, De-simplified", "weights"),
        ("output, De-simplified", "outputs"),
    ):
        sees(visitor, name, values(result, part), 3)
    roles = values(result, "three roles")
    for name, columns in (("q", roles[:, 2:4]), ("k", roles[:, 4:6]), ("v", roles[:, 6:])):
        sees(visitor, name, columns, 2)


def test_dividing(compare):
    visitor, result = compare("000.5")
    wanted = values(result, "scores and weights, d_k = 64")
    visitor.expect(
        lambda: read(visitor, "scores and weights", range(3)), pytest.approx(wanted, abs=6e-3, rel=1e-3)
    )


def test_third_token_step_by_step(compare):
    visitor, result = compare("000.6")
    visitor.button("7 output").click()
    projected, steps = (
        values(result, part)
        for part in ("project: first three numbers of each key and value", "compare, divide, softmax, weigh")
    )

    def shown():
        return np.array([[each for cell in row for each in vectors(cell)] for row in table(visitor, "Steps")])

    visitor.expect(shown, pytest.approx(np.hstack((projected, steps)), abs=6e-3))
    lines = values(result, "query, sum and output: first three numbers")
    for line, wanted in zip(("query", "sum", "write"), lines, strict=True):
        numbers = visitor.page.locator(f"dd[data-line={line}]").inner_text()
        assert vectors(numbers) == pytest.approx(wanted, abs=6e-3)


def test_running_example(compare):
    visitor, result = compare("001.3")
    # Rounding may decide one or two of the 100 sequences.
    wanted = pytest.approx([*result.findings.values()], abs=0.021)
    readouts = visitor.page.locator(".figure dd")
    visitor.expect(lambda: [number(each) for each in readouts.all_inner_texts()], wanted)


def test_losses_by_width(compare):
    visitor, result = compare("002.1")
    visitor.button("Train 6 models").click()
    best = result.findings["best width"]
    visitor.expect(lambda: f"lowest at width {best}." in figure(visitor), True)
    sees(visitor, "Loss by width", [*result.part("loss by width").lines.values()], 4)


def test_feature_vectors(compare):
    visitor, result = compare("002.5")
    wanted = values(result, "feature vectors, 8 × 32")
    visitor.expect(lambda: heat_map(visitor, "X")[:, [0, 1, 2, 3, 31]], pytest.approx(wanted, abs=6e-4))
    assert heat_map(visitor, "one-hot") == pytest.approx(values(result, "one-hot rows"))


def test_scores_weights_and_output(compare):
    visitor, result = compare("002.6")
    sees(visitor, "S", values(result, "query · keyᵀ, 8 × 8"), 2)
    product = number(visitor.page.locator(".sum b").inner_text())
    assert product == pytest.approx(result.findings["q2 · k1"], abs=6e-5)
    visitor, result = compare("002.7")
    sees(visitor, "P", values(result, "weights"), 2)
    shown = np.array([parse(row) for row in table(visitor, "S")])
    assert shown == pytest.approx(values(result, "masked scores"), abs=0.051)
    visitor, result = compare("002.8")
    for name, part in (("V", "value matrix, 8 × 8"), ("output", "weight · value, 8 × 8")):
        wanted = pytest.approx(values(result, part), abs=6e-4)
        visitor.expect(lambda name=name: heat_map(visitor, name), wanted)
