"""Compare, edit, attribution and lens views show Python's values, and their controls take effect."""

import json
import re
from itertools import pairwise

import pytest

from clearhead.inspect.edits import Edit
from tests.web.visitor import fixed, percent, shows, visible

TEXT, OTHER = "The duck was too tired", "The duck was too happy"
LOGIT_PARTS = "[data-part]:not(.score [data-part])"  # without those of the attention score


def number(text):
    return float(text.replace("−", "-").replace("–", "nan"))


def cells(visitor, label):
    """Cell texts of a grid, by row and column."""
    grid = visitor.page.get_by_role("grid", name=label)
    grid.wait_for()
    found = grid.locator("[role=gridcell]").evaluate_all(
        "(cells) => cells.map((each) => [+each.dataset.row, +each.dataset.column, each.textContent])"
    )
    return {(row, column): text for row, column, text in found}


def filled(visitor, label):
    """Like `cells`, but waits until every cell has a value."""
    visitor.expect(lambda: any(text in ("", "–") for text in cells(visitor, label).values()), False)
    return cells(visitor, label)


@pytest.fixture
def model(models):
    return models["modern"]


def test_compare_view_shows_two_texts_side_by_side(visitor, model):
    visitor.open(model="modern", text=TEXT, view="compare", other=OTHER, block=1, head=1, step=6)
    compared = model.inspect(TEXT).compare(model.inspect(OTHER))
    site = "block.1.head.1.weights"
    found = filled(visitor, "Difference: head 1.1 · attention weight")
    difference = compared.difference(site)
    assert len(found) == difference.numel()
    for (row, column), text in found.items():
        assert shows(text, difference[row, column].item())
    visitor.button("Other text").click()
    other = filled(visitor, "Other text: head 1.1 · attention weight")
    assert shows(other[3, 1], compared.other[site][3, 1].item())
    # Sites that differ most, in descending order.
    expected = [(name, far) for name, far in compared.ranking(10**6) if far > 0]
    sites = visitor.page.locator(".sites li")
    visitor.expect(lambda: sites.count() - min(40, len(expected)) in (0, 1), True)  # also the open site
    assert sites.locator("[aria-current=true]").locator(f"[data-site='{site}']").count() == 1
    distances = [number(text) for text in sites.locator(".number").all_inner_texts()]
    assert distances == sorted(distances, reverse=True)
    assert distances[0] == pytest.approx(expected[0][1], abs=0.006)
    visitor.page.get_by_text(f"the 40 largest of {len(expected)}").wait_for()
    assert visitor.page.locator(".tokens .differs").count() == 2 * sum(
        one != second for one, second in zip(compared.one.tokens, compared.other.tokens, strict=True)
    )
    # Clicking a site in the list opens it.
    visitor.page.get_by_label("Filter sites").select_option("heads")
    first = sites.first.locator("button")
    shown, name = first.locator(".site").inner_text(), first.locator(".site").get_attribute("data-site")
    first.click()
    visitor.page.get_by_role("grid", name=shown).wait_for()
    assert f"block={name.split('.')[1]}" in visitor.url or name.startswith("block.0.")


def test_compare_view_shows_one_text_in_two_models(visitor, models):
    visitor.open(model="gpt2", text=TEXT, view="compare", block=1, head=0, step=4)
    visitor.page.locator(".controls select").select_option("lecture")  # same sites, different weights
    site = "block.1.head.0.weights"
    found = filled(visitor, "Difference: head 1.0 · attention weight")
    compared = models["gpt2"].inspect(TEXT).compare(models["lecture"].inspect(TEXT))
    for (row, column), text in found.items():
        assert shows(text, compared.difference(site)[row, column].item())


def test_models_of_different_shapes_are_reported_as_incomparable(visitor):
    visitor.open(model="modern", text=TEXT, view="compare", otherModel="gpt2")
    visitor.page.get_by_text("The two models have different shapes").wait_for()
    assert visitor.page.locator(".sites").count() == 0
    assert visitor.page.get_by_role("list", name="Predictions for the other text").locator("li").count() == 6


