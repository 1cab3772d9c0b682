"""The page opens on a text and a head chosen for the model, and its examples fit the model."""

from collections import Counter
from urllib.parse import parse_qs, urlsplit

import pytest

import clearhead as ch
from clearhead.labs.opening import find_opening
from clearhead.text.examples import EXAMPLES, word_example_for
from tests.serving import make_registry, running


@pytest.fixture(scope="module")
def stories():
    return ch.load("stories", device="cpu")


@pytest.fixture(scope="module")
def served(stories, models):
    registry = make_registry(slots=1, stories=stories, lecture=models["lecture"], shared=models["shared"])
    with running(registry) as server:
        yield server
    registry.close(cancel=True)


def test_page_opens_on_the_text_and_head_chosen_for_the_model(visit, served, stories):
    visitor, found = visit(served), find_opening(stories)
    visitor.open(model="stories")
    visitor.expect(visitor.prompt.input_value, found.text)
    title = visitor.page.get_by_role("heading", name=f"Block {found.block}, head {found.head}")
    assert "attention from “␣it”" in title.inner_text()
    weight = round(100 * found.weight)
    visitor.page.get_by_text(f"“␣it” puts {weight}% of its attention on “␣trumpet”").first.wait_for()
    query = parse_qs(urlsplit(visitor.url).query)
    assert (query["text"], query["block"], query["head"]) == ([found.text], ["2"], ["1"])


def test_address_with_a_head_keeps_it(visit, served, stories):
    visitor = visit(served)
    visitor.open(model="stories", block=1, head=2)
    visitor.expect(visitor.prompt.input_value, find_opening(stories).text)
    visitor.page.get_by_role("heading", name="Block 1, head 2").wait_for()


@pytest.mark.parametrize("view", ["steps", "heads"])
def test_text_that_the_model_cannot_encode_is_replaced(visit, models, view):
    visitor = visit(locale="en-GB")
    visitor.forgive("status 400|400")
    visitor.open(model="shared", text="The Ω", view=view)
    notice = visitor.page.get_by_text("The text in this address does not fit this model")
    notice.wait_for()
    assert "Ω" in notice.inner_text()
    visitor.expect(visitor.prompt.input_value, find_opening(models["shared"]).text)
    visitor.expect(visitor.page.get_by_role("alert").count, 0)
    visitor.page.locator(".next .share").first.wait_for(state="attached")
    visitor.type("The duck")
    visitor.expect(notice.count, 0)


def test_another_model_opens_with_its_own_text_unless_one_was_typed(visit, served, models):
    visitor = visit(served)

    def choose(model):
        visitor.page.locator("button.chosen").click()
        visitor.page.locator("button.model", has_text=model).click()

    visitor.open(model="stories")
    choose("lecture")
    visitor.expect(visitor.prompt.input_value, find_opening(models["lecture"]).text)
    visitor.type("a cat")
    choose("stories")
    visitor.settle()
    visitor.expect(visitor.prompt.input_value, "a cat")


def test_offered_or_unreadable_text_is_replaced_by_the_other_models_own(visit, served, models):
    visitor = visit(served)
    own = find_opening(models["shared"]).text
    visitor.open(model="stories")
    visitor.button("Examples ▾").click()
    visitor.page.locator("#examples button").nth(2).click()
    visitor.settle()
    visitor.page.locator("button.chosen").click()
    visitor.page.locator("button.model", has_text="shared").click()
    visitor.expect(visitor.prompt.input_value, own)
    visitor.button("Next token", exact=False).wait_for()  # its tokens are characters
    visitor.page.locator("button.chosen").click()
    visitor.page.locator("button.model", has_text="stories").click()
    visitor.expect(lambda: visitor.prompt.input_value() in ("", own), False)
    visitor.settle()
    visitor.type("東京")
    visitor.forgive("status 400|400")  # a character that the other model does not have
    visitor.page.locator("button.chosen").click()
    visitor.page.locator("button.model", has_text="shared").click()
    visitor.expect(visitor.prompt.input_value, own)


def test_model_of_characters_is_offered_another_model_for_word_vectors(visit, served):
    visitor = visit(served)
    visitor.open(model="shared", view="words")
    visitor.page.get_by_test_id("no-word").wait_for()
    assert visitor.page.get_by_label("Word", exact=True).input_value() == ""


def test_examples_are_those_of_the_lectures(visit, served):
    visitor = visit(served)
    visitor.open(model="stories", text="a cat")
    visitor.button("Examples ▾").click()
    items = visitor.page.locator("#examples li")
    visitor.expect(items.count, len(EXAMPLES))
    assert items.all_inner_texts() == list(EXAMPLES)


def test_word_vectors_open_with_a_word_that_is_a_token(visit, served, stories):
    visitor, example = visit(served), word_example_for(stories.tokenizer)
    visitor.open(model="stories", view="words")
    visitor.expect(visitor.page.get_by_label("Word", exact=True).input_value, example.word)
    visitor.page.locator(".occurrences li").nth(len(example.sentences) - 1).wait_for()
    assert visitor.page.get_by_text("does not always encode").count() == 0


@pytest.mark.parametrize("view", ["steps", "heads", "change", "why", "lens", "words"])
def test_no_request_is_sent_twice(visitor, view):
    def repeated():
        sent = Counter((urlsplit(request.url).path, request.post_data) for request in visitor.asked)
        return {each: count for each, count in sent.items() if count > 1 and each[1] is not None}

    visitor.open(model="modern", text="The duck was too tired", view=view)
    assert repeated() == {}
    if view == "change":
        visitor.button("Ablate").first.click()
        visitor.page.get_by_role("button", name="Undo last").wait_for()
        visitor.settle()
        assert repeated() == {}
