"""The lectures' block matches PyTorch's own pre-norm encoder layer."""

import pytest
import torch

from clearhead.model.block import Block
from clearhead.model.config import preset
from clearhead.model.mask import AttentionMask


@pytest.mark.parametrize("preset_name", ["lecture", "gpt2"])
@pytest.mark.parametrize("causal", [True, False])
def test_block_matches_torch_encoder_layer(preset_name, causal):
    torch.manual_seed(0)
    exact = {"feedforward": "gelu"} if preset_name == "gpt2" else {}  # torch's layer has no tanh GELU
    config = preset(preset_name, n_vocab=5, n_context=9, n_block=1, n_head=4, d_model=32, **exact)
    block = Block(config)
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    layer = torch.nn.TransformerEncoderLayer(
        32,
        4,
        dim_feedforward=128,
        dropout=0.0,
        activation="gelu" if exact else "relu",
        norm_first=True,
        batch_first=True,
    )
    attention, feedforward = block.attention, block.feedforward
    three = (attention.query, attention.key, attention.value)
    layer.load_state_dict(
        {
            "self_attn.in_proj_weight": torch.cat([part.weight for part in three]),
            "self_attn.in_proj_bias": torch.cat([part.bias for part in three]),
            "self_attn.out_proj.weight": attention.output.weight,
            "self_attn.out_proj.bias": attention.output.bias,
            "linear1.weight": feedforward.first.weight,
            "linear1.bias": feedforward.first.bias,
            "linear2.weight": feedforward.second.weight,
            "linear2.bias": feedforward.second.bias,
            "norm1.weight": block.norm.gain,
            "norm1.bias": block.norm.shift,
            "norm2.weight": block.norm2.gain,
            "norm2.bias": block.norm2.shift,
        }
    )
    x = torch.randn(2, 9, 32)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(9) if causal else None
    assert torch.allclose(
        block(x, AttentionMask(causal=causal)), layer(x, src_mask=mask, is_causal=causal), atol=1e-5
    )