def test_top_site_is_selected_and_cleared_for_incomparable_texts(visitor, model):
    visitor.open(model="modern", text=TEXT, view="compare")
    # Sets both texts at once, so no mixed pair is requested.
    visitor.page.get_by_role("button", name="I swing bats").click()
    top = visitor.page.locator(".sites li").first
    visitor.expect(top.locator("[aria-current=true]").count, 1)
    visitor.forgive("status 400|400")
    visitor.page.get_by_role("textbox", name="Other text").fill("ß")
    visitor.page.get_by_role("textbox", name="Other text").press("Enter")
    visitor.page.get_by_role("alert").filter(has_text="no token in common").wait_for()
    assert visitor.page.locator(".sites").count() == 0
    assert visitor.page.get_by_role("list", name="Predictions for the other text").locator("li").count() == 6


def test_largest_difference_opens_first(visitor):
    """The head that the page opens on does not count as the reader's choice; any other head does."""
    opening = {"text": TEXT, "block": 1, "head": 1, "position": 2}
    visitor.page.route("**/api/opening", lambda route: route.fulfill(json=opening))
    visitor.open(model="gpt2")
    visitor.expect(lambda: "block=1&head=1&row=2" in visitor.url, True)
    visitor.button("Compare").click()
    example = visitor.page.get_by_role("button", name="I swing bats")
    texts = re.fullmatch("Sets both texts: “(.*)” and “(.*)”", example.get_attribute("title")).groups()
    example.click()
    sites = visitor.page.locator(".sites li")
    visitor.expect(sites.first.locator("[aria-current=true]").count, 1)
    other = visitor.page.get_by_role("textbox", name="Other text")
    assert (visitor.prompt.input_value(), other.input_value()) == texts
    distances = [number(text) for text in sites.locator(".number").all_inner_texts()]
    assert distances == sorted(distances, reverse=True)
    visitor.open(model="gpt2", text=TEXT, view="compare", other=OTHER, block=1, head=1)
    visitor.page.get_by_role("grid", name="Difference: head 1.1 · query").wait_for()


def test_other_text_is_compared_without_pressing_enter(visitor):
    visitor.open(model="modern", text=TEXT, view="compare")
    other = visitor.page.get_by_role("textbox", name="Other text")
    other.press_sequentially(OTHER)
    visitor.page.locator(".sites li").first.wait_for()
    assert "other=" in visitor.url
    other.fill("")
    visitor.page.get_by_text("Nothing is compared yet").wait_for()
    assert visitor.page.locator(".sites").count() == 0


def test_strip_names_the_sampling_settings_behind_its_probability(visitor):
    visitor.open(model="modern", text=TEXT, view="lens")
    strip = visitor.page.get_by_role("button", name="next word:")
    strip.wait_for()
    assert "(" not in strip.inner_text()
    visitor.open(model="modern", text=TEXT, view="lens", temperature=0.5, topK=3)
    visitor.expect(lambda: "(T 0.5, top-k 3)" in strip.inner_text(), True)


def prediction(visitor):
    rows = visitor.page.locator(".change tbody tr")
    rows.first.wait_for()
    return {row.locator("th").inner_text(): row.locator("td").all_inner_texts()[:2] for row in rows.all()}


def test_back_undoes_one_edit(visitor):
    visitor.open(model="modern", text=TEXT, view="change", block=1, head=1)
    target, edits = visitor.page.get_by_role("group", name="head 1.1"), visitor.page.locator(".edits li")
    for count, name in enumerate(("Ablate", "× 2"), 1):
        target.get_by_role("button", name=name).click()
        visitor.expect(edits.count, count)
    visitor.settle()
    visitor.page.go_back()
    visitor.expect(edits.count, 1)
    visitor.settle()
    assert "view=change" in visitor.url


def test_head_is_ablated_and_the_edit_undone(visitor, model):
    visitor.open(model="modern", text=TEXT, view="change", block=1, head=1)
    target = visitor.page.get_by_role("group", name="head 1.1")
    target.get_by_role("button", name="Ablate").click()
    visitor.page.locator(".edits li").wait_for()
    visitor.settle()
    edited = model.inspect(TEXT, edit={"block.1.head.1.output": 0})
    plain = model.inspect(TEXT)
    before, after = plain.logits[-1].softmax(-1), edited.logits[-1].softmax(-1)
    likeliest = after.argmax().item()
    likely = visible(model.tokenizer.pieces([likeliest])[0])
    visitor.expect(lambda: likely in prediction(visitor), True)
    visitor.expect(
        lambda: [
            shows(text, p.item(), percent)
            for text, p in zip(
                prediction(visitor)[likely], (before[likeliest], after[likeliest]), strict=True
            )
        ],
        [True, True],
    )
    assert "edits=" in visitor.url
    # The edit stays active, even after a reload.
    visitor.page.reload()
    visitor.settle()
    assert visitor.page.locator(".edits li").inner_text().startswith("head 1.1: ablated")
    visitor.button("Undo last").click()
    visitor.page.locator(".edits").wait_for(state="detached")
    visitor.expect(lambda: "edits=" in visitor.url, False)


