"""Attributions sum exactly, and ablations equal manual edits."""

import pytest
import torch

import clearhead
from clearhead.errors import UserError
from clearhead.inspect.edits import Edit
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


def test_attributions_sum_to_the_logit(model):
    result = clearhead.lab("blank", model, sentence=SENTENCE, word="sad")
    found = result.findings
    logit = model.logits(SENTENCE)[-1, model.tokenizer.encode(" ")[0]].item()
    assert found["its logit"] == pytest.approx(logit, abs=1e-4)
    brought = [values[0] for values in result.part("attribution and ablation by token").values]
    assert sum(brought) == pytest.approx(found["attributed to all tokens"], abs=1e-4)
    assert sum(brought) + found["attributed to the last position itself"] == pytest.approx(logit, abs=1e-4)
    assert max(map(abs, brought)) > 1e-3


def test_ablation_equals_an_edit(model):
    result = clearhead.lab("blank", model, sentence=SENTENCE, word="sad")
    table = result.part("attribution and ablation by token")
    trace, token = model.inspect(SENTENCE), model.tokenizer.encode(" ")[0]
    before = trace.logits[-1].log_softmax(-1)[token]
    changes = [change for _, change in table.values]
    assert changes == sorted(changes)
    assert sorted(table.rows, key=lambda row: int(row.split()[0])) != table.rows
    for row, change in zip(table.rows, changes, strict=True):
        place = int(row.split()[0])
        edited = trace.edit({"block.0.input": Edit(0, at=[place])})
        by_hand = edited.logits[-1].log_softmax(-1)[token] - before
        assert change == pytest.approx(by_hand.item(), abs=1e-4), place
    last = max(int(row.split()[0]) for row in table.rows)
    earlier = next(row for row in table.rows if int(row.split()[0]) != last)
    assert result.findings["lowered most by ablating, before the last"] == earlier


def test_short_sentence_or_empty_word_is_rejected(model):
    with pytest.raises(UserError, match="two tokens"):
        clearhead.lab("blank", model, sentence="A")
    with pytest.raises(UserError, match="`word` is empty"):
        clearhead.lab("blank", model, sentence=SENTENCE, word=" ")


def test_girl_decides_damians_will_in_the_built_in_model():
    result = clearhead.lab("blank")
    assert result.findings["token"] == " her"
    assert result.findings["its probability"] > 0.9
    assert result.findings["largest attribution, before the last"] == "7  girl"
    boy = clearhead.lab("blank", sentence=result.settings["sentence"].replace("girl", "boy"))
    assert boy.findings["its probability"] < 0.1


def test_girl_has_the_largest_effect_in_damians_will(smollm2):
    result = clearhead.lab("blank", smollm2)
    assert result.findings["token"] == " her"
    assert result.findings["largest attribution, before the last"] == "8  girl"
    assert result.findings["lowered most by ablating, before the last"] == "8  girl"
    table = result.part("attribution and ablation by token")
    brought, missed = table.values[table.rows.index("8  girl")]
    assert brought == pytest.approx(1.28, abs=0.05)
    assert missed == pytest.approx(-3.23, abs=0.05)
    boy = clearhead.lab("blank", smollm2, sentence=result.settings["sentence"].replace("girl", "boy"))
    assert boy.findings["its probability"] < 0.2 * result.findings["its probability"]
