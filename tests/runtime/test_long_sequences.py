"""Long sequences in parts: the same numbers as all at once, without a matrix of all positions by all positions."""

import pytest
import torch

from clearhead import networks
from clearhead.model import mask
from clearhead.model.config import Config
from clearhead.model.mask import LongMask
from clearhead.networks import logits_in_parts, make_network
from clearhead.runtime import long_sequences

T = 120
DOCUMENTS = torch.stack([torch.arange(T) // 50, torch.arange(T) // 119])


@pytest.fixture(
    params=[
        {
            "position": "rotary",
            "n_kv_head": 1,
            "window": 9,
            "local_blocks": (0, 2),
            "local_rotary_base": 100.0,
        },
        {"position": "learned", "parallel": True},
        {"window": 9, "local_blocks": (0,), "n_kv_head": 1, "score_cap": 0.01, "logit_cap": 0.1},
    ],
    ids=["local", "parallel", "capped"],
)
def network(request):
    torch.manual_seed(0)
    config = Config(n_vocab=7, n_context=T, n_block=3, n_head=2, d_model=16, **request.param)
    return make_network(config).double().eval()


@pytest.mark.parametrize("documents", [None, DOCUMENTS], ids=["one", "several"])
@torch.no_grad()
def test_parts_of_a_long_sequence_give_the_same_logits(network, documents, monkeypatch):
    ids = torch.randint(7, (2, T))
    expected = network(ids, documents=documents)
    for module in (mask, networks, long_sequences):
        monkeypatch.setattr(module, "LONG", 40)
    monkeypatch.setattr(mask, "MOST_ENTRIES", 2 * T * 17)
    masks = network.masks(torch.arange(T)[None], documents=documents)
    long = documents is not None or bool(network.config.window)
    assert isinstance(masks[0], LongMask) == long
    assert torch.allclose(network(ids, documents=documents), expected, rtol=1e-12, atol=1e-12)
    monkeypatch.setattr(mask.LongMask, "attend", None)  # blocks in parts never need a whole mask
    parts = torch.cat([part for _, part in logits_in_parts(network, ids, documents, 2 * 7 * 33)], dim=1)
    assert torch.allclose(parts, expected, rtol=1e-12, atol=1e-12)


def test_gradients_need_the_whole_matrix(network, monkeypatch):
    monkeypatch.setattr(mask, "LONG", 40)
    assert not isinstance(network.masks(torch.arange(T)[None], documents=DOCUMENTS)[0], LongMask)
