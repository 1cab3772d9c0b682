"""Labs on the page show what Python computes."""

import json
from pathlib import Path

import pytest

import clearhead
from clearhead.labs.catalog import LABS

TEXT = "The duck was too tired"


def number(text):
    return float(text.replace("−", "-"))


def found(visitor, name):
    return number(visitor.page.locator(f"[data-findings='{name}']").inner_text())


def test_lab_is_rerun_with_new_settings(visitor):
    visitor.open(model="modern", text=TEXT, view="labs")
    name = "weight on the target"
    visitor.expect(lambda: found(visitor, name), pytest.approx(0.4754, abs=1e-4))
    visitor.page.get_by_label("boost").fill("10")
    visitor.page.get_by_label("boost").press("Tab")
    expected = clearhead.lab("attention", boost=10).findings[name]
    visitor.expect(lambda: found(visitor, name), pytest.approx(expected, abs=1e-4))
    assert "boost" in visitor.page.url
    cells = visitor.page.locator("[data-part=steps] tbody tr").nth(2).locator("td").all_inner_texts()
    assert [number(cell) for cell in cells] == [10, 0.9999]
    visitor.page.reload()
    visitor.expect(lambda: found(visitor, name), pytest.approx(expected, abs=1e-4))
    visitor.page.get_by_role("button", name="Reset settings").click()
    visitor.expect(lambda: found(visitor, name), pytest.approx(0.4754, abs=1e-4))


def test_selecting_another_lab_shows_its_line_chart(visitor):
    visitor.open(model="modern", text=TEXT, view="labs")
    visitor.page.get_by_role("button", name=LABS["scale"].title).click()
    visitor.page.locator("[data-line=undivided]").first.wait_for()
    assert "lab=scale" in visitor.page.url
    points = visitor.page.locator("[data-line=undivided]").first.get_attribute("points").split()
    assert len(points) == len(clearhead.lab("scale").part("largest weight").x)


def test_invalid_setting_is_reported(visitor):
    visitor.forgive("status 400|400")
    visitor.open(model="modern", text=TEXT, view="labs")
    visitor.page.get_by_label("sequence").fill("012")
    visitor.page.get_by_label("sequence").press("Tab")
    visitor.page.get_by_role("alert").filter(has_text="expected digits 0 and 1").wait_for()


def test_lab_works_in_german_by_keyboard_on_a_phone(visit):
    visitor = visit(width=360, height=740, locale="de-DE")
    visitor.open(model="modern", text=TEXT, view="labs")
    visitor.page.get_by_role("button", name="Warum durch √d_k geteilt wird").press("Enter")
    visitor.page.get_by_role("heading", name="Warum durch √d_k geteilt wird").wait_for()
    visitor.page.locator("[data-line=undivided]").first.wait_for()
    captions = visitor.page.locator("figcaption").all_inner_texts()
    assert captions == ["größtes Gewicht", "Steigung", "Streuung"]
    assert "durch √d_k geteilt" in visitor.page.locator("[data-place=detail] .names").first.inner_text()
    wide = visitor.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert wide


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_labs_have_no_serious_violations(visit, axe, theme):
    visitor = visit(color_scheme=theme)
    for lab in ("attention", "scale"):
        visitor.open(model="modern", text=TEXT, view="labs", lab=lab)
        visitor.page.locator("[data-findings]").first.wait_for()
        assert axe(visitor) == []


# Settings small enough to run in a moment.
QUICK = {
    "any-one": {"trained": "short", "seeds": 1, "steps": 3},
    "matrix": {"longest": 8, "repeats": 1},
    "window": {"prompt": TEXT, "context": 3, "tokens": 3},
    "blank": {"sentence": TEXT, "word": "duck"},
    "senses": {"word": "bats", "seeds": 1, "steps": 3},
    "pronoun": {
        "before": "the duck and the cat ran because it was",
        "one": "duck",
        "other": "cat",
        "seeds": 1,
        "steps": 3,
    },
    "neighbors": {"stories": 500, "epochs": 1},
    "stream": {"steps": 20},
    "scale": {"widest": 16, "samples": 20},
}
TIMED = ("matrix",)  # its values are timings


@pytest.mark.parametrize("name", LABS)
def test_each_lab_shows_what_python_computes(visitor, models, name):
    lab, quick = LABS[name], QUICK.get(name, {})
    visitor.open(model="modern", text=TEXT, view="labs", lab=name, settings=json.dumps(quick))
    if lab.long:
        visitor.button("Run").click()
    visitor.page.locator("[data-findings]").first.wait_for(timeout=120_000)
    assert visitor.page.get_by_role("heading", name=lab.title, exact=True).count() == 1
    assert lab.question in visitor.page.locator("article").inner_text()
    expected = clearhead.lab(name, models["modern"] if lab.model else None, **quick)
    shown = visitor.page.locator("[data-part]").evaluate_all(
        "parts => parts.map((each) => each.dataset.part)"
    )
    assert shown == [part.name for part in expected.parts]
    if name in TIMED:
        return
    for told, value in expected.findings.items():
        text = visitor.page.locator(f"[data-findings={json.dumps(told, ensure_ascii=False)}]").inner_text()
        if isinstance(value, float):
            assert number(text) == pytest.approx(value, rel=0.01, abs=6e-5), told


def test_each_lab_is_translated_into_german():
    told = (Path(__file__).parents[2] / "web" / "src" / "messages" / "labs.de.ts").read_text(encoding="utf-8")
    for name, lab in LABS.items():
        assert f"\n  {name}: {{" in told or f'\n  "{name}": {{' in told, name
        for setting in lab.settings:
            assert f"{setting.name}:" in told, (name, setting.name)
