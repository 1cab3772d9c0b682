import pytest
import torch
from torch.nn.functional import rms_norm

from clearhead.model.attention_steps import attend, attend_fused
from clearhead.model.config import preset
from clearhead.model.fast_backward import RMSNorm, Rotate
from clearhead.model.norm import Norm
from clearhead.model.position import rotate, rotation
from clearhead.model.transformer import Transformer


def randn(*shape, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=dtype, generator=generator).requires_grad_()


def test_rms_norm_and_its_gradient_equal_pytorchs():
    x, gain, given = randn(3, 5, 8), randn(8, seed=1), randn(3, 5, 8, seed=2).detach()
    expected = rms_norm(x, (8,), gain, 1e-6)
    result = RMSNorm.apply(x, gain, 1e-6)
    torch.testing.assert_close(result, expected)
    wanted = torch.autograd.grad(expected, (x, gain), given)
    torch.testing.assert_close(torch.autograd.grad(result, (x, gain), given), wanted)


@pytest.mark.parametrize("frozen", [0, 1])
def test_rms_norm_with_a_frozen_input(frozen):
    inputs = [randn(5, 8), randn(8, seed=1)]
    inputs[frozen].requires_grad_(False)
    free = inputs[1 - frozen]
    (found,) = torch.autograd.grad(RMSNorm.apply(*inputs, 1e-6).square().sum(), free)
    (wanted,) = torch.autograd.grad(rms_norm(inputs[0], (8,), inputs[1], 1e-6).square().sum(), free)
    torch.testing.assert_close(found, wanted)


def test_rms_norm_of_a_zero_vector_is_zero():
    x = torch.zeros(2, 8, requires_grad=True)
    norm = RMSNorm.apply(x, torch.ones(8), 1e-6)
    assert norm.eq(0).all()
    (found,) = torch.autograd.grad(norm.sum(), x)
    (wanted,) = torch.autograd.grad(rms_norm(x, (8,), None, 1e-6).sum(), x)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("rotated", [8, 4])
def test_rotation_and_its_gradient_equal_autograds(rotated):
    x, given = randn(2, 3, 6, 8), randn(2, 3, 6, 8, seed=1).detach()
    cos, sin = (each.double() for each in rotation(torch.arange(6)[None], rotated, 10_000.0))
    with torch.no_grad():
        expected = rotate(x, (cos, sin))  # the plain version
    result = Rotate.apply(x, cos[:, None], sin[:, None])
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(rotate(x, (cos, sin)), expected)
    assert torch.autograd.gradcheck(lambda x: Rotate.apply(x, cos[:, None], sin[:, None]), x)
    # The backward pass rotates back: given the rotated vector, it returns the original one.
    (back,) = torch.autograd.grad(result, x, expected)
    torch.testing.assert_close(back, x.detach())
    (found,) = torch.autograd.grad(rotate(x, (cos, sin)), x, given)
    assert (found * x).sum().item() == pytest.approx((given * expected).sum().item())


def test_a_norm_computes_in_float32_when_training_uses_bfloat16():
    norm = Norm(16, preset("modern", n_vocab=8, d_model=16, n_head=1, n_block=1, n_context=8))
    x = torch.randn(4, 16, requires_grad=True, generator=torch.Generator().manual_seed(0))
    (wanted,) = torch.autograd.grad(norm(x).square().sum(), x)
    with torch.autocast("cpu", torch.bfloat16):
        result = norm(x)
        (found,) = torch.autograd.grad(result.square().sum(), x)
    assert result.dtype == torch.float32
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)


def test_short_sequences_attend_in_float32_in_training():
    query, key, value = (randn(1, 2, 16, 32, dtype=torch.bfloat16, seed=seed) for seed in range(3))
    mask = torch.ones(16, 16, dtype=torch.bool).tril()
    exact = attend(query.double(), key.double(), value.double(), mask)

    def error():
        result = attend_fused(query, key, value, causal=True)
        assert result.dtype == torch.bfloat16
        # Rounding the result itself cannot be avoided.
        return (result.double() - exact.bfloat16().double()).abs().max()

    rounded = error()
    with torch.autocast("cpu", torch.bfloat16):
        assert error() < rounded
        result = attend_fused(query, key, value, causal=True)
        with torch.no_grad():
            assert error() == rounded
    assert all(each.norm() > 0 for each in torch.autograd.grad(result.sum(), (query, key, value)))


@pytest.mark.parametrize("name", ["modern", "lecture"])
def test_logits_have_the_same_bits_with_and_without_gradients(name):
    torch.manual_seed(0)
    network = Transformer(preset(name, n_vocab=8, d_model=64, n_head=2, n_block=2, n_context=16)).eval()
    ids = torch.arange(16)[None] % 8
    with torch.no_grad():
        expected = network(ids)
    assert torch.equal(network(ids), expected)
