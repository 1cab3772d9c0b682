"""Exports: images, numbers, and a URL that restores the whole state."""

import csv
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import numpy
import pytest
from PIL import Image

from tests.web.visitor import visible

TEXT = "The duck was too tired"
SITES = {
    "block.1.head.1.masked": {"step": 5},
    "block.1.normed.scale": {"part": "norm"},
    "logits": {"part": "final", "step": 2},
}


def take(visitor, kind, folder):
    with visitor.page.expect_download() as waiting:
        visitor.export(kind)
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


@pytest.mark.parametrize("site", SITES)
def test_numbers_are_exported_as_csv_and_npy(visitor, models, tmp_path, site):
    visitor.open(model="modern", text=TEXT, block=1, head=1, **SITES[site])
    trace = models["modern"].inspect(TEXT)
    expected = trace[site].detach().numpy()
    path = take(visitor, ".npy", tmp_path)
    assert path.name == f"modern-{site}.npy"
    taken = numpy.load(path)
    assert taken.dtype == numpy.float32
    numpy.testing.assert_allclose(taken, expected, rtol=1e-5, atol=1e-5)
    with take(visitor, "CSV", tmp_path).open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    numbers = numpy.array([row[1:] for row in rows], dtype=numpy.float32)
    numpy.testing.assert_array_equal(numbers.reshape(taken.shape), taken)
    assert [row[0] for row in rows] == [visible(token) for token in trace.tokens]
    assert len(head) == len(rows[0])


def test_images_are_exported_as_svg_and_png(visitor, tmp_path):
    visitor.open(model="modern", text=TEXT, step=6)
    svg = ElementTree.parse(take(visitor, "SVG", tmp_path)).getroot()
    assert svg.tag.endswith("svg")
    said = ["".join(each.itertext()) for each in svg.iter() if each.tag.endswith("text")]
    cells = visitor.see("block.0.head.0.weights")["cells"]
    assert [shown for _, _, shown in cells if shown not in said] == []
    assert {"modern · head 0.0 · attention weight", "from ↓ to →"} <= set(said)
    assert "src:url(data:font/woff2;base64," in svg[0].text
    with Image.open(take(visitor, "PNG", tmp_path)) as picture:
        picture.load()
        assert picture.width == 2 * float(svg.get("viewBox").split()[2])
        assert len(picture.getcolors(100_000)) > 10
    with visitor.page.expect_download() as waiting:
        visitor.export("SVG", "[data-place=flow]")
    waiting.value.save_as(tmp_path / "flow.svg")
    said = list(ElementTree.parse(tmp_path / "flow.svg").getroot().itertext())
    assert {"␣too", "embedding", "query", "feed-forward", "block 0", "attention · head 0"} <= set(said)
    assert any(line.startswith("modern · Block 0, head 0 · The duck") for line in said)
    assert {"0", "1.00", "masked"} <= set(said)  # the legend
    assert {"color strip under a column: negative → positive", "+ attention", "+ feed-forward"} <= set(said)


def test_color_scale_is_the_same_in_the_figure(visitor, tmp_path):
    visitor.open(model="modern", text=TEXT, step="compare")  # masked numbers do not count
    visitor.see("block.0.head.0.scores")
    shown = visitor.page.locator(".detail [data-testid=legend]").inner_text().split("\n")
    said = set(ElementTree.parse(take(visitor, "SVG", tmp_path)).getroot().itertext())
    assert {each.strip() for each in shown if each.strip()} <= said


def test_dark_page_exports_light_figures_too(visit, tmp_path):
    visitor = visit(color_scheme="dark")
    visitor.open(model="modern", text=TEXT, step=6)
    papers = {}
    for kind in ("SVG", "SVG, light background"):
        svg = ElementTree.parse(take(visitor, kind, tmp_path)).getroot()
        papers[kind] = next(each.get("fill") for each in svg if each.tag.endswith("rect"))
    assert papers == {"SVG": "#15171b", "SVG, light background": "#fbfaf7"}
    visitor.open(model="modern", text=TEXT, view="why")
    with visitor.page.expect_download() as waiting:
        visitor.export("SVG, light background", ".view")
    waiting.value.save_as(tmp_path / "why.svg")
    fills = {each.get("fill") for each in ElementTree.parse(tmp_path / "why.svg").getroot()}
    assert "rgb(29, 32, 38)" in fills  # the ink of the light theme
    assert "rgb(236, 234, 228)" not in fills
    assert visitor.page.locator("html").get_attribute("data-theme") == "dark"


def test_large_matrix_is_exported_as_a_small_image(visitor, tmp_path):
    visitor.open(model="long", text="The duck was tired. " * 40, step=6)
    path = take(visitor, "SVG", tmp_path)
    assert path.stat().st_size < 2_000_000
    svg = ElementTree.parse(path).getroot()
    assert [each.tag.split("}")[1] for each in svg].count("image") == 1


