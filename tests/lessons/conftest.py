import pytest
import torch

from clearhead.language_model import LanguageModel
from clearhead.model.config import Config
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer
from tests.inspect.conftest import CHOICES, SIZES, SLOW

SIZE = {**SIZES, "n_block": 2}
CAUSAL = [name for name in CHOICES if name != "bidirectional"]
TEXT = "abcabdaab"


def make_model(name, **more):
    torch.manual_seed(0)
    tokenizer = Tokenizer.train("char", ["abcdefg"])
    settings = {**SIZE, **CHOICES[name], **more, "n_vocab": tokenizer.n_vocab, "dropout": 0.1}
    if "local_blocks" in settings:
        settings["local_blocks"] = [0]
    network = Transformer(Config.from_json(settings)).double()
    for parameter in network.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    return LanguageModel(network, tokenizer)


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in CAUSAL]
)
def model(request):
    return make_model(request.param)
