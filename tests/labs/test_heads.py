"""Head scores on attention heads whose weights are set by hand."""

import pytest
import torch

import clearhead
from clearhead.errors import UserError
from clearhead.labs.heads import find_antecedents, heads
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.runs.demo import demo_texts
from clearhead.text.stories import story
from clearhead.text.tokenizer import Tokenizer


@pytest.fixture
def model():
    torch.manual_seed(0)
    pieces = [text for document in demo_texts(500) for text in document.read()]
    tokenizer = Tokenizer.train("bpe", pieces, 1000)
    config = preset("lecture", n_vocab=tokenizer.n_vocab, n_context=128, n_block=1, n_head=2, d_model=256)
    return LanguageModel(Transformer(config), tokenizer)


def by_position(model, head, shift):
    """Set a head's query at t to the position vector of t - shift, and its key to its own position vector."""
    network, D = model.network, model.config.d_head
    table = torch.zeros(128, 256)
    table[:, :128] = torch.eye(128) * 30
    network.position.weight.data = table
    network.embedding.weight.data *= 0
    attention, own = network.blocks[0].attention, slice(D * head, D * (head + 1))
    query, key = torch.zeros(D, 256), torch.zeros(D, 256)
    for t in range(128):
        key[t, t] = 1
        query[max(0, t - shift) if shift is not None else 0, t] = 1
    attention.query.weight.data[own], attention.key.weight.data[own] = 10 * query, key
    attention.query.bias.data *= 0
    attention.key.bias.data *= 0


def test_previous_and_first_token_heads_are_found(model):
    by_position(model, 0, shift=1)
    by_position(model, 1, shift=None)
    scores = heads(model)
    assert scores.best("previous")[:2] == (0, 0)
    assert scores.best("first")[:2] == (0, 1)
    assert scores.previous[0, 0] > 0.99
    assert scores.first[0, 1] > 0.99
    assert scores.previous[0, 1] < 0.01


@pytest.mark.parametrize(("shift", "kind"), [(50, "repeated"), (49, "induction")])
def test_repeated_and_induction_heads_are_found(model, shift, kind):
    by_position(model, 1, shift)
    assert heads(model).best(kind)[1] == 1
    assert getattr(heads(model), kind)[0, 1] > 0.99


def test_antecedent_scores_match_direct_computation(model):
    scores, alike, count = find_antecedents(model, 2)
    tokenizer, by_hand = model.tokenizer, []
    for number in range(2):
        told = story(1, number)
        ids = tokenizer.encode(told.text)
        pieces = tokenizer.pieces(ids)
        ends = [sum(map(len, pieces[: i + 1])) for i in range(len(ids))]
        trace = model.inspect(told.text)
        for pronoun in told.pronouns:
            at, to = (
                next(i for i, end in enumerate(ends) if end >= span.stop)
                for span in (pronoun.span, pronoun.antecedent)
            )
            by_hand.append(trace["block.0.head.1.weights"][at, to].item())
    assert count == len(by_hand)
    assert scores[0, 1].item() == pytest.approx(sum(by_hand) / count, abs=1e-5)
    assert 0 < alike < 0.5


def test_heads_is_public_and_rejects_unknown_kinds(model):
    assert clearhead.heads is heads
    with pytest.raises(UserError, match="previous, first, repeated, induction, antecedent"):
        heads(model).best("copying")


def test_chance_is_the_score_of_uniform_attention(model):
    attention = model.network.blocks[0].attention
    for linear in (attention.query, attention.key):
        linear.weight.data *= 0
        linear.bias.data *= 0
    scores = heads(model)
    assert set(scores.chance) == set(scores.kinds)
    for kind, table in scores.kinds.items():
        assert table.flatten().tolist() == pytest.approx([scores.chance[kind]] * 2, rel=1e-4)


def test_stories_with_unknown_characters_are_skipped():
    tokenizer = Tokenizer.train("char", ["abc "])
    config = preset("lecture", n_vocab=tokenizer.n_vocab, n_context=32, n_block=1, n_head=2, d_model=8)
    scores = heads(LanguageModel(Transformer(config), tokenizer))
    assert scores.antecedent.shape == (1, 2)


def test_scores_are_shown_as_a_short_table(model):
    scores = heads(model, sequences=1, stories=1)
    heading, columns, *rows = repr(scores).splitlines()
    assert heading == "HeadScores(1 block × 2 heads)"
    assert columns.split() == ["role", "best", "head", "its", "score", "uniform", "attention"]
    assert [row.split()[0] for row in rows] == list(scores.kinds)
    block, head, score = scores.best("previous")
    first = rows[0].split()
    assert first[1:6] == ["block", f"{block},", "head", str(head), f"{score:.4f}"]
    shown = scores._repr_html_()
    assert f"{score:.4f}" in shown
    assert shown.count("<tr>") == 6
