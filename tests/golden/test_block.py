"""The lectures' block, with t1 to t5 and h, against the formulas written out in float64."""

import torch

from clearhead.model.block import Block
from clearhead.model.config import preset
from clearhead.model.mask import AttentionMask


def layer_norm(x, gamma, beta, epsilon):
    mean = x.sum(-1, keepdim=True) / x.shape[-1]
    variance = ((x - mean) ** 2).sum(-1, keepdim=True) / x.shape[-1]
    return gamma * (x - mean) / (variance + epsilon) ** 0.5 + beta


def test_block_matches_the_lectures_formulas():
    torch.manual_seed(0)
    config = preset("lecture", n_vocab=11, n_context=7, n_block=1, n_head=3, d_model=12)
    block = Block(config).double()
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    x = torch.randn(1, 7, 12, dtype=torch.float64)

    attention, feedforward = block.attention, block.feedforward
    t1 = layer_norm(x[0], block.norm.gain, block.norm.shift, 1e-5)
    heads = []
    for j in range(3):
        own = slice(4 * j, 4 * j + 4)
        q, k, v = (
            t1 @ part.weight.T[:, own] + part.bias[own]
            for part in (attention.query, attention.key, attention.value)
        )
        head = torch.zeros(7, 4, dtype=torch.float64)
        for i in range(7):
            scores = torch.stack([q[i] @ k[s] / 2 for s in range(i + 1)])
            weights = scores.exp() / scores.exp().sum()
            head[i] = sum(weights[s] * v[s] for s in range(i + 1))
        heads.append(head)
    t2 = torch.cat(heads, dim=1) @ attention.output.weight.T + attention.output.bias
    t3 = t2 + x[0]
    t4 = layer_norm(t3, block.norm2.gain, block.norm2.shift, 1e-5)
    inner = t4 @ feedforward.first.weight.T + feedforward.first.bias
    t5 = inner.clamp(min=0) @ feedforward.second.weight.T + feedforward.second.bias
    h = t5 + t3

    middles = []
    output = block(x, AttentionMask(causal=True), on_middle=middles.append)
    ours = {
        "t1": block.norm(x)[0],
        "t2": attention(block.norm(x), AttentionMask(causal=True))[0],
        "t3": middles[0][0],
        "t4": block.norm2(t3),
        "t5": feedforward(t4),
        "h": output[0],
    }
    for name, expected in {"t1": t1, "t2": t2, "t3": t3, "t4": t4, "t5": t5, "h": h}.items():
        assert torch.allclose(ours[name], expected, rtol=0, atol=1e-12), name
