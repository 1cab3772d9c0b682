"""Attention weights of every head match transformers' eager attention on the same model."""

import pytest
import torch
import transformers

from clearhead.language_model import LanguageModel
from clearhead.model.config import PRESETS, preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

TEXT = "The chicken didn't cross the road because it was too tired."


@pytest.mark.parametrize("name", [*PRESETS, "shared keys"])
def test_attention_weights_match_transformers(name, tmp_path):
    torch.manual_seed(0)
    more = {"n_kv_head": 2} if name == "shared keys" else {}
    shape = {"n_vocab": 257, "n_context": 64, "n_block": 3, "n_head": 4, "d_model": 64, **more}
    network = Transformer(preset("modern" if more else name, **shape))
    for parameter in network.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    model = LanguageModel(network, Tokenizer.train("byte", []))
    model.save(tmp_path)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="eager")
    with torch.no_grad():
        ids = torch.tensor([model.tokenizer.encode(TEXT)])
        answer = theirs(ids, output_attentions=True, output_hidden_states=True)
    trace = model.inspect(TEXT)
    for i in range(3):
        assert torch.allclose(trace[f"block.{i}.input"], answer.hidden_states[i][0], atol=1e-4)
        for j in range(4):
            weights = trace[f"block.{i}.head.{j}.weights"]
            assert torch.allclose(weights, answer.attentions[i][0, j], rtol=0, atol=1e-5), (i, j)
