"""One screen: the main content of each view is visible without scrolling, and the URL holds the location."""

import pytest
import torch

from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from tests.serving import make_registry, running
from tests.web.visitor import percent, visible

TEXT = "The duck was too tired to swim, so it sat down"
SCREENS = {"laptop": (1366, 768), "larger": (1440, 900), "desktop": (1920, 1080)}
PHONE = (390, 844)
SUBJECTS = {  # what each view is about
    "steps": ".detail [role=grid]",
    "heads": "[data-place=heads] canvas",
    "compare": ".texts",
    "change": ".change table",
    "why": ".why .parts",
    "lens": ".lens .scroll",
    "words": ".words svg",
    "learning": ".learning .stages",
    "lectures": ".lectures .figure",
    "tiny": ".tiny .matrix",
    "labs": ".labs .intro",
}


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
        visitor.open(model="lecture", text=model.tokenizer.decode(ids[:13]), step=step)
        assert visitor.page.evaluate("document.documentElement.scrollHeight") <= height
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


def page_height(visitor):
    return visitor.page.evaluate("document.documentElement.scrollHeight")


def test_every_step_fits_on_the_screen_at_the_same_place(visit, models):
    visitor = visit(width=1366, height=768)
    model = models["lecture"]
    text = model.tokenizer.decode(model.tokenizer.encode(TEXT)[:14])
    places = set()
    steps = visitor.page.locator(".steps .pill")
    for part in ("embedding", "norm", "head", "add", "norm2", "feedforward", "add2", "final"):
        visitor.open(model="lecture", text=text, part=part)
        for i in range(steps.count()):
            steps.nth(i).click()
            visitor.expect(lambda i=i: steps.nth(i).get_attribute("aria-current"), "step")
            visitor.settle()
            assert page_height(visitor) <= 768, (part, i)
            assert visitor.page.locator("[role=rowheader]").count() == 14
            grid = visitor.page.locator("[role=grid]")
            assert grid.evaluate("(grid) => grid.scrollHeight <= grid.clientHeight"), (part, i)
            detail = box(visitor, ".detail")
            places.add((round(detail["y"]), round(detail["height"])))
    assert len(places) == 1


def test_map_takes_the_rest_of_the_screen_and_a_link_restores_it(visit):
    visitor = visit(width=1366, height=768)
    visitor.open(model="long", text=" ".join([TEXT] * 4), step="softmax")
    visitor.page.wait_for_selector(".map canvas")
    visitor.expect(lambda: page_height(visitor), 768)
    shown = box(visitor, ".map canvas")
    assert 100 < shown["height"] <= 768 - shown["y"]
    visitor.button("Numbers").click()
    visitor.page.wait_for_selector(".detail [role=grid]")
    visitor.expect(lambda: "matrix=numbers" in visitor.url, True)
    visitor.page.reload()
    visitor.page.wait_for_selector(".detail [role=grid]")
    assert visitor.page.locator(".map").count() == 0
    visitor.open(model="long", text="The duck was too tired", step="softmax", matrix="map")
    visitor.page.wait_for_selector(".map canvas")


@pytest.mark.parametrize("screen", SCREENS)
def test_all_heads_fit_on_the_screen_however_long_the_description_is(visit, screen):
    width, height = SCREENS[screen]
    visitor = visit(width=width, height=height, locale="de-DE")
    for order in ("block", "induction"):
        visitor.open(model="lecture", text=TEXT, view="heads", order=order)
        visitor.page.wait_for_selector("[data-place=heads] canvas")
        visitor.expect(lambda: page_height(visitor) <= height, True)


@pytest.fixture(scope="module")
def deep_server(models):
    tokenizer = models["modern"].tokenizer
    torch.manual_seed(0)
    sizes = {"n_context": 48, "n_block": 30, "n_head": 3, "d_model": 12}
    deep = LanguageModel(Transformer(preset("modern", n_vocab=tokenizer.n_vocab, **sizes)).eval(), tokenizer)
    registry = make_registry(slots=1, deep=deep)
    with running(registry) as server:
        yield server
    registry.close(cancel=True)


