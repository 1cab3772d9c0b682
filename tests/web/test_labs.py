"""Labs on the page show what Python computes."""

import json
import re
from pathlib import Path

import pytest

import clearhead
from clearhead.labs.catalog import LABS
from tests.serving import make_registry, running

TEXT = "The duck was too tired"


@pytest.fixture
def visitor(visitor):
    """On a busy machine, a lab may have to wait until the previous one has stopped."""
    visitor.forgive("429")
    return visitor


def number(text):
    return float(text.replace("−", "-"))


def found(visitor, name):
    """A finding; None while it is hidden because the lab runs again."""
    text = visitor.page.locator(f"[data-findings='{name}']").inner_text()
    return number(text) if text else None


def test_lab_is_rerun_with_new_settings(visitor):
    visitor.open(model="modern", text=TEXT, view="labs")
    name = "weight on the target"
    visitor.expect(lambda: found(visitor, name), pytest.approx(0.4754, abs=1e-4))
    visitor.page.get_by_label("boost").fill("10")
    visitor.page.get_by_label("boost").press("Tab")
    expected = clearhead.lab("attention", boost=10).findings[name]
    visitor.expect(lambda: found(visitor, name), pytest.approx(expected, abs=1e-4))
    assert "boost" in visitor.url
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
    assert "lab=scale" in visitor.url
    points = visitor.page.locator("[data-line=undivided]").first.get_attribute("points").split()
    assert len(points) == len(clearhead.lab("scale").part("largest weight").x)


def test_back_returns_to_the_previous_lab_and_then_to_the_previous_view(visitor):
    visitor.open(model="modern", text=TEXT)
    visitor.button("Labs").click()
    heading = visitor.page.locator("article h3")
    for name in ("position", "window"):
        visitor.button(LABS[name].title).click()
        visitor.expect(heading.inner_text, LABS[name].title)
    visitor.settle()
    visitor.page.go_back()
    visitor.expect(heading.inner_text, LABS["position"].title)
    visitor.page.go_back()
    visitor.expect(lambda: "view=labs" in visitor.url and "lab=" not in visitor.url, True)
    visitor.page.go_back()
    visitor.page.locator("[data-place=flow]").wait_for()
    visitor.settle()


def test_the_result_of_other_settings_is_hidden(visitor):
    visitor.open(model="modern", text=TEXT, view="labs", lab="attention")
    result = visitor.page.get_by_test_id("lab-result")
    visitor.expect(result.is_visible, True)
    waiting = []
    visitor.page.route("**/api/lab", lambda route: waiting.append(route))
    visitor.page.get_by_label("boost").fill("10")  # the lab runs even before the focus leaves the field
    visitor.expect(result.is_visible, False)
    visitor.page.get_by_role("status").filter(has_text="Running").wait_for()
    for route in waiting:
        route.continue_()
    visitor.page.unroute("**/api/lab")
    visitor.expect(result.is_visible, True)


def test_lab_uses_the_text_above_or_says_that_it_does_not(visitor, models):
    visitor.open(model="modern", text=TEXT, view="labs")
    visitor.page.get_by_text("not the text above").wait_for()
    visitor.page.get_by_role("button", name=LABS["window"].title).click()
    visitor.page.get_by_text("not the one above").wait_for()
    visitor.page.get_by_role("button", name="Use the text above").click()
    visitor.expect(visitor.page.get_by_label("prompt").input_value, TEXT)
    assert visitor.page.get_by_role("button", name="Use the text above").count() == 0
    result = clearhead.lab("window", model=models["modern"], prompt=TEXT)
    name = "largest change in log-probability with the tokens outside reversed"
    visitor.expect(lambda: found(visitor, name), pytest.approx(result.findings[name], rel=1e-2))


def test_invalid_setting_is_reported(visitor):
    visitor.forgive("status 400|400")
    visitor.open(model="modern", text=TEXT, view="labs")
    visitor.page.get_by_label("sequence").fill("012")
    visitor.page.get_by_label("sequence").press("Tab")
    visitor.page.get_by_role("alert").filter(has_text="expected digits 0 and 1").wait_for()


@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
def test_question_of_each_lab_is_on_the_first_screen(visit, locale):
    visitor = visit(width=1366, height=768, locale=locale)
    visitor.forgive("400")  # some sentences are longer than the small model's context
    for name in LABS:
        visitor.open(model="modern", text=TEXT, view="labs", lab=name)
        visitor.page.locator(".labs[aria-busy=false] article").wait_for()
        question = visitor.page.locator("article .question").bounding_box()
        settings = visitor.page.locator("article .settings").bounding_box()
        assert question["y"] + question["height"] <= min(768, settings["y"]), name


