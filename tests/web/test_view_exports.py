"""Exports of each analysis view contain Python's values at full precision."""

import csv
from xml.etree import ElementTree

import numpy
import pytest
import torch
from PIL import Image

from clearhead.inspect.base_trace import stages
from clearhead.inspect.word_senses import map_senses, neighbors
from clearhead.runs.run_metrics import read_metrics
from clearhead.server.model_loader import ModelLibrary
from clearhead.server.model_registry import LoadOptions, load_models
from tests.serving import make_finished, running
from tests.web.visitor import visible

TEXT, OTHER = "The duck was too tired", "The duck was too happy"
SENTENCES = ["the duck saw a cat", "a cat ran", "the cat and the ball"]
CLOSE = {"rel": 1e-4, "abs": 2e-6}


@pytest.fixture
def model(models):
    return models["modern"]


@pytest.fixture
def take(tmp_path):
    """Choose an item of one of the export menus and save the file."""

    def press(visitor, kind, name, which=0, within=".view"):
        with visitor.page.expect_download() as waiting:
            visitor.export(kind, within, which)
        assert waiting.value.suggested_filename == name
        waiting.value.save_as(tmp_path / name)
        return tmp_path / name

    return press


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def said(path):
    return [
        "".join(each.itertext()) for each in ElementTree.parse(path).getroot() if each.tag.endswith("text")
    ]


def check_png(path, svg):
    width = float(ElementTree.parse(svg).getroot().get("viewBox").split()[2])
    with Image.open(path) as picture:
        picture.load()
        assert picture.width == numpy.ceil(2 * width)
        assert len(picture.getcolors(100_000)) > 10


def test_compare_exports_match_python(visitor, model, take):
    visitor.open(model="modern", text=TEXT, view="compare", other=OTHER, block=1, head=1, step=6)
    compared = model.inspect(TEXT).compare(model.inspect(OTHER))
    expected = {name: far for name, far in compared.ranking(10**6) if far > 0}
    visitor.page.get_by_text(f"the 40 largest of {len(expected)}").wait_for()
    rows = read(take(visitor, "CSV", "modern-compare.csv"))
    assert {row["site"]: float(row["distance"]) for row in rows} == pytest.approx(expected, **CLOSE)
    distances = [float(row["distance"]) for row in rows]
    assert distances == sorted(distances, reverse=True)
    largest = visitor.page.locator(f".sites [data-site='{rows[0]['site']}']").inner_text()
    assert said(take(visitor, "SVG", "modern-compare.svg"))[1] == largest
    site = "block.1.head.1.weights"
    taken = numpy.load(take(visitor, ".npy", f"modern-{site}-difference.npy", 1))
    numpy.testing.assert_allclose(taken, compared.difference(site).detach(), rtol=1e-4, atol=1e-5)
    visitor.button("Other text").click()
    taken = numpy.load(take(visitor, ".npy", f"modern-{site}-other.npy", 1))
    numpy.testing.assert_allclose(taken, compared.other[site].detach(), rtol=1e-5, atol=1e-5)
    svg = take(visitor, "SVG", f"modern-{site}-other.svg", 1)
    assert "modern · head 1.1 · attention weight · Other text" in said(svg)
    check_png(take(visitor, "PNG", f"modern-{site}-other.png", 1), svg)


def test_attribution_exports_match_python(visitor, model, take):
    visitor.open(model="modern", text=TEXT, view="why", block=1, head=1)
    trace = model.inspect(TEXT)
    expected = trace.attribute(trace.logits[-1].argmax().item())
    rows = read(take(visitor, "CSV", "modern-why.csv"))
    parts = {row["part"]: float(row["value"]) for row in rows if row["source"] == ""}
    assert parts == pytest.approx(dict(zip(expected.names, expected.values.tolist(), strict=True)), **CLOSE)
    # What each token contributes through a head adds up to the head's contribution.
    given = [row for row in rows if row["part"] == "block.1.head.1.output" and row["source"] != ""]
    assert [row["token"] for row in given] == trace.tokens
    assert sum(float(row["value"]) for row in given) == pytest.approx(parts["block.1.head.1.output"], **CLOSE)
    svg = take(visitor, "SVG", "modern-why.svg")
    assert {visible(each) for each in trace.tokens} <= set(said(svg))
    curves = [each for each in ElementTree.parse(svg).getroot() if each.tag.endswith("path")]
    drawn = visitor.page.locator(".picture svg").locator("path, line").count()
    assert len(curves) == drawn
    check_png(take(visitor, "PNG", "modern-why.png"), svg)
    looked_at, second = trace["block.1.head.1.weights"][-1].topk(2).indices.tolist()
    split = trace.block[1].head[1].why(-1, looked_at, against=second)
    rows = read(take(visitor, "CSV", "modern-block.1.head.1-why.csv", 1))
    scores = trace.read("block.1.head.1.scores", rows=-1)[0]
    difference = (scores[looked_at] - scores[second]).item()
    for side, expected in (("key", split.by_key), ("query", split.by_query)):
        found = {row["part"]: float(row["value"]) for row in rows if row["side"] == side}
        assert found == pytest.approx(dict(zip(split.names, expected.values.tolist(), strict=True)), **CLOSE)
        assert sum(found.values()) == pytest.approx(difference, abs=1e-4)


