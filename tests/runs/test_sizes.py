"""Networks of every kind in runs: sizing, training, resuming and fine-tuning."""

import json
import math

import numpy as np
import pytest
import torch

import clearhead as ch
from clearhead.classics.recurrent_cell import CELLS
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.errors import UserError
from clearhead.files import seal
from clearhead.model.transformer import Transformer
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.runs.run_metrics import read_metrics
from clearhead.runs.saved_run import SavedRun
from clearhead.runs.sizes import list_sizes, usual_size
from clearhead.text.corpus import documents
from clearhead.text.tokens import Tokens

SMALL = {
    "steps": 16,
    "blocks": 2,
    "width": 16,
    "context": 32,
    "batch": 4,
    "tokenizer": "char",
    "dropout": 0.2,
    "device": "cpu",
}


def test_sizes_increase_for_every_kind():
    tokens = range(1_000_000)
    for kind in ("transformer", *CELLS):
        sizes = list_sizes(TrainingRequest(kind=kind, steps=1), tokens, 500)
        inside = [each.n_block * each.n_parameter_per_block for each in sizes]
        assert len(sizes) > 5
        assert inside == sorted(inside)
        assert {each.kind for each in sizes} == {kind}
    [asked] = list_sizes(TrainingRequest(kind="gru", width=48, blocks=3, context=20, steps=1), tokens, 500)
    assert asked == RecurrentConfig("gru", 500, n_context=20, n_block=3, d_model=48)
    assert usual_size(TrainingRequest(kind="lstm", steps=1), tokens, 500).kind == "lstm"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "rnn"}, "kind = 'rnn': expected one of transformer, elman, gru, lstm"),
        (
            {"kind": "lstm", "heads": 2},
            "`heads` applies to transformers only: omit either it or the kind 'lstm'",
        ),
        ({"kind": "gru", "bidirectional": True}, "`bidirectional` applies to transformers"),
        ({"kind": "gru", "preset": "gpt2"}, "`preset` applies to transformers"),
        ({"kind": "elman", "sharded": True, "optimizer": "adamw"}, "`sharded` applies to transformers"),
        ({"kind": "elman", "lora": 4}, "`lora` fine-tunes an existing model"),
    ],
)
def test_invalid_or_incompatible_settings_are_rejected(settings, words):
    with pytest.raises(UserError, match=words):
        TrainingRequest(**settings)


@pytest.mark.parametrize(
    "kind", ["elman", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("gru", "lstm"))]
)
def test_recurrent_networks_learn_stories(kind, story_file, tmp_path):
    """A few steps bring the loss well below that of predicting from character frequencies alone."""
    text = story_file.read_text()
    shares = [text.count(each) / len(text) for each in set(text)]
    by_frequency = -sum(share * math.log(share) for share in shares)
    request = TrainingRequest(
        **{**SMALL, "kind": kind, "steps": 120, "width": 48, "blocks": 1, "dropout": 0.0}
    )
    run = Run(list(documents([story_file])), request, tmp_path)
    first = run.validate()
    list(run)
    assert first > 3.5
    assert run.losses[-1] < by_frequency - 0.3
    assert run.model.generate(tokens=30, seed=1) == run.model.generate(tokens=30, seed=1)
    assert run.model.evaluate("The hen was tired.").loss < first


def train_until(kept, step):
    with kept:
        for progress in kept:
            if progress.record.step == step:
                kept.save()
                return
        kept.run.model.save(kept.folder.path, overwrite=True)
        kept.finish()


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.slow
def test_resumed_run_matches_an_uninterrupted_run(kind, story_file, tmp_path):
    def open_run(name):
        request = TrainingRequest(kind=kind, **SMALL)
        return SavedRun.open(tmp_path / name, list(documents([story_file])), request, True, cache=tmp_path)

    train_until(open_run("whole"), None)
    for stop in (3, 9, None):
        train_until(open_run("broken"), stop)
    for name in ("metrics.jsonl", "model.safetensors", "clearhead.json", "config.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "broken" / name).read_bytes(), name
    assert len(read_metrics(tmp_path / "broken")) == 16
    assert ch.load(tmp_path / "broken", "cpu").config.kind == kind


def test_minutes_determine_the_size_of_recurrent_networks(story_file, tmp_path, work_clock):
    run = Run(list(documents([story_file])), TrainingRequest(kind="gru", minutes=0.1, device="cpu"), tmp_path)
    assert run.plan.config in list_sizes(run.request, run.tokens, run.tokenizer.n_vocab)
    assert not run.plan.recipe.bfloat16
    assert run.plan.seconds < 6


@pytest.mark.slow
def test_recurrent_models_can_be_fine_tuned(story_file, tmp_path):
    ch.train(story_file, tmp_path / "first", kind="gru", **SMALL)
    more = {"steps": 4, "context": 16, "batch": 4, "device": "cpu"}
    model = ch.train(story_file, tmp_path / "more", start=str(tmp_path / "first"), **more)
    assert model.config.kind == "gru"
    first = ch.load(tmp_path / "first", "cpu")
    assert not torch.equal(first.logits("The"), model.logits("The"))
    with pytest.raises(UserError, match="`lora` requires a transformer; this model is of kind gru"):
        ch.train(story_file, start=str(tmp_path / "first"), lora=2, **more)
    with pytest.raises(UserError, match="`sharded` requires a transformer"):
        ch.train(story_file, start=str(tmp_path / "first"), sharded=True, **more)
    with pytest.raises(UserError, match="`kind` applies to a new model"):
        ch.train(story_file, start=str(tmp_path / "first"), kind="gru", **more)


def test_runs_saved_without_a_kind_can_be_resumed(story_file, tmp_path):
    request = TrainingRequest(steps=4, width=16, heads=1, blocks=1, context=16, batch=2, device="cpu")
    texts = list(documents([story_file]))
    train_until(SavedRun.open(tmp_path / "run", texts, request, cache=tmp_path), 2)
    settings = json.loads((tmp_path / "run" / "run.json").read_text())
    assert settings["request"].pop("kind") == "transformer"
    (tmp_path / "run" / "run.json").write_text(json.dumps(seal(settings)))
    train_until(SavedRun.open(tmp_path / "run", texts, request, True, cache=tmp_path), None)
    assert len(read_metrics(tmp_path / "run")) == 4


def test_embeddings_are_untied_for_small_vocabularies():
    tokens = Tokens.of(np.arange(4000) % 60)
    small, large = (usual_size(TrainingRequest(device="cpu"), tokens, n_vocab) for n_vocab in (60, 4000))
    assert (small.tied, large.tied) == (False, True)
    assert usual_size(TrainingRequest(preset="gpt2", device="cpu"), tokens, 60).tied
    spreads = [Transformer(config).embedding.weight.std().item() for config in (small, large)]
    assert spreads == pytest.approx([0.3, 0.02], rel=0.05)  # an untied embedding has its own initial scale
