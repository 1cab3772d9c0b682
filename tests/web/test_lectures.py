"""The lectures: every stop fits on the screen, its question is checked, and it can be presented."""

import re

import pytest

import clearhead as ch
from clearhead.lectures.catalog import find_stops
from tests.lectures.answers import ANSWERS
from tests.serving import make_registry, running
from tests.web.test_lecture_001 import edit, fill, go

LECTURES = {
    lecture: [stop for stop in ANSWERS if stop.startswith(lecture)]
    for lecture in dict.fromkeys(stop.split(".")[0] for stop in ANSWERS)
}
FIRST, *_, LAST = ANSWERS
WORDS = {
    "en-GB": {
        "check": "Check",
        "answer": "Your answer",
        "right": "✓ Right.",
        "wrong": "Not quite.",
        "solution": "Show the solution",
        "progress": "{} of {} answered",
    },
    "de-DE": {
        "check": "Prüfen",
        "answer": "Deine Antwort",
        "right": "✓ Richtig.",
        "wrong": "Noch nicht.",
        "solution": "Lösung zeigen",
        "progress": "{} von {} beantwortet",
    },
}


def fits(visitor, height):
    return visitor.page.evaluate("document.documentElement.scrollHeight") <= height


def expect_question_of_terminal(page, stop):
    """Check that the page asks what the terminal asks, apart from formulas, which look different."""
    (terminal,) = find_stops(stop)
    question, form = terminal.question, page.locator(".aside form")
    assert page.locator("#stop-title").inner_text().endswith(terminal.title)
    asked = form.locator("p").first.inner_text()
    assert [
        word for word in question.text.split() if word.isalpha() and len(word) > 2 and word not in asked
    ] == []
    assert form.get_by_role("radio").count() == len(question.options)


@pytest.mark.parametrize(("locale", "scheme"), [("en-GB", "light"), ("de-DE", "dark")])
@pytest.mark.parametrize("lecture", LECTURES)
def test_every_stop_fits_and_checks_its_answer(visit, axe, lecture, locale, scheme):
    words, stops = WORDS[locale], LECTURES[lecture]
    visitor = visit(width=1366, height=768, locale=locale, color_scheme=scheme)
    page = visitor.page
    go(visitor, stops[0])

    def expect_progress(count):
        page.get_by_text(words["progress"].format(count, len(stops))).first.wait_for()

    for i, stop in enumerate(stops):
        answer = ANSWERS[stop]
        page.get_by_role("heading", name=stop).wait_for()
        visitor.settle()
        assert fits(visitor, 768), stop
        assert axe(visitor) == [], stop
        if locale == "en-GB":
            expect_question_of_terminal(page, stop)
        check, status = visitor.button(words["check"]), page.locator("form .feedback")
        assert check.is_disabled()
        if isinstance(answer, set):
            options = page.get_by_role("radio")
            options.nth(next(k for k in range(options.count()) if k not in answer)).check()
        else:
            field = page.get_by_role("textbox", name=words["answer"])
            field.fill(f"{answer + 1:.4f}")
        check.click()
        visitor.expect(lambda status=status: words["wrong"] in status.inner_text(), True)
        page.get_by_text(words["solution"]).click()
        assert page.locator("details p").inner_text() != ""
        assert fits(visitor, 768), stop
        expect_progress(i)
        if isinstance(answer, set):
            options.nth(*answer).check()
        else:
            field.fill(f"{answer:.4f}".replace(".", "," if locale == "de-DE" else "."))
        check.click()
        visitor.expect(status.inner_text, words["right"])
        expect_progress(i + 1)
        check.focus()
        if stop != stops[-1]:
            page.keyboard.press("ArrowRight")
    page.reload()
    expect_progress(len(stops))
    assert page.locator(".lectures nav .done").count() == len(stops)


def test_first_unanswered_stop_opens(visitor):
    page = visitor.page
    visitor.open(model="modern", text="The duck was too tired", view="lectures")
    page.get_by_role("heading", name=FIRST).wait_for()
    visitor.button("Next stop →").click()
    page.get_by_role("heading", name=f"{FIRST[:-1]}2").wait_for()
    page.evaluate("stops => localStorage.setItem('lectures', JSON.stringify(stops))", list(ANSWERS)[:2])
    visitor.open(model="modern", text="The duck was too tired", view="lectures")
    page.get_by_role("heading", name=list(ANSWERS)[2]).wait_for()
    page.evaluate("stops => localStorage.setItem('lectures', JSON.stringify(stops))", list(ANSWERS))
    visitor.open(model="modern", text="The duck was too tired", view="lectures")
    page.get_by_role("heading", name=FIRST).wait_for()