def test_lens_exports_match_python(visitor, model, take):
    visitor.open(model="modern", text=TEXT, view="lens")
    trace = model.inspect(TEXT)
    chances = torch.stack([logits.softmax(-1) for logits in trace.lens()])
    wanted = trace.logits[-1].argmax().item()
    rows = read(take(visitor, "CSV", "modern-lens.csv"))
    places = [(block, position) for block in range(2) for position in range(len(trace))]
    assert [(int(row["block"]), int(row["position"])) for row in rows] == places
    for row, (block, position) in zip(rows, places, strict=True):
        best = chances[block, position].argmax().item()
        assert (row["token"], row["prediction"]) == (trace.tokens[position], *model.tokenizer.pieces([best]))
        assert float(row["probability"]) == pytest.approx(chances[block, position, best].item(), **CLOSE)
        assert float(row["chosen"]) == pytest.approx(chances[block, position, wanted].item(), **CLOSE)
    svg = take(visitor, "SVG", "modern-lens.svg")
    shown = visitor.page.locator(".lens td[role=gridcell]").all_inner_texts()
    assert [each for each in said(svg) if each in shown][-len(shown) :] == shown
    check_png(take(visitor, "PNG", "modern-lens.png"), svg)


def test_word_vector_exports_match_python(visitor, model, take):
    visitor.forgive("status 400|400")  # a partially typed word may not exist
    visitor.open(model="modern", text=TEXT, view="words", row=1)
    visitor.page.get_by_label("Word", exact=True).fill("cat")
    visitor.page.get_by_label("Sentences, one per line").fill("\n".join(SENTENCES))
    visitor.expect(visitor.page.locator("[data-cosine]").count, 3)
    expected = map_senses([model.inspect(each) for each in SENTENCES], "cat")
    rows = read(take(visitor, "CSV", "modern-words.csv"))
    names = stages(model.config)
    assert [(row["stage"], row["sentence"]) for row in rows] == [
        (name, each) for name in names for each in SENTENCES
    ]
    cosines = numpy.array([float(row["cosine"]) for row in rows]).reshape(len(names), 3)
    numpy.testing.assert_allclose(cosines, expected.cosines[:, 0].detach(), rtol=1e-4, atol=2e-6)
    points = numpy.array([[float(row["x"]), float(row["y"])] for row in rows]).reshape(len(names), 3, 2)
    found, wanted = (
        abs(points[1:]),
        abs(expected.points[1:].detach().numpy()),
    )  # the sign of a direction is arbitrary
    numpy.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
    svg = take(visitor, "SVG", "modern-words.svg")
    assert {"0", "1", "2", "modern · cat · final"} <= set(said(svg))
    assert any("a cat ran" in each for each in said(svg))
    check_png(take(visitor, "PNG", "modern-words.png"), svg)
    trace = model.inspect(TEXT)
    rows = read(take(visitor, "CSV", "modern-neighbors.csv", 1))
    for stage in ("embedding", "block.0.input", "final"):
        near = neighbors(trace, trace[stage][1], stage, 10)
        shown = [row for row in rows if row["stage"] == stage]
        assert [row["token"] for row in shown] == model.tokenizer.pieces([i for i, _ in near])
        assert [float(row["cosine"]) for row in shown] == pytest.approx([far for _, far in near], **CLOSE)
    bars = said(take(visitor, "SVG", "modern-neighbors.svg", 1))
    assert f"static · {visible(rows[0]['token'])}" in bars


def test_training_exports_match_the_run_folder(visit, tmp_path, home, model_folder, take):
    place = tmp_path / "runs"
    make_finished(place / "one", model_folder, 300, validation=2.0, sample="a cat")
    make_finished(place / "two", model_folder, 120)
    loader = LoadOptions("cpu", slots=1)
    registry = load_models([place / "one"], loader, only_first=True)
    with running(registry, library=ModelLibrary([place], home, loader)) as server:
        visitor = visit(server, width=1400)
        visitor.open(text=TEXT, view="training", runs="one,two", model="one")
        visitor.page.locator("tr[data-run=two] td[data-field=loss]").wait_for()
        rows = read(take(visitor, "CSV", "runs-training.csv", within=".curves"))
        for name in ("one", "two"):
            records = read_metrics(place / name)
            taken = [row for row in rows if row["run"] == name]
            for field in ("step", "loss", "validation", "learning_rate", "tokens"):
                found = [float(row[field]) if row[field] else None for row in taken]
                assert found == [record.get(field) for record in records]  # to the last digit
        svg = take(visitor, "SVG", "runs-training.svg", within=".curves")
        assert {"Training · one, two", "one", "two"} <= set(said(svg))
        colors = visitor.page.locator("path.smoothed").evaluate_all(
            "paths => paths.map((each) => getComputedStyle(each).stroke)"
        )
        lines = [each.get("stroke") for each in ElementTree.parse(svg).getroot().iter()]
        assert len(set(colors)) == 2
        assert set(colors) <= set(lines)
        check_png(take(visitor, "PNG", "runs-training.png", within=".curves"), svg)
    registry.close(cancel=True)
