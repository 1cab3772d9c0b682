"""A model that sees both ways is looked at like any other, and is not asked to write on."""

import pytest
import torch

from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.server.model_registry import ModelRegistry, ServedModel
from clearhead.text.tokenizer import Tokenizer
from tests.serving import running


@pytest.fixture(scope="module")
def both_ways():
    tokenizer = Tokenizer.train("byte", [])
    torch.manual_seed(0)
    sizes = {"n_vocab": tokenizer.n_vocab, "n_context": 32, "n_block": 1, "n_head": 1, "d_model": 8}
    model = LanguageModel(Transformer(preset("modern", causal=False, **sizes)).eval(), tokenizer)
    with running(ModelRegistry([ServedModel("both", model)])) as made:
        yield made


def test_it_guesses_the_word_that_stands_there_and_writes_nothing(visit, both_ways):
    visitor = visit(both_ways)
    visitor.open(model="both", text="Once upon")
    page = visitor.page
    assert page.get_by_role("heading", name="word at the last position").count() == 1
    assert page.locator("header .primary").count() == 0
    assert page.locator("section.next .top button").count() == 0
    assert page.locator("section.next li button:not([disabled])").count() == 0
    page.locator("[data-place=prompt]").press("Enter")
    assert page.locator("[data-place=prompt]").input_value() == "Once upon"


def test_one_that_looks_back_writes_on(visit):
    visitor = visit()
    visitor.open(text="Once upon")
    page = visitor.page
    assert page.get_by_role("heading", name="next word").count() == 1
    assert page.locator("header .primary").inner_text().startswith("Next word")
    assert page.locator("section.next .top button").count() == 1
