import numpy as np
import pytest
import torch
import torch.nn.functional as F

from clearhead.model.config import preset
from clearhead.model.feedforward import gelu_tanh
from clearhead.model.transformer import Transformer
from clearhead.text.batches import Batches
from clearhead.text.tokens import IGNORED, Tokens
from clearhead.training.recipe import Recipe
from clearhead.training.trainer import Trainer

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no CUDA GPU")


def trainer(device="cpu", dropout=0.0, **settings):
    torch.manual_seed(0)
    sizes = {"n_vocab": 30, "n_context": 16, "n_block": 2, "n_head": 2, "d_model": 32, "dropout": dropout}
    network = Transformer(preset("modern", **sizes)).to(device)
    recipe = Recipe(**{"steps": 12, "batch_size": 4, **settings})
    tokens = Tokens.of(np.random.default_rng(0).integers(0, 30, 400))
    return Trainer(network, Batches(tokens, 16, 4, seed=3), recipe)


def test_token_noise_replaces_the_given_fraction_of_inputs():
    work = trainer(token_noise=0.3).training_step
    torch.manual_seed(0)
    inputs = torch.randint(30, (50, 16))
    noisy = work._add_token_noise(inputs)
    assert 0.2 < (noisy != inputs).float().mean() < 0.35  # 29 of 30 replacements are a different token
    assert torch.equal(trainer().training_step._add_token_noise(inputs), inputs)


def test_token_noise_is_a_function_of_seed_and_step():
    one, other = (list(trainer(token_noise=0.3)) for _ in range(2))
    assert [each.loss for each in one] == [each.loss for each in other]
    assert [each.loss for each in one] != [each.loss for each in trainer()]


def test_batch_without_targets_has_zero_loss_and_gradient():
    it = trainer()
    batch = it.take_batch()
    batch[1] = IGNORED
    assert it.training_step.forward_backward(batch, seed=0, lr_scale=1.0).tolist() == [0.0, 0.0]


def test_learning_rates_are_scaled_for_the_update():
    it = trainer()
    it.training_step.forward_backward(it.take_batch(), seed=0, lr_scale=0.25)
    rates = [group["lr"] for each in it.optimizers for group in each.param_groups]
    assert rates == [0.25 * it.recipe.learning_rate, 0.25 * it.recipe.matrix_rate]


@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 4e-6), (torch.bfloat16, 2**-8)])
def test_compiled_gelu_matches_torch(dtype, error):
    x = torch.linspace(-12, 12, 4801).to(dtype).requires_grad_()
    compiled = torch.compile(gelu_tanh, backend="aot_eager")(x)  # does not need a C compiler
    plain = F.gelu(x.double(), approximate="tanh")
    gradients = [torch.autograd.grad(y.sum(), x)[0] for y in (compiled, plain)]
    assert compiled.dtype == dtype
    for own, expected in ((compiled.double(), plain), gradients):
        assert torch.allclose(own, expected, atol=error, rtol=error)


@needs_cuda
@pytest.mark.parametrize("compiled", [False, True])
def test_cuda_graph_training_matches_eager_training(compiled):
    recorded, plain = trainer("cuda", compiled=compiled), trainer("cuda")
    plain.training_step.graph = None
    for one, other in zip(recorded, plain, strict=True):
        assert one.loss == pytest.approx(other.loss, abs=2e-3)


@needs_cuda
def test_cuda_graph_dropout_depends_only_on_the_seed():
    it = trainer("cuda", dropout=0.5)
    it.network.train()
    batch = it.take_batch()
    losses = [it.training_step.forward_backward(batch, seed, 1.0)[0].item() for seed in (1, 2, 1)]
    assert losses[0] == losses[2] != losses[1]
