import pytest
import torch

from clearhead.training.muon import BETA2, Muon, normalize_update_rows, orthogonalize


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 8, 24), (1, 1, 5)])
def test_singular_values_become_roughly_equal(shape):
    torch.manual_seed(0)
    matrices = torch.randn(shape) * 7
    made = orthogonalize(matrices, steps=5)
    lengths = torch.linalg.svdvals(made)
    assert lengths.min() > 0.3
    assert lengths.max() < 1.3
    # The singular vectors are preserved: the nearest orthogonal matrix has the same ones.
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    assert ((made * (left @ right)).sum((1, 2)) / made.norm(dim=(1, 2)) > 0.95 * min(shape[1:]) ** 0.5).all()


@pytest.mark.parametrize("normalize_rows", [False, True])
def test_batched_updates_match_individual_updates(normalize_rows):
    torch.manual_seed(0)
    start = [torch.randn(6, 4), torch.randn(4, 6), torch.randn(6, 6), torch.randn(6, 4)]
    gradients = [torch.randn_like(matrix) for matrix in start]

    def stepped(groups: list[list[int]]) -> list[torch.Tensor]:
        matrices = [matrix.clone().requires_grad_() for matrix in start]
        for group in groups:
            optimizer = Muon([matrices[i] for i in group], lr=0.1, normalize_rows=normalize_rows)
            for _ in range(3):
                for i in group:
                    matrices[i].grad = gradients[i]
                optimizer.step()
        return matrices

    for one, other in zip(stepped([[0, 1, 2, 3]]), stepped([[0], [1], [2], [3]]), strict=True):
        assert torch.allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("normalize_rows", [False, True])
def test_step_applies_learning_rate_and_weight_decay(normalize_rows):
    matrix = torch.nn.Parameter(torch.eye(4))
    matrix.grad = torch.eye(4)
    Muon([matrix], lr=0.1, weight_decay=0.5, normalize_rows=normalize_rows).step()
    moved = torch.diagonal(0.95 * torch.eye(4) - matrix.detach())
    assert torch.allclose(moved, moved[0].expand(4))
    assert 0.06 < moved[0] < 0.13
    tall = torch.nn.Parameter(torch.zeros(16, 4))
    tall.grad = torch.eye(16)[:, :4]
    Muon([tall], lr=0.1, normalize_rows=normalize_rows).step()
    assert torch.allclose(tall[0, 0] / -moved[0], torch.tensor(2.0), atol=0.01)  # √(16/4) times as far


def test_orthogonalizing_in_bfloat16_changes_an_update_little():
    start = torch.randn(16, 24, generator=torch.Generator().manual_seed(0))

    def change(**settings):
        matrix = torch.nn.Parameter(torch.zeros(16, 24))
        matrix.grad = start.clone()
        Muon([matrix], lr=0.1, **settings).step()
        return matrix.detach()

    exact, rounded = change(), change(bfloat16=True)
    assert rounded.dtype == torch.float32
    assert 0 < (rounded - exact).norm() / exact.norm() < 0.02


def test_parameter_without_a_gradient_is_unchanged():
    matrix = torch.nn.Parameter(torch.eye(4))
    Muon([matrix], lr=0.1).step()
    assert torch.equal(matrix, torch.eye(4))


@pytest.mark.parametrize("dim", [1, 2])
def test_rows_get_equal_norms_and_the_total_is_preserved(dim):
    torch.manual_seed(0)
    updates = torch.randn(3, 6, 6) * torch.arange(1, 7).unsqueeze(dim - 1)
    squares = list(torch.zeros(3, 6))
    made = normalize_update_rows(updates, squares, dim)
    lengths = made.norm(dim=dim)
    assert torch.allclose(lengths, lengths[:, :1].expand(3, 6), rtol=1e-5)
    assert torch.allclose(made.norm(dim=(1, 2)), updates.norm(dim=(1, 2)), rtol=1e-5)
    assert torch.allclose(torch.stack(squares), (1 - BETA2) * updates.square().mean(dim))


def test_rows_are_scaled_by_their_recent_norms():
    squares = [torch.zeros(2)]
    for _ in range(100):
        normalize_update_rows(torch.tensor([[[3.0, 0.0], [0.0, 1.0]]]), squares, dim=2)
    made = normalize_update_rows(torch.ones(1, 2, 2), squares, dim=2)[0]
    assert made[0, 0] / made[1, 0] == pytest.approx(1 / 3, rel=0.1)


def test_zero_gradient_gives_a_zero_update():
    squares = [torch.zeros(2)]
    assert torch.equal(normalize_update_rows(torch.zeros(1, 2, 2), squares, dim=2), torch.zeros(1, 2, 2))
    matrix = torch.nn.Parameter(torch.eye(4))
    matrix.grad = torch.zeros(4, 4)
    Muon([matrix], lr=0.1, weight_decay=0, normalize_rows=True).step()
    assert torch.equal(matrix, torch.eye(4))
