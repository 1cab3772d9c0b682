"""The learning view: every number on it is that of the lesson in Python."""

import re

import pytest

import clearhead as ch
from clearhead.lessons.effect import measure_effect
from clearhead.server.model_loader import ModelLibrary
from clearhead.server.model_registry import LoadOptions, load_models
from tests.serving import running
from tests.web.visitor import fixed, precise, shows, visible

TEXT = "The duck was too tired to swim"
KINDS = ("lecture", "gpt2", "modern", "shared")


@pytest.fixture
def lesson(models):
    return lambda name="modern": ch.learn(models[name], TEXT)


def near(shown, number):
    return shows(shown.strip(), number, precise)


@pytest.mark.parametrize("kind", KINDS)
def test_losses_and_the_sizes_of_gradients(visitor, lesson, kind):
    expected = lesson(kind)
    visitor.open(model=kind, text=TEXT, view="learning", row=0)
    page = visitor.page
    assert near(
        re.search(r"Loss ([\d.]+)", page.get_by_test_id("lesson-loss").inner_text())[1], expected.loss
    )
    rows = page.locator(".stages tbody tr").all()
    assert page.locator(".stages tbody th").all_inner_texts()[0] == visible(expected.texts[0][0])
    for row, loss in list(zip(rows, expected.losses.tolist(), strict=False))[:-1]:
        assert near(row.locator("td.loss").inner_text(), loss)
    for stage in ("embedding", "block.1.middle", "final", "logits"):
        norms = expected.gradient[stage].norm(dim=-1).tolist()
        cells = page.locator(f".stages [data-stage='{stage}']").all_inner_texts()
        assert all(near(text, norm) for text, norm in zip(cells, norms, strict=False)), stage


def test_errors_at_the_logits(visitor, lesson):
    expected = lesson()
    visitor.open(model="modern", text=TEXT, view="learning", row=2)
    errors = expected.value("probabilities")[2].double()
    errors[expected.target_ids[0, 2]] -= 1
    shown = visitor.page.locator(".errors [data-error]").all()
    assert len(shown) > 3
    for each in shown:
        assert near(each.inner_text(), errors[int(each.get_attribute("data-error"))].item())


@pytest.mark.parametrize("kind", KINDS)
def test_a_stage_opens_its_gradient_and_a_number_its_chain_rule(visitor, lesson, kind):
    expected = lesson(kind)
    visitor.open(model=kind, text=TEXT, view="learning", row=2)
    page = visitor.page
    page.locator(".stages [data-stage='block.0.output'][data-row='2']").click()
    visitor.settle()
    grid = page.locator("[role=grid][data-site='block.0.output']")
    grid.wait_for()
    cell = grid.locator("[data-row='2'][data-column='1']")
    assert near(cell.inner_text(), expected.gradient["block.0.output"][2, 1].item())
    cell.click()
    card = page.get_by_test_id("chain")
    card.locator("h3[data-cell='block.0.output 2 1']").wait_for()
    visitor.settle()
    # Down to a weight: the block's output is the next block's input, and so on.
    for name in ("block.1.input", "block.1.middle"):
        card.locator(".open").filter(has_text=re.compile(".")).first.wait_for()
        term = expected.chain(name, 2, 1)
        index = next(i for i, each in enumerate(expected.chain(*_cell(card)).terms) if each.name == name)
        card.locator("tbody tr").nth(index).locator("button").first.click()
        card.locator(f"h3[data-cell='{name} 2 1']").wait_for()
        visitor.settle()
        assert near(card.get_by_test_id("chain-sum").inner_text(), term.gradient)
        for i, each in enumerate(term.terms[:3]):
            assert near(card.locator(f"[data-term='{i}']").inner_text(), each.value)
    address = visitor.url
    page.reload()
    visitor.settle()
    card.locator("h3[data-cell='block.1.middle 2 1']").wait_for()
    assert visitor.url == address
    page.go_back()
    card.locator("h3[data-cell='block.1.input 2 1']").wait_for()


def _cell(card):
    name, row, column = card.locator("h3").get_attribute("data-cell").split()
    return name, int(row), int(column)


