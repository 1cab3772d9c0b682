"""One screen: what a view is about is visible without scrolling, and the address holds where one is."""

import pytest

TEXT = "The duck was too tired to swim, so it sat down"
SCREENS = {"laptop": (1366, 768), "larger": (1440, 900), "desktop": (1920, 1080)}
VIEWS = ["steps", "heads", "compare", "change", "why", "lens", "words", "tiny", "labs"]


def box(visitor, selector):
    return visitor.page.locator(selector).first.bounding_box()


@pytest.mark.parametrize("language", ["en-GB", "de-DE"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_flow_and_step_share_the_screen(visit, models, screen, scheme, language):
    width, height = SCREENS[screen]
    visitor = visit(width=width, height=height, color_scheme=scheme, locale=language)
    model = models["lecture"]
    ids = model.tokenizer.encode(TEXT)[:16]
    assert len(ids) == 16
    for step in (0, 2, 4):
        visitor.open(model="lecture", text=model.tokenizer.decode(ids), step=step)
        prompt, flow, detail, grid = (
            box(visitor, each)
            for each in ("textarea", "[data-place=flow] canvas", ".detail", ".detail [role=grid]")
        )
        assert 0 <= prompt["y"] < flow["y"] < detail["y"]
        assert flow["y"] + flow["height"] <= detail["y"]
        assert detail["y"] + detail["height"] <= height
        assert grid["y"] + grid["height"] <= detail["y"] + detail["height"]
        assert visitor.page.evaluate("document.documentElement.scrollHeight") <= height
        assert visitor.page.locator("[role=rowheader]").count() == 16
        assert box(visitor, "[data-place=next]")["y"] < 200


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_begins_on_the_first_screen(visit, view):
    visitor = visit(width=1366, height=768)
    visitor.open(model="lecture", text=TEXT, view=view)
    place = box(visitor, "[data-place=heads], [data-place=detail]")
    assert place["y"] < 200 if view != "steps" else place["y"] < 500
    strip = visitor.page.locator("[data-place=flow] .tokens")
    assert strip.count() == (view in ("heads", "compare", "change", "why", "lens", "words"))


def test_strip_selects_tokens_and_heads_and_shows_the_next_word(visitor, models):
    trace = models["modern"].inspect(TEXT)
    visitor.open(model="modern", text=TEXT, view="lens")
    strip = visitor.page.locator("[data-place=flow]")
    tokens = strip.locator(".tokens button")
    assert tokens.count() == len(trace.tokens)
    tokens.nth(2).click()
    visitor.expect(lambda: tokens.nth(2).get_attribute("aria-pressed"), "true")
    strip.get_by_role("button", name="Next head").click()
    visitor.expect(lambda: "head 1 / 1" in strip.inner_text(), True)
    weight = trace.weights(0)[1, 2, 1].item()
    visitor.expect(lambda: f"{100 * weight:.0f}" in (tokens.nth(1).get_attribute("title") or ""), True)
    strip.get_by_role("button", name="next word").click()
    visitor.page.get_by_label("temperature", exact=True).wait_for()
    visitor.page.keyboard.press("Escape")
    visitor.button("Next word ⏎").click()
    visitor.expect(tokens.count, len(trace.tokens) + 1)


def test_back_and_forward_walk_ten_drills_and_a_link_restores_them(visit):
    visitor = visit()
    visitor.open(model="modern", text="The duck was too tired", block=1, part="add2")
    place = "[data-testid=card] h3"

    def now():
        return visitor.page.locator(place).get_attribute("data-cell")

    first = "block.1.output"
    visitor.see(first)
    visitor.page.locator("[role=gridcell][data-row='3'][data-column='1']").click()
    visitor.see(first, (first, 3, 1))
    way = [now()]
    drill = ["feedforward", "hidden", "hidden_gate", "normed2", "middle", "attention", "head.0.output"]
    drill += ["head.0.mixed", "head.0.weights", "head.0.masked"]
    for name in drill:
        visitor.page.locator(f"[data-testid=card] .number[data-cell^='block.1.{name} ']").first.click()
        visitor.page.wait_for_selector(f"{place}[data-cell^='block.1.{name} ']")
        # The matrix shows the number, too, and marks it.
        visitor.expect(lambda site=f"block.1.{name}": visitor.site, f"block.1.{name}")
        visitor.page.wait_for_selector("[role=gridcell].chosen")
        way.append(now())
    link = visitor.page.url
    for before in reversed(way[:-1]):
        visitor.page.go_back()
        visitor.expect(now, before)
    visitor.page.go_forward()
    visitor.expect(now, way[1])
    visitor.page.goto(link)
    visitor.settle()
    visitor.expect(now, way[-1])
    crumbs = visitor.page.locator("[data-testid=card] nav .crumb")
    assert crumbs.count() == len(way)


def test_generated_text_is_one_entry_of_the_history(visitor):
    visitor.open(model="shared", text="a cat")
    before = visitor.page.evaluate("history.length")
    visitor.button("Generate").click()
    visitor.page.wait_for_function("() => document.querySelector('textarea').value.length > 12")
    visitor.button("Stop").click()
    visitor.settle()
    assert visitor.page.evaluate("history.length") <= before + 1


def test_active_edits_are_shown_in_every_view_and_can_be_undone(visitor):
    edits = '[{"site": "block.1.head.0.output", "value": 0}, {"site": "block.0.head.1.output", "scale": 2}]'
    bar = visitor.page.get_by_test_id("edits")
    for view in ("steps", "heads", "compare", "why", "lens", "words"):
        visitor.open(model="modern", text="The duck was too tired", view=view, edits=edits)
        visitor.expect(lambda: "2 edits active" in bar.inner_text(), True)
        assert "head 1.0: ablated" in bar.inner_text()
    bar.get_by_role("button", name="Undo last").click()
    visitor.expect(lambda: "1 edit active" in bar.inner_text(), True)
    bar.get_by_role("button", name="Undo last").click()
    visitor.expect(bar.count, 0)