def test_logit_lens_of_many_blocks_shows_the_selected_one(visit, deep_server):
    visitor = visit(deep_server, width=1366, height=768)
    selected = visitor.page.locator(".lens td.current")
    for block in (2, 28, 14):
        visitor.open(model="deep", text=TEXT, view="lens", block=block)
        selected.wait_for()
        assert page_height(visitor) <= 768
        scrolled, cell = box(visitor, ".lens .scroll"), selected.bounding_box()
        assert selected.get_attribute("data-cell").startswith(f"{block}.")
        assert scrolled["y"] <= cell["y"]
        assert cell["y"] + cell["height"] <= scrolled["y"] + scrolled["height"]
        said = visitor.page.get_by_test_id("cell-description")
        assert f"block {block}" in said.inner_text()
        assert said.bounding_box()["y"] < 768 - 20


@pytest.mark.parametrize("width", [390, 360, 1366])
def test_logit_lens_shows_whole_columns(visit, width):
    visitor = visit(width=width, height=844)
    visitor.open(model="modern", text=f"{TEXT} {TEXT}"[:70], view="lens")
    visitor.page.locator(".lens td.current").wait_for()
    hidden = """(frame) => {
      const box = frame.querySelector(".scroll");
      const start = frame.querySelector("tbody th").getBoundingClientRect().right;
      const end = box.getBoundingClientRect().left + box.clientWidth;
      const cells = [...frame.querySelector("tbody tr").querySelectorAll("td")].map((cell) => {
        const { left, right } = cell.getBoundingClientRect();
        return { cut: (left < start - 1 && right > start + 5) || (left < end - 5 && right > end + 1) };
      });
      return [cells.length > 5, cells.some(({ cut }) => cut), frame.className.match(/before|after/g)];
    }"""
    frame = visitor.page.locator(".lens .frame")
    visitor.expect(lambda: frame.evaluate(hidden), [True, False, ["before"]])  # the last token is selected
    frame.locator(".scroll").evaluate("(box) => (box.scrollLeft = 70)")
    visitor.expect(lambda: frame.evaluate(hidden), [True, False, ["before", "after"]])
    frame.locator(".scroll").evaluate("(box) => (box.scrollLeft = 0)")
    visitor.expect(lambda: frame.evaluate(hidden), [True, False, ["after"]])


def test_effects_of_many_blocks_are_beside_the_edits(visit, deep_server):
    visitor = visit(deep_server, width=1366, height=768)
    visitor.open(model="deep", text=TEXT, view="change")
    effects = "[data-testid=effects]"
    visitor.page.wait_for_selector(f"{effects} [role=gridcell]")
    visitor.expect(lambda: visitor.page.locator(f"{effects}[aria-busy=false]").count(), 1)
    grid, targets = box(visitor, f"{effects} [role=grid]"), box(visitor, ".change .target")
    assert grid["x"] > targets["x"] + targets["width"]
    assert grid["y"] + grid["height"] <= 768
    assert page_height(visitor) <= 768


