"""Logits in slices of positions: the same numbers, never all in memory at once."""

import pytest
import torch

from clearhead.classics.kneser_ney import estimate
from clearhead.classics.ngram_counts import count_ngrams
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.model.config import Config
from clearhead.networks import Ensemble, logits_in_parts, make_network
from clearhead.text.tokens import Tokens

V = 13
IDS = torch.randint(V, (3, 10), generator=torch.Generator().manual_seed(0))
DOCUMENTS = torch.tensor([[0] * 4 + [1] * 6, [0] * 10, [0] * 1 + [1] * 8 + [2]])


def make_networks():
    torch.manual_seed(1)
    transformer = make_network(Config(n_vocab=V, n_context=10, n_block=2, n_head=2, d_model=8))
    recurrent = make_network(RecurrentConfig("lstm", n_vocab=V, n_context=10, n_block=2, d_model=8))
    ngram = estimate(count_ngrams(Tokens.of([0, *torch.randint(V, (300,)).tolist(), 0]), V, 0, 3))
    return [transformer, recurrent, ngram, Ensemble([transformer, recurrent, ngram])]


@pytest.mark.parametrize("documents", [None, DOCUMENTS], ids=["one", "several"])
@pytest.mark.parametrize("at_once", [1, 4 * 3 * V, 2**24])
@torch.no_grad()
def test_parts_are_the_slices_of_all_logits(at_once, documents):
    for network in make_networks():
        network.eval()
        parts = list(logits_in_parts(network, IDS, documents, at_once))
        assert [start for start, _ in parts] == [
            sum(part.shape[1] for _, part in parts[:i]) for i in range(len(parts))
        ]
        assert all(part.numel() <= max(at_once, 3 * V) for _, part in parts)
        expected = network(IDS, documents=documents)
        assert torch.allclose(torch.cat([part for _, part in parts], dim=1), expected, rtol=1e-5, atol=1e-6)
