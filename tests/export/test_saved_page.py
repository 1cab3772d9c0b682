"""Saved pages opened from disk without network access: every number is compared with Python's."""

import re

import pytest

import clearhead
from clearhead.errors import UserError
from clearhead.export.saved_page import save_html
from clearhead.page.assets import BUNDLES, has_bundles, read_bundle
from tests.web.test_numbers import check, numbers_of, steps_of, with_caps
from tests.web.visitor import fixed, percent, shows

TEXT = "The duck was too tired"

built = pytest.mark.skipif(
    not has_bundles(), reason="the page is not built: run `pip install .` with npm installed"
)


def kept(seen):
    """Drop cells that were not stored, which are shown as a dash."""
    return {**seen, "cells": [cell for cell in seen["cells"] if cell[2] != "–"]}


def see_rows(reader, site, least):
    """The values of a site, once at least this many rows are drawn: the grid draws those that are on screen."""
    for _ in range(200):
        seen = kept(reader.see(site))
        if len({row for row, _, _ in seen["cells"]}) >= least:
            return seen
        reader.page.wait_for_timeout(50)
    raise AssertionError(f"{site}: fewer than {least} rows")


@pytest.mark.parametrize("name", ["lecture", "gpt2", "modern", "shared", "capped"])
def test_every_number_matches_python(read, models, tmp_path, name):
    model = with_caps(models["modern"]) if name == "capped" else models[name]
    trace, at = numbers_of(model, TEXT)
    last = len(trace) - 1
    save_html(trace, tmp_path / "x.html", ["flow", "block.1", "ends"])
    reader = read(tmp_path / "x.html")
    reader.page.locator(".parts button").first.click()
    reader.page.mouse.move(0, 0)  # away from anything with a tooltip
    for number, sites in enumerate(steps_of(model, [1], 0)):
        if number > 0:
            reader.page.keyboard.press("ArrowRight")
        for k, site in enumerate(sites):
            if k > 0:
                reader.page.locator(".tabs button").nth(k).click()
                reader.page.mouse.move(0, 0)
            least = 1 if site in ("logits_raw", "logits", "probabilities") else min(len(trace), 15)
            seen = see_rows(reader, site, least)
            assert least > 1 or {row for row, _, _ in seen["cells"]} == {last}
            if seen["result"] is None:  # its inputs are another block's, or would be the whole vocabulary
                assert site in ("embedding", "position", "logits", "logits_raw", "block.1.input")
                assert site != "logits" or model.config.logit_cap is None
                card = reader.page.get_by_test_id("card").inner_text()
                assert "not included in this file" in card
                seen["result"] = re.search(r"(−?[\d.]+)\. The numbers", card)[1]
            check(seen, site, at, last)
    shown = reader.page.locator(".next .share").all_inner_texts()
    chances = trace.logits[-1].float().softmax(-1).topk(9).values.tolist()
    assert all(shows(text, chance, percent) for text, chance in zip(shown, chances, strict=True))


def test_numbers_can_be_traced_to_trained_weights(read, models, tmp_path):
    _, at = numbers_of(models["modern"], TEXT)
    save_html(models["modern"].inspect(TEXT), tmp_path / "x.html", ["block.1.head.1"])
    reader = read(tmp_path / "x.html")
    assert reader.page.locator("[data-place=flow]").count() == 0
    for _ in range(6):
        reader.page.keyboard.press("ArrowRight")
    reader.see("block.1.head.1.weights")
    reader.page.locator("[role=gridcell][data-row='3'][data-column='1']").hover()
    followed = len(models["modern"].inspect(TEXT)) - 1
    names = ["weights", "masked", "scaled", "scores", "query", "query_normed", "query_raw", "W_Q"]
    for name, inner in zip(names, [*names[1:], None], strict=True):
        told = reader.page.locator(f"[data-testid=card] h3[data-cell^='block.1.head.1.{name} ']")
        cell = told.get_attribute("data-cell").split()
        result = reader.page.locator("[data-testid=card] .result .katex-html").text_content()
        value = at(cell[0], int(cell[1]), int(cell[2]), followed)
        assert shows(result, value, lambda x, name=name: fixed(x, 4 if name == "W_Q" else 2))
        assert reader.foreign_letters() == []
        if inner is not None:
            reader.page.locator(
                f"[data-testid=card] .number[data-cell^='block.1.head.1.{inner} ']"
            ).first.click()
    assert "a trained weight" in reader.page.get_by_test_id("card").inner_text()


