import pytest
import torch

from clearhead.errors import UserError
from clearhead.inspect.word_positions import find_word
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer


@pytest.mark.parametrize(
    ("word", "pieces", "positions"),
    [
        ("it", ["with", " it", ",", " it", "s"], [1]),
        ("bats", [" b", "ats", "!"], [1]),
        ("bats", ["bats", " and", " bats"], [0, 2]),
        ("!", ["no", "!", "!"], [1, 2]),
        ("", ["a"], []),
        ("z", ["a"], []),
    ],
)
def test_find_word_matches_whole_words_at_their_last_token(word, pieces, positions):
    assert find_word(word, pieces) == positions


@pytest.fixture
def model():
    torch.manual_seed(0)
    config = preset("modern", n_vocab=257, n_context=64, n_block=2, n_head=2, d_model=16)
    return LanguageModel(Transformer(config), Tokenizer.train("byte", []))


def test_cosines_between_occurrences_static_and_contextual(model):
    one, other = model.inspect("he bats as bats do"), model.inspect("the bats flew")
    cosines = one.cosines("bats", other)
    assert cosines.shape == (4, 2, 1)
    assert torch.allclose(cosines[0], torch.ones(2, 1), atol=1e-6)
    assert torch.allclose(
        cosines[1], torch.ones(2, 1), atol=1e-6
    )  # rotary: no token has attended to another yet
    assert (cosines[2:] < 1 - 1e-6).all()
    here, there = one.vector("bats", occurrence=1), other.vector("bats")
    by_hand = (here @ there).item() / (here.norm() * there.norm()).item()
    assert cosines[3, 1, 0].item() == pytest.approx(by_hand, abs=1e-5)
    alone = one.cosines("bats")
    assert torch.allclose(alone, alone.mT, atol=1e-6)


def test_missing_and_ambiguous_words_raise(model):
    trace = model.inspect("he bats as bats do, or he does not do what bats do")
    with pytest.raises(UserError, match="occurrence=0"):
        trace.vector("bats", block=1)
    with pytest.raises(UserError, match=r"'cats' is not a word of this text, .*…$"):
        trace.cosines("cats")
