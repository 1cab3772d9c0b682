"""Direct contributions sum exactly, and a token that is left out is missing from the text."""

import pytest
import torch

import clearhead
from clearhead.errors import UserError
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

SENTENCE = "Anna lost her red ball and was"


@pytest.fixture(params=["lecture", "modern"])
def model(request):
    """Two blocks with random weights, far from their initialization, so that every part contributes."""
    torch.manual_seed(0)
    tokenizer = Tokenizer.train("char", [SENTENCE + " sad"])
    config = preset(request.param, n_vocab=tokenizer.n_vocab, n_context=64, n_block=2, n_head=2, d_model=16)
    network = Transformer(config)
    for weights in network.parameters():
        weights.data.normal_(std=0.3)
    return LanguageModel(network, tokenizer)


def test_direct_contributions_sum_to_the_logit(model):
    result = clearhead.lab("blank", model, sentence=SENTENCE, word="sad")
    found = result.findings
    logit = model.logits(SENTENCE)[-1, model.tokenizer.encode(" ")[0]].item()
    assert found["its logit"] == pytest.approx(logit, abs=1e-4)
    direct = [values[1] for values in result.part("effect of each token").values]
    assert sum(direct) == pytest.approx(found["contributed directly by all tokens"], abs=1e-4)
    assert sum(direct) + found["contributed by the last position itself"] == pytest.approx(logit, abs=1e-4)
    assert max(map(abs, direct)) > 1e-3


def test_largest_direct_contribution_may_be_negative(model):
    result = clearhead.lab("blank", model, sentence=SENTENCE, word="sad")
    table = result.part("effect of each token")
    direct = {row: each for row, (_, each) in zip(table.rows, table.values, strict=True)}
    largest = max((row for row in direct if row != f"{len(direct) - 1} s"), key=lambda row: abs(direct[row]))
    assert result.findings["largest direct contribution (except the last token's)"] == largest
    with torch.no_grad():
        model.network.final_norm.gain.neg_()  # negates all contributions
    opposite = clearhead.lab("blank", model, sentence=SENTENCE, word="sad")
    assert opposite.findings["largest direct contribution (except the last token's)"] == largest


def test_each_token_is_left_out_in_turn(model):
    result = clearhead.lab("blank", model, sentence=SENTENCE, word="sad")
    table = result.part("effect of each token")
    ids, token = model.inspect(SENTENCE).ids[0].tolist(), model.tokenizer.encode(" ")[0]
    before = model.logits(SENTENCE)[-1].log_softmax(-1)[token]
    changes = [change for change, _ in table.values]
    assert changes == sorted(changes, key=lambda change: -abs(change))
    for row, change in zip(table.rows, changes, strict=True):
        place = int(row.split()[0])
        without = model.logits([*ids[:place], *ids[place + 1 :]])[-1].log_softmax(-1)[token]
        assert change == pytest.approx((without - before).item(), abs=1e-4), place
    place, row = next((i, row) for i, row in enumerate(table.rows) if int(row.split()[0]) != len(ids) - 1)
    assert result.findings["most influential token (except the last)"] == row
    without = result.findings["its probability without that token"]
    assert without == pytest.approx((before + changes[place]).exp().item(), rel=1e-3)


def test_both_words_are_among_the_candidates(model):
    result = clearhead.lab("blank", model, sentence=SENTENCE, word="sad", other="red")
    rows = result.part("candidates for the blank").rows
    assert len(rows) == len(set(rows))
    built_in = clearhead.lab("blank")
    rows = built_in.part("candidates for the blank").rows
    assert {"' her'", "' his'"} <= set(rows)
    chances = [chance for (chance,) in built_in.part("candidates for the blank").values]
    assert chances == sorted(chances, reverse=True)


def test_word_of_several_tokens_is_said_to_be_split(model):
    split = "tokens of the word (only the first is explained)"
    found = clearhead.lab("blank", model, sentence=SENTENCE, word="sad").findings
    assert found["token"] == " "
    assert found[split] == "' ', 's', 'a', 'd'"
    assert split not in clearhead.lab("blank").findings


def test_short_sentence_or_empty_word_is_rejected(model):
    with pytest.raises(UserError, match="two tokens"):
        clearhead.lab("blank", model, sentence="A")
    with pytest.raises(UserError, match="`word` is empty"):
        clearhead.lab("blank", model, sentence=SENTENCE, word=" ")


def test_girl_decides_damians_will_in_the_built_in_model():
    result = clearhead.lab("blank")
    assert result.findings["token"] == " her"
    assert result.findings["its probability"] > 0.9
    assert result.findings["most influential token (except the last)"] == "7  girl"
    assert result.findings["largest direct contribution (except the last token's)"] == "7  girl"
    assert result.findings["its probability without that token"] < 0.5
    boy = clearhead.lab("blank", sentence=result.settings["sentence"].replace("girl", "boy"))
    assert boy.findings["its probability"] < 0.1


def test_girl_has_the_largest_effect_in_damians_will(smollm2):
    result = clearhead.lab("blank", smollm2)
    assert result.findings["token"] == " her"
    assert result.findings["largest direct contribution (except the last token's)"] == "8  girl"
    table = result.part("effect of each token")
    change, direct = table.values[table.rows.index("8  girl")]
    assert direct == pytest.approx(1.28, abs=0.05)
    assert change == pytest.approx(-3.27, abs=0.05)
    assert result.findings["most influential token (except the last)"] == "8  girl"
    boy = clearhead.lab("blank", smollm2, sentence=result.settings["sentence"].replace("girl", "boy"))
    assert boy.findings["its probability"] < 0.2 * result.findings["its probability"]
