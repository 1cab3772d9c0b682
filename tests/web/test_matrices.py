"""Reading a matrix: the cell under the pointer, its tooltip, the masked future, and the export menu."""

import re
from base64 import b64decode
from io import BytesIO

import pytest
from PIL import Image, ImageChops

from tests.web.visitor import fixed, percent, precise, short, visible

TEXT = "The duck was too tired to cross"
SITE = "block.0.head.0.weights"
SCREENS = [(1366, 768, 1), (1920, 1080, 1.5), (1440, 900, 2), (390, 844, 3)]
UNDER = """([x, y]) => {
  const { row, column } = document.elementFromPoint(x, y).dataset;
  return [+row, +column];
}"""


def middle(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def pointed(visitor):
    """The outlined cells of the grid."""
    cells = visitor.page.locator("[role=gridcell].pointed")
    return cells.evaluate_all("(all) => all.map(({ dataset }) => [+dataset.row, +dataset.column])")


def tooltip(visitor):
    return "\n".join(visitor.page.locator("[role=tooltip]:popover-open").all_inner_texts())


def drawn(canvas):
    """The image on a canvas, without the elements above it."""
    url = canvas.evaluate("(canvas) => canvas.toDataURL()")
    return Image.open(BytesIO(b64decode(url.partition(",")[2]))).convert("RGB")


def says(trace, row, column):
    """The expected tooltip of an attention weight, from Python's numbers."""
    source, target = (visible(trace.tokens[i]) for i in (row, column))
    if column > row:
        return f"“{source}” cannot attend to “{target}”, which comes later"
    share = percent(trace[SITE][row, column].item())
    return f"“{source}” puts {share} of its attention on “{target}”"


@pytest.mark.parametrize(("width", "height", "ratio"), SCREENS)
def test_pointed_cell_is_outlined_and_described(visit, models, width, height, ratio):
    visitor = visit(width=width, height=height, device_scale_factor=ratio)
    visitor.open(model="modern", text=TEXT, step="softmax")
    visitor.see(SITE)
    # On a phone, the grid is scrolled to the explained cell.
    visitor.page.locator("[role=grid]").evaluate("(grid) => grid.scrollTo(0, 0)")
    trace = models["modern"].inspect(TEXT)
    for row, column in [(0, 0), (4, 1), (2, 3), (len(trace.tokens) - 1, 2)]:
        visitor.page.locator(f"[role=gridcell][data-row='{row}'][data-column='{column}']").hover()
        visitor.expect(lambda: pointed(visitor), [[row, column]])
        visitor.expect(lambda: tooltip(visitor), says(trace, row, column))
        assert visitor.page.locator("[role=columnheader].strong").all_inner_texts() == [
            visible(trace.tokens[column])
        ]
    box = visitor.page.locator("[role=tooltip]:popover-open").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= height
    visitor.page.mouse.move(2, 2)
    visitor.expect(lambda: (pointed(visitor), tooltip(visitor)), ([], ""))


def test_outline_follows_the_pointer_while_scrolling_and_after_opening_a_cell(visit, models):
    visitor = visit(width=1366, height=768)
    text = f"{TEXT} {TEXT}"  # too long for the screen
    visitor.open(model="modern", text=text, step="softmax")
    visitor.see(SITE)
    trace = models["modern"].inspect(text)
    assert 16 < len(trace.tokens) <= 32
    visitor.page.locator("[role=grid]").evaluate("(grid) => grid.scrollTo(0, 0)")
    cell = visitor.page.locator("[role=gridcell][data-row='5'][data-column='4']")
    cell.click()  # an open cell keeps its explanation; the outline still follows the pointer
    x, y = middle(cell)
    for dx, dy in [(50, 25), (100, 0), (-50, -50)]:
        visitor.page.mouse.move(x + dx, y + dy)
        under = visitor.page.evaluate(UNDER, [x + dx, y + dy])
        visitor.expect(lambda: pointed(visitor), [under])
    visitor.page.mouse.move(x, y)
    visitor.page.locator("[role=grid]").evaluate("(grid) => grid.scrollBy(130, 40)")
    visitor.settle()
    under = visitor.page.evaluate(UNDER, [x, y])
    assert under != [5, 4]
    visitor.expect(lambda: pointed(visitor), [under])
    visitor.expect(lambda: tooltip(visitor), says(trace, *under))
    # With the keyboard, the focused cell is described.
    cell.focus()
    visitor.page.keyboard.press("ArrowLeft")
    visitor.expect(lambda: pointed(visitor), [[5, 3]])
    visitor.expect(lambda: tooltip(visitor), says(trace, 5, 3))


def test_outline_does_not_outlast_its_matrix(visit, models):
    visitor = visit()
    visitor.open(model="modern", text=TEXT, step="softmax")
    visitor.see(SITE)
    cell = visitor.page.locator("[role=gridcell][data-row='4'][data-column='1']")
    cell.hover()
    visitor.expect(lambda: pointed(visitor), [[4, 1]])
    trace = models["modern"].inspect(TEXT)
    visitor.page.keyboard.press("]")  # the same cell of another head
    visitor.see("block.0.head.1.weights")
    visitor.expect(lambda: pointed(visitor), [[4, 1]])
    share = percent(trace["block.0.head.1.weights"][4, 1].item())
    visitor.expect(lambda: share in tooltip(visitor), True)
    visitor.page.keyboard.press("ArrowLeft")  # another matrix
    visitor.see("block.0.head.1.masked")
    visitor.expect(lambda: pointed(visitor) == [] or tooltip(visitor).startswith("Score"), True)
    visitor.expect(lambda: "attention" in tooltip(visitor), False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_masked_future_is_hatched(visit, scheme):
    visitor = visit(color_scheme=scheme)
    visitor.open(model="modern", text=TEXT, step="softmax")
    visitor.see(SITE)
    hatched = visitor.page.locator("[role=gridcell]").evaluate_all(
        """(cells) => cells.map((cell) => {
          const hatch = getComputedStyle(cell).backgroundImage.startsWith("repeating-linear-gradient");
          return hatch === +cell.dataset.column > +cell.dataset.row;
        })"""
    )
    assert len(hatched) > 30
    assert all(hatched)


def test_values_of_the_future_are_hatched(visitor, models):
    trace = models["modern"].inspect(TEXT)
    visitor.open(model="modern", text=TEXT, step="weigh", row=2)
    visitor.see("block.0.head.0.weighed")
    hatched = visitor.page.locator("[role=gridcell]").evaluate_all(
        """(cells) => cells.map((cell) => [
          +cell.dataset.row,
          getComputedStyle(cell).backgroundImage.startsWith("repeating-linear-gradient"),
        ])"""
    )
    assert len(hatched) > 30
    assert all(is_hatched == (key > 2) for key, is_hatched in hatched)
    visitor.page.locator(".footer").get_by_text("0.49 masked").wait_for()
    visitor.page.locator("[role=gridcell][data-row='3'][data-column='1']").hover()
    query, key = (visible(trace.tokens[i]) for i in (2, 3))
    visitor.expect(lambda: tooltip(visitor), f"The mask keeps “{query}” from attending to “{key}”")


def test_scores_and_vectors_have_tooltips(visitor, models):
    trace = models["modern"].inspect(TEXT)
    visitor.open(model="modern", text=TEXT, step="compare")
    visitor.see("block.0.head.0.scores")
    visitor.page.locator("[role=gridcell][data-row='3'][data-column='1']").hover()
    value = precise(trace["block.0.head.0.scores"][3, 1].item())
    source, target = (visible(trace.tokens[i]) for i in (3, 1))
    visitor.expect(lambda: tooltip(visitor), f"Score from “{source}” to “{target}”: {value}")
    visitor.open(model="modern", text=TEXT, part="norm", step=1)
    visitor.see("block.0.normed")
    visitor.page.locator("[role=gridcell][data-row='3'][data-column='1']").hover()
    value = precise(trace["block.0.normed"][3, 1].item())
    visitor.expect(lambda: tooltip(visitor), f"“{source}”, dimension 1: {value}")


def test_attention_in_the_flow_has_tooltips(visitor, models):
    text = "The duck was too tired"  # so short that cells are as wide as rows are high
    trace = models["modern"].inspect(text)
    visitor.open(model="modern", text=text)
    flow = visitor.page.locator("[data-place=flow]")
    left = flow.locator(".heading.attention").evaluate("(heading) => parseFloat(heading.style.left)")
    canvas = flow.locator("canvas").first.bounding_box()
    top, side = 46, 26  # pixels
    for row, column in [(4, 1), (2, 5)]:
        x, y = canvas["x"] + left + (column + 0.5) * side, canvas["y"] + top + (row + 0.5) * side
        visitor.page.mouse.move(x, y)
        visitor.expect(lambda: tooltip(visitor), says(trace, row, column))


def test_blocks_in_the_flow_say_what_they_added(visitor, models):
    text = "The duck was too tired"
    trace = models["modern"].inspect(text)
    visitor.open(model="modern", text=text)
    flow = visitor.page.locator("[data-place=flow]")
    lefts = flow.locator(".heading.outer").evaluate_all(
        "(all) => all.map((heading) => [heading.innerText, parseFloat(heading.style.left)])"
    )
    left = next(x for name, x in lefts if name.startswith("added by"))
    canvas = flow.locator("canvas").first.bounding_box()
    for block, row in [(0, 2), (0, 4)]:
        visitor.page.mouse.move(canvas["x"] + left + 3, canvas["y"] + 46 + (row + 0.5) * 26)
        came_in = trace[f"block.{block}.input"][row].norm()
        attention, feedforward = (
            short((trace[f"block.{block}.{part}"][row].norm() / came_in).item())
            for part in ("attention", "feedforward")
        )
        best = trace.unembed(trace[f"block.{block}.output"][None, row : row + 1])[0, 0].softmax(-1).max(-1)
        read = visible(trace.token_texts([best.indices.item()])[0])
        visitor.expect(
            lambda: tooltip(visitor),
            f"Block {block} at “{visible(trace.tokens[row])}”: attention added {attention} and feed-forward "
            f"{feedforward} times the length of the incoming vector. "
            f"The logit lens reads “{read}” here ({percent(best.values.item())}).",
        )


@pytest.mark.parametrize("ratio", [1, 2])
def test_pointed_cell_of_the_map_is_outlined(visit, models, ratio):
    text = "The duck was too tired to cross the road. Tom saw a ball. " * 3
    visitor = visit(device_scale_factor=ratio)
    visitor.open(model="long", text=text, step="softmax")
    map_ = visitor.page.locator(".map canvas")
    map_.wait_for()
    visitor.settle()
    trace = models["long"].inspect(text)
    rows = len(trace.tokens)
    map_.scroll_into_view_if_needed()
    names = (78, 62)  # pixels
    room = map_.bounding_box()
    high = (room["height"] - names[1]) / rows
    wide = min((room["width"] - names[0]) / rows, 3 * high)  # cells fill the available room
    before = drawn(map_)
    for row, column in [(rows - 3, 4), (rows // 2, rows // 3)]:
        x, y = names[0] + (column + 0.5) * wide, names[1] + (row + 0.5) * high
        map_.hover(position={"x": x, "y": y})
        visitor.expect(lambda: tooltip(visitor), says(trace, row, column))
        # The outline is around the pointer: below and to the right of it, nothing else changes.
        after = drawn(map_)
        left, top = int(ratio * names[0]), int(ratio * names[1])
        changed = ImageChops.difference(before, after).crop((left, top, *after.size)).getbbox()
        assert abs((left + changed[2]) / ratio - (x + max(wide, 7) / 2 + 4)) <= 3
        assert abs((top + changed[3]) / ratio - (y + max(high, 7) / 2 + 4)) <= 3


def test_export_menu_works_with_the_keyboard(visitor, axe):
    visitor.open(model="modern", text=TEXT, step="softmax")
    button = visitor.page.locator(".detail").get_by_role("button", name="Export")
    focused = "document.activeElement.textContent.trim()"
    button.focus()
    visitor.page.keyboard.press("ArrowDown")
    names = visitor.page.get_by_role("menuitem")
    visitor.expect(
        names.all_inner_texts, ["SVG", "PNG", "CSV", ".npy", "HTML file of this view", "Copy link"]
    )
    assert button.get_attribute("aria-expanded") == "true"
    for key, name in [
        ("ArrowDown", "PNG"),
        ("End", "Copy link"),
        ("ArrowDown", "SVG"),
        ("ArrowUp", "Copy link"),
    ]:
        visitor.page.keyboard.press(key)
        visitor.expect(lambda: visitor.page.evaluate(focused), name)
    assert axe(visitor) == []
    visitor.page.keyboard.press("Escape")
    visitor.expect(names.count, 0)
    assert button.evaluate("(button) => button === document.activeElement")
    button.click()
    visitor.expect(names.count, 6)
    button.click()
    visitor.expect(names.count, 0)
    visitor.page.keyboard.press("Enter")
    visitor.page.keyboard.press("Home")
    with visitor.page.expect_download() as waiting:
        visitor.page.keyboard.press("Enter")
    assert waiting.value.suggested_filename == f"modern-{SITE}.svg"


def test_cells_that_are_cut_show_no_number_and_the_others_can_be_reached(visit):
    visitor = visit(width=1366, height=768)
    visitor.open(model="modern", text=" ".join([TEXT] * 5), part="feedforward", matrix="numbers")
    grid = visitor.page.locator("[role=grid]")
    grid.locator("[role=gridcell]").first.wait_for()
    visitor.settle()
    inked = """(grid) => {
      const box = grid.getBoundingClientRect();
      const side = grid.querySelector("[role=rowheader]").getBoundingClientRect().right;
      const names = grid.querySelector("[role=columnheader]").getBoundingClientRect().bottom;
      return [...grid.querySelectorAll("[role=gridcell]")]
        .filter((cell) => {
          const { left, right, top, bottom } = cell.getBoundingClientRect();
          const isIn = right > side + 4 && left < box.right - 4 && bottom > names + 4 && top < box.bottom - 4;
          const isWhole =
            left >= side - 4 && right <= box.right + 4 && top >= names - 4 && bottom <= box.bottom + 4;
          return isIn && !isWhole;
        })
        .filter((cell) => getComputedStyle(cell).color !== "rgba(0, 0, 0, 0)").length;
    }"""
    for across, down in ((0, 0), (33, 0), (75, 7), (20, 41)):
        grid.evaluate("(grid, [x, y]) => grid.scrollTo(x, y)", [across, down])
        visitor.expect(lambda: grid.evaluate(inked), 0)
    grid.evaluate("(grid) => grid.scrollTo(0, 0)")
    visitor.page.get_by_text(re.compile(r"rows 0–\d+ of \d+")).wait_for()
    visitor.button("Scroll to the next rows").click()
    visitor.expect(lambda: grid.evaluate("(grid) => grid.scrollTop > 0"), True)
    assert visitor.button("Scroll to the previous rows").is_enabled()


def test_the_selected_row_is_fully_visible_in_a_long_text(visit):
    visitor = visit(width=1366, height=768)
    visitor.open(model="modern", text=" ".join([TEXT] * 5), step="softmax", matrix="numbers")
    grid, name = visitor.page.locator("[role=grid]"), visitor.page.locator("[role=rowheader].strong")
    name.wait_for()
    frame, row = grid.bounding_box(), name.bounding_box()
    assert row["y"] + row["height"] <= frame["y"] + frame["height"] + 1
    flow = visitor.page.locator("[data-place=flow]")
    hidden = flow.get_by_role("button", name="more")
    visitor.expect(lambda: hidden.inner_text()[:1], "▴")  # the last token is selected
    hidden.click()
    visitor.expect(lambda: "▾" in "".join(hidden.all_inner_texts()), True)


@pytest.mark.parametrize("model", ["lecture", "modern"])
def test_norm_shows_one_vector_before_and_after_on_one_scale(visit, models, model):
    visitor = visit(width=1366, height=768)
    visitor.open(model=model, text=TEXT, part="norm2", block=1, step="norm", row=2)
    trace = models[model].inspect(TEXT)
    before, after = (trace[f"block.1.{name}"][2] for name in ("middle", "normed2"))
    figure = visitor.page.locator("figure", has=visitor.page.locator("[data-stage]"))
    figure.wait_for()
    for stage, values in (("before", before), ("after", after)):
        if model == "lecture":
            mean, deviation = (fixed(each.item(), 2) for each in (values.mean(), values.std(correction=0)))
            shown = f"mean {mean}, standard deviation {deviation}"
        else:
            shown = f"root mean square {fixed(values.square().mean().sqrt().item(), 2)}"
        assert shown in figure.locator(f"[data-stage={stage}]").inner_text()
    between = figure.locator("[data-stage=standardized]").inner_text()
    assert (
        "mean 0.00, standard deviation 1.00" if model == "lecture" else "root mean square 1.00"
    ) in between
    # A click explains the dimension under the pointer, and both tabs have the same color scale.
    strip = figure.locator("canvas").last
    strip.click(position={"x": strip.bounding_box()["width"] - 2, "y": 6})
    last = trace.config.d_model - 1
    visitor.see("block.1.normed2", ("block.1.normed2", 2, last))
    legend = visitor.page.locator("[data-place=detail] .footer [data-testid=legend]")
    ends = legend.inner_text()
    visitor.page.locator("[data-place=detail] .tabs button").last.click()
    visitor.see("block.1.middle")
    digits = re.compile(r"[\d.]+")
    assert digits.findall(legend.inner_text())[-1] == digits.findall(ends)[-1]
