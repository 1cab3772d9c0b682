"""Word vectors and the tiny head show what Python computes."""

import math
from itertools import combinations

import pytest
import torch

from clearhead.inspect.word_senses import map_senses, neighbors
from clearhead.model.attention_steps import compare, mix, project, softmax
from tests.web.visitor import visible

TEXT = "The duck was too tired"
SENTENCES = ["the duck saw a cat", "a cat ran", "the cat and the ball"]


def number(text):
    return float(text.replace("−", "-"))


def test_word_is_compared_across_sentences(visitor, models):
    model = models["modern"]
    visitor.open(model="modern", text=TEXT, view="words")
    visitor.page.get_by_label("Word", exact=True).fill("cat")
    visitor.page.get_by_label("Sentences, one per line").fill("\n".join(SENTENCES))
    cosines = visitor.page.locator("[data-cosine]")
    visitor.expect(cosines.count, 3)
    expected = map_senses([model.inspect(each) for each in SENTENCES], "cat")
    visitor.expect(
        lambda: [number(each) for each in cosines.all_inner_texts()],
        pytest.approx(expected.cosines[-1, 0].tolist(), abs=0.006),
    )
    chart = visitor.page.get_by_role("img", name="Cosine similarity between")
    names = ["0", "1", "static", "block 0", "block 1", "final", "1", "2"]  # both axes, then the curves
    assert chart.locator("text").all_text_contents() == names
    stage = visitor.page.get_by_label("Stage")
    stage.fill("1")
    visitor.expect(
        lambda: [number(each) for each in cosines.all_inner_texts()],
        pytest.approx(expected.cosines[1, 0].tolist(), abs=0.006),
    )
    stage.fill("0")
    visitor.page.get_by_text("The static vectors are identical.").wait_for()
    # The numbers of identical vectors do not overlap.
    boxes = [each.bounding_box() for each in visitor.page.locator("figure g text").all()]
    assert min(math.dist((a["x"], a["y"]), (b["x"], b["y"])) for a, b in combinations(boxes, 2)) > 16
    visitor.page.get_by_label("Sentences, one per line").fill("\n".join([*SENTENCES, "a dog ran"]))
    visitor.page.get_by_text("“cat” does not occur in “a dog ran”.").wait_for()
    visitor.page.get_by_label("Sentences, one per line").fill("\n".join(65 * ["a cat"]))
    visitor.page.get_by_role("alert").filter(has_text="limit is 64").wait_for()
    visitor.page.get_by_label("Sentences, one per line").fill("\n".join(SENTENCES))
    visitor.forgive("status 400|400")
    visitor.page.get_by_label("Word", exact=True).fill("unicorn")
    visitor.page.get_by_role("alert").filter(has_text="does not occur").wait_for()


def test_neighbors_and_directions_match_python(visitor, models):
    model = models["modern"]
    visitor.open(model="modern", text=TEXT, view="words", row=1)
    trace = model.inspect(TEXT)
    lists = visitor.page.locator(".lists > div")

    def shown(i):
        return lists.nth(i).locator("li span:first-child").all_inner_texts()

    for place, stage in ((0, "embedding"), (2, "final")):
        ids = [i for i, _ in neighbors(trace, trace[stage][1], stage, 10)]
        visitor.expect(
            lambda place=place: shown(place), [visible(each) for each in model.tokenizer.pieces(ids)]
        )
    first, second = model.tokenizer.pieces([40, 41])
    visitor.page.get_by_role("textbox", name="From").fill(first)
    visitor.page.get_by_label("To", exact=True).fill(second)
    W = model.network.embedding.weight
    moved = trace["embedding"][1] + W[41] - W[40]
    ids = [i for i, _ in neighbors(trace, moved.detach(), "embedding", 10)]
    visitor.expect(lambda: shown(0), [visible(each) for each in model.tokenizer.pieces(ids)])


def test_edited_tiny_head_matches_python(visitor):
    visitor.open(model="modern", text=TEXT, view="tiny")
    table = visitor.page.get_by_role("table", name="softmax")
    assert number(table.locator("tbody tr").first.locator("td").nth(2).inner_text()) == 0.99986
    visitor.page.get_by_label("Sequence").fill("0110")
    visitor.page.get_by_label("key matrix, row 1, column 1").fill("2")
    visitor.page.get_by_label("value matrix, row 0, column 1").fill("-3")
    x = torch.tensor([[1.0, 0], [0, 1], [0, 1], [1, 0]])
    W_Q, W_K, W_V = (
        torch.tensor(each, dtype=torch.float)
        for each in ([[0, 1], [0, 1]], [[10, 0], [0, 2]], [[1, -3], [0, 1]])
    )
    weights = softmax(compare(project(x, W_Q), project(x, W_K)))
    mixed = mix(weights, project(x, W_V))
    check_table(visitor, {"softmax": weights, "weigh and sum": mixed, "write": mixed})
    visitor.page.get_by_label("output matrix, row 1, column 0").fill("2")
    check_table(visitor, {"write": mixed @ torch.tensor([[1.0, 0], [2, 1]])})
    visitor.page.get_by_label("3 instead of").check()
    weights = softmax(compare(project(x, W_Q), project(x, W_K)) * math.log(3))
    check_table(visitor, {"softmax": weights, "weigh and sum": mix(weights, project(x, W_V))})