def test_heads_and_next_token_are_exported(visitor, models, tmp_path):
    for place, view, names in (
        ("heads", "heads", {"0.0", "1.1"}),
        ("next", "steps", {"modern · next word"}),
    ):
        visitor.open(model="modern", text=TEXT, view=view)
        with visitor.page.expect_download() as waiting:
            visitor.export("SVG", f"[data-place={place}]")
        waiting.value.save_as(tmp_path / f"{place}.svg")
        assert names <= set(ElementTree.parse(tmp_path / f"{place}.svg").getroot().itertext())
    with visitor.page.expect_download() as waiting:
        visitor.export("CSV", "[data-place=next]")
    waiting.value.save_as(tmp_path / "next.csv")
    with (tmp_path / "next.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["", "logit", "softmax"]
    logits = models["modern"].logits(TEXT)[-1]
    best = logits.topk(len(rows))
    taken = numpy.array([row[1:] for row in rows], dtype=numpy.float32)
    numpy.testing.assert_allclose(taken[:, 0], best.values.detach().numpy(), rtol=1e-4, atol=1e-5)
    chances = logits.softmax(-1)[best.indices].detach().numpy()
    numpy.testing.assert_allclose(taken[:, 1], chances, rtol=1e-3, atol=1e-6)


def test_special_characters_in_images_are_escaped(visitor, tmp_path):
    text = '<b> & "x" ]]> \x0b'
    visitor.open(model="modern", text=text, part="embedding")
    said = "".join(ElementTree.parse(take(visitor, "SVG", tmp_path)).getroot().itertext())
    assert all(part in said for part in ("<", "&", '"', "␋"))


PLACE = {
    "model": "modern",
    "text": "Tom saw a ball. 1+1=2 & more",
    "block": "1",
    "head": "1",
    "step": "softmax",
    "row": "4",
    "temperature": "0.7",
    "topK": "7",
}


def seen(visitor):
    site = "block.1.head.1.weights"
    numbers = visitor.see(site)
    chances = visitor.page.locator(".next .share").all_inner_texts()
    return numbers["cells"], numbers["told"], chances, visitor.prompt.input_value()


def test_copied_link_restores_the_whole_state(visit):
    visitor, other = visit(), visit()
    visitor.open(**PLACE)
    visitor.page.locator("[role=gridcell][data-row='4'][data-column='2']").click()
    visitor.export("Copy link")
    visitor.page.get_by_text("Copied").wait_for()
    link = visitor.page.evaluate("navigator.clipboard.readText()")
    query = parse_qs(urlsplit(link).query)
    assert {name: values[0] for name, values in query.items()} == {
        **PLACE,
        "column": "2",
        "open": "block.1.head.1.weights:4:2",
    }
    other.open()
    other.page.goto(link)
    other.settle()
    assert seen(other) == seen(visitor)
    other.page.reload()
    other.settle()
    assert seen(other) == seen(visitor)


def test_header_copies_the_address_without_the_token(visitor):
    visitor.open(**PLACE)
    visitor.button("Share").click()
    # Others cannot open a loopback address.
    visitor.page.get_by_role("dialog", name="Share").get_by_text("on this computer only").wait_for()
    visitor.button("Copy link").click()
    visitor.button("Copied").wait_for()
    link = visitor.page.evaluate("navigator.clipboard.readText()")
    query = parse_qs(urlsplit(link).query)
    assert {name: values[0] for name, values in query.items()} == PLACE


def test_saved_view_opens_in_the_same_state_without_a_server(visit, tmp_path):
    visitor, other = visit(), visit()
    visitor.open(**PLACE)
    visitor.page.locator("[role=gridcell][data-row='4'][data-column='2']").click()
    visitor.button("Share").click()
    with visitor.page.expect_download(timeout=300_000) as download:
        visitor.button("Save this view as one file").click()
    path = tmp_path / download.value.suggested_filename
    assert path.name.startswith("modern-")
    assert path.suffix == ".html"
    download.value.save_as(path)
    other.forgive("another host: file:")
    other.page.goto(path.as_uri())
    other.settle()
    assert seen(other) == seen(visitor)
    assert parse_qs(urlsplit(other.url).query) == parse_qs(urlsplit(visitor.url).query)


def test_saved_view_keeps_the_authors_language_and_follows_the_readers_colors(visit, tmp_path):
    visitor = visit(locale="de-DE", color_scheme="light")
    visitor.open(**PLACE)
    visitor.button("Teilen").click()
    with visitor.page.expect_download(timeout=300_000) as download:
        visitor.page.get_by_role("dialog", name="Teilen").get_by_role("button").first.click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    other = visit(locale="en-GB", color_scheme="dark")
    other.forgive("another host: file:")
    other.page.goto(path.as_uri())
    other.settle()
    root = other.page.locator("html")
    assert (root.get_attribute("lang"), root.get_attribute("data-theme")) == ("de", "dark")
    other.page.emulate_media(color_scheme="light")
    other.expect(lambda: root.get_attribute("data-theme"), "light")


def test_view_that_needs_a_server_cannot_be_saved(visitor):
    visitor.open(**PLACE, view="labs")
    visitor.button("Share").click()
    assert visitor.button("Save this view as one file").is_disabled()


def test_browser_history_goes_back_and_forward(visitor):
    visitor.open(**{**PLACE, "text": "a"})
    visitor.page.keyboard.press("[")
    visitor.see("block.1.head.0.weights")
    visitor.prompt.press("End")
    visitor.prompt.press_sequentially(" duck", delay=20)
    visitor.expect(lambda: "duck" in "".join(visitor.said), True)
    visitor.button("Feed-forward").click()
    visitor.see("block.1.hidden_gate")
    for site, text in [
        ("block.1.head.0.weights", "a duck"),
        ("block.1.head.0.weights", "a"),  # continuous typing is one history entry
        ("block.1.head.1.weights", "a"),
    ]:
        visitor.page.go_back()
        visitor.see(site)
        visitor.expect(visitor.prompt.input_value, text)
    visitor.page.go_forward()
    visitor.see("block.1.head.0.weights")
    visitor.page.keyboard.press("]")
    visitor.see("block.1.head.1.weights")
    visitor.page.go_back()
    visitor.see("block.1.head.0.weights")


def test_invalid_url_falls_back_to_defaults(visitor):
    visitor.open(model="none", block="-3", head="99", part="toString", step="x", row="1e9", edits="{")
    visitor.expect(lambda: visitor.prompt.input_value() != "", True)  # the text chosen for the model
    visitor.settle()
    assert visitor.site.endswith("query_raw")