def test_effects_show_progress_and_results_as_they_come(visit, deep_server):
    visitor = visit(deep_server, width=1366, height=768)
    visitor.open(model="deep", text=TEXT)
    held, allowed = [], []  # portions of the blocks

    def answer(route):
        last = route.request.post_data_json["blocks"][1]
        route.continue_() if last in allowed else held.append(route)

    def release(portions):
        allowed.extend(portions)
        while held:
            held.pop().continue_()

    visitor.page.route("**/api/effects", answer)
    visitor.button("Edit").click()
    effects = visitor.page.get_by_test_id("effects")
    effects.get_by_text("0 of 90 heads").wait_for()
    assert effects.get_by_role("grid").count() == 0
    visitor.expect(lambda: effects.count() == 1 and len(held) > 0, True)
    release([30])  # the last blocks come first
    cells = effects.get_by_role("gridcell")
    effects.get_by_role("grid").wait_for()
    assert effects.get_by_text("0 of 90 heads", exact=True).count() == 0
    assert "–" not in "".join(cells.all_inner_texts())  # what is not known yet is empty
    visitor.expect(lambda: effects.count() == 1 and len(held) > 0, True)  # the second portion
    release(range(30))
    visitor.expect(lambda: visitor.page.locator("[data-testid=effects][aria-busy=false]").count(), 1)
    visitor.expect(lambda: "" in cells.all_inner_texts(), False)
    assert effects.locator("progress").count() == 0


def test_pointing_at_a_pattern_says_who_attends_to_whom(visitor, models):
    text = "The duck was too tired"
    trace = models["modern"].inspect(text)
    visitor.open(model="modern", text=text, view="heads")
    visitor.page.wait_for_selector("[data-place=heads] canvas")
    size = len(trace.tokens)
    visitor.expect(lambda: visitor.page.locator(".caption.strong").first.inner_text(), "head 0")
    column = box(visitor, ".caption.strong")
    canvas = box(visitor, "[data-place=heads] canvas")
    cell = (column["width"] - 2) / size
    height = ((canvas["height"] - 18) / models["modern"].config.n_block - 6 - 2) / size  # of a cell
    # The last token's weight on the second one, in block 0, head 0.
    x = column["x"] + 1 + 1.5 * cell
    visitor.page.mouse.move(x, canvas["y"] + 18 + 1 + (size - 0.5) * height)
    weight = trace.weights(0)[0, -1, 1].item()
    tooltip = visitor.page.get_by_role("tooltip").filter(has_text=percent(weight))
    visitor.expect(lambda: visible(trace.tokens[1]) in "".join(tooltip.all_inner_texts()), True)


@pytest.mark.parametrize(("scheme", "language"), [("light", "en-GB"), ("dark", "de-DE")])
@pytest.mark.parametrize("screen", [*SCREENS, "phone"])
def test_each_view_shows_its_subject_on_the_first_screen(visit, screen, scheme, language):
    width, height = SCREENS.get(screen, PHONE)
    visitor = visit(width=width, height=height, color_scheme=scheme, locale=language)
    for view, subject in SUBJECTS.items():
        other = {"other": TEXT.replace("tired", "sad")} if view == "compare" else {}
        visitor.open(model="lecture", text=TEXT, view=view, **other)
        if screen == "phone":
            subject = {"steps": "[data-place=flow] canvas", "change": ".target"}.get(view, subject)
        visitor.page.wait_for_selector(subject)
        found = box(visitor, subject)
        assert found["y"] + min(found["height"], 60) <= height, view
        assert 0 <= found["x"] < width, view
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width, view
        current = box(visitor, "nav [aria-current=page]")
        assert 0 <= current["x"] <= width - current["width"], view
        strip = visitor.page.locator("[data-place=flow] .tokens")
        assert strip.count() == (view in ("heads", "compare", "change", "why", "lens", "words")), view


def test_strip_selects_tokens_and_heads_and_shows_the_next_word(visitor, models):
    trace = models["modern"].inspect(TEXT)
    visitor.open(model="modern", text=TEXT, view="lens")
    strip = visitor.page.locator("[data-place=flow]")
    tokens = strip.locator(".tokens button")
    visitor.expect(tokens.count, len(trace.tokens))
    tokens.nth(2).click()
    visitor.expect(lambda: tokens.nth(2).get_attribute("aria-pressed"), "true")
    strip.get_by_role("button", name="Next head").click()
    visitor.expect(lambda: "head 1" in strip.inner_text(), True)
    weight = trace.weights(0)[1, 2, 1].item()
    visitor.expect(lambda: f"{100 * weight:.0f}" in (tokens.nth(1).get_attribute("title") or ""), True)
    strip.get_by_role("button", name="next word").click()
    visitor.page.get_by_label("temperature", exact=True).wait_for()
    visitor.page.keyboard.press("Escape")
    visitor.button("Next word ⏎").click()
    visitor.expect(tokens.count, len(trace.tokens) + 1)


