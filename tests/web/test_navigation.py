"""Navigating the page: steps, blocks, heads, cells and their sources, text, and the next word."""

import re
import time

import pytest

from tests.web.visitor import visible

TEXT = "The duck was too tired"
STEPS = ["project", "QK-norm", "rotate", "compare", "divide", "mask", "softmax", "weigh", "sum", "write"]


def test_hovering_a_value_shows_how_it_was_computed(visitor):
    visitor.open(model="modern", text=TEXT, step=6)
    site = "block.0.head.0.weights"
    visitor.see(site)
    visitor.page.locator("[role=gridcell][data-row='3'][data-column='1']").hover()
    seen = visitor.see(site, (site, 3, 1))
    made = [cell for cell, _ in seen["made"]]
    assert made[0] == "block.0.head.0.masked 3 1"  # its own score, then those with the largest weights
    assert sorted(made) == sorted(f"block.0.head.0.masked 3 {column}" for column in range(len(made)))
    formulas = visitor.page.locator(".formula annotation").all_text_contents()
    assert len(formulas) == 3  # the formula in symbols, the result, and the formula in numbers
    assert "\\alpha_{3,1} = \\frac{e^{m_{3,1}}}{\\sum_{j} e^{m_{3,j}}}" in formulas[0]
    card = visitor.page.get_by_test_id("card")
    assert (
        card.locator("h3").inner_text() == f"attention weight from “{visitor.said[3]}” to “{visitor.said[1]}”"
    )
    assert card.locator(".python").inner_text() == 'trace["block.0.head.0.weights"][3, 1]'
    # The same holds for masked scores and for a norm.
    visitor.button("mask").click()
    visitor.page.locator("[role=gridcell][data-row='2'][data-column='1']").hover()
    visitor.see("block.0.head.0.masked", ("block.0.head.0.masked", 2, 1))
    visitor.open(model="lecture", text=TEXT, part="norm", step=2)
    visitor.page.locator("[role=gridcell][data-row='1'][data-column='2']").hover()
    visitor.see("block.0.normed", ("block.0.normed", 1, 2))


def test_sources_of_a_hovered_value_are_highlighted(visitor):
    visitor.open(model="modern", text=TEXT, step=5)
    masked, weights = "block.0.head.0.masked", "block.0.head.0.weights"
    told, before = visitor.see(masked)["told"], visitor.page.locator(".detail").inner_text()
    flow = visitor.page.locator("[data-place=flow]")
    left = flow.locator(".heading.attention").evaluate("(heading) => parseFloat(heading.style.left)")
    top, row = 46, 26  # pixels; with a text this short, cells are as wide as rows are high
    flow.locator("canvas").hover(position={"x": left + 1.5 * row, "y": top + 3.5 * row})
    columns = {column for _, column, _ in visitor.see(masked)["cells"]}
    inputs = [[3, column] for column in sorted(columns)]
    visitor.expect(lambda: visitor.see(masked)["highlighted"], inputs)
    # The step, its sentence and the formula stay with the selected number.
    assert visitor.see(masked)["told"] == told
    assert visitor.page.locator(".detail").inner_text() == before
    # Where the matrix shows the number under the pointer, all of them follow it.
    visitor.button("softmax").click()
    flow.locator("canvas").hover(position={"x": left + 1.4 * row, "y": top + 3.5 * row})
    visitor.see(weights, (weights, 3, 1))
    token = visitor.said[3]
    visitor.expect(
        lambda: visitor.page.locator(".detail h2").inner_text(), f"Block 0, head 0: attention from “{token}”"
    )


def test_value_is_traced_down_to_a_weight_and_back(visitor):
    visitor.open(model="modern", text=TEXT, block=1, step=6)
    cell = ("block.1.head.0.weights", 3, 1)
    visitor.see(cell[0])
    visitor.page.locator("[role=gridcell][data-row='3'][data-column='1']").click()
    way = [
        ("block.1.head.0.masked", 3, 1),
        ("block.1.head.0.scaled", 3, 1),
        ("block.1.head.0.scores", 3, 1),
        ("block.1.head.0.query", 3, None),
        ("block.1.head.0.query_normed", 3, None),
        ("block.1.head.0.query_raw", 3, None),
        ("block.1.head.0.W_Q", None, None),
    ]
    for name, *_ in way:
        visitor.page.locator(f"[data-testid=card] .number[data-cell^='{name} ']").first.click()
        visitor.page.wait_for_selector(f"[data-testid=card] h3[data-cell^='{name} ']")
    card = visitor.page.get_by_test_id("card")
    assert "a trained weight" in card.inner_text()
    assert card.locator(".number").count() == 0
    doors = card.locator("nav .crumb")
    cells = doors.evaluate_all("(doors) => doors.map((door) => door.dataset.cell)")
    assert [each.split()[0] for each in cells] == [cell[0], *(name for name, *_ in way)]
    names = doors.locator(".hidden").all_text_contents()
    assert names[0].startswith("attention weight from “")
    assert names[-1].startswith("weight, row ")
    card.get_by_role("button", name="← Back").click()
    visitor.page.wait_for_selector("[data-testid=card] h3[data-cell^='block.1.head.0.query_raw ']")
    visitor.page.keyboard.press("Escape")
    visitor.page.wait_for_selector("[data-testid=card] h3[data-cell^='block.1.head.0.query_normed ']")
    doors.first.click()
    visitor.see(cell[0], cell)


