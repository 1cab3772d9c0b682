"""The answers of the longest views on a small laptop's screen, and the header on a phone, in both languages."""

import json

import pytest

HEIGHT = 720


@pytest.fixture(params=["en-GB", "de-DE"])
def visitor(visit, request):
    return visit(width=1280, height=HEIGHT, locale=request.param)


def bottom(visitor, selector):
    box = visitor.page.locator(selector).last.bounding_box()
    return box["y"] + box["height"]


def test_key_figures_of_a_lab_are_on_the_first_screen(visitor):
    settings = json.dumps({"sentence": "The duck was too tired to swim, so it", "word": "sat"})
    visitor.open(model="lecture", view="labs", lab="blank", settings=settings)
    visitor.page.locator("[data-findings]").first.wait_for()
    assert visitor.page.locator("[data-findings]").count() >= 9
    assert bottom(visitor, "[data-findings]") <= HEIGHT


def test_legend_of_the_effects_of_positions_is_on_the_first_screen(visitor, models):
    model = models["lecture"]
    ids = model.tokenizer.encode("The duck was too tired to swim, so it sat down")[:14]
    visitor.open(model="lecture", text=model.tokenizer.decode(ids), view="change", over="position")
    visitor.page.locator(".left-out .answer").wait_for()
    visitor.page.locator(".effects [role=grid]").wait_for()
    assert bottom(visitor, ".effects [data-testid=legend]") <= HEIGHT


@pytest.mark.parametrize("language", ["en-GB", "de-DE"])
def test_buttons_of_the_header_share_a_line_on_a_phone(visit, language):
    visitor = visit(width=390, height=844, locale=language)
    visitor.open(model="lecture", text="The duck was too tired")
    brand = visitor.page.locator(".brand").bounding_box()
    theme = visitor.page.locator("header button", has_text="☾").bounding_box()
    assert theme["y"] < brand["y"] + brand["height"]
