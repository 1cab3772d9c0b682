import importlib.util
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

import clearhead.training
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokens import IGNORED
from clearhead.training import chunked_loss as module
from clearhead.training.chunked_loss import LARGE, _loss_and_gradient, _pick, chunked_loss, is_large
from clearhead.training.objective import cross_entropy

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton comes only with PyTorch for CUDA"
)
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no CUDA GPU")


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("logit_cap", [None, 0.2])
@pytest.mark.parametrize("tokens_at_once", [1, 7, 48])
def test_chunked_loss_and_gradients_match_the_plain_ones(tied, logit_cap, tokens_at_once):
    torch.manual_seed(0)
    sizes = {"n_vocab": 50, "n_context": 16, "n_block": 1, "n_head": 2, "d_model": 16}
    network = Transformer(preset("gpt2", **sizes, tied=tied, logit_cap=logit_cap))
    ids, targets = torch.randint(50, (2, 3, 16))
    targets[0, 3] = IGNORED
    targets[2] = IGNORED
    weight = torch.tensor(0.1)
    plain = cross_entropy(network(ids), targets, "sum") * weight
    plain.backward()
    expected = [parameter.grad.clone() for parameter in network.parameters()]
    network.zero_grad()
    chunked = chunked_loss(network, ids, targets, weight, max_logits=50 * tokens_at_once)
    (2 * chunked).backward()
    assert chunked.item() == pytest.approx(plain.item(), rel=1e-6)
    for parameter, gradient in zip(network.parameters(), expected, strict=True):
        assert torch.allclose(parameter.grad, 2 * gradient, atol=1e-6)


def test_frozen_parameters_get_no_gradient():
    torch.manual_seed(0)
    sizes = {"n_vocab": 50, "n_context": 8, "n_block": 1, "n_head": 2, "d_model": 16}
    network = Transformer(preset("gpt2", **sizes, tied=False))
    network.unembedding.weight.requires_grad_(False)
    ids = torch.randint(50, (2, 8))
    chunked_loss(network, ids, ids, torch.tensor(1.0), max_logits=100).backward()
    assert network.unembedding.weight.grad is None
    assert network.embedding.weight.grad is not None


