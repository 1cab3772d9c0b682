import numpy as np
import pytest
import torch

from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.batches import Batches
from clearhead.text.tokens import IGNORED, Tokens
from clearhead.training.recipe import Recipe
from clearhead.training.trainer import Trainer

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")


def trainer(device="cpu", dropout=0.0, **settings):
    torch.manual_seed(0)
    sizes = {"n_vocab": 30, "n_context": 16, "n_block": 2, "n_head": 2, "d_model": 32, "dropout": dropout}
    network = Transformer(preset("modern", **sizes)).to(device)
    recipe = Recipe(**{"steps": 12, "batch_size": 4, **settings})
    tokens = Tokens.of(np.random.default_rng(0).integers(0, 30, 400))
    return Trainer(network, Batches(tokens, 16, 4, seed=3), recipe)


def test_noise_changes_about_so_many_of_the_words_read_and_no_target():
    work = trainer(token_noise=0.3).training_step
    torch.manual_seed(0)
    inputs = torch.randint(30, (50, 16))
    noisy = work._add_token_noise(inputs)
    assert 0.2 < (noisy != inputs).float().mean() < 0.35  # 29 of 30 changes are into another word
    assert torch.equal(trainer().training_step._add_token_noise(inputs), inputs)


def test_noise_is_a_function_of_the_seed_and_the_step():
    one, other = (list(trainer(token_noise=0.3)) for _ in range(2))
    assert [each.loss for each in one] == [each.loss for each in other]
    assert [each.loss for each in one] != [each.loss for each in trainer()]


def test_a_batch_without_targets_teaches_nothing():
    it = trainer()
    batch = it._take_batch()
    batch[1] = IGNORED
    assert it.training_step.forward_backward(batch, seed=0, lr_scale=1.0).tolist() == [0.0, 0.0]


def test_the_rates_are_set_for_the_update():
    it = trainer()
    it.training_step.forward_backward(it._take_batch(), seed=0, lr_scale=0.25)
    rates = [group["lr"] for each in it.optimizers for group in each.param_groups]
    assert rates == [0.25 * it.recipe.learning_rate, 0.25 * it.recipe.matrix_rate]


@needs_cuda
@pytest.mark.parametrize("compiled", [False, True])
def test_recorded_it_learns_what_it_learns_step_by_step(compiled):
    recorded, plain = trainer("cuda", compiled=compiled), trainer("cuda")
    plain.training_step.graph = None
    for one, other in zip(recorded, plain, strict=True):
        assert one.loss == pytest.approx(other.loss, abs=2e-3)


@needs_cuda
def test_recorded_dropout_differs_from_step_to_step_and_not_from_run_to_run():
    it = trainer("cuda", dropout=0.5)
    it.network.train()
    batch = it._take_batch()
    losses = [it.training_step.forward_backward(batch, seed, 1.0)[0].item() for seed in (1, 2, 1)]
    assert losses[0] == losses[2] != losses[1]
