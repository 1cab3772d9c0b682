import pytest
import torch

from clearhead.model import mask
from clearhead.model.attention import Attention
from clearhead.model.attention_steps import attend, attend_capped, attend_fused
from clearhead.model.config import preset
from clearhead.model.mask import AttentionMask, LongMask, causal_matrix


@pytest.mark.parametrize("n_shared", [1, 2, 6])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fused_kernel_matches_plain_attention(n_shared, causal, dtype):
    torch.manual_seed(0)
    query = torch.randn(3, 6, 9, 8, dtype=dtype)
    key, value = torch.randn(2, 3, n_shared, 9, 8, dtype=dtype)
    repeated = (shared.repeat_interleave(6 // n_shared, dim=1) for shared in (key, value))
    plain = attend(query, *repeated, causal_matrix(9, 9) if causal else None)
    fused = attend_fused(query, key, value, causal=causal)
    assert torch.allclose(plain, fused, rtol=0, atol=1e-6 if dtype == torch.float32 else 1e-12)


def test_fused_kernel_accepts_any_mask():
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 4, 7, 8)
    visible = torch.rand(2, 1, 7, 7) > 0.5
    visible = visible | torch.eye(7, dtype=torch.bool)
    assert torch.allclose(
        attend(query, key, value, visible), attend_fused(query, key, value, visible), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("n_shared", [1, 2, 6])
def test_capped_attention(n_shared):
    torch.manual_seed(0)
    query = torch.randn(2, 6, 9, 8)
    key, value = torch.randn(2, 2, n_shared, 9, 8)
    visible = causal_matrix(9, 9)
    # A cap far above all scores changes nothing.
    expected = attend_fused(query, key, value, causal=True)
    torch.testing.assert_close(attend_capped(query, key, value, visible, 8, 1e4), expected, rtol=0, atol=1e-5)
    one = torch.softmax(
        (0.5 * torch.tanh(query[1, 5] @ key[1, -1].T / 3 / 0.5)).where(visible, -torch.inf), -1
    )
    capped = attend_capped(query, key, value, visible, 9, 0.5)
    torch.testing.assert_close(capped[1, 5], one @ value[1, -1])


def test_capped_scores_are_computed_in_parts(monkeypatch):
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 4, 50, 8)
    padded = AttentionMask(causal_matrix(50, 50) & (torch.rand(2, 1, 50, 50) > 0.5) | torch.eye(50).bool())
    masks = (AttentionMask(), AttentionMask(causal=True), padded, LongMask(window=7))
    whole = [each.attend(query, key, value, 8, 1.0) for each in masks]
    sizes = []

    def attend_part(query, key, *more):
        sizes.append(query.shape[0] * query.shape[1] * query.shape[2] * key.shape[2])
        return attend_capped(query, key, *more)

    monkeypatch.setattr(mask, "MOST_ENTRIES", 2 * 4 * 50 * 6)
    monkeypatch.setattr(mask, "attend_capped", attend_part)
    for each, expected in zip(masks, whole, strict=True):
        torch.testing.assert_close(each.attend(query, key, value, 8, 1.0), expected)
    assert max(sizes) <= 2 * 4 * 50 * 6


def test_capped_scores_of_half_precision_are_float32():
    torch.manual_seed(0)
    query, key, value = 8 * torch.randn(3, 1, 2, 60, 64)
    exact = attend_capped(
        query.bfloat16().float(), key.bfloat16().float(), value.bfloat16().float(), None, 64, 50.0
    )
    half = attend_capped(query.bfloat16(), key.bfloat16(), value.bfloat16(), None, 64, 50.0)
    assert half.dtype == torch.bfloat16
    assert (half - exact).norm() < 0.01 * exact.norm()


def test_causal_matrix_of_the_last_rows():
    assert causal_matrix(2, 4).tolist() == [[True, True, True, False], [True, True, True, True]]


@pytest.mark.parametrize("name", ["lecture", "modern"])
def test_each_head_uses_its_own_columns(name):
    """Head j's queries are x times head j's columns of W^Q."""
    torch.manual_seed(0)
    config = preset(name, n_vocab=5, n_context=8, n_block=1, n_head=4, n_kv_head=2, d_model=16)
    attention = Attention(config)
    x = torch.randn(1, 8, 16)
    query, key, value = attention.project_heads(x)
    assert query.shape == (1, 4, 8, 4)
    assert key.shape == value.shape == (1, 2, 8, 4)
    own = attention.query(x[0])[:, 8:12]
    if attention.query_norm is not None:
        own = own / (own.pow(2).mean(-1, keepdim=True) + config.norm_epsilon).sqrt()
    assert torch.allclose(query[0, 2], own, atol=1e-6)