def test_is_large_depends_on_tokens_times_vocabulary_size():
    sizes = {"n_context": 8, "n_block": 1, "n_head": 1, "d_model": 4}
    ids = torch.zeros(1, dtype=torch.long).expand(LARGE // 100, 1)
    assert is_large(Transformer(preset("gpt2", n_vocab=101, **sizes)), ids)
    assert not is_large(Transformer(preset("gpt2", n_vocab=65, **sizes)), ids)


def test_second_backward_through_the_same_loss_is_refused():
    torch.manual_seed(0)
    sizes = {"n_vocab": 50, "n_context": 8, "n_block": 1, "n_head": 2, "d_model": 16}
    ids = torch.randint(50, (2, 8))
    loss = chunked_loss(Transformer(preset("gpt2", **sizes)), ids, ids, torch.tensor(1.0))
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.fixture
def kernel(monkeypatch):
    """A kernel for the CPU that overwrites the logits with the gradient, as the GPU's does."""

    def loss_and_gradient(logits, *rest, **settings):
        loss, gradient = _loss_and_gradient(logits, *rest, **settings)
        return loss, logits.copy_(gradient)

    monkeypatch.setattr(module, "can_compile", lambda device: True)
    monkeypatch.setattr(module, "memory_of", lambda device: 141 * 10**9)
    kernel = SimpleNamespace(loss_and_gradient=loss_and_gradient)
    monkeypatch.setitem(sys.modules, "clearhead.training.loss_kernel", kernel)
    monkeypatch.setattr(clearhead.training, "loss_kernel", kernel, raising=False)
    return loss_and_gradient


@pytest.mark.parametrize("tokens_at_once", [4, 16])
def test_kernel_may_overwrite_the_logits(kernel, tokens_at_once):
    torch.manual_seed(0)
    sizes = {"n_vocab": 50, "n_context": 8, "n_block": 1, "n_head": 2, "d_model": 16}
    network = Transformer(preset("gpt2", **sizes))
    ids, targets = torch.randint(50, (2, 2, 8))
    plain = cross_entropy(network(ids), targets, "sum")
    plain.backward()
    expected = network.embedding.weight.grad.clone()
    network.zero_grad()
    chunked = chunked_loss(network, ids, targets, torch.tensor(1.0), max_logits=50 * tokens_at_once)
    chunked.backward()
    assert chunked.item() == pytest.approx(plain.item(), rel=1e-6)
    assert torch.allclose(network.embedding.weight.grad, expected, atol=1e-6)


def test_kernel_is_picked_for_rows_that_fit_and_takes_a_share_of_the_memory(kernel, monkeypatch):
    gpt2 = torch.empty(50304, 0, dtype=torch.bfloat16)
    picked, at_once = _pick(gpt2, compiled=False)
    assert (picked, at_once) == (kernel, 141 * 10**9 // 32)
    assert at_once > 65536 * 50304
    assert _pick(gpt2.float(), compiled=False) == (_loss_and_gradient, LARGE)
    assert _pick(torch.empty(32768, 0), compiled=False)[0] == kernel
    monkeypatch.setattr(module, "memory_of", lambda device: None)
    assert _pick(gpt2, compiled=False) == (kernel, LARGE)
    monkeypatch.setattr(module, "can_compile", lambda device: False)
    assert _pick(gpt2, compiled=False) == (_loss_and_gradient, LARGE)


@needs_triton
def test_kernel_matches_the_plain_loss_and_gradient(monkeypatch):
    if not torch.cuda.is_available():
        monkeypatch.setenv("TRITON_INTERPRET", "1")  # read when Triton is imported, so in another process
    cases = [
        (dtype, n_vocab, cap)
        for dtype in ("float32", "bfloat16")
        for n_vocab in (1, 2, 65, 128, 1000, 4099)
        for cap in (None, 3.0)
    ]
    run = subprocess.run([sys.executable, __file__, json.dumps(cases)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@needs_cuda
@needs_triton
@pytest.mark.parametrize(("dtype", "n_vocab"), [("bfloat16", 50304), ("bfloat16", 50257), ("float32", 32768)])
@pytest.mark.parametrize("cap", [None, 30.0])
def test_kernel_matches_for_the_longest_rows(dtype, n_vocab, cap):
    compare_kernel(dtype, n_vocab, cap)


def compare_kernel(dtype, n_vocab, cap):
    from clearhead.training import loss_kernel  # imports Triton

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(n_vocab)
    n, weight = 6, torch.tensor(0.25, device=device)
    around = 5 * torch.randn(n + 2, n_vocab, device=device).to(getattr(torch, dtype))
    logits = around[1:-1]
    logits[0, 0] = 300.0  # its power of 2 is infinite
    logits[1, n_vocab // 2] = 60.0  # nearly certain
    logits[2] = 7.0  # all alike
    logits[4, : n_vocab // 2] = -float("inf") if cap is None else -1e30
    targets = torch.randint(n_vocab, (n,), device=device)
    targets[0], targets[1], targets[4] = n_vocab - 1, n_vocab // 2, n_vocab - 1
    targets[3] = IGNORED
    expected_loss, expected = _loss_and_gradient(logits.clone(), targets, weight, cap)
    first, last = around[0].clone(), around[-1].clone()
    loss, gradient = loss_kernel.loss_and_gradient(logits, targets, weight, cap)
    torch.testing.assert_close(loss, expected_loss, rtol=2e-6, atol=1e-6)
    # In bfloat16, rounding may go the other way where the results in float32 differ in their last bits.
    rtol = 1e-5 if dtype == "float32" else 2**-7
    torch.testing.assert_close(gradient, expected, rtol=rtol, atol=2e-6 * weight.item())
    assert not gradient[3].any()
    assert gradient.data_ptr() == logits.data_ptr()
    assert torch.equal(around[0], first)
    assert torch.equal(around[-1], last)


if __name__ == "__main__":
    for case in json.loads(sys.argv[1]):
        compare_kernel(*case)