def test_scale_and_patch_edits_are_applied_and_removed(visitor, model):
    visitor.open(model="modern", text=TEXT, view="change", block=0, head=0, row=3, other=OTHER)
    visitor.page.get_by_role("group", name="head 0.0").get_by_role("button", name="×").click()
    visitor.page.locator(".edits li").nth(0).wait_for()
    stream = visitor.page.get_by_role("group", name=re.compile("stream of"))
    stream.get_by_role("button", name="Patch from other text").click()
    visitor.page.locator(".edits li").nth(1).wait_for()
    visitor.settle()
    edited = (
        model.inspect(TEXT)
        .edit({"block.0.head.0.output": lambda x: 2 * x})
        .edit({"block.0.input": Edit(model.inspect(OTHER), at=[3])})
    )
    probabilities = edited.logits[-1].softmax(-1)
    best = probabilities.argmax().item()
    name = visible(model.tokenizer.pieces([best])[0])
    visitor.expect(
        lambda: shows(prediction(visitor).get(name, ["", ""])[1], probabilities[best].item(), percent), True
    )
    visitor.button("Undo: head 0.0: × 2.00").click()
    visitor.expect(visitor.page.locator(".edits li").count, 1)


def test_attention_weight_is_edited_with_the_slider(visitor, model):
    visitor.open(model="modern", text=TEXT, view="change", block=1, head=0)
    slider = visitor.page.get_by_label(re.compile(r"head 1\.0: attention from"))
    slider.wait_for()
    slider.fill("0")
    slider.dispatch_event("change")
    visitor.page.locator(".edits li").wait_for()
    visitor.settle()
    weights = model.inspect(TEXT)["block.1.head.0.weights"][-1]
    column = weights.argmax().item()
    row = weights * (1 / (1 - weights[column]))
    row[column] = 0
    edited = model.inspect(TEXT).edit({"block.1.head.0.weights": Edit(row[None], at=[len(weights) - 1])})
    probabilities = edited.logits[-1].softmax(-1)
    best = probabilities.argmax().item()
    name = visible(model.tokenizer.pieces([best])[0])
    visitor.expect(
        lambda: shows(prediction(visitor).get(name, ["", ""])[1], probabilities[best].item(), percent), True
    )


def test_slider_starts_at_the_most_attended_token_and_stays_there(visitor, model):
    weights = model.inspect(TEXT)["block.1.head.1.weights"]
    row = next(i for i in reversed(range(len(weights))) if weights[i].argmax() > 0)
    # Whichever part is open, the line above shows the head's weights.
    visitor.open(model="modern", text=TEXT, view="change", block=1, head=1, row=row, part="feedforward")
    tokens = [visible(each) for each in model.inspect(TEXT).tokens]
    name = f"attention from “{tokens[row]}” to “{tokens[weights[row].argmax()]}”"
    slider = visitor.page.get_by_label(name)
    slider.fill("0")
    slider.dispatch_event("change")
    visitor.page.locator(".edits li").wait_for()
    visitor.settle()
    assert slider.input_value() == "0"


def test_edits_do_not_change_the_target_token(visitor, model):
    edits = [{"site": "block.1.input", "scale": -1}]
    target = model.inspect(TEXT).logits[-1].argmax().item()
    edited = model.inspect(TEXT).edit({"block.1.input": lambda x: -x})
    assert edited.logits[-1].argmax().item() != target
    visitor.open(model="modern", text=TEXT, view="change", edits=json.dumps(edits))
    picker = visitor.page.get_by_role("combobox", name="Target token")
    visitor.expect(picker.input_value, str(target))

    def measure(each):
        return each.logits[-1].log_softmax(-1)[target].item()

    expected = edited.sweep("head", measure) - measure(edited)
    for (row, column), text in filled(visitor, "Effect on the target token").items():
        assert number(text) == pytest.approx(expected[row, column].item(), abs=0.0051)
    other = edited.logits[-1].argmax().item()
    picker.select_option(str(other))  # the reader may choose another one
    visitor.expect(lambda: f"target={other}" in visitor.url, True)
    visitor.expect(picker.input_value, str(other))