def check_table(visitor, tables):
    for name, expected in tables.items():
        rows = visitor.page.get_by_role("table", name=name).locator("tbody tr")
        shown = [[number(each) for each in row.locator("td").all_inner_texts()] for row in rows.all()]
        torch.testing.assert_close(torch.tensor(shown), expected, atol=6e-6, rtol=0)


def test_tiny_head_shows_division_and_mask_only_if_switched_on(visitor):
    visitor.open(model="modern", text=TEXT, view="tiny")
    names = visitor.page.locator(".tiny table[aria-label]")

    def steps():
        return names.evaluate_all("all => all.slice(3).map((each) => each.ariaLabel)")

    visitor.expect(steps, ["compare", "softmax", "weigh and sum", "write"])
    visitor.page.get_by_label("divide by").check()
    visitor.expect(steps, ["compare", "divide", "softmax", "weigh and sum", "write"])
    visitor.page.get_by_label("mask the future").check()
    visitor.expect(steps, ["compare", "divide", "mask", "softmax", "weigh and sum", "write"])
    assert "keys of length 1." in visitor.button("Plain keys").get_attribute("title")
    cell = visitor.page.get_by_label("key matrix, row 0, column 0")
    cell.fill("-1000.25")
    assert cell.evaluate("each => each.scrollWidth <= each.clientWidth")


def test_tiny_head_rejects_invalid_input(visitor):
    visitor.open(model="modern", text=TEXT, view="tiny")
    sequence = visitor.page.get_by_label("Sequence")
    sequence.fill("0123")
    visitor.page.get_by_text("Only the digits 0 and 1 count").wait_for()
    sequence.fill("abc")
    visitor.page.get_by_text("Enter 1 to 16 digits, each 0 or 1.").wait_for()
    sequence.fill("01")
    cell = visitor.page.get_by_label("key matrix, row 1, column 1")
    cell.fill("")
    visitor.expect(lambda: cell.get_attribute("aria-invalid"), "true")
    cell.blur()  # the last valid number is restored
    visitor.expect(cell.input_value, "10")
    assert cell.get_attribute("aria-invalid") == "false"


@pytest.mark.parametrize("view", ["words", "tiny"])
@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
def test_views_have_no_serious_violations(visit, view, locale, axe):
    visitor = visit(locale=locale, width=900)
    visitor.forgive("status 400|400")  # this model does not know the example's word
    visitor.open(model="modern", text=TEXT, view=view)
    visitor.page.locator("[data-place=detail] .intro").wait_for()
    visitor.settle()
    assert axe(visitor) == []


def test_typed_input_is_stored_in_the_url(visitor):
    visitor.forgive("status 400|400")  # the new word does not occur in the old sentences
    visitor.open(model="modern", text=TEXT, view="words")
    visitor.page.get_by_label("Word", exact=True).fill("cat")
    visitor.page.get_by_label("Sentences, one per line").fill("\n".join(SENTENCES))
    visitor.page.get_by_label("Stage").fill("1")
    visitor.page.get_by_role("textbox", name="From").fill(" a")
    visitor.expect(lambda: "typed" in visitor.url, True)
    visitor.page.reload()
    visitor.expect(lambda: visitor.page.get_by_label("Word", exact=True).input_value(), "cat")
    assert visitor.page.get_by_label("Sentences, one per line").input_value() == "\n".join(SENTENCES)
    visitor.expect(lambda: visitor.page.get_by_label("Stage").input_value(), "1")
    assert visitor.page.get_by_role("textbox", name="From").input_value() == " a"
    visitor.page.get_by_role("button", name="Tiny head").click()
    visitor.page.get_by_label("key matrix, row 1, column 1").fill("2.5")
    visitor.expect(lambda: "tiny" in visitor.url, True)
    visitor.page.reload()
    visitor.expect(lambda: visitor.page.get_by_label("key matrix, row 1, column 1").input_value(), "2.5")
