import pytest
import torch

from clearhead.inspect.trace import Trace
from clearhead.model.config import PRESETS, Config
from clearhead.model.transformer import Transformer

SIZES = {"n_vocab": 11, "n_context": 12, "n_block": 3, "n_head": 4, "d_model": 24}
CHOICES = PRESETS | {
    "shared keys": {**PRESETS["modern"], "n_kv_head": 2},
    "shared keys, gpt2": {**PRESETS["gpt2"], "n_kv_head": 2},
    "both ways": {**PRESETS["modern"], "causal": False},
}


@pytest.fixture(params=CHOICES)
def network(request):
    torch.manual_seed(0)
    made = Transformer(Config.from_json({**SIZES, **CHOICES[request.param]})).eval()
    for parameter in made.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    return made


@pytest.fixture
def inspect(network):
    def run(ids=(3, 1, 4, 1, 5, 9, 2), **more):
        with torch.no_grad():
            return Trace(network, torch.tensor([ids]), [[str(i) for i in ids]], **more)

    return run