def test_keys_and_address_move_through_the_stops(visitor):
    page = visitor.page
    go(visitor, "001.4")
    page.keyboard.press("ArrowRight")
    visitor.expect(lambda: "stop=001.5" in visitor.url, True)
    page.get_by_role("heading", name="001.5").wait_for()
    page.keyboard.press("ArrowLeft")
    page.get_by_role("heading", name="001.4").wait_for()
    page.get_by_label("Sequence").press("ArrowRight")  # moves the cursor only
    visitor.settle()
    assert "stop=001.4" in visitor.url
    page.go_back()
    page.get_by_role("heading", name="001.5").wait_for()
    page.go_forward()
    page.get_by_role("heading", name="001.4").wait_for()
    page.reload()
    page.get_by_role("heading", name="001.4").wait_for()
    visitor.settle()
    visitor.button("Next stop →").click()
    page.get_by_role("navigation", name="Stops").get_by_role("button", name="Self-attention").click()
    page.get_by_role("heading", name="001.7").wait_for()
    assert page.locator("nav [aria-current=step]").inner_text().endswith("Self-attention")


def test_number_of_a_lecture_opens_its_first_stop(visitor):
    go(visitor, "001")
    visitor.page.get_by_role("heading", name="001.1").wait_for()
    assert visitor.page.get_by_text("does not fit this model and text").count() == 0


def test_invalid_stop_is_reported(visitor):
    go(visitor, "001.99")
    visitor.page.get_by_text("does not fit this model and text: stop").wait_for()
    visitor.page.get_by_role("heading", name=FIRST).wait_for()


def test_links_open_views_with_the_inputs_of_the_figure(visitor):
    go(visitor, "001.7")
    edit(visitor, "query matrix", [[0, 2], [3, 1]])
    visitor.button("Open in Tiny head").click()
    entry = visitor.page.get_by_label("query matrix, row 1, column 0")
    visitor.expect(entry.input_value, "3")
    visitor.page.go_back()
    visitor.page.get_by_role("heading", name="001.7").wait_for()
    visitor.expect(visitor.page.get_by_label("query matrix, row 0, column 1").input_value, "2")
    visitor.button("Reset").click()
    visitor.expect(visitor.page.get_by_label("query matrix, row 0, column 1").input_value, "1")
    go(visitor, "001.5")
    fill(visitor, Zeros=5, Key_boost=2)
    visitor.button("Open in Labs").click()
    visitor.expect(visitor.page.get_by_role("textbox", name="sequence").input_value, "100000")
    visitor.settle()


@pytest.mark.parametrize(
    ("size", "locale", "scheme"),
    [((1280, 720), "de-DE", "light"), ((1280, 720), "en-GB", "dark"), ((1920, 1080), "en-GB", "light")],
)
@pytest.mark.parametrize("lecture", LECTURES)
def test_presenter_reveals_one_part_at_a_time(visit, axe, lecture, size, locale, scheme):
    stops = LECTURES[lecture]
    visitor = visit(width=size[0], height=size[1], locale=locale, color_scheme=scheme)
    page = visitor.page
    go(visitor, stops[0])
    page.keyboard.press("p")
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    parts = [dialog.locator(each) for each in (".idea", ".figure", ".aside section >> nth=0", "form")]

    def visible():
        return [part.is_visible() for part in parts]

    for stop in stops:
        page.get_by_role("heading", name=stop).wait_for()
        visitor.settle()
        for count, key in enumerate(("ArrowRight", " ", "PageDown", "ArrowRight"), 1):
            visitor.expect(visible, [i < count for i in range(4)])
            if count == 4:
                sizes = dialog.evaluate("({ scrollWidth, scrollHeight }) => [scrollWidth, scrollHeight]")
                assert sizes == list(size), stop
                assert float(dialog.evaluate("each => parseFloat(getComputedStyle(each).fontSize)")) >= 17.5
            if (stop, count) != (stops[-1], 4):
                page.keyboard.press(key)
    assert axe(visitor) == []
    page.keyboard.press("ArrowLeft")
    visitor.expect(visible, [True, True, True, False])
    notes = dialog.get_by_role("complementary")
    assert notes.count() == 0
    page.keyboard.press("n")
    notes.wait_for()
    assert axe(visitor) == []
    page.keyboard.press("n")
    visitor.expect(notes.count, 0)
    page.keyboard.press("Escape")
    visitor.expect(dialog.count, 0)
    visitor.expect(lambda: f"stop={stops[-1]}" in visitor.url, True)
    page.get_by_role("heading", name=stops[-1]).wait_for()


@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
@pytest.mark.parametrize("size", [(1280, 720), (1366, 768)])
def test_speaker_notes_cover_nothing(visit, size, locale):
    visitor = visit(width=size[0], height=size[1], locale=locale)
    page = visitor.page
    go(visitor, FIRST)
    page.keyboard.press("p")
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    page.keyboard.press("n")
    notes = dialog.get_by_role("complementary")
    notes.wait_for()

    def scrolls(part):
        return part.evaluate(
            "each => each.scrollHeight > each.clientHeight || each.scrollWidth > each.clientWidth"
        )

    for stop in ANSWERS:
        dialog.get_by_role("heading", name=stop).wait_for()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        visitor.expect(dialog.locator("form").is_visible, True)
        visitor.settle()
        for part in (dialog, dialog.locator(".stop"), notes):
            assert not scrolls(part), stop
        below = notes.bounding_box()
        assert (below["x"], below["width"]) == (0, size[0])
        assert below["y"] + below["height"] <= size[1], stop
        for name in (".idea", ".figure", ".aside section >> nth=0", "form"):
            box = dialog.locator(name).bounding_box()
            assert box["y"] >= 0, (stop, name)
            assert box["y"] + box["height"] <= below["y"], (stop, name)
        page.keyboard.press("ArrowRight")