def test_keys_and_buttons_change_the_step(visitor):
    visitor.open(model="modern", text=TEXT)
    assert visitor.page.locator(".steps .pill").all_inner_texts() == STEPS
    visitor.page.keyboard.press("ArrowRight")
    visitor.expect(lambda: visitor.step, "QK-norm")
    visitor.button("Next step").click()
    visitor.expect(lambda: visitor.step, "rotate")
    visitor.button("Previous step").click()
    visitor.page.keyboard.press("ArrowLeft")
    visitor.expect(lambda: visitor.step, "project")
    visitor.page.keyboard.press("ArrowLeft")  # the previous part
    visitor.see("block.0.normed")
    visitor.button("Feed-forward").click()
    visitor.see("block.0.hidden_gate")


def test_play_and_pause(visitor):
    visitor.open(model="modern", text=TEXT)
    visitor.page.clock.install()
    visitor.button("Play").click()
    for name in STEPS[1:3]:
        visitor.page.clock.run_for(2300)
        visitor.expect(lambda: visitor.step, name)
    visitor.button("Pause").click()
    visitor.page.clock.run_for(5000)
    visitor.expect(lambda: visitor.step, STEPS[2])
    visitor.page.keyboard.press("p")
    visitor.page.clock.run_for(2300)
    visitor.expect(lambda: visitor.step, STEPS[3])


def test_keys_and_buttons_change_the_block_and_the_head(visitor):
    def stands():
        found = re.match(r"Block (\d), head (\d)", visitor.page.locator(".detail h2").inner_text())
        return found.groups()

    visitor.open(model="modern", text=TEXT)
    for key, there in [("]", "01"), ("]", "10"), ("PageDown", "00"), ("PageUp", "10"), ("[", "01")]:
        visitor.page.keyboard.press(key)
        visitor.expect(stands, tuple(there))
        visitor.see(f"block.{there[0]}.head.{there[1]}.query_raw")
    for name, there in [("Next head", "10"), ("Next block", "00"), ("Previous block", "10")]:
        visitor.button(name).click()
        visitor.expect(stands, tuple(there))
    visitor.button("Previous head").click()
    visitor.expect(stands, tuple("01"))


def test_head_is_selected_from_the_thumbnails(visitor):
    visitor.open(model="modern", text=TEXT, view="heads")
    pictures = visitor.page.locator("[data-place=heads] canvas")
    left, top = 58, 18  # pixels that the names of blocks and heads take up
    pitch = (pictures.bounding_box()["height"] - top) / 2
    pictures.click(position={"x": left + pitch / 2, "y": top + 1.5 * pitch})
    visitor.see("block.1.head.0.query_raw")
    visitor.page.go_back()
    visitor.expect(pictures.count, 1)


def test_flow_columns_and_tokens_can_be_selected(visitor):
    visitor.open(model="modern", text=TEXT)
    flow = visitor.page.locator("[data-place=flow]")
    flow.get_by_role("button", name="feed-forward").click()
    visitor.see("block.0.hidden_gate")
    flow.get_by_role("button", name="key", exact=True).click()
    visitor.see("block.0.head.0.key_raw")
    flow.locator("canvas").click(position={"x": 20, "y": 46 + 2.5 * 26})
    visitor.page.wait_for_selector("[role=row][aria-rowindex='3'] .strong")


def test_step_leads_to_why_the_head_attends(visitor):
    visitor.open(model="modern", text=TEXT, block=1, step="softmax")
    visitor.button("Why?").click()
    heading = visitor.page.get_by_role("heading", name="Why head 1.0 attends from")
    heading.wait_for()
    intro = visitor.page.get_by_text("The residual stream is the sum of everything")
    assert heading.bounding_box()["y"] < intro.bounding_box()["y"]
    visitor.page.go_back()
    visitor.expect(lambda: visitor.step, "softmax")


