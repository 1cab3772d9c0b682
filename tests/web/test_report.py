"""The report view shows the figures of the report in Python."""

from pathlib import Path

import pytest

from clearhead.evaluation.reporting import report_model
from clearhead.text.corpus import Document
from tests.web.visitor import fixed, percent

TEXT = "The duck was too tired to swim. <b>Ella</b> lived near the village, and she had a trumpet."


@pytest.fixture
def expected(models):
    return report_model(models["modern"], Path(), [Document.of("text", TEXT)])


def make_report(visitor, **place):
    visitor.open(model="modern", text="The duck", view="report", **place)
    visitor.page.get_by_role("textbox").last.fill(TEXT)
    visitor.page.locator("section.report .start button").click()
    visitor.page.get_by_test_id("key-figures").wait_for(timeout=300_000)
    visitor.settle()


def test_its_figures_are_those_of_python(visitor, expected):
    make_report(visitor)
    page = visitor.page
    shown = {
        name: page.locator(f"[data-figure={name}]").inner_text()
        for name in ("bits", "loss", "right", "pairs")
    }
    assert shown == {
        "bits": fixed(expected.bits_per_byte, 4),
        "loss": fixed(expected.losses.loss, 4),
        "right": percent(expected.calibration.accuracy, 1),
        "pairs": percent(expected.scores.groups[0].accuracy, 1),
    }
    for name, bits in expected.compressed.items():
        assert page.locator(f"[data-bits={name}]").inner_text() == fixed(bits, 3)
    page.get_by_text(f"The text has only {len(TEXT)} bytes, so the headers of gzip and xz").wait_for()
    losses = page.locator(".surprises .number").all_inner_texts()
    assert losses == [fixed(each.loss, 2) for each in expected.surprises]
    samples = page.locator(".report .written").all_inner_texts()
    assert all(any(each.text.strip()[:20] in sample for sample in samples) for each in expected.samples)
    # Untrusted texts are shown as they are, not parsed as markup.
    assert page.locator("section.report .written b").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_a_laptop_and_has_no_serious_violations(visit, axe, theme):
    visitor = visit(width=1366, height=768, color_scheme=theme, locale="de-DE")
    make_report(visitor)
    figures = visitor.page.get_by_test_id("key-figures").bounding_box()
    assert figures["y"] + figures["height"] < 400
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 1366
    assert axe(visitor) == []


def test_it_can_be_canceled_and_says_what_fails(visitor):
    visitor.open(model="modern", text="The duck", view="report")
    held = []
    visitor.page.route("**/api/report", lambda route: held.append(route))
    start = visitor.page.locator("section.report .start button")
    start.click()
    visitor.button("Cancel").click()
    visitor.expect(start.is_enabled, True)
    visitor.page.unroute("**/api/report")
    visitor.forgive("400")
    start.click()
    visitor.page.get_by_role("alert").filter(has_text="contains no held-out text").wait_for()