def test_edits_that_no_longer_fit_are_dropped(visitor, model):
    """A longer text keeps an edited weight; a shorter one without that position drops it."""
    visitor.forgive("status 400|400")
    edits = [
        {
            "site": "block.0.head.0.weights",
            "at": [1],
            "value": [[1, 0, *[0] * (len(model.inspect(TEXT)) - 2)]],
        }
    ]
    edits.append({"site": "block.0.input", "at": [len(model.inspect(TEXT)) - 1], "value": 0})
    visitor.open(model="modern", text=TEXT, view="change", edits=json.dumps(edits))
    listed = visitor.page.locator(".edits li")
    visitor.expect(listed.count, 2)
    visitor.type(f"{TEXT} and a duck")
    visitor.settle()
    assert listed.count() == 2
    visitor.type("The duck")
    visitor.page.get_by_text("2 edits do not apply to this text or model").wait_for()
    visitor.expect(listed.count, 0)
    assert visitor.page.locator("[data-place=flow] .tokens button").count() > 1
    assert "edits" not in visitor.url
    # A URL with edits that do not apply still opens.
    wrong = json.dumps([{"site": "block.7.input", "value": 0}])
    visitor.open(model="modern", text=TEXT, view="change", edits=wrong)
    visitor.page.get_by_text("One edit does not apply to this text or model").wait_for()


def test_attention_weight_is_edited_by_keyboard_and_undone(visitor, model):
    visitor.open(model="modern", text=TEXT, view="change", block=1, head=0)
    slider = visitor.page.get_by_label("attention from")
    visitor.expect(slider.is_enabled, True)  # once the weights are loaded
    before = float(slider.input_value())
    slider.focus()
    for _ in range(5):
        visitor.page.keyboard.press("ArrowRight")
    visitor.settle()
    visitor.expect(lambda: float(slider.input_value()), pytest.approx(min(1, before + 0.05), abs=0.011))
    undo = visitor.page.get_by_role("button", name="Undo last")
    undo.press("Enter")
    visitor.expect(visitor.page.locator(".edits li").count, 0)
    assert visitor.page.evaluate("document.activeElement.innerText") == "Active edits"


def test_effect_map_matches_python(visitor, model):
    visitor.open(model="modern", text=TEXT, view="change")
    trace = model.inspect(TEXT)
    target = trace.logits[-1].argmax().item()

    def measure(each):
        return each.logits[-1].log_softmax(-1)[target].item()

    expected = trace.sweep("head", measure) - measure(trace)
    found = filled(visitor, "Effect on the target token")
    assert len(found) == 4
    for (row, column), text in found.items():
        assert number(text) == pytest.approx(expected[row, column].item(), abs=0.0051)
    visitor.button("Positions").click()
    visitor.expect(lambda: len(cells(visitor, "Effect on the target token")), 2 * len(trace))
    positions = filled(visitor, "Effect on the target token")
    expected = trace.sweep("block × position", measure) - measure(trace)
    assert number(positions[1, 2]) == pytest.approx(expected[1, 2].item(), abs=0.0051)
    visitor.button("Heads").click()
    visitor.expect(lambda: len(cells(visitor, "Effect on the target token")), 4)
    visitor.page.locator("[data-testid=effects] [role=gridcell][data-row='1'][data-column='1']").click()
    visitor.expect(lambda: "block=1" in visitor.url and "head=1" in visitor.url, True)


def test_token_that_decides_is_found_by_leaving_it_out(visitor, model):
    visitor.open(model="modern", text=TEXT, view="change", over="position")
    ids = model.inspect(TEXT).ids[0].tolist()
    chances = model.logits(ids)[-1].log_softmax(-1)
    target = chances.argmax().item()
    shown = visitor.page.get_by_test_id("left-out").locator("li small")
    visitor.expect(shown.count, len(ids))
    changes = [
        (model.logits(ids[:i] + ids[i + 1 :])[-1].log_softmax(-1)[target] - chances[target]).item()
        for i in range(len(ids))
    ]
    assert [number(text) for text in shown.all_inner_texts()] == pytest.approx(changes, abs=0.0051)
    deciding = max(range(len(ids) - 1), key=lambda i: abs(changes[i]))
    answer = visitor.page.locator(".answer").inner_text()
    assert f"“{visible(model.tokenizer.pieces(ids)[deciding])}" in answer


