"""The page opens the stops with the numbers that the terminal prints: same vectors, random numbers, texts and heads."""

import numpy as np
import pytest

import clearhead as ch
from clearhead.labs.opening import find_opening
from clearhead.lectures.catalog import find_stops
from tests.serving import make_registry, running
from tests.web.test_lecture_000 import choose, vectors
from tests.web.test_lecture_001 import figure, fill, number, sees, table
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


def test_heads_and_losses_without_them(compare):
    visitor, result = compare("000.7")
    rows = result.parts[0]
    readouts = visitor.page.locator(".figure dd")

    def sees_roles(columns):
        for role, button in zip(rows.rows, ("previous token", "antecedent", "induction"), strict=True):
            row = rows.values[rows.rows.index(role)]
            visitor.button(button).click()
            wanted = pytest.approx([row[k] for k in columns], abs=6e-4)
            visitor.expect(lambda: [number(each) for each in readouts.all_inner_texts()], wanted)
            visitor.expect(lambda row=row: str(row[0]).capitalize() in figure(visitor), True)

    sees_roles([1, 2, 3, 4])
    visitor.button("Use a story").click()
    sees_roles([1, 2, 5, 6])


def test_block_by_hand_and_in_the_model(compare, stories):
    visitor, result = compare("000.8")

    def lines():
        return np.array([vectors(row[0]) for row in table(visitor, "lines of the block")])

    visitor.expect(lines, pytest.approx(values(result, "the block"), abs=6e-4))
    mean, deviation, *scores = vectors(visitor.page.locator("[data-line=norm]").inner_text())[-5:]
    assert (mean, deviation) == pytest.approx([*result.findings.values()], abs=6e-4)
    assert scores == pytest.approx(values(result, "layer norm of x")[1], abs=6e-4)
    visitor.page.get_by_label("ReLU").uncheck()
    visitor.expect(lambda: lines()[-2:], pytest.approx(values(result, "without ReLU"), abs=6e-4))
    sees(visitor, "W_1 W_2", values(result, "W1 W2"), 2)
    visitor.button("In the model").click()
    in_model = result.parts[-1]
    assert in_model.name.startswith(f"block {find_opening(stories).block} of the model, token “it”")
    visitor.expect(lines, pytest.approx(np.array(in_model.values), abs=2e-3))


def test_stack(compare):
    visitor, result = compare("000.9")
    wanted = [row[1:3] for row in reversed(result.parts[0].values)]

    def shown():
        rows = table(visitor, "the stack")
        return [[number(row[2]), number(row[3]) if row[3] else None] for row in rows if row[2]]

    visitor.expect(shown, [[pytest.approx(each, abs=6e-3) for each in row] for row in wanted])
    tokens, width = (result.findings[name] for name in ("tokens", "width of every block"))
    assert f"With {tokens} tokens, {tokens} × {width} numbers enter" in figure(visitor)


def test_induction_circuit(compare):
    visitor, result = compare("000.10")
    for name in ("own letter", "letter before", "letter that followed"):
        sees(visitor, name, values(result, name), 2)

    def shown(name):
        return [number(cell.split()[-1]) for cell in table(visitor, name)[0]]

    weights = values(result, "what the induction head attends to, last token")
    assert shown("induction head, last token") == pytest.approx(weights[0], abs=6e-4)
    predictions = values(result, "prediction")
    for k, (previous, induction) in enumerate(((True, True), (False, True), (True, False), (False, False))):
        visitor.page.get_by_role("checkbox", name="previous-token head").set_checked(previous)
        visitor.page.get_by_role("checkbox", name="induction head").set_checked(induction)
        visitor.expect(lambda: shown("prediction"), pytest.approx(predictions[k], abs=6e-4))
    assert shown("induction head, last token") == pytest.approx(weights[1], abs=6e-4)


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


def test_skip_gram(compare):
    visitor, result = compare("002.2")
    pairs = [row[0] for row in result.part("skip-gram training pairs").values]
    neighbors = [row[0].split(" · ") for row in table(visitor, "Training pairs")]
    assert [[pair.split(", ")[1] for pair in row.strip("()").split(") (")] for row in pairs] == neighbors
    nearest = result.part("nearest to cat")
    rows = visitor.page.get_by_role("table", name="Nearest to")
    assert rows.get_by_role("rowheader").all_inner_texts() == nearest.rows
    wanted = pytest.approx(np.array(nearest.values)[:, 0], abs=6e-4)
    assert [number(row[0]) for row in table(visitor, "Nearest to")] == wanted
    readout = number(visitor.page.locator(".figure dd").inner_text())
    assert readout == pytest.approx(result.findings["cosine of cat and dog"], abs=6e-4)


def test_next_word(compare):
    visitor, result = compare("002.3")
    chances = result.part("next word")
    rows = visitor.page.get_by_role("table", name="next word")
    assert rows.get_by_role("rowheader").all_inner_texts() == chances.rows[:3]
    shown = [number(row[0]) for row in table(visitor, "next word")]
    assert shown == pytest.approx(np.array(chances.values)[:3, 0], abs=6e-5)
    effects = result.parts[1]
    words = visitor.page.get_by_role("group", name="Words to leave out").get_by_role("button")
    assert words.locator("b").all_inner_texts() == [row.split()[1] for row in effects.rows]
    shown = [number(each) for each in words.locator("small").all_inner_texts()]
    assert shown == pytest.approx(np.array(effects.values)[:, 0], abs=6e-4)


def test_sliding_window(compare):
    visitor, result = compare("002.4")
    for length, count in ((8, 5), (2, 20)):
        fill(visitor, Context_length=length, Words_generated=count)
        text = visitor.page.get_by_label("Generated text")
        wanted = str(result.findings[f"context length {length}"]).split()
        visitor.expect(lambda text=text: text.inner_text().split(), wanted)
        if count == 5:  # the page shows the last five windows
            assert table(visitor, "Windows") == result.part(f"context length {length}").values


def test_multiplications_of_loops_and_matrices(compare):
    visitor, result = compare("002.9")
    products, both = result.parts
    (loops, _), (matrices, _) = both.values
    wanted = [*(row[1] for row in products.values), matrices, loops]
    shown = [number(row[-1].replace(",", "")) for row in table(visitor, "Five products")]
    assert shown == wanted
    difference = number(visitor.page.locator("[data-difference]").inner_text())
    assert max(difference, float(str(result.findings["largest difference"]))) < 1e-12


def test_relationships(compare):
    visitor, result = compare("002.10")
    for part, button in zip(
        result.parts, ("noun → adjective", "verb → noun", "preposition → verb"), strict=True
    ):
        assert part.name == button
        visitor.button(button).click()
        sees(visitor, "P", part.values, 2)


def test_loss_of_one_token(compare):
    visitor, result = compare("002.11")
    wanted = values(result, "one step")[:, 1:]
    rows = table(visitor, "Vocabulary of four words")
    assert np.array([parse(row)[-5:] for row in rows]) == pytest.approx(wanted, abs=6e-4)


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
