"""The learning view: every number on it is that of the lesson in Python."""

import re
from decimal import Decimal

import pytest

import clearhead as ch
from clearhead.lessons.effect import measure_effect
from clearhead.server.model_loader import ModelLibrary
from clearhead.server.model_registry import LoadOptions, load_models
from tests.serving import running
from tests.web.visitor import precise, shows, visible

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
    shown = {name: read(update.get_by_test_id(name)) for name in ("before", "change", "after")}
    assert float(shown["before"]) == pytest.approx(numbers["before"], abs=1e-6)
    assert float(shown["after"]) == pytest.approx(numbers["after"], abs=1e-5)
    terms = [read(term) for term in update.locator("[data-update]").all()]
    assert len(terms) == len(numbers) - 2
    assert sum(terms) == shown["change"] == shown["after"] - shown["before"]  # exactly, as printed
    gradient = expected.gradient["block.0.head.1.W_Q"][3, 1].item()
    for parts in update.get_by_test_id(
        "parts"
    ).all():  # those shown and the others sum to the gradient, as printed
        whole, *shown_parts = [read(part) for part in parts.locator("[data-part]").all()]
        assert sum(shown_parts) == whole
        assert float(whole) == pytest.approx(gradient, rel=0.01)
    bars = update.get_by_test_id("parts").locator("li:has([data-part]):has(.bar)").all()
    assert bars
    for part in bars:  # a positive part pushes down, to the left
        number = read(part.locator("[data-part]"))
        if number:
            assert (part.locator(".bar.negative").count() == 1) == (number > 0)
            assert ("↓" if number > 0 else "↑") in part.inner_text()
    way = "up" if numbers["after"] > numbers["before"] else "down"
    assert update.get_by_test_id("why").inner_text().startswith(f"It goes {way}")
    assert near(card.get_by_test_id("chain-sum").inner_text(), gradient)
    assert not visitor.foreign_letters()


def read(element):
    return Decimal(element.inner_text().replace("−", "-"))


@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1366, 768)])
def test_the_update_is_visible_without_scrolling(visit, locale, width, height):
    visitor = visit(width=width, height=height, locale=locale)
    visitor.open(model="modern", text=TEXT, view="learning", chain="block.0.head.1.W_Q:3:1")
    update = visitor.page.get_by_test_id("update")
    update.get_by_test_id("after").wait_for()
    card = visitor.page.get_by_test_id("chain").bounding_box()
    for part in (update.get_by_test_id("why"), update.get_by_test_id("after"), update.locator("li").last):
        box = part.bounding_box()
        assert box["y"] >= card["y"]
        assert box["y"] + box["height"] <= min(height, card["y"] + card["height"])
    assert visitor.page.evaluate("document.documentElement.scrollHeight") <= height


def test_terms_of_the_optimizer_are_explained(visitor):
    visitor.open(model="lecture", text=TEXT, view="learning", chain="block.0.b_1:3:0")
    term = visitor.button("second moment")
    tooltip = visitor.page.locator("[role=tooltip]:popover-open")
    term.hover()
    tooltip.filter(has_text="AdamW divides by the root").wait_for()
    visitor.page.mouse.move(2, 2)
    tooltip.wait_for(state="hidden")
    visitor.button("momentum").focus()
    visitor.page.keyboard.press("Tab")  # to the next term
    tooltip.filter(has_text="AdamW divides by the root").wait_for()


def test_it_opens_with_the_selected_token_and_block(visitor):
    visitor.open(model="modern", text=TEXT, block=1, row=3, open="block.1.input:3:1")
    visitor.button("Learning").click()
    visitor.settle()
    assert all(part in visitor.url for part in ("block=1", "row=3", "open="))
    row = visitor.page.locator(".stages tr.current [data-row]").first
    assert row.get_attribute("data-row") == "3"
    assert visitor.site == "block.1.output"
    visitor.page.go_back()
    visitor.settle()
    visitor.page.locator("[data-testid=card] h3[data-cell='block.1.input 3 1']").wait_for()
    visitor.page.go_forward()
    visitor.settle()
    visitor.page.locator(".stages [data-stage=final][data-row='1']").click()
    visitor.expect(lambda: row.get_attribute("data-row"), "1")
    assert "row=1" in visitor.url


def test_repeated_tokens_are_numbered(visitor):
    visitor.open(model="modern", text="abab", view="learning", row=2)
    assert visitor.page.locator(".stages tbody th").all_inner_texts() == ["a₀", "b₁", "a₂", "b₃"]
    assert "“a₂”" in visitor.page.locator(".errors h2").inner_text()


@pytest.mark.parametrize(
    ("name", "value"), [("gradient", "block.0.nothing"), ("chain", "final:99:0"), ("taken", "99")]
)
def test_invalid_values_in_the_address_are_reported(visitor, name, value):
    visitor.open(model="modern", text=TEXT, view="learning", **{name: value})
    notice = visitor.page.locator(".notice").filter(has_text="invalid or")
    notice.filter(has_text=name).wait_for()


def test_gradients_are_exported(visitor, lesson):
    visitor.open(model="modern", text=TEXT, view="learning", gradient="final", row=2)
    visitor.page.locator(".gradient").get_by_role("button", name="Export").click()
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("menuitem", name="CSV").click()
    assert download.value.suggested_filename == "modern-gradient-final.csv"
    rows = download.value.path().read_text("utf-8-sig").splitlines()
    assert len(rows) == 1 + len(lesson().texts[0])
    shown = [float(number) for number in rows[1].split(",")[-3:]]
    assert shown == pytest.approx(lesson().gradient["final"][0, -3:].tolist(), rel=1e-3, abs=1e-8)