def test_sentences_are_not_clipped_in_their_fields(visit):
    visitor = visit(width=1366, height=768)
    visitor.forgive("400")  # the sentences are longer than the small model's context
    for name in ("window", "blank", "position", "pronoun"):
        visitor.open(model="modern", text=TEXT, view="labs", lab=name)
        visitor.page.locator(".labs[aria-busy=false] article").wait_for()
        fields = visitor.page.locator(".settings input[type=text]")
        assert fields.count() > 0
        assert fields.evaluate_all("all => all.every((each) => each.scrollWidth <= each.clientWidth)"), name


def test_lab_works_in_german_on_a_phone(visit):
    visitor = visit(width=360, height=740, locale="de-DE")
    visitor.forgive("429")
    visitor.open(model="modern", text=TEXT, view="labs")
    visitor.page.locator(".labs nav select").select_option("scale")
    visitor.page.get_by_role("heading", name="Warum durch √d_k geteilt wird").wait_for()
    visitor.page.locator("[data-line=undivided]").first.wait_for()
    captions = visitor.page.locator("figcaption").all_inner_texts()
    assert captions == ["größtes Gewicht", "Steigung", "Streuung"]
    names = visitor.page.locator("[data-place=detail] .names").first
    assert "durch" in names.inner_text()
    assert names.locator("annotation").text_content() == "\\sqrt{d_k}"
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


def test_running_lab_shows_its_time_and_can_be_canceled(visitor):
    visitor.open(model="modern", text=TEXT, view="labs")
    visitor.page.route("**/api/lab", lambda route: None)  # never answered
    visitor.button("One head, as loops and as matrices").click()
    visitor.page.get_by_text("Running…").wait_for()
    visitor.page.locator(".computing").get_by_text("1 s", exact=True).wait_for()
    visitor.button("Cancel").click()
    visitor.button("Run").wait_for()
    visitor.expect(visitor.page.get_by_text("Running…").count, 0)
    visitor.page.unroute("**/api/lab")
    visitor.button("Run").click()
    visitor.page.locator("[data-findings]").first.wait_for()


def test_lab_waits_for_another_one_to_end(visitor):
    visitor.forgive("429")
    visitor.open(model="modern", text=TEXT, view="labs")
    answer = {"error": {"message": "another lab is running; retry later", "code": "busy"}}
    visitor.page.route("**/api/lab", lambda route: route.fulfill(status=429, json=answer))
    visitor.button("One head, as loops and as matrices").click()
    visitor.page.get_by_text("Another lab is running.").wait_for()
    visitor.page.unroute("**/api/lab")
    visitor.page.locator("[data-findings]").first.wait_for()
    visitor.expect(visitor.page.get_by_text("Another lab is running.").count, 0)


def test_phone_chooses_a_lab_from_a_list(visit):
    visitor = visit(width=390, height=844)
    visitor.open(model="modern", text=TEXT, view="labs")
    chooser = visitor.page.get_by_role("combobox", name="Labs")
    assert chooser.locator("option").count() == len(LABS)
    chooser.select_option("matrix")
    visitor.page.get_by_role("heading", name="One head, as loops and as matrices").wait_for()


def test_lab_offers_the_model_it_was_designed_for(visit, models):
    registry = make_registry(
        slots=1, modern=models["modern"], stories=clearhead.load("stories", device="cpu")
    )
    with running(registry) as server:
        visitor = visit(server)
        visitor.forgive("400")  # the sentence is longer than the small model's context
        visitor.open(model="modern", text=TEXT, view="labs", lab="blank")
        visitor.page.get_by_text("This lab inspects modern. It was designed for stories.").wait_for()
        visitor.button("Switch to stories").click()
        visitor.page.get_by_text("This lab inspects stories.").wait_for()
        token = visitor.page.locator("[data-findings=token]")
        visitor.expect(lambda: token.inner_text().strip("␣ "), "her")
        assert visitor.button("Switch to stories").count() == 0
        tables = visitor.page.locator(".scroll:has(table)")  # no row is hidden
        assert tables.count() > 0
        assert tables.evaluate_all("(all) => all.every((each) => each.scrollHeight <= each.clientHeight)")
    registry.close(cancel=True)


def test_each_lab_is_translated_into_german():
    told = (Path(__file__).parents[2] / "web" / "src" / "messages" / "labs.de.ts").read_text(encoding="utf-8")
    for name, lab in LABS.items():
        found = re.search(
            rf'^  "?{name}"?: {{$.*?^    settings: {{$(.*?)^    }},$', told, re.DOTALL | re.MULTILINE
        )
        assert found, name
        described = re.findall(r'^      (\w+):\s+".+"', found[1], re.MULTILINE)
        assert described == [setting.name for setting in lab.settings], name
