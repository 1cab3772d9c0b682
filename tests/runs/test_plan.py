"""The plan: its recipes, and the warning when a text would be repeated too often."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from clearhead.errors import UserError
from clearhead.model.config import Config
from clearhead.runs import recipes
from clearhead.runs.plan import Plan, choose_tokenizer, make_plan
from clearhead.runs.recipes import MOST_EPOCHS
from clearhead.runs.request import TrainingRequest
from clearhead.text.tokens import Tokens
from clearhead.training.recipe import Recipe

CPU = torch.device("cpu")


def plan(length=100_000, n_vocab=300, **settings):
    tokens = Tokens.of(np.zeros(length, dtype=np.int64))
    return make_plan(TrainingRequest(**{"steps": 1000, **settings}), tokens, 100, n_vocab, CPU, None)


def test_fast_recipe_uses_muon():
    recipe = plan().recipe
    assert (recipe.name, recipe.optimizer, recipe.matrix_rate) == ("fast", "muon", 0.03)
    assert (recipe.schedule, recipe.final_lr_scale, recipe.decay_embeddings) == ("linear", 0.0, False)
    assert plan(optimizer="adamw").recipe.learning_rate == 0.006


def test_transformers_on_cpu_use_muon_with_normalized_rows():
    assert (plan().recipe.momentum, plan().recipe.normalize_rows) == (0.9, True)
    assert plan(n_vocab=1000, width=64).recipe.learning_rate == 0.01  # the embedding is tied
    assert plan(n_vocab=60, width=64).recipe.learning_rate == 0.02
    assert plan(n_vocab=60, width=128).recipe.learning_rate == 0.01
    assert plan(n_vocab=20, width=32).recipe.learning_rate == 0.02
    assert not plan(kind="lstm").recipe.normalize_rows
    assert not plan(optimizer="adamw").recipe.normalize_rows


def test_classic_recipe_matches_nanogpt():
    recipe = plan(recipe="classic").recipe
    assert (recipe.name, recipe.optimizer) == ("classic", "adamw")
    assert (recipe.learning_rate, recipe.beta2, recipe.weight_decay) == (1e-3, 0.99, 0.1)
    assert (recipe.schedule, recipe.final_lr_scale, recipe.warmup, recipe.clip) == ("cosine", 0.1, 50, 1.0)
    assert recipe.decay_embeddings
    assert plan(recipe="classic", steps=5000).recipe.warmup == 100
    assert plan(recipe="classic", learning_rate=0.004).recipe.learning_rate == 0.004


def test_classic_recipe_at_gpt2_size_matches_nanogpt_train_py():
    recipe = plan(recipe="classic", blocks=12, width=768, heads=12, n_vocab=50_000, context=32).recipe
    assert (recipe.learning_rate, recipe.beta2) == (6e-4, 0.95)


@pytest.mark.parametrize(("steps", "dropout"), [(500, 0.0), (1000, 0.0), (2000, 0.2), (9000, 0.2)])
def test_classic_recipe_uses_dropout_only_for_repeated_text(steps, dropout):
    made = plan(recipe="classic", steps=steps)
    assert (made.config.dropout, made.recipe.weight_decay) == (dropout, 0.1)


@pytest.mark.parametrize(
    ("steps", "regularization"), [(100, (0.0, 0.1, 0.0)), (1000, (0.1, 0.1, 0.02)), (9000, (0.3, 0.4, 0.1))]
)
def test_regularization_grows_with_the_number_of_epochs(steps, regularization):
    made = plan(steps=steps)
    assert (made.config.dropout, made.recipe.weight_decay, made.recipe.token_noise) == regularization
    assert plan(steps=steps, recipe="classic").recipe.token_noise == 0
    assert plan(steps=steps, bidirectional=True).recipe.token_noise == 0
    assert plan(steps=steps, kind="gru").recipe.token_noise == 0


@pytest.mark.parametrize(
    ("shape", "million_tokens", "regularization"),
    [
        ((4, 128), 2.7, (0.0, 0.1, 0.0)),
        ((6, 128), 6, (0.0, 0.1, 0.0)),
        ((6, 128), 14, (0.05, 0.1, 0.02)),
        ((6, 192), 11, (0.05, 0.1, 0.02)),
        ((6, 256), 8, (0.05, 0.1, 0.02)),
        ((6, 128), 18, (0.1, 0.1, 0.02)),
        ((6, 384), 4.5, (0.05, 0.1, 0.02)),
        ((6, 384), 2.9, (0.0, 0.1, 0.0)),
        ((6, 384), 12, (0.2, 0.4, 0.05)),
        ((6, 384), 32, (0.2, 0.4, 0.05)),
        ((6, 384), 50, (0.3, 0.4, 0.1)),
    ],
)
def test_regularization_of_models_of_a_megabyte_of_characters(shape, million_tokens, regularization):
    blocks, width = shape
    n_tokens, sizes = 1_004_000, {"blocks": blocks, "width": width, "context": 256, "batch": 8}
    made = plan(n_tokens, 66, steps=round(million_tokens * 1e6 / (8 * 256)), **sizes)
    assert (made.config.dropout, made.recipe.weight_decay, made.recipe.token_noise) == regularization


def test_large_model_is_regularized_more_strongly():
    large = {"blocks": 6, "width": 256, "heads": 4}
    for settings, regularization in (({}, (0.1, 0.1, 0.02)), (large, (0.2, 0.4, 0.05))):
        made = plan(steps=1000, batch=4, context=256, **settings)
        assert 8 <= made.epochs(100_000) < 16
        assert (made.config.dropout, made.recipe.weight_decay, made.recipe.token_noise) == regularization
    assert plan(steps=100, batch=4, context=256, **large).config.dropout == 0


@pytest.mark.parametrize(
    ("steps", "memory", "repeat_after"),
    [(100, 1e12, 40), (400, 1e12, 100), (9000, 1e12, 320), (9000, 2e7, 61), (9000, 1e7, 0)],
)
def test_batches_of_a_student_repeat_if_predictions_fit_into_memory(monkeypatch, steps, memory, repeat_after):
    """They repeat after a quarter of the steps, but after no fewer than 4 and no more than 32 epochs of 10 steps."""
    monkeypatch.setattr(recipes, "memory_of", lambda device: memory)
    config = Config(n_vocab=12, n_context=32, n_block=1, n_head=1, d_model=8)
    recipe = Recipe(steps=steps, batch_size=32)
    assert recipes.choose_repetition(config, recipe, 10 * 32 * 32, CPU) == repeat_after


def test_compiling_requires_cuda():
    assert not plan(steps=10**6).recipe.compiled
    assert not plan(compiled=False).recipe.compiled
    if not torch.cuda.is_available():
        with pytest.raises(UserError, match="`compiled` requires CUDA"):
            TrainingRequest(compiled=True)


@pytest.mark.parametrize("has_hardware", [False, True])
def test_dtype_is_as_requested_or_as_the_hardware_suggests(has_hardware, monkeypatch):
    monkeypatch.setattr(recipes, "has_fast_bfloat16", lambda device: has_hardware)
    assert plan().recipe.bfloat16 == has_hardware
    assert plan(dtype="bfloat16").recipe.bfloat16
    assert not plan(dtype="float32").recipe.bfloat16
    assert not plan(kind="lstm").recipe.bfloat16


def test_unsupported_dtypes_are_rejected():
    with pytest.raises(UserError, match="float16"):
        TrainingRequest(dtype="float16")
    with pytest.raises(UserError, match="a network of the kind 'gru' is trained in float32"):
        TrainingRequest(kind="gru", dtype="bfloat16")


def test_classic_recipe_rejects_muon():
    with pytest.raises(UserError, match="the classic recipe trains with adamw"):
        TrainingRequest(recipe="classic", optimizer="muon")
    with pytest.raises(UserError, match="recipe = 'slow': expected one of fast, classic"):
        TrainingRequest(recipe="slow")


@pytest.mark.parametrize("settings", [{}, {"recipe": "classic"}, {"bidirectional": True}])
def test_json_round_trip(settings):
    made = plan(**settings)
    assert Plan.from_json({**made.to_json(), "config": made.config.to_json()}) == made


def test_few_steps_warn():
    made = plan(length=1_000_000)
    few = replace(made, seconds=60.0, recipe=replace(made.recipe, steps=7))
    assert few.warnings(1_000_000) == ["there is time for only about 7 steps: train for longer"]
    [warning] = few.warnings(1_000_000, fine_tuned=True)
    assert warning.endswith("train for longer, or fine-tune adapters or a smaller model")
    assert replace(few, seconds=None).warnings(1_000_000) == []
    extended = replace(few, recipe=replace(few.recipe, steps=1001, first_step=1000))
    assert extended.warnings(1_000_000) == ["there is time for only about 1 step: train for longer"]


def test_too_many_epochs_warn():
    long, short = plan(length=1_000_000), plan(length=5_000)
    assert long.warnings(1_000_000) == []
    assert short.epochs(5_000) == pytest.approx(204.8)
    [warning] = short.warnings(5_000)
    assert warning.startswith("the text is short: 205 epochs")
    assert "more text would help more than more time" in warning
    assert warning.endswith("fine-tuned on it (clearhead pull smollm2, then --from smollm2)")
    [warning] = short.warnings(5_000, fine_tuned=True)
    assert warning.endswith("more text would help more than more time")
    n = 1000 * 8 * 128 // MOST_EPOCHS
    assert plan(length=n + 100).warnings(n + 100) == []
    assert len(plan(length=n - 100).warnings(n - 100)) == 1


def test_bidirectional_sets_causal_in_the_config():
    assert plan().config.causal
    assert not plan(bidirectional=True).config.causal


@pytest.mark.parametrize(
    ("n_bytes", "expected"),
    [
        (49_999, ("byte", None)),
        (50_000, ("bpe", 512)),
        (100_000, ("bpe", 1024)),
        (599_999, ("bpe", 2048)),
        (600_000, ("bpe", 4096)),
        (10**9, ("bpe", 4096)),
    ],
)
def test_vocabulary_grows_with_the_text(n_bytes, expected):
    assert choose_tokenizer(TrainingRequest(), n_bytes) == expected


def test_requested_vocabulary_is_used():
    assert choose_tokenizer(TrainingRequest(vocab=700), 10**6) == ("bpe", 700)
    assert choose_tokenizer(TrainingRequest(tokenizer="char"), 10**6) == ("char", None)