def test_a_weight_shows_its_update(visitor, lesson):
    expected = lesson("lecture")
    chain = "block.0.head.1.query:2:1"
    visitor.open(model="lecture", text=TEXT, view="learning", chain=f"{chain};block.0.head.1.W_Q:3:1")
    card = visitor.page.get_by_test_id("chain")
    card.locator("h3[data-cell='block.0.head.1.W_Q 3 1']").wait_for()
    numbers = expected.update("block.0.head.1.W_Q").at(3, 1)
    update = card.get_by_test_id("update")
    assert shows(update.get_by_test_id("before").inner_text(), numbers["before"], lambda x: fixed(x, 6))
    assert float(update.get_by_test_id("after").inner_text().replace("−", "-")) == pytest.approx(
        numbers["after"], abs=1e-5
    )
    assert near(
        card.get_by_test_id("chain-sum").inner_text(), expected.gradient["block.0.head.1.W_Q"][3, 1].item()
    )
    assert not visitor.foreign_letters()


def test_taking_the_step(visitor, lesson):
    expected = measure_effect(lesson(), "A cat")
    visitor.open(model="modern", text=TEXT, view="learning", other="A cat")
    visitor.button("Take the step").click()
    for name, change in (("this-text", expected.loss), ("other-text", expected.other)):
        before, after = visitor.page.get_by_test_id(name).locator("b").inner_text().split(" → ")
        assert float(before) == pytest.approx(change.before, abs=2e-4)
        assert float(after) == pytest.approx(change.after, abs=2e-2)
    visitor.expect(lambda: "lesson=step" in visitor.url, True)
    visitor.page.locator(".results").get_by_role(
        "button", name=re.compile("^(block|final|embedding)")
    ).first.click()
    visitor.page.locator("[role=grid]").wait_for()


def test_a_text_of_one_token_has_nothing_to_learn(visit):
    visitor = visit(locale="de-DE")
    visitor.forgive("status 400|400")
    visitor.open(model="shared", text="a", view="learning")
    visitor.page.get_by_text("Ein Text aus einem Token hat kein nächstes Token").wait_for()


@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
def test_it_fits_on_a_laptop(visit, locale):
    visitor = visit(width=1366, height=768, locale=locale)
    visitor.open(model="modern", text=TEXT, view="learning", chain="block.0.input:2:1")
    for selector in (".stages table", ".errors ol", ".gradient [role=grid]", "[data-testid=chain] .formula"):
        box = visitor.page.locator(selector).first.bounding_box()
        assert box["y"] >= 0, selector
        assert box["y"] + box["height"] <= 768, selector
    assert visitor.page.evaluate("document.documentElement.scrollHeight") <= 768
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 1366


def test_accessibility(visitor, axe):
    visitor.open(model="modern", text=TEXT, view="learning", chain="block.0.head.0.W_Q:2:1")
    assert not axe(visitor)
    visitor.button("Take the step").click()
    visitor.settle()
    assert not axe(visitor)


def test_a_training_run_shows_when_a_head_moved(visit, home, tmp_path, story_text):
    text, place = tmp_path / "text.txt", tmp_path / "runs"
    text.write_text(story_text, encoding="utf-8")
    sizes = {"blocks": 1, "heads": 2, "width": 16, "context": 32, "batch": 4}
    ch.train(text, out=place / "my", steps=6, snapshots=3, progress=False, **sizes)
    loader = LoadOptions("cpu", slots=1)
    registry = load_models([place / "my"], loader)
    start, end = ch.runs(place)["my"].snapshots[:2]
    with running(registry, library=ModelLibrary([place], home, loader)) as server:
        visitor = visit(server, width=1366, height=768, locale="de-DE")
        visitor.open(text=TEXT, view="learning", head=1)
        tabs = visitor.page.locator("[data-place=views]").bounding_box()
        assert tabs["height"] < 48  # one line, with the slider
        visitor.button("Trainingslauf").click()
        cell = visitor.page.locator(f"[data-move='W_Q {start}']")
        cell.wait_for()
        old, new = (ch.load(place / "my", step=step).weight("block.0.head.1.W_Q") for step in (start, end))
        relative = 100 * ((new - old).norm() / old.norm()).item()
        shown = float(re.sub(r"[^\d,.]", "", cell.inner_text()).replace(",", "."))
        assert shown == pytest.approx(relative, rel=0.1, abs=0.02)
        visitor.expect(visitor.page.get_by_test_id("batch").locator("li").count, 4)
        visitor.page.get_by_label("Trainingszeit", exact=True).last.press("ArrowRight")
        visitor.expect(lambda: "interval=1" in visitor.url, True)
        visitor.settle()
        assert visitor.page.evaluate("document.documentElement.scrollHeight") <= 768
    registry.close(cancel=True)
