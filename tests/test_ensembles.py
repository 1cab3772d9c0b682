"""Ensembles: the mean of several models' probabilities, computed independently."""

import math

import numpy as np
import pytest
import torch

import clearhead as ch
from clearhead.errors import UserError

TEXT = "The chicken didn't cross the road because it was too tired.\n"
SMALL = {"steps": 3, "blocks": 1, "heads": 1, "width": 16, "batch": 4, "tokenizer": "char", "device": "cpu"}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(TEXT * 60, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("teachers")
    for seed, context in ((1, 32), (2, 24), (3, 32)):
        ch.train(text, folder / str(seed), seed=seed, context=context, **SMALL)
    return folder


@pytest.fixture(scope="module")
def members(folder):
    return [ch.load(folder / str(seed), "cpu") for seed in (1, 2, 3)]


@pytest.fixture(scope="module")
def model(members):
    return ch.ensemble(members)


def mean_probabilities(members, text):
    """The mean of the softmax of each model's logits, in float64: T V."""
    logits = [each.logits(text).double().numpy() for each in members]
    exponentials = [np.exp(each - each.max(-1, keepdims=True)) for each in logits]
    return np.mean([each / each.sum(-1, keepdims=True) for each in exponentials], axis=0)


def test_probabilities_are_the_mean(model, members):
    expected = mean_probabilities(members, TEXT[:24])
    found = model.logits(TEXT[:24]).double().exp().numpy()
    assert np.abs(found - expected).max() <= 1e-6
    assert np.abs(found.sum(-1) - 1).max() <= 1e-6


def test_context_is_the_shortest_and_parameters_add_up(model, members):
    assert model.config.n_context == 24
    assert model.config.n_parameter == sum(each.config.n_parameter for each in members)
    assert "ensemble of 3 networks" in repr(model)
    assert "ensemble of 3 networks" in model._repr_html_()
    with pytest.raises(UserError, match="25 tokens exceed the context of 24"):
        model.logits(TEXT[:25])


def test_loss_is_that_of_the_mean(model, members, tmp_path):
    """A document's first window starts with the end token; each later one, with the last token of the one before."""
    document = TEXT[:40]
    ids = [*model.tokenizer.encode(document), model.tokenizer.end_id]
    before = [model.tokenizer.end_id, *ids[:-1]]
    losses = []
    for i in range(0, len(ids), 24):
        predicted = mean_probabilities(members, before[i : i + 24])
        losses += [-math.log(row[target]) for row, target in zip(predicted, ids[i : i + 24], strict=True)]
    path = tmp_path / "document.txt"
    path.write_text(document, encoding="utf-8")
    evaluation = model.evaluate(path)
    assert evaluation.tokens == len(ids)
    assert evaluation.loss == pytest.approx(np.mean(losses), abs=1e-6)
    assert evaluation.bits_per_byte == pytest.approx(sum(losses) / math.log(2) / evaluation.bytes, abs=1e-6)


@pytest.mark.parametrize("prompt", ["The ", TEXT[:40]])
def test_greedy_text_follows_the_mean_beyond_the_context(model, members, prompt):
    ids = model.tokenizer.encode(prompt)
    text = model.generate(prompt, tokens=30, temperature=0)
    for token in text.ids:
        predicted = mean_probabilities(members, ids[-24:])[-1]
        assert predicted[token] >= predicted.max() - 1e-6
        ids.append(token)


def test_sampling_beams_and_batches(model):
    settings = {"tokens": 30, "temperature": 0.8, "top_k": 5, "seed": 3}
    one, other = (model.generate(each, **settings) for each in ("The ", "road"))
    assert model.generate(["The ", "road"], **settings) == [one, other]
    assert "".join(model.stream("The ", **settings)) == one
    assert len(model.generate("The ", samples=2, **settings)) == 2
    assert model.generate("The ", 5, beams=1) == model.generate("The ", 5, temperature=0)
    assert model.generate("The ", 5, beams=3).score >= model.generate("The ", 5, beams=1).score - 1e-6
    with model.engine() as engine:
        assert engine.submit(model.request("The ", **settings)).texts() == [one]


def test_one_model_is_its_own_ensemble(members):
    alone = ch.ensemble([members[0]])
    expected = members[0].logits("The road").log_softmax(-1)
    torch.testing.assert_close(alone.logits("The road"), expected)
    assert alone.generate("The ", 40, seed=5) == members[0].generate("The ", 40, seed=5)


def test_models_are_named_by_folder_or_pattern(folder, model):
    expected = model.logits("The road")
    patterns = (folder, f"{folder}/*", folder / "*", [folder / "1", str(folder / "2"), f"{folder}/[3-9]"])
    for names in patterns:
        torch.testing.assert_close(ch.ensemble(names, "cpu").logits("The road"), expected)


def test_networks_of_different_kinds(text, folder, tmp_path):
    ch.train(text, tmp_path / "lstm", kind="lstm", context=16, **{**SMALL, "heads": None})
    ch.train(text, tmp_path / "ngram", kind="ngram", order=3, tokenizer="char")
    members = [ch.load(each, "cpu") for each in (folder / "1", tmp_path / "lstm", tmp_path / "ngram")]
    model = ch.ensemble(members)
    assert model.config.n_context == 32
    found = model.logits(TEXT[:20]).double().exp().numpy()
    assert np.abs(found - mean_probabilities(members, TEXT[:20])).max() <= 1e-6
    assert math.isfinite(model.evaluate(text).loss)
    for each in (model, ch.ensemble(members[1:])):
        assert each.generate([TEXT[:30]], 20, seed=1) == [each.generate(TEXT[:30], 20, seed=1)]


def test_models_that_do_not_fit_are_refused(text, folder, members, tmp_path):
    ch.train(text, tmp_path / "bytes", context=32, **{**SMALL, "tokenizer": "byte"})
    ch.train(text, tmp_path / "blanks", context=32, bidirectional=True, **SMALL)
    with pytest.raises(UserError, match=r"bytes has a different tokenizer from .*1: "):
        ch.ensemble([folder / "1", tmp_path / "bytes"], "cpu")
    with pytest.raises(UserError, match="blanks is bidirectional"):
        ch.ensemble([tmp_path / "blanks"], "cpu")
    with pytest.raises(UserError, match="needs at least one model"):
        ch.ensemble([])
    with pytest.raises(UserError, match="no such folder or file: nowhere"):
        ch.ensemble(["nowhere"])
    with pytest.raises(UserError, match=r"nowhere/\* matches no model folder"):
        ch.ensemble("nowhere/*")
    with pytest.raises(UserError, match="3 is not the name of a model"):
        ch.ensemble([3])
    with pytest.raises(UserError, match="a list of models"):
        ch.ensemble(3)
    with pytest.raises(UserError, match="this is an ensemble"):
        ch.ensemble([ch.ensemble(members)])


def test_what_an_ensemble_cannot_do_is_refused(model, tmp_path):
    refused = [
        lambda: model.save(tmp_path / "saved"),
        lambda: model.export(tmp_path / "my.gguf"),
        lambda: model.inspect("The road"),
        lambda: model.generate("The ", 3, inspect=True),
        lambda: model.generate("The ", 3, shift=True),
        lambda: model.weight("block.0.head.0.W_Q"),
        lambda: ch.learn(model, "The road"),
        lambda: ch.heads(model),
        lambda: ch.show(model, text="The road"),
    ]
    for each in refused:
        with pytest.raises(UserError, match="ensemble"):
            each()
    assert not list(tmp_path.iterdir())
