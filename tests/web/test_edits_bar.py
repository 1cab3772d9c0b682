"""Active edits: the bar that lists them, the marks on what is edited, and the room that is left for each view."""

import pytest

from tests.web.test_screen import SUBJECTS, TEXT, box, page_height
from tests.web.visitor import precise

EDITS = '[{"site": "block.1.head.0.output", "value": 0}]'
WHOLE = {"steps", "heads", "lens", "learning", "tiny"}  # views whose subject fits on the screen with the bar


@pytest.mark.parametrize("language", ["en-GB", "de-DE"])
@pytest.mark.parametrize("view", SUBJECTS)
def test_view_shows_its_subject_below_the_bar(visit, models, view, language):
    visitor = visit(width=1366, height=768, locale=language)
    model = models["lecture"]
    text = model.tokenizer.decode(model.tokenizer.encode(TEXT)[:16])
    other = {"other": text.replace("tired", "sad")} if view == "compare" else {}
    visitor.open(model="lecture", text=text, view=view, edits=EDITS, **other)
    bar = visitor.page.get_by_test_id("edits")
    if view != "change":  # which lists the edits itself
        bar.wait_for()
        shown = bar.bounding_box()
        assert shown["height"] < 40  # one line
        assert shown["y"] + shown["height"] <= 768 / 4
    visitor.page.wait_for_selector(SUBJECTS[view])
    subject = box(visitor, SUBJECTS[view])
    height = subject["height"] if view in WHOLE else min(subject["height"], 200)
    assert subject["y"] + height <= 768
    if view in WHOLE:
        assert page_height(visitor) <= 768


def test_edited_parts_are_marked_and_the_screen_still_fits(visit, models):
    visitor = visit(width=1366, height=768)
    model = models["lecture"]
    text = model.tokenizer.decode(model.tokenizer.encode(TEXT)[:16])
    marks = visitor.page.get_by_role("img", name="edited")
    visitor.open(model="lecture", text=text, block=1, head=0, step=7, edits=EDITS)
    visitor.see("block.1.head.0.output")
    visitor.expect(marks.count, 3)  # the block, the head, and the open matrix
    assert visitor.page.evaluate("document.documentElement.scrollHeight") <= 768
    computed = precise(model.inspect(text)["block.1.head.0.output"][-1, 0].item())
    note = f"An edit set this number to {precise(0.0)}. Without it, the formula gives {computed}."
    visitor.expect(visitor.page.get_by_role("note").all_inner_texts, [note])
    visitor.page.get_by_role("button", name="Next head").click()
    visitor.expect(marks.count, 1)  # the block
    visitor.open(model="lecture", text=text, block=0, head=0, step=7, edits=EDITS)
    visitor.see("block.0.head.0.output")
    assert marks.count() == 0
    visitor.open(model="lecture", text=text, view="heads", block=1, head=0, edits=EDITS)
    visitor.expect(marks.count, 2)  # in the line above
    assert visitor.page.evaluate("document.documentElement.scrollHeight") <= 768


def test_active_edits_are_shown_in_every_view_and_can_be_undone(visitor):
    edits = '[{"site": "block.1.head.0.output", "value": 0}, {"site": "block.0.head.1.output", "scale": 2}]'
    bar = visitor.page.get_by_test_id("edits")
    for view in ("steps", "heads", "compare", "why", "lens", "words"):
        visitor.open(model="modern", text="The duck was too tired", view=view, edits=edits)
        visitor.expect(lambda: "2 edits active" in bar.inner_text(), True)
        assert "head 1.0: ablated" in bar.inner_text()
        assert ("only the nearest neighbors use edits" in bar.inner_text()) == (view == "words")
    visitor.open(model="modern", text="The duck was too tired", view="tiny", edits=edits)
    visitor.expect(lambda: "does not use edits" in bar.inner_text(), True)
    bar.get_by_role("button", name="Undo last").click()
    visitor.expect(lambda: "1 edit active" in bar.inner_text(), True)
    bar.get_by_role("button", name="Undo last").click()
    visitor.expect(bar.count, 0)
