import torch
from torch import nn

from clearhead.model.config import preset
from clearhead.model.projection import project_together
from clearhead.model.transformer import Transformer
from clearhead.training.lora import adapt


def test_merged_projection_has_the_same_outputs_and_gradients():
    torch.manual_seed(0)
    for bias in (True, False):
        parts = [nn.Linear(8, width, bias=bias) for width in (8, 4, 4)]
        x = torch.randn(2, 3, 8)
        plain, merged = (project_together(x, parts, merged=each) for each in (False, True))
        for one, other in zip(plain, merged, strict=True):
            assert torch.allclose(one, other, atol=1e-6)
        sum(each.square().sum() for each in merged).backward()
        gradients = [part.weight.grad.clone() for part in parts]
        for part in parts:
            part.zero_grad()
        sum(each.square().sum() for each in plain).backward()
        for part, gradient in zip(parts, gradients, strict=True):
            assert torch.allclose(part.weight.grad, gradient, atol=1e-5)


def test_train_and_eval_mode_give_the_same_logits():
    torch.manual_seed(0)
    sizes = {"n_vocab": 20, "n_context": 8, "n_block": 2, "n_head": 4, "n_kv_head": 2, "d_model": 32}
    ids = torch.randint(20, (2, 8))
    for name in ("modern", "gpt2"):
        network = Transformer(preset(name, **sizes))
        assert torch.allclose(network.train()(ids), network.eval()(ids), atol=1e-5)
        adapted = adapt(network, 2)  # adapters are not plain linear layers
        assert torch.allclose(adapted.train()(ids), adapted.eval()(ids), atol=1e-5)
