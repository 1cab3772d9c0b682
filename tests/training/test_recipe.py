import pytest
import torch

from clearhead.errors import UserError
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.training.muon import Muon
from clearhead.training.recipe import Recipe, make_optimizers


def test_learning_rate_warms_up_then_decays_to_zero():
    recipe = Recipe(steps=100, batch_size=4, warmup=10)
    rates = [recipe.lr_scale(step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[9] == pytest.approx(0.91)
    assert rates[50] == pytest.approx(0.5)
    assert rates[99] == pytest.approx(0.01)
    assert max(rates) == rates[9]


def test_cosine_schedule_matches_nanogpt():
    recipe = Recipe(steps=200, batch_size=4, warmup=10, schedule="cosine", final_lr_scale=0.1)
    rates = [recipe.lr_scale(step) for step in range(201)]
    assert rates[:10] == pytest.approx([(step + 1) / 11 for step in range(10)])
    assert rates[10] == max(rates) == 1
    assert rates[105] == pytest.approx(0.55)  # halfway between 1 and 0.1
    assert rates[200] == pytest.approx(0.1)
    assert rates[10:] == sorted(rates[10:], reverse=True)


@pytest.mark.parametrize("tied", [True, False])
def test_the_classic_recipe_decays_everything_but_vectors(tied):
    sizes = {"n_vocab": 9, "n_context": 8, "n_block": 2, "n_head": 2, "d_model": 16, "tied": tied}
    network = Transformer(preset("gpt2", **sizes))
    recipe = Recipe(1, 1, optimizer="adamw", decay_embeddings=True, beta2=0.99, weight_decay=0.2)
    [adamw] = make_optimizers(network, recipe)
    assert isinstance(adamw, torch.optim.AdamW)
    for group in adamw.param_groups:
        assert group["betas"] == (0.9, 0.99)
        assert {p.ndim for p in group["params"]} == ({2} if group["weight_decay"] == 0.2 else {1})
    grouped = [id(p) for group in adamw.param_groups for p in group["params"]]
    assert sorted(grouped) == sorted(id(p) for p in network.parameters())


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
@pytest.mark.parametrize("preset_name", ["lecture", "modern"])
@pytest.mark.parametrize("tied", [True, False])
def test_parameters_are_grouped_once_and_only_matrices_decay(optimizer, preset_name, tied):
    sizes = {"n_vocab": 9, "n_context": 8, "n_block": 2, "n_head": 2, "d_model": 16, "tied": tied}
    network = Transformer(preset(preset_name, **sizes))
    optimizers = make_optimizers(network, Recipe(steps=1, batch_size=1, optimizer=optimizer))
    groups = [group for each in optimizers for group in each.param_groups]
    grouped = [id(parameter) for group in groups for parameter in group["params"]]
    assert sorted(grouped) == sorted(id(parameter) for parameter in network.parameters())
    decayed = {id(p) for group in groups if group["weight_decay"] for p in group["params"]}
    expected = {
        id(parameter)
        for name, parameter in network.named_parameters()
        if parameter.ndim == 2 and "embedding" not in name and "position" not in name
    }
    assert decayed == expected
    if optimizer == "muon":
        muon = next(each for each in optimizers if isinstance(each, Muon))
        assert {id(p) for group in muon.param_groups for p in group["params"]} == expected


@pytest.mark.parametrize(
    "settings",
    [
        {"steps": 0},
        {"batch_size": 0},
        {"batch_size": 6, "accumulation": 4},
        {"optimizer": "sgd"},
        {"learning_rate": 0.0},
        {"matrix_rate": float("nan")},
        {"clip": -1.0},
        {"name": "slow"},
        {"schedule": "square"},
        {"beta2": 1.0},
        {"final_lr_scale": -0.1},
    ],
)
def test_invalid_recipes_are_rejected(settings):
    with pytest.raises(UserError):
        Recipe(**{"steps": 10, "batch_size": 4, **settings})


def test_each_optimizer_has_its_own_learning_rate():
    network = Transformer(preset("modern", n_vocab=9, n_context=8, n_block=1, n_head=2, d_model=16))
    adamw, muon = make_optimizers(network, Recipe(1, 1, learning_rate=0.5, matrix_rate=0.25))
    assert adamw.param_groups[0]["lr"] == 0.5
    assert muon.param_groups[0]["lr"] == 0.25
    assert isinstance(adamw, torch.optim.AdamW)