def test_back_and_forward_retrace_ten_sources_and_a_link_restores_them(visit):
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
        # The matrix also shows and highlights the number.
        visitor.expect(lambda site=f"block.1.{name}": visitor.site, f"block.1.{name}")
        visitor.page.wait_for_selector("[role=gridcell].chosen")
        way.append(now())
    link = visitor.url
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


def test_breadcrumb_stays_on_one_line_and_names_the_block_where_it_changes(visit):
    visitor = visit(width=1280, height=720)
    visitor.open(model="modern", text="The duck was too tired", block=1, part="norm", step="norm")
    visitor.see("block.1.normed")
    visitor.page.locator("[role=gridcell][data-row='3'][data-column='1']").click()
    way = [
        "block.1.normed",
        "block.1.input",
        "block.0.output",
        "block.0.middle",
        "block.0.input",
        "embedding",
    ]
    for name in way[1:]:
        visitor.page.locator(f"[data-testid=card] .number[data-cell^='{name} ']").first.click()
        visitor.page.wait_for_selector(f"[data-testid=card] h3[data-cell^='{name} ']")
    crumbs = visitor.page.locator("[data-testid=card] nav .crumb")
    blocks = crumbs.locator(".block")
    visitor.expect(lambda: [text.strip() for text in blocks.all_inner_texts()][-1:], ["block 0:"])
    titles = crumbs.evaluate_all("(all) => all.map((each) => each.title)")
    assert [title.rpartition(", ")[2] for title in titles[:-1]] == ["block 1"] * 2 + ["block 0"] * 3
    assert crumbs.locator(".hidden").all_text_contents() == titles
    tops = crumbs.evaluate_all("(all) => all.map((each) => each.offsetTop)")
    assert max(tops) - min(tops) < 10
    way_shown = "(nav) => [nav.scrollLeft > 0, nav.classList.contains('cut')]"
    visitor.expect(lambda: visitor.page.locator("[data-testid=card] nav").evaluate(way_shown), [True, True])


def test_row_labels_have_room_for_descenders(visit):
    visitor = visit(width=1280, height=720)
    visitor.open(model="modern", text=TEXT)
    room = visitor.page.locator("[role=rowheader] button").evaluate_all(
        "(all) => all.map((each) => each.offsetHeight / parseFloat(getComputedStyle(each).fontSize))"
    )
    assert min(room) >= 1.15  # lines


def test_back_walks_the_steps_of_a_head(visitor):
    visitor.open(model="modern", text="The duck was too tired")
    steps = ("divide", "softmax", "sum")
    for step in steps:
        visitor.button(step).click()
        visitor.expect(lambda: visitor.step, step)
        visitor.expect(lambda step=step: f"step={step}" in visitor.url, True)
    for step in reversed(steps[:-1]):
        visitor.page.go_back()
        visitor.expect(lambda: visitor.step, step)
    visitor.page.go_forward()
    visitor.expect(lambda: visitor.step, "softmax")


def test_autoplay_does_not_flood_the_history(visitor):
    visitor.open(model="modern", text="The duck was too tired")
    visitor.button("divide").click()
    visitor.expect(lambda: "step=divide" in visitor.url, True)
    before = visitor.page.evaluate("history.length")
    visitor.button("Play").click()
    visitor.expect(lambda: "step=softmax" in visitor.url, True)
    visitor.button("Pause").click()
    assert visitor.page.evaluate("history.length") == before


