"""A bidirectional model can be inspected like any other but does not generate text."""

import pytest
import torch

from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.server.model_registry import ModelRegistry, ServedModel
from clearhead.text.tokenizer import Tokenizer
from tests.serving import running


@pytest.fixture(scope="module")
def bidirectional():
    tokenizer = Tokenizer.train("byte", [])
    torch.manual_seed(0)
    sizes = {"n_vocab": tokenizer.n_vocab, "n_context": 32, "n_block": 1, "n_head": 1, "d_model": 8}
    model = LanguageModel(Transformer(preset("modern", causal=False, **sizes)).eval(), tokenizer)
    with running(ModelRegistry([ServedModel("both", model)])) as made:
        yield made


def test_bidirectional_model_predicts_in_place_without_generating(visit, bidirectional):
    visitor = visit(bidirectional)
    visitor.open(model="both", text="Once upon")
    page = visitor.page
    assert page.get_by_role("heading", name="word at the last position").count() == 1
    assert page.locator("header .primary").count() == 0
    assert page.locator("section.next .top button").count() == 0
    assert page.locator("section.next li button:not([disabled])").count() == 0
    page.locator("[data-place=prompt]").press("Enter")
    assert page.locator("[data-place=prompt]").input_value() == "Once upon"


def test_causal_model_can_generate(visit):
    visitor = visit()
    visitor.open(text="Once upon")
    page = visitor.page
    assert page.get_by_role("heading", name="next word").count() == 1
    assert page.locator("header .primary").inner_text().startswith("Next word")
    assert page.locator("section.next .top button").count() == 1
