"""Filling in blanks: trained on the stories, queried in plain text."""

import math
from itertools import islice

import numpy as np
import pytest
import torch

from clearhead.errors import UserError
from clearhead.language_model import LanguageModel, load
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.text.corpus import Document
from clearhead.text.stories import stories
from clearhead.text.tokenizer import Tokenizer

LEARNED = TrainingRequest(
    steps=180, bidirectional=True, tokenizer="bpe", vocab=800, blocks=1, width=64, heads=2, context=64, batch=8,
    device="cpu",
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    texts = [Document.of(f"{i}", story.text) for i, story in enumerate(islice(stories(), 600))]
    run = Run(texts, LEARNED, cache=tmp_path_factory.mktemp("cache"))
    run.progress = list(run)
    return run


@pytest.fixture
def model(run):
    return run.model


def test_loss_falls_far_below_the_unigram_entropy(run):
    counts = np.bincount(run.tokens[:], minlength=run.tokenizer.n_vocab)
    shares = counts[counts > 0] / counts.sum()
    entropy = -float((shares * np.log(shares)).sum())
    assert run.progress[0].record.loss == pytest.approx(math.log(run.tokenizer.n_vocab), abs=0.3)
    assert run.losses[-1] < min(run.losses[0], entropy - 1)


def test_blank_is_filled_from_context_on_both_sides(model):
    [tokens] = model.fill("The duck didn't cross the road because ___ was too tired.")
    assert tokens[0][0] == "it"
    assert tokens[0][1] > 0.3  # chance level is 1 in 800
    assert [p for _, p in tokens] == sorted((p for _, p in tokens), reverse=True)
    assert len(tokens) == 5
    [before] = model.fill("The duck didn't cross the road ___ it was too tired.")
    assert "because" in [token for token, _ in before[:2]]
    assert dict(before)["because"] > 0.1


def test_several_blanks_in_both_notations(model):
    text = "The duck didn't cross the ___ because <|mask|> was too wide."
    first, second = model.fill(text, count=3)
    assert len(first) == len(second) == 3
    assert model.fill(text.replace("<|mask|>", "_____"), count=3) == [first, second]
    assert second[0][0] == "it"


def test_probabilities_are_those_of_the_model(model):
    tokenizer = model.tokenizer
    before, after = tokenizer.encode("The duck was"), tokenizer.encode(", so Anna")
    ids = torch.tensor([[*before, tokenizer.mask_id, *after]])
    with torch.no_grad():
        row = model.network(ids)[0, len(before)].softmax(-1)
    [tokens] = model.fill("The duck was ___, so Anna")
    for token, probability in tokens:
        [i] = [i for i in range(tokenizer.n_vocab) if tokenizer.pieces([i]) == [f" {token}"]]
        assert probability == pytest.approx(float(row[i]), rel=1e-4)


def test_saved_model_fills_in_the_same_tokens(model, tmp_path):
    model.save(tmp_path / "model")
    again = load(tmp_path / "model", "cpu")
    assert not again.config.causal
    text = "Anna had a red ___."
    assert again.fill(text) == model.fill(text)
    with pytest.raises(UserError):
        again.export(tmp_path / "model.gguf", "gguf")


def test_evaluation_masks_the_same_tokens_every_time(run, model):
    texts = [Document.of("a", "Anna had a kite, and it was red. " * 20)]
    evaluation = model.evaluate(texts)
    assert evaluation == model.evaluate(texts)
    assert evaluation.loss == pytest.approx(model.evaluate(texts, batch_size=1).loss, rel=1e-5)
    assert evaluation.bits_per_byte is None
    assert run.losses[-1] == run.validate()
    run.losses.pop()


def test_unsupported_models_and_inputs_are_rejected(trained, model):
    with pytest.raises(UserError, match="this model is causal"):
        trained.model.fill("Anna ___ a kite.")
    with pytest.raises(UserError, match="has no blank"):
        model.fill("Anna had a kite.")
    with pytest.raises(UserError, match="count = 0"):
        model.fill("Anna ___ a kite.", count=0)
    with pytest.raises(UserError, match="fills in blanks and cannot generate text"):
        model.generate("Anna")
    with pytest.raises(UserError, match="exceed the context of 64"):
        model.fill("Anna had a ___. " * 40)
    config = preset("modern", n_vocab=257, n_context=8, n_block=1, n_head=1, d_model=8, causal=False)
    maskless = LanguageModel(Transformer(config), Tokenizer.train("byte", []))
    for ask in (lambda: maskless.fill("a ___"), lambda: maskless.evaluate("abc")):
        with pytest.raises(UserError, match="no mask token"):
            ask()


def test_characters_are_filled_in_unchanged():
    tokenizer = Tokenizer.train("char", ["a cat"], mask=True)
    config = preset(
        "modern", n_vocab=tokenizer.n_vocab, n_context=8, n_block=1, n_head=1, d_model=8, causal=False
    )
    torch.manual_seed(0)
    [letters] = LanguageModel(Transformer(config), tokenizer).fill("a ___at", count=9)
    assert sorted(letter for letter, _ in letters) == [" ", "a", "c", "t"]