@pytest.mark.parametrize("by", ["pointer", "keyboard"])
def test_dragging_a_slider_is_one_history_entry(visitor, by):
    # Changes close together share an entry: with a slow clock, all are.
    visitor.page.add_init_script(
        "{ const now = performance.now.bind(performance); performance.now = () => now() / 1e4; }"
    )
    visitor.open(model="modern", text="The duck was too tired", view="change")
    slider = visitor.page.locator(".change .slider input[step='0.01']")
    visitor.expect(slider.is_enabled, True)
    before = visitor.page.evaluate("history.length")
    edits = visitor.page.locator(".change .edits li")
    if by == "pointer":
        box = slider.bounding_box()
        y = box["y"] + box["height"] / 2
        visitor.page.mouse.move(box["x"] + 0.1 * box["width"], y)
        visitor.page.mouse.down()
        visitor.page.mouse.move(box["x"] + 0.8 * box["width"], y, steps=12)
        visitor.page.mouse.up()
    else:
        slider.focus()
        for _ in range(6):
            visitor.page.keyboard.press("PageUp")
    visitor.expect(edits.count, 1)
    visitor.settle()
    visitor.expect(lambda: "edits=" in visitor.url, True)
    assert visitor.page.evaluate("history.length") == before + 1
    visitor.page.go_back()
    visitor.expect(edits.count, 0)


def test_generated_text_is_one_history_entry(visitor):
    visitor.open(model="shared", text="a cat")
    before = visitor.page.evaluate("history.length")
    visitor.button("Generate").click()
    visitor.page.wait_for_function("() => document.querySelector('textarea').value.length > 12")
    visitor.button("Stop").click()
    visitor.settle()
    assert visitor.page.evaluate("history.length") <= before + 1
    visitor.page.go_back()
    visitor.expect(visitor.prompt.input_value, "a cat")  # the text before generation


def test_steps_are_tidy_on_a_small_laptop(visit):
    visitor = visit(width=1280, height=720)
    visitor.open(model="lecture", text=" ".join(["The duck was too tired"] * 4), part="norm2", step="scale")
    visitor.see("block.0.normed2.scale")
    parts, play = box(visitor, ".detail .parts"), box(visitor, ".detail .playing")
    assert parts["height"] < 30  # one line, with the buttons beside it
    assert play["y"] < parts["y"] + parts["height"]
    assert play["y"] + play["height"] > parts["y"]
    assert play["height"] < 40
    # The selected row, which is the last one, is in view.
    grid, name = visitor.page.locator("[role=grid]"), visitor.page.locator("[role=rowheader].strong")

    def cut():
        frame, row = grid.bounding_box(), name.last.bounding_box()
        return max(0, round(row["y"] + row["height"] - frame["y"] - frame["height"] - 1))

    name.last.wait_for()
    visitor.expect(cut, 0)
    visitor.open(model="lecture", text="The duck was too tired to", step="softmax")
    visitor.see("block.0.head.0.weights")
    overflow = "(all) => Math.max(...all.map((each) => each.scrollWidth - each.clientWidth))"
    visitor.expect(lambda: visitor.page.locator(".formula").evaluate_all(overflow) <= 1, True)


def test_everything_fits_in_german_on_a_small_screen(visit):
    visitor = visit(width=1280, height=720, locale="de-DE")
    visitor.open(model="lecture", text="The duck was too tired", block=1)
    assert visitor.page.get_by_text("1 / 2", exact=True).count() == 0  # all columns are on one page
    for bar in (".parts", ".steps"):
        tops = visitor.page.locator(f"[data-place=detail] {bar} > button").evaluate_all(
            "(all) => all.map((each) => each.getBoundingClientRect().top)"
        )
        assert len(set(tops)) == 1, bar
    assert visitor.page.locator(".flow .hidden-rows").count() == 0
    footer = visitor.page.locator(".flow .footer").bounding_box()
    assert footer["height"] < 30  # the legend and the menu are on one line
