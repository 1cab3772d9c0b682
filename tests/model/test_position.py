import math

import torch

from clearhead.model.position import rotate, rotation, sinusoids


def test_rotary_scores_depend_only_on_distance():
    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 1, 1, 8).double()

    def score(i: int, j: int) -> float:
        rotated = [
            rotate(vector, rotation(torch.tensor([[place]]), 8, 10_000.0))
            for vector, place in ((query, i), (key, j))
        ]
        return float((rotated[0] * rotated[1]).sum())

    assert math.isclose(score(5, 3), score(105, 103), abs_tol=1e-4)
    assert not math.isclose(score(5, 3), score(5, 4), abs_tol=1e-2)


def test_position_zero_is_not_rotated():
    x = torch.randn(1, 2, 1, 6)
    assert torch.equal(rotate(x, rotation(torch.zeros(1, 1), 6, 10_000.0)), x)


def test_rotation_preserves_norms():
    x = torch.randn(2, 3, 5, 8)
    rotated = rotate(x, rotation(torch.arange(5)[None], 8, 10_000.0))
    assert torch.allclose(rotated.norm(dim=-1), x.norm(dim=-1), atol=1e-5)


def test_sinusoids_match_the_paper():
    table = sinusoids(torch.arange(3), 5)
    assert table.shape == (3, 5)
    assert torch.allclose(table[0], torch.tensor([0.0, 1, 0, 1, 0]))
    assert torch.allclose(table[2, :2], torch.tensor([math.sin(2), math.cos(2)]))
    assert torch.allclose(table[2, 2], torch.tensor(math.sin(2 / 10_000 ** (2 / 5))))