def test_prediction_table_is_sorted_and_has_a_legend(visitor):
    edit = json.dumps([{"site": "block.1.head.1.output", "scale": -3}])
    visitor.open(model="modern", text=TEXT, view="change", edits=edit)
    rows = visitor.page.locator(".change tbody tr")
    rows.first.wait_for()
    after = [
        number(text.rstrip("%").replace("<", ""))
        for text in rows.locator("td:nth-child(3)").all_inner_texts()
    ]
    assert after == sorted(after, reverse=True)
    assert "before" in visitor.page.locator(".change p.legend").inner_text()


def test_text_that_an_example_replaced_can_be_restored(visitor):
    visitor.open(model="modern", text=TEXT, other=OTHER, view="compare")
    visitor.page.get_by_role("button", name="I swing bats").click()
    visitor.settle()
    visitor.button(f"↶ Back to “{TEXT}”").click()
    visitor.expect(visitor.prompt.input_value, TEXT)
    visitor.expect(lambda: "happy" in visitor.url, True)


def test_attribution_is_followed_back_through_a_head(visitor, model):
    visitor.open(model="modern", text=TEXT, view="why")
    trace = model.inspect(TEXT)
    target = trace.logits[-1].argmax().item()
    expected = trace.attribute(target)
    total = visitor.page.get_by_test_id("total")
    visitor.expect(lambda: number(total.inner_text()), pytest.approx(expected.total, abs=0.002))
    parts = visitor.page.locator(LOGIT_PARTS)
    for part in parts.all():
        value = expected[part.get_attribute("data-part")]
        assert number(part.inner_text()) == pytest.approx(value, abs=0.002)
    follow = visitor.page.locator(".sources button").first
    follow.click()
    visitor.expect(lambda: "path=" in visitor.url, True)
    block, head, source = map(int, re.search(r"path=(\d+)\.(\d+)\.(\d+)", visitor.url).groups())
    back = trace.attribute(target, through=[(block, head, source)])
    visitor.expect(lambda: number(total.inner_text()), pytest.approx(back.total, abs=0.002))
    visitor.page.reload()
    visitor.settle()
    visitor.expect(lambda: number(total.inner_text()), pytest.approx(back.total, abs=0.002))
    visitor.button("logit of", exact=False).click()
    visitor.expect(lambda: number(total.inner_text()), pytest.approx(expected.total, abs=0.002))


def test_attribution_drawing_has_one_scale(visitor, model):
    visitor.open(model="modern", text=TEXT, view="why")
    picture = visitor.page.get_by_role("img", name="Contributions to the logit")
    picture.locator("path.curve").first.wait_for()
    marks = picture.locator("path.curve, circle").evaluate_all(
        """(marks) => marks.map((each) => [
            each.querySelector("title").textContent.split(": ").at(-1),
            each.r ? 2 * each.r.baseVal.value : parseFloat(each.getAttribute("stroke-width")),
        ])"""
    )
    sizes = [(abs(number(amount)), size) for amount, size in marks]
    assert len(sizes) > 4
    largest, full = max(sizes)
    for amount, size in sizes:
        low, high = (max(1, full * (max(amount + error, 0) / largest) ** 0.5) for error in (-0.0006, 0.0006))
        assert 0.99 * low <= size <= 1.01 * high  # the amounts are rounded to three decimals


def test_feedforward_of_the_attribution_opens_its_steps(visitor, model):
    visitor.open(model="modern", text=TEXT, view="why", row=1)
    visitor.page.get_by_role("button", name="feed-forward 1").click()
    visitor.see("block.1.feedforward")
    assert f"row={len(model.inspect(TEXT)) - 1}" in visitor.url
    visitor.page.go_back()
    visitor.page.get_by_test_id("total").wait_for()


