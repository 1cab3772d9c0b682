"""Scores of given texts, compared with a full forward pass over each text alone."""

import math

import numpy as np
import pytest
import torch

import clearhead as ch
from clearhead.classics.kneser_ney import estimate
from clearhead.classics.ngram_counts import count_ngrams
from clearhead.classics.recurrent import Recurrent
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.errors import UserError
from clearhead.generate import scoring
from clearhead.generate.scoring import ScoringBatch, score
from clearhead.language_model import LanguageModel
from clearhead.text.tokens import Tokens

TEXTS = ["The hen.", "A", "Once upon a time there was a hen who could not swim.", "duck, duck, goose " * 6]


def counted(tokenizer):
    ids = tokenizer.encode("Once upon a time there was a hen. The hen saw a duck. " * 5)
    tokens = Tokens.of(np.array([tokenizer.end_id, *ids, tokenizer.end_id]))
    return estimate(count_ngrams(tokens, tokenizer.n_vocab, tokenizer.end_id, 4))


@pytest.fixture(scope="module")
def models(make, tokenizer):
    torch.manual_seed(0)
    gru = Recurrent(RecurrentConfig("gru", n_vocab=tokenizer.n_vocab, n_context=8, n_block=2, d_model=24))
    made = {
        "modern": make(),
        "local and global, like Gemma": make("local and global, like Gemma"),
        "capped, like Gemma 2": make("capped, like Gemma 2"),
        "gru": gru.eval(),
        "ngram": counted(tokenizer),
    }
    models = {name: LanguageModel(network, tokenizer) for name, network in made.items()}
    models["ensemble"] = ch.ensemble([models["modern"], models["gru"], models["ngram"]])
    return models


def expected_scores(model, ids):
    """The log-probability of each token but the first, and whether it has the highest logit."""
    logits = model.logits(ids)[:-1].double()
    chosen = torch.tensor(ids[1:])
    log_probabilities = logits.log_softmax(-1).gather(-1, chosen[:, None])[:, 0]
    return log_probabilities.tolist(), (logits.argmax(-1) == chosen).tolist()


@pytest.mark.parametrize(
    "kind", ["modern", "local and global, like Gemma", "capped, like Gemma 2", "gru", "ngram", "ensemble"]
)
@pytest.mark.parametrize("at_once", [scoring.LOGITS_AT_ONCE, 257 * 9])
def test_scores_match_a_forward_pass_over_each_text(models, kind, at_once, monkeypatch):
    monkeypatch.setattr(scoring, "LOGITS_AT_ONCE", at_once)
    model = models[kind]
    for text, scored in zip(TEXTS, model.log_probabilities(TEXTS), strict=True):
        ids = model.tokenizer.encode(text)
        log_probabilities, greedy = expected_scores(model, ids)
        assert scored.ids == ids
        assert scored.log_probabilities[0] is None
        assert scored.log_probabilities[1:] == pytest.approx(log_probabilities, abs=2e-5)
        assert [token.greedy for token in scored.tokens[1:]] == greedy
        assert scored.log_probability == pytest.approx(sum(log_probabilities), abs=1e-3)


def test_alternatives_are_the_most_probable_tokens(models):
    model = models["modern"]
    scored = model.log_probabilities("The hen.", top=3)
    logits = model.logits("The hen.").log_softmax(-1)
    for token, row in zip(scored.tokens[1:], logits, strict=False):
        best = row.topk(3)
        assert [i for i, _ in token.alternatives] == best.indices.tolist()
        assert [p for _, p in token.alternatives] == pytest.approx(best.values.tolist(), abs=1e-5)
        assert token.greedy == (token.alternatives[0] == (token.id, token.log_probability))


def test_only_the_text_after_a_prefix_is_scored(models):
    model = models["modern"]
    whole = model.log_probabilities("The hen saw a duck.")
    after = model.log_probabilities(" a duck.", prefix="The hen saw")
    assert after.ids == whole.ids[11:]
    assert after.log_probabilities == pytest.approx(whole.log_probabilities[11:], abs=1e-5)
    assert model.log_probabilities("a duck.", prefix="The hen saw ").ids == after.ids
    ids = model.tokenizer.encode("The hen saw")
    same = model.log_probabilities(model.tokenizer.encode(" a duck."), prefix=ids)
    assert same.log_probabilities == pytest.approx(after.log_probabilities, abs=1e-5)
    opening = model.log_probabilities("The", prefix="")
    expected, _ = expected_scores(model, [model.tokenizer.end_id, *b"The"])
    assert opening.log_probabilities == pytest.approx(expected, abs=1e-5)


def test_what_greedy_decoding_writes_is_greedy(models):
    model = models["modern"]
    written = model.generate("The hen", 12, temperature=0, log_probabilities=0)
    scored = model.log_probabilities(written.ids, prefix="The hen")
    assert scored.greedy
    assert scored.log_probabilities == pytest.approx(written.log_probabilities, abs=1e-5)
    assert not model.log_probabilities([(written.ids[0] + 1) % 256], prefix="The hen").greedy


def test_next_logits_are_those_after_each_text(models):
    model = models["modern"]
    sequences = [model.tokenizer.encode(text) for text in TEXTS]
    batch = ScoringBatch(model.network, sequences, with_next=True)
    chunks = []
    while not batch.done:
        chunks.append(batch.run_chunk(20))
    assert set(chunks[:-1]) == {20}
    for ids, logits, text in zip(sequences, batch.next_logits, batch.texts(), strict=True):
        assert torch.allclose(logits, model.logits(ids)[-1], atol=1e-4)
        assert len(text.tokens) == len(ids)


def test_many_texts_are_divided_into_batches(models, monkeypatch):
    model, widths = models["modern"], []
    monkeypatch.setattr(scoring, "MOST_TOKENS", 40)
    made = ScoringBatch.__init__

    def record(batch, network, sequences, *rest):
        widths.append([len(ids) for ids in sequences])
        made(batch, network, sequences, *rest)

    monkeypatch.setattr(ScoringBatch, "__init__", record)
    reports = []
    ids = [[65] * n for n in (3, 30, 3, 2, 60)]
    scored = score(model.network, ids, report=lambda *report: reports.append(report))
    assert [len(each.ids) for each in scored] == [3, 30, 3, 2, 60]
    assert widths == [[60], [30], [3, 3, 2]]
    assert reports == [(1, 5), (2, 5), (5, 5)]


def test_the_context_is_the_limit_except_for_the_last_token(models):
    model = models["modern"]
    longest = model.log_probabilities([65] * (model.config.n_context + 1))
    assert math.isfinite(longest.log_probability)
    with pytest.raises(UserError, match="162 tokens; with a context of 160, at most 161 can be scored"):
        model.log_probabilities([65] * (model.config.n_context + 2))
    assert len(models["gru"].log_probabilities("duck " * 60).ids) == 300
    with pytest.raises(UserError, match="the text is empty"):
        model.log_probabilities("")
    with pytest.raises(UserError, match="the text after the prefix is empty"):
        model.log_probabilities("", prefix="a")
    with pytest.raises(UserError, match="log_probabilities = 21: expected an integer from 0 to 20"):
        model.log_probabilities("a", top=21)