def test_taking_the_step(visitor, lesson):
    expected = measure_effect(lesson(), "A cat")
    visitor.open(model="modern", text=TEXT, view="learning", other="A cat")
    visitor.button("Take the step").click()
    for name, change in (("this-text", expected.loss), ("other-text", expected.other)):
        before, after = visitor.page.get_by_test_id(name).locator("b").inner_text().split(" → ")
        assert float(before) == pytest.approx(change.before, abs=2e-4)
        assert float(after) == pytest.approx(change.after, abs=2e-2)
    visitor.expect(lambda: "lesson=step" in visitor.url, True)
    parts = visitor.page.get_by_test_id("expected").inner_text()
    assert near(re.search(r"All weights: (\S+);", parts)[1], expected.expected)
    visitor.page.locator(".results").get_by_role(
        "button", name=re.compile("^(block|final|embedding)")
    ).first.click()
    visitor.page.locator("[role=grid]").wait_for()


def test_taking_several_steps(visitor, lesson):
    expected = measure_effect(lesson(), "A cat", steps=3).steps
    visitor.open(model="modern", text=TEXT, view="learning", lesson="step", other="A cat")
    for _ in range(2):
        visitor.button("Take another step").click()
        visitor.settle()
    assert "taken=3" in visitor.url
    rows = visitor.page.get_by_test_id("steps").locator("tbody tr")
    visitor.expect(rows.count, 3)
    for row, (loss, other) in zip(rows.all(), expected, strict=True):
        for cell, change in zip(row.locator("td").all(), (loss, other), strict=True):
            shown = [float(number) for number in cell.inner_text().split(" → ")]
            assert shown == pytest.approx(list(change), abs=2e-2)
    visitor.button("Back to one step").click()
    visitor.expect(lambda: "taken" in visitor.url, False)


def test_steps_belong_to_their_text(visitor, models):
    visitor.open(model="modern", text=TEXT, view="learning", taken=3)
    visitor.expect(visitor.page.get_by_label("Step shown").count, 1)
    visitor.type("A cat")
    visitor.settle()
    visitor.expect(lambda: "taken" in visitor.url, False)
    expected = f"{ch.learn(models['modern'], 'A cat').loss:.2f}"
    visitor.expect(lambda: expected in visitor.page.get_by_test_id("lesson-loss").inner_text(), True)


def test_any_of_several_steps_is_shown(visitor, lesson):
    third = lesson().step(2)
    place = {"taken": 3, "chain": "block.0.head.1.W_Q:3:1"}
    visitor.open(model="modern", text=TEXT, view="learning", **place)
    update = visitor.page.get_by_test_id("update")
    befores = {
        step: each.update("block.0.head.1.W_Q").at(3, 1)["before"]
        for step, each in ((3, third), (1, lesson()))
    }
    assert float(read(update.get_by_test_id("before"))) == pytest.approx(befores[3], abs=1e-4)
    assert abs(befores[3] - befores[1]) > 3e-4
    visitor.page.get_by_label("Step shown").select_option("Step 1")
    visitor.settle()
    assert float(read(update.get_by_test_id("before"))) == pytest.approx(befores[1], abs=1e-6)
    assert "lessonStep=1" in visitor.url


def test_a_truncated_text_is_reported(visitor, models):
    long = "The duck was too tired to swim. " * 20
    count = len(models["modern"].tokenizer.encode(long))
    visitor.open(model="modern", text=long, view="learning")
    assert f"last 48 of {count} tokens" in visitor.page.get_by_test_id("cut").inner_text()


def test_the_other_text_is_in_its_field(visitor):
    visitor.open(model="modern", text=TEXT, view="learning", lesson="step")
    field = visitor.page.get_by_label("Another text")
    visitor.expect(lambda: field.input_value() != "", True)
    field.fill("")
    visitor.settle()
    assert field.input_value() == ""  # while the reader types
    field.fill("A cat")
    visitor.expect(lambda: "other=A" in visitor.url, True)


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
        visitor.page.set_viewport_size({"width": 1280, "height": 720})
        visitor.expect(lambda: visitor.page.locator("[data-place=views]").bounding_box()["height"] < 48, True)
        visitor.page.set_viewport_size({"width": 1366, "height": 768})
        visitor.button("Trainingslauf").click()
        cell = visitor.page.locator(f"[data-move='W_Q {start}']")
        cell.wait_for()
        old, new = (ch.load(place / "my", step=step).weight("block.0.head.1.W_Q") for step in (start, end))
        relative = 100 * ((new - old).norm() / old.norm()).item()
        shown = float(re.sub(r"[^\d,.]", "", cell.inner_text()).replace(",", "."))
        assert shown == pytest.approx(relative, rel=0.1, abs=0.02)
        batch = visitor.page.get_by_test_id("batch").locator("li button")
        visitor.expect(batch.count, 4)
        chosen = batch.first.inner_text()
        batch.first.click()
        visitor.settle()
        shown = visitor.page.get_by_test_id("lesson-loss").inner_text()
        loss = ch.learn(ch.load(place / "my"), chosen).loss
        assert float(re.search(r"\d+[.,]\d+", shown)[0].replace(",", ".")) == pytest.approx(loss, rel=0.01)
        visitor.button("Trainingslauf").click()
        visitor.expect(batch.count, 4)
        text = text.rename(tmp_path / "moved.txt")
        visitor.forgive("status 400|400")
        visitor.page.get_by_label("Trainingszeit", exact=True).last.press("ArrowRight")
        visitor.expect(lambda: "interval=1" in visitor.url, True)
        visitor.settle()
        visitor.page.get_by_text("Um zu sehen, welche Texte einen Kopf bewegen").wait_for()
        assert visitor.page.evaluate("document.documentElement.scrollHeight") <= 768
    registry.close(cancel=True)