def test_presentation_ends_at_the_last_stop(visitor):
    go(visitor, LAST)
    visitor.page.keyboard.press("p")
    dialog = visitor.page.get_by_role("dialog")
    for _ in range(6):
        visitor.page.keyboard.press("ArrowRight")
    visitor.expect(dialog.locator("form").is_visible, True)
    dialog.get_by_role("heading", name=LAST).wait_for()


def test_presentation_is_in_the_address(visitor):
    page, dialog = visitor.page, visitor.page.get_by_role("dialog", name="001.4")
    go(visitor, "001.4")
    page.keyboard.press("p")
    dialog.wait_for()
    visitor.expect(lambda: "presenting=yes" in visitor.url, True)
    page.reload()
    dialog.wait_for()
    page.keyboard.press("Escape")
    visitor.expect(dialog.count, 0)
    visitor.expect(lambda: "presenting" in visitor.url, False)
    page.get_by_role("heading", name="001.4").wait_for()


@pytest.mark.parametrize(
    ("stop", "names", "switch"),
    [
        ("000.4", ["weights, Simplified", "weights, De-simplified"], None),
        ("001.9", ["weights in this order"], "mask the future"),
        ("002.7", ["S", "P"], "mask the future"),
        ("002.10", ["P"], None),
    ],
)
def test_masked_future_is_hatched_in_the_figures(visitor, stop, names, switch):
    go(visitor, stop)

    def is_hatched(name):
        """Whether exactly the cells above the diagonal of a table are hatched."""
        return visitor.page.get_by_role("table", name=name, exact=True).evaluate(
            """(table) => [...table.tBodies[0].rows].every((row, i) =>
                [...row.cells].filter((cell) => cell.tagName === "TD").every((cell, j) =>
                  getComputedStyle(cell).backgroundImage.startsWith("repeating-linear-gradient") === j > i))"""
        )

    if switch is not None:
        mask = visitor.page.get_by_label(switch)
        mask.uncheck()
        visitor.expect(lambda: [is_hatched(name) for name in names], [False] * len(names))
        mask.check()
    visitor.expect(lambda: [is_hatched(name) for name in names], [True] * len(names))


@pytest.mark.parametrize("stop", ["000.1", "000.2"])
def test_stop_about_words_offers_a_model_whose_tokens_are_words(visit, models, stop):
    registry = make_registry(slots=1, shared=models["shared"], stories=ch.load("stories", device="cpu"))
    with running(registry) as server:
        visitor = visit(server, width=1366, height=768)
        visitor.forgive("status 400|400")  # its characters may not be those of the sentences
        visitor.open(model="shared", text="The duck was too tired", view="lectures", stop=stop)
        offer = visitor.page.get_by_text("The tokens of shared are parts of words here.")
        offer.wait_for()
        visitor.settle()
        assert fits(visitor, 768)
        visitor.button("Switch to stories").click()
        visitor.page.get_by_text(re.compile(r"model stories|of stories")).first.wait_for()
        visitor.settle()
        visitor.expect(offer.count, 0)
        assert visitor.button("Switch to stories").count() == 0
    registry.close(cancel=True)


def test_presenter_keeps_the_figure_and_leaves_keys_to_its_fields(visitor):
    page = visitor.page
    go(visitor, "001.5")
    fill(visitor, Zeros=7)
    page.locator(".brand").click()
    visitor.button("Present").click()
    dialog = page.get_by_role("dialog")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    zeros = dialog.get_by_role("slider", name="Zeros")
    visitor.expect(zeros.input_value, "7")
    zeros.focus()
    page.keyboard.press("ArrowRight")
    visitor.expect(zeros.input_value, "8")
    dialog.get_by_role("heading", name="001.5").click()
    page.keyboard.press("ArrowRight")
    dialog.get_by_role("heading", name="001.6").wait_for()
    visitor.button("Leave").click()
    visitor.expect(dialog.count, 0)


@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
def test_stops_fit_the_width_of_a_phone(visit, axe, locale):
    visitor = visit(width=360, height=740, locale=locale)
    for stop in ANSWERS:
        go(visitor, stop)
        assert visitor.page.evaluate("document.documentElement.scrollWidth") == 360, stop
    assert axe(visitor) == []


def test_numbers_fit_into_their_fields(visitor):
    go(visitor, "000.3")
    fields = visitor.page.locator(".figure input[type=number]")
    assert "-0.5" in fields.evaluate_all("fields => fields.map((field) => field.value)")
    assert fields.evaluate_all("fields => fields.every((field) => field.scrollWidth <= field.clientWidth)")
