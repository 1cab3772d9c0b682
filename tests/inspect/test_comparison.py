import pytest
import torch

from clearhead.errors import UserError
from clearhead.inspect.comparison import align
from tests.inspect.conftest import find_norm


@pytest.mark.parametrize(
    ("one", "other", "pairs"),
    [
        ("a b c", "a x c", [(0, 0), (1, 1), (2, 2)]),
        ("a b c", "a c", [(0, 0), (2, 1)]),
        ("a c", "a x y c", [(0, 0), (1, 3)]),
        ("a", "b", [(0, 0)]),
        ("a b c", "x y", []),
    ],
)
def test_align(one, other, pairs):
    assert align(one.split(), other.split()) == pairs


def test_difference_subtracts_aligned_positions(inspect):
    one, other = inspect(), inspect((3, 1, 4, 1, 6, 9, 2))
    comparison = one.compare(other)
    assert len(comparison.pairs) == 7
    for name in (
        "block.1.input",
        "block.2.head.1.weights",
        "logits",
        f"block.0.{find_norm(one.config)}.scale",
    ):
        assert torch.allclose(comparison.difference(name), other[name] - one[name], atol=1e-6)
    assert comparison.difference("block.0.head.0.masked").isfinite().all()
    assert comparison.distance("block.0.head.0.masked") > 0


def test_unaligned_tokens_are_left_out_of_the_difference(inspect):
    one, other = inspect((3, 1, 4, 1, 5, 9, 2)), inspect((3, 1, 4, 9, 2))
    comparison = one.compare(other)
    assert comparison.pairs == [(0, 0), (1, 1), (2, 2), (5, 3), (6, 4)]
    rows = [0, 1, 2, 5, 6]
    expected = other["block.1.head.0.scores"] - one["block.1.head.0.scores"][rows][:, rows]
    assert torch.allclose(comparison.difference("block.1.head.0.scores"), expected, atol=1e-5)


def test_ranking_puts_the_largest_differences_first(inspect):
    same = inspect().compare(inspect())
    assert all(distance == 0 for _, distance in same.ranking())
    ranking = inspect().compare(inspect((3, 1, 4, 1, 6, 9, 2))).ranking(5)
    assert len(ranking) == 5
    assert ranking == sorted(ranking, key=lambda item: -item[1])
    assert ranking[0][1] > 0


def test_incomparable_traces_raise(inspect):
    with pytest.raises(UserError, match="no token in common"):
        inspect((1, 2, 3)).compare(inspect((4, 5)))
    with pytest.raises(UserError, match="the trace is a batch"):
        inspect().compare(inspect().repeat(2))


def test_distances_of_a_block_equal_those_of_its_sites(inspect, monkeypatch):
    comparison = inspect().compare(inspect((3, 1, 4, 1, 6, 9)))
    alone = {name: comparison.distance(name) for name in comparison.one.sites()}
    for most in (2**24, 49):  # all heads together, then one at a time
        monkeypatch.setattr("clearhead.inspect.comparison.MAX_MATRIX_CELLS", most)
        distances = {}
        for block in (None, 0, 1, 2):
            distances |= comparison.distances(block)
        assert distances == pytest.approx(alone, rel=1e-4, abs=1e-7)


def test_comparison_is_shown_briefly(inspect):
    one, other = (inspect((1, 2, number)) for number in (3, 4))
    shown = one.compare(other)
    assert repr(shown) == f"Comparison({one!r}, {other!r}: {len(shown.pairs)} aligned positions)"
    assert "aligned positions" in shown._repr_html_()