def test_typing_and_examples_update_the_tokens(visitor, models):
    visitor.open(model="lecture", text="a", part="embedding")
    visitor.prompt.press("End")
    visitor.prompt.press_sequentially(" duck saw")
    visitor.page.wait_for_function("() => document.querySelectorAll('[role=rowheader]').length > 3")
    tokens = [visible(token) for token in models["lecture"].inspect("a duck saw").tokens]
    visitor.expect(lambda: visitor.said, tokens)
    visitor.button("Examples ▾").click()
    visitor.page.get_by_role("button", name="Once upon a time").click()
    visitor.expect(visitor.prompt.input_value, "Once upon a time")
    tokens = [visible(token) for token in models["lecture"].inspect("Once upon a time").tokens]
    visitor.expect(lambda: visitor.said, tokens)


def test_unknown_character_is_reported_until_corrected(visitor):
    visitor.forgive("400")
    visitor.open(model="shared", text="a cat")
    visitor.prompt.fill("a çat")
    visitor.page.get_by_role("alert").filter(has_text="ç").wait_for()
    visitor.prompt.fill("a rat")
    visitor.settle()
    visitor.expect(visitor.page.get_by_role("alert").count, 0)


def test_a_long_unknown_word_does_not_widen_the_page(visitor):
    visitor.forgive("400")
    visitor.open(model="shared", text="a cat")
    visitor.prompt.fill("ç" * 400)
    visitor.page.get_by_role("alert").filter(has_text="ç").wait_for()
    assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_clicking_a_candidate_appends_it(visitor):
    visitor.open(model="shared", text="a cat", part="embedding")
    candidate = visitor.page.locator(".next li button").nth(2)
    title = candidate.get_attribute("title")
    candidate.click()
    visitor.page.wait_for_function("() => document.querySelectorAll('[role=rowheader]').length === 6")
    assert visitor.prompt.input_value()[:5] == "a cat"
    assert (
        title == f"Append “{visitor.prompt.input_value()[5:]}”" or visitor.prompt.input_value()[5:].isspace()
    )
    assert visitor.page.locator(".pulse").count() == 1  # only the new token is animated


def test_next_token_is_sampled_and_generation_can_be_stopped(visitor):
    visitor.open(model="shared", text="a cat")
    visitor.page.get_by_label("temperature", exact=True).fill("0")
    likeliest = visitor.page.locator(".next li button").first.get_attribute("title")
    visitor.button("Next token ⏎").click()
    visitor.page.wait_for_function("() => document.querySelector('textarea').value.length === 6")
    visitor.settle()
    assert likeliest == f"Append “{visitor.prompt.input_value()[5:]}”"
    visitor.button("Generate").click()
    visitor.page.wait_for_function("() => document.querySelector('textarea').value.length > 9")
    visitor.button("Stop").click()

    def is_unchanged():
        visitor.settle()
        text = visitor.prompt.input_value()
        time.sleep(0.5)
        return visitor.prompt.input_value() == text

    visitor.expect(is_unchanged, True)  # the last token may still be on its way


def test_each_token_is_chosen_from_its_own_prediction(visitor, models):
    text = "a cat"
    expected = text + models["shared"].generate(text, temperature=0, tokens=30)
    visitor.open(model="shared", text=text, temperature=0)
    for _ in range(5):
        visitor.button("Next token ⏎").click()
    visitor.expect(lambda: visitor.prompt.input_value(), expected[: len(text) + 5])
    visitor.button("Generate").click()
    visitor.page.get_by_role("navigation").get_by_role("button", name="Logit lens", exact=True).click()
    visitor.expect(lambda: len(visitor.prompt.input_value()) >= len(text) + 12, True)
    visitor.page.locator("main").get_by_role("button", name="Stop", exact=True).first.click()
    visitor.settle()
    assert expected.startswith(visitor.prompt.input_value())


def test_typing_stops_generation(visitor):
    visitor.open(model="shared", text="a cat")
    visitor.button("Generate").click()
    visitor.expect(lambda: len(visitor.prompt.input_value()) > 7, True)
    visitor.type("the duck")
    visitor.button("Generate").wait_for()
    visitor.settle()
    assert visitor.prompt.input_value() == "the duck"


def test_drilling_keeps_the_head_and_outlines_the_number(visitor):
    visitor.open(model="lecture", text=TEXT, block=1, head=1, step="compare")
    visitor.page.locator("[data-testid=card] .number[data-cell^='block.1.head.1.key ']").first.click()
    visitor.expect(lambda: visitor.site, "block.1.head.1.key_raw")
    visitor.expect(lambda: visitor.page.locator(".cell.chosen").count(), 1)
    visitor.page.locator("[data-testid=card] .number[data-cell^='block.1.normed ']").first.click()
    visitor.see("block.1.normed")
    visitor.expect(lambda: visitor.page.locator(".cell.chosen").count(), 1)
    assert "head=1" in visitor.url


