import pytest
import torch

from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokens import IGNORED
from clearhead.training.chunked_loss import LARGE, chunked_loss, is_large
from clearhead.training.objective import cross_entropy


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