def test_attribution_of_one_token_instead_of_another(visitor, model):
    visitor.open(model="modern", text=TEXT, view="why")
    trace = model.inspect(TEXT)
    target, _, other = trace.logits[-1].topk(3).indices.tolist()
    picker = visitor.page.get_by_label("instead of")
    assert picker.locator(f"option[value='{target}']").count() == 0  # not the token itself
    picker.select_option(str(other))
    visitor.expect(lambda: f"against={other}" in visitor.url, True)
    total, parts = visitor.page.get_by_test_id("total"), visitor.page.locator(LOGIT_PARTS)
    expected = trace.attribute(target, against=other)
    difference = (trace.logits[-1, target] - trace.logits[-1, other]).item()
    for _ in range(2):
        visitor.expect(lambda: number(total.inner_text()), pytest.approx(difference, abs=0.002))
        for part in parts.all():
            value = expected[part.get_attribute("data-part")]
            assert number(part.inner_text()) == pytest.approx(value, abs=0.002)
        visitor.page.reload()  # the address restores it
        visitor.settle()
    assert visible(trace.token_texts([other])[0]) in visitor.button("logit of", exact=False).inner_text()
    visitor.page.locator(".sources button").first.click()
    visitor.expect(lambda: "path=" in visitor.url, True)
    hop = tuple(map(int, re.search(r"path=(\d+)\.(\d+)\.(\d+)", visitor.url).groups()))
    back = trace.attribute(target, through=[hop], against=other)
    visitor.expect(lambda: number(total.inner_text()), pytest.approx(back.total, abs=0.002))
    visitor.page.go_back()  # closes the path, and nothing else
    visitor.expect(lambda: "path=" in visitor.url, False)
    assert f"against={other}" in visitor.url
    visitor.page.go_forward()
    visitor.expect(lambda: "path=" in visitor.url, True)
    visitor.button("logit of", exact=False).click()
    picker.select_option("-1")
    logit = trace.logits[-1, target].item()
    visitor.expect(lambda: number(total.inner_text()), pytest.approx(logit, abs=0.002))
    assert "against" not in visitor.url


def test_negative_contributions_point_to_the_left(visitor, model):
    trace = model.inspect(TEXT)
    target, other = trace.logits[-1].topk(2).indices.tolist()
    visitor.open(model="modern", text=TEXT, view="why", against=other)
    expected, items = (
        trace.attribute(target, against=other),
        visitor.page.locator(".parts li:has([data-part])"),
    )
    items.first.wait_for()
    sides, sizes = set(), []
    for item in items.all():
        value = expected[item.locator("[data-part]").get_attribute("data-part")]
        track, bar = (item.locator(each).bounding_box() for each in (".track", ".bar"))
        zero = track["x"] + track["width"] / 2
        start, end = bar["x"], bar["x"] + bar["width"]
        assert (end if value < 0 else start) == pytest.approx(zero, abs=1)  # from the zero line outward
        assert (start < zero - 1) == (value < 0)
        sides.add(value < 0)
        sizes.append((abs(value), bar["width"]))
    assert sides == {True, False}
    scale = sizes[0][1] / sizes[0][0]
    assert all(width == pytest.approx(max(2, scale * size), abs=1.5) for size, width in sizes)


@pytest.mark.parametrize(("text", "temperature"), [(TEXT, 0.05), (TEXT, 0.2), ("Once upon a time", 0.1)])
def test_next_token_bars_share_one_scale(visitor, model, text, temperature):
    visitor.open(model="modern", text=text, temperature=temperature)
    logits = model.inspect(text).logits[-1]
    expected = (logits / temperature).softmax(-1).sort(descending=True).values.tolist()
    items = visitor.page.locator(".next ol li")
    items.first.wait_for()
    visitor.settle()

    def shares():
        widths = "(item) => ['.bar', '.track'].map((name) => item.querySelector(name).getBoundingClientRect().width)"
        measured = [item.evaluate(widths) for item in items.all()]
        return [bar / track for bar, track in measured]

    # A bar is at least two pixels wide.
    visitor.expect(lambda: shares() == pytest.approx(expected[: len(shares())], abs=0.03), True)
    assert shares()[0] == pytest.approx(expected[0], abs=0.01)
    assert shares() == sorted(shares(), reverse=True)  # by probability


