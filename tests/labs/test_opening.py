"""A model opens on a text of known tokens with an uncertain continuation, and on a head worth showing."""

import pytest
import torch

import clearhead as ch
from clearhead.labs import opening as module
from clearhead.labs.heads import heads
from clearhead.labs.opening import CLEAR, find_head, find_opening
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.examples import has_whole_words
from clearhead.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def stories():
    return ch.load("stories", device="cpu")


def make(tokenizer, **sizes):
    torch.manual_seed(0)
    config = preset(
        "lecture", n_vocab=tokenizer.n_vocab, n_context=32, n_block=2, n_head=2, d_model=8, **sizes
    )
    return LanguageModel(Transformer(config).eval(), tokenizer)


def test_built_in_model_opens_on_its_antecedent_head(stories):
    found = find_opening(stories)
    trace = stories.inspect(found.text)
    weights = trace.block[found.block].head[found.head].weights
    assert found.role == "antecedent"
    assert has_whole_words(stories.tokenizer, found.text)
    assert len(trace) <= 16  # one screen
    assert (trace.tokens[found.row], trace.tokens[int(weights[found.row].argmax())]) == (" it", " trumpet")
    assert weights[found.row].max().item() == pytest.approx(found.weight, abs=1e-4)
    assert found.weight > 0.9
    # The same head scores best on stories.
    assert heads(stories).best("antecedent")[:2] == (found.block, found.head)


def test_head_is_chosen_for_a_text_that_is_given(stories):
    chosen = find_opening(stories)
    trace = stories.inspect("Ella lived near the village. She had a trumpet, and it was green.")
    found = find_head(trace)
    assert (found.block, found.head, found.role) == (chosen.block, chosen.head, "antecedent")
    assert trace.tokens[found.row] == " it"
    others = [(0, 0), (0, 1)]
    assert (find_head(trace, others).block, find_head(trace, others).head) in others


def test_prediction_is_spread_over_several_tokens(stories):
    likely = stories.inspect(find_opening(stories).text).logits[-1].softmax(-1).sort(descending=True)
    assert likely.values[0] < 0.5
    colors = {" red", " blue", " green", " white", " orange", " yellow"}
    assert set(stories.tokenizer.pieces(likely.indices[:6].tolist())) == colors


def test_model_that_lacks_the_words_opens_on_its_own_text():
    model = make(Tokenizer.train("char", ["xyz zyx yxz "]))
    found = find_opening(model)
    assert found.text
    assert set(found.text) <= set("xyz ")
    assert find_opening(model) == found


def test_no_role_is_claimed_if_no_head_has_a_clear_one():
    tokenizer = Tokenizer.of_words(["a", "b"], None)
    model = make(tokenizer)
    for parameter in model.network.parameters():
        parameter.data.zero_()  # uniform attention
    found = find_opening(model)
    assert (found.role, found.block, found.head) == (None, 0, 0)


def test_previous_token_head_is_found():
    """A head that attends to the previous token by position: query t and key t - 1 agree."""
    model = make(Tokenizer.train("char", ["abc"]))
    trace = model.inspect("abcabc")
    table = torch.zeros(2, 2, 6, 6)
    table[:, :, :, 0] = 1
    table[1, 0] = torch.eye(6).roll(1, 0)

    class Fixed:
        config, ids = trace.config, torch.arange(6)[None]
        weights = staticmethod(lambda block: table[block])
        read = trace.read
        __len__ = lambda self: 6  # noqa: E731

    found = module._open("abcabc", Fixed(), None)
    assert (found.role, found.block, found.head) == ("previous", 1, 0)
    assert found.weight >= CLEAR


def test_repeats_are_found():
    assert module._repeats([5, 6, 5, 6, 6]) == [(2, 0), (3, 1)]


def test_hardly_trained_model_opens_on_an_example():
    tokenizer = Tokenizer.train("char", ["Once upon a time, the cat gets fed. I swing bats. The end"])
    model = make(tokenizer)
    found = find_opening(model)
    assert found.text == "The cat gets fed"
    for parameter in model.network.parameters():
        parameter.data.mul_(20)  # certain of what comes next, as a trained model is
    assert find_opening(model).text != found.text
    assert find_opening(make(tokenizer, causal=False)).text == found.text
