"""The labs on the page: what they show is what Python gives."""

import pytest

import clearhead
from clearhead.labs.catalogue import LABS

TEXT = "The duck was too tired"


def number(text):
    return float(text.replace("−", "-"))


def found(visitor, name):
    return number(visitor.page.locator(f"[data-found='{name}']").inner_text())


def test_a_lab_is_run_again_with_other_numbers(visitor):
    visitor.open(model="modern", text=TEXT, view="labs")
    name = "weight on what is looked for"
    visitor.expect(lambda: found(visitor, name), pytest.approx(0.4754, abs=1e-4))
    visitor.page.get_by_label("boost").fill("10")
    visitor.page.get_by_label("boost").press("Tab")
    expected = clearhead.lab("attention", boost=10).found[name]
    visitor.expect(lambda: found(visitor, name), pytest.approx(expected, abs=1e-4))
    assert "boost" in visitor.page.url
    cells = visitor.page.locator("[data-part=steps] tbody tr").nth(2).locator("td").all_inner_texts()
    assert [number(cell) for cell in cells] == [10, 0.9999]
    visitor.page.reload()
    visitor.expect(lambda: found(visitor, name), pytest.approx(expected, abs=1e-4))
    visitor.page.get_by_role("button", name="As it was").click()
    visitor.expect(lambda: found(visitor, name), pytest.approx(0.4754, abs=1e-4))


def test_lines_and_another_lab(visitor):
    visitor.open(model="modern", text=TEXT, view="labs")
    visitor.page.get_by_role("button", name=LABS["scale"].title).click()
    visitor.page.locator("[data-line=undivided]").first.wait_for()
    assert "lab=scale" in visitor.page.url
    points = visitor.page.locator("[data-line=undivided]").first.get_attribute("points").split()
    assert len(points) == len(clearhead.lab("scale").part("largest weight").x)


def test_a_wrong_setting_is_told_where_it_is(visitor):
    visitor.forgive("status 400|400")
    visitor.open(model="modern", text=TEXT, view="labs")
    visitor.page.get_by_label("sequence").fill("012")
    visitor.page.get_by_label("sequence").press("Tab")
    visitor.page.get_by_role("alert").filter(has_text="expected digits 0 and 1").wait_for()


def test_in_german_by_keyboard_on_a_phone(visit):
    visitor = visit(width=360, height=740, locale="de-DE")
    visitor.open(model="modern", text=TEXT, view="labs")
    visitor.page.get_by_role("button", name="Warum durch √d_k geteilt wird").press("Enter")
    visitor.page.get_by_role("heading", name="Warum durch √d_k geteilt wird").wait_for()
    visitor.page.locator("[data-line=undivided]").first.wait_for()
    wide = visitor.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert wide


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_without_serious_faults(visit, axe, theme):
    visitor = visit(color_scheme=theme)
    for lab in ("attention", "scale"):
        visitor.open(model="modern", text=TEXT, view="labs", lab=lab)
        visitor.page.locator("[data-found]").first.wait_for()
        assert axe(visitor) == []