def test_window_slides_over_text_beyond_the_context(visitor, models):
    text = "the duck saw a cat near the pond and the cat saw the duck"
    model = models["shared"]
    beyond = len(text) - 48
    visitor.open(model="shared", text=text, part="embedding")
    assert f"the first {beyond} are outside the context" in visitor.page.locator(".context").inner_text()
    trace = model.inspect(model.tokenizer.encode(text)[-48:])
    (row, column, shown) = visitor.see("embedding")["cells"][0]
    assert shown.replace("−", "-") == f"{trace['embedding'][row, column].item():.2f}"
    visitor.page.locator(".next li button").first.click()
    visitor.page.get_by_text(f"the first {beyond + 1} are outside the context").wait_for()


@pytest.mark.parametrize("model", ["gpt2", "lecture"])
def test_model_can_be_switched(visitor, model):
    visitor.open(model="modern", text=TEXT)
    visitor.page.locator("header button").first.click()
    visitor.page.locator("[popover] li button").filter(has_text=model).first.click()
    visitor.see("block.0.head.0.query_raw")
    visitor.page.wait_for_function("() => document.querySelectorAll('.steps .pill').length === 8")


def test_language_can_be_switched(visit):
    visitor = visit(locale="de-DE")
    visitor.open(model="modern", text=TEXT)
    assert visitor.page.locator("html").get_attribute("lang") == "de"
    visitor.page.get_by_label("Sprache").select_option("en")
    visitor.page.get_by_label("Language").wait_for()
    assert visitor.page.locator("html").get_attribute("lang") == "en"
    visitor.page.reload()
    visitor.page.get_by_label("Language").wait_for()


def test_tour_ends_when_another_view_is_opened(visit):
    visitor = visit(walked=False)
    walk = visitor.page.get_by_label("Short tour")
    visitor.open(model="modern")
    walk.wait_for()
    visitor.page.keyboard.press("ArrowRight")
    visitor.expect(lambda: "2 / 6" in walk.inner_text(), True)
    visitor.page.get_by_role("navigation").get_by_role("button", name="Lectures", exact=True).click()
    visitor.expect(walk.count, 0)
    visitor.button("Start the tour").click()
    walk.wait_for()
    visitor.page.get_by_role("navigation").get_by_role("button", name="Step by step", exact=True).click()
    visitor.expect(walk.count, 0)


def test_tour_is_shown_on_the_first_visit_only(visit):
    visitor = visit(walked=False)
    walk = visitor.page.get_by_label("Short tour")
    visitor.open(model="modern", text=TEXT)  # a link to a text opens without the tour
    assert walk.count() == 0
    visitor.open(model="modern")
    walk.wait_for()
    for key, stop in [("ArrowRight", 2), ("ArrowRight", 3), ("ArrowLeft", 2), ("ArrowLeft", 1)]:
        visitor.page.keyboard.press(key)
        visitor.expect(lambda stop=stop: f"{stop} / 6" in walk.inner_text(), True)
    for _ in range(5):
        walk.get_by_role("button", name="Next").click()
    walk.get_by_role("heading", name="Keyboard shortcuts").wait_for()
    walk.get_by_role("button", name="Done").click()
    visitor.expect(walk.count, 0)
    visitor.page.reload()
    visitor.settle()
    visitor.expect(walk.count, 0)
    visitor.button("Start the tour").click()
    walk.get_by_role("button", name="Skip").click()
    visitor.expect(walk.count, 0)
    visitor.button("Start the tour").click()
    visitor.page.keyboard.press("Escape")
    visitor.expect(walk.count, 0)


def test_keys_change_nothing_in_a_view_without_steps(visitor):
    visitor.open(model="modern", text=TEXT, view="labs", block=0)
    before = visitor.page.url
    for key in ("PageDown", "ArrowDown", "ArrowRight"):
        visitor.page.keyboard.press(key)
    visitor.settle()
    assert visitor.page.url == before


def test_the_input_of_a_block_is_shown_in_that_block(visitor):
    visitor.open(model="modern", text=TEXT, block=1, part="norm", step="norm")
    visitor.see("block.1.normed")
    visitor.page.locator("[role=gridcell][data-row='3'][data-column='1']").click()
    visitor.page.locator("[data-testid=card] .number").first.click()
    visitor.see("block.1.input", ("block.1.input", 3, 1))
    assert visitor.page.locator(".detail h2").inner_text() == "Block 1: First norm"
    visitor.page.locator("[data-testid=card] .number").first.click()
    visitor.see("block.0.output", ("block.0.output", 3, 1))
    assert visitor.page.locator(".detail h2").inner_text() == "Block 0: Add feed-forward"


def test_hints_are_not_cut_off_on_a_small_laptop(visit):
    visitor = visit(width=1280, height=720)
    visitor.open(model="modern", text="The duck was too tired", block=1)
    hints = visitor.page.locator("[data-testid=card] .order")
    hints.first.wait_for()
    assert hints.evaluate_all("(all) => all.every((each) => each.scrollWidth <= each.clientWidth)")