def test_attention_is_explained_by_the_difference_to_the_runner_up(visit, model):
    visitor = visit(width=1366, height=768)
    visitor.open(model="modern", text=TEXT, view="why", block=1, head=1)
    trace = model.inspect(TEXT)
    looked_at, second = trace["block.1.head.1.weights"][-1].topk(2).indices.tolist()
    scores = trace["block.1.head.1.scores"][-1]
    score = (scores[looked_at] - scores[second]).item()
    formula = visitor.page.locator(".katex-html", has_text=f"={fixed(score, 2)}")
    formula.wait_for()
    split = trace.block[1].head[1].why(-1, looked_at, against=second)
    first = visitor.page.locator(".score li").first.bounding_box()
    assert first["y"] + first["height"] < 768  # without scrolling
    shown = visitor.page.locator(".score li .number")

    def values():
        return [number(text) for text in shown.all_inner_texts()]

    for button, side in (("written at “", split.by_key), ("written at “", split.by_query)):
        buttons = visitor.page.get_by_role("button", name=button)
        (buttons.first if side.title == split.by_key.title else buttons.last).click()
        expected = [value for _, value in side.top(99)]
        visitor.expect(lambda expected=expected: values()[:8], pytest.approx(expected[:8], abs=0.002))
        # The last line is the sum of all others: no other line is needed, and it is not the longest.
        listed = visitor.page.locator(".score li .number[data-part]").count()
        assert abs(sum(expected[listed:])) <= abs(expected[0])
        assert sum(values()) == pytest.approx(score, abs=0.01)
    assert "byQuery=yes" in visitor.url
    visitor.page.reload()
    visitor.expect(lambda: values()[:8], pytest.approx(expected[:8], abs=0.002))
    visitor.open(model="modern", text=TEXT, view="why", block=1, head=1, row=0)
    visitor.page.get_by_text("can attend to no other token").wait_for()


def test_lens_shows_top_tokens_and_probabilities(visitor, model):
    visitor.open(model="modern", text=TEXT, view="lens")
    trace = model.inspect(TEXT)
    lens = trace.lens()
    rows = visitor.page.locator(".lens tbody tr")
    visitor.expect(rows.count, 2)
    for k, row in enumerate(rows.all()):
        best = lens[k].argmax(-1).tolist()
        texts = [visible(text) for text in model.tokenizer.pieces(best)]
        assert row.locator("td").all_inner_texts() == texts
    # With the keyboard too: the cell's label and the line below both give the probability of its token.
    share = percent(lens[1].softmax(-1)[-1].max().item())
    last = visitor.page.locator(".lens td[tabindex='0']")
    last.focus()
    last.press("ArrowDown")
    told = visitor.page.get_by_test_id("cell-description")
    visitor.expect(lambda: told.inner_text().startswith("After block 1") and share in told.inner_text(), True)
    assert share in visitor.page.locator(".lens td:focus").get_attribute("aria-label")
    visitor.page.get_by_label("show the probability of the target token").check()
    likeliest = trace.logits[-1].argmax().item()
    p = lens[0].softmax(-1)[-1, likeliest].item()
    visitor.expect(lambda: shows(rows.first.locator("td").last.inner_text(), p, percent), True)


@pytest.mark.parametrize("view", ["compare", "change", "why", "lens"])
@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
def test_each_view_has_an_introduction_and_no_serious_violations(visit, view, locale, axe):
    visitor = visit(locale=locale)
    visitor.open(model="modern", text=TEXT, view=view, other=OTHER)
    visitor.page.locator("[data-place=detail] .intro").wait_for()
    assert len(visitor.page.locator("[data-place=detail] .intro").inner_text()) > 40
    visitor.settle()
    assert axe(visitor) == []


def test_attribution_of_a_long_text_labels_some_tokens(visitor):
    visitor.open(model="long", text="The duck was tired. " * 12, view="why")
    labels = visitor.page.locator(".picture text.token")
    labels.first.wait_for()
    tops = labels.evaluate_all("all => all.map((each) => each.getBoundingClientRect().y)")
    assert len(tops) > 10
    assert min(b - a for a, b in pairwise(tops)) >= 11.9


def test_tokens_that_are_bytes_of_a_character_are_explained(visitor):
    visitor.open(model="modern", text="a 猫", view="why")
    visitor.page.locator("[aria-label=tokens] button[title*='part of a character']").first.wait_for()
    visitor.page.get_by_role("button", name="Step by step").click()
    visitor.page.locator("[role=rowheader] button[title*='part of a character']").first.wait_for()
