import pytest
import torch

from clearhead.errors import UserError
from clearhead.inspect.base_trace import stages
from clearhead.inspect.trace import Trace
from clearhead.inspect.word_senses import map_senses, neighbors


@pytest.fixture
def traces(network):
    """Traces of texts in which each word is a letter from a to k, and one token."""

    def read(text):
        words = text.split()
        ids = torch.tensor([[ord(word) - ord("a") for word in words]])
        with torch.no_grad():
            return Trace(network, ids, [[f" {word}" for word in words]])

    return [read(text) for text in ("c a b", "d a e", "f g h", "a a i")]


def test_map_senses_of_a_word_in_many_texts(traces, network):
    senses = map_senses(traces, "a")
    assert senses.places == [(0, 1), (1, 1), (3, 0), (3, 1)]
    names = stages(network.config)
    assert senses.points.shape == (len(names), 4, 2)
    assert senses.cosines.shape == (len(names), 4, 4)
    # Static vectors are all equal, so there is no variance.
    assert torch.allclose(senses.cosines[0], torch.ones(4, 4), atol=1e-5)
    assert senses.points[0].abs().max() == 0
    for number, stage in enumerate(names):
        vectors = torch.stack([traces[text][stage][at] for text, at in senses.places])
        expected = torch.nn.functional.cosine_similarity(vectors[:, None], vectors[None], dim=-1)
        torch.testing.assert_close(senses.cosines[number], expected, atol=1e-5, rtol=1e-4)
    # At the last stage, distances on the map approximate those between the vectors.
    centered = vectors - vectors.mean(0)
    variance = torch.linalg.svdvals(centered) ** 2
    torch.testing.assert_close(senses.shares[-1], variance[:2] / variance.sum(), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close((senses.points[-1] ** 2).sum(0), variance[:2], atol=1e-4, rtol=1e-3)


def test_word_that_occurs_once_raises(traces):
    with pytest.raises(UserError, match="once"):
        map_senses(traces, "c")
    with pytest.raises(UserError, match="does not occur"):
        map_senses(traces, "k")


def test_nearest_neighbor_of_a_token_is_itself(traces, network):
    trace = traces[0]
    for place, word in enumerate((2, 0, 1)):
        nearest = neighbors(trace, trace["embedding"][place], "embedding", 3)
        assert len(nearest) == 3
        assert nearest[0][0] == word
        assert nearest[0][1] == pytest.approx(1, abs=1e-5)
    at_end = neighbors(trace, network.unembedding.weight[7].detach(), "final", 1)
    assert at_end == [(7, pytest.approx(1, abs=1e-5))]