def test_missing_parts_show_a_message(read, models, tmp_path):
    save_html(
        models["lecture"].inspect(TEXT), tmp_path / "x.html", ["flow", "block.0.head.1", "block.1.head.0"]
    )
    reader = read(tmp_path / "x.html")
    assert reader.prompt.get_attribute("readonly") is not None
    assert reader.page.get_by_role("button", name="Next word").count() == 0
    assert reader.page.locator(".next li button:enabled").count() == 0
    assert reader.page.locator(".parts button").all_inner_texts() == ["First norm", "Head"]
    opened = []
    for _ in range(3):  # from one stored head to the next
        opened.append(reader.page.locator(".detail h2").inner_text().partition(": attention")[0])
        reader.page.keyboard.press("]")
        reader.settle()
    assert opened == ["Block 0, head 1", "Block 1, head 0", "Block 0, head 1"]
    reader.button("All heads").click()
    reader.page.get_by_label("Find a head").fill("1.1")
    reader.expect(
        reader.page.locator("main .missed").all_inner_texts,
        ["This is not included in this file. Open the model in Clearhead to see it."],
    )
    reader.button("Step by step").click()
    assert reader.page.locator(".detail h2").inner_text().startswith("Block 1, head 0")


def test_saved_page_shows_edited_values(read, models, tmp_path):
    model = models["modern"]
    edited = model.inspect(TEXT, edit={"block.1.head.0.weights": 0.25, "block.1.head.0.query": 2.0})
    save_html(edited, tmp_path / "x.html", ["block.1.head.0"])
    reader = read(tmp_path / "x.html")
    for site in ("block.1.head.0.query", "block.1.head.0.weights", "block.1.head.0.output"):
        while reader.site != site:
            reader.page.keyboard.press("ArrowRight")
        seen, values = reader.see(site), edited[site].tolist()
        assert all(shows(text, values[row][column]) for row, column, text in seen["cells"])
    assert edited["block.1.head.0.weights"][0, 0] == 0.25


@pytest.mark.parametrize(
    "text",
    ["a</script><script>alert(1)</script>", "<!--<script>", "{policy} & \"quotes' ]]>", "ende \u2028<b>"],
)
def test_text_is_not_interpreted_as_markup(read, models, tmp_path, text):
    model = models["modern"]
    save_html(model.inspect(text), tmp_path / "x.html")
    reader = read(tmp_path / "x.html")
    assert reader.prompt.input_value() == text
    assert reader.page.title().startswith(text[:4])
    assert reader.page.locator("script").count() == 2  # the data is removed once it is read


@pytest.mark.parametrize(("width", "scheme"), [(1400, "dark"), (360, "light")])
def test_page_fits_the_window(read, models, tmp_path, width, scheme):
    save_html(models["modern"].inspect(TEXT), tmp_path / "x.html")
    reader = read(tmp_path / "x.html", width, color_scheme=scheme)
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= width
    assert reader.page.evaluate("document.documentElement.dataset.theme") == scheme
    with reader.page.expect_download() as download:
        reader.export("CSV")
    assert download.value.suggested_filename.endswith(".csv")
    reader.page.locator(".detail").get_by_role("button", name="Export").click()
    reader.page.get_by_role("menuitem", name="CSV").wait_for()
    assert reader.page.get_by_role("menuitem", name="Copy link").count() == 0


@built
def test_saved_page_adds_little_to_the_bundle_size(models, tmp_path):
    save_html(models["lecture"].inspect(TEXT), tmp_path / "x.html")
    built = sum(len(read_bundle(name).encode()) for name in ("saved.js", "saved.css", "licenses.md"))
    assert (tmp_path / "x.html").stat().st_size < built + 60_000


def test_invalid_save_html_arguments_are_rejected(models, tmp_path):
    with pytest.raises(UserError, match="save_html of a str: expected a model, a trace from model"):
        clearhead.save_html("modern", tmp_path / "x.html")
    with pytest.raises(UserError, match="needs a trace of one text"):
        clearhead.save_html(models["modern"].inspect(["a", "b"]), tmp_path / "x.html")
    with pytest.raises(UserError, match="nowhere"):
        clearhead.save_html(models["modern"].inspect("a"), tmp_path / "nowhere" / "x.html")


def test_missing_bundle_raises(tmp_path):
    with pytest.raises(UserError, match="the page is not built"):
        read_bundle("saved.js", tmp_path)
    assert BUNDLES.name == "bundles"
