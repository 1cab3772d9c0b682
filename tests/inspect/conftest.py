import pytest
import torch

from clearhead.inspect.trace import Trace
from clearhead.model.config import PRESETS, Config
from clearhead.model.transformer import Transformer
from tests.shapes import GEMMA2, OLMO2_WITH_YARN

SIZES = {"n_vocab": 11, "n_context": 12, "n_block": 3, "n_head": 4, "d_model": 24}
CHOICES = PRESETS | {
    "shared keys": {**PRESETS["modern"], "n_kv_head": 2},
    "shared keys, gpt2": {**PRESETS["gpt2"], "n_kv_head": 2},
    "bidirectional": {**PRESETS["modern"], "causal": False},
    "parallel, partly rotated": {
        **PRESETS["gpt2"],
        "position": "rotary",
        "rotary_dim": 4,
        "parallel": True,
        "tied": False,
    },
    "post-norm, partly local": {
        **PRESETS["modern"],
        "feedforward": "geglu",
        "n_kv_head": 2,
        "post_norm": True,
        "embedding_scale": 5.0,
        "window": 3,
        "local_blocks": [0, 2],
        "local_rotary_base": 100.0,
        "rope_scaling": {"kind": "linear", "factor": 8.0},
        "d_k": 10,
    },
    "post-norm, with means": {**PRESETS["lecture"], "post_norm": True},
    "post-norm alone, QK-norm of all heads": {**OLMO2_WITH_YARN, "n_kv_head": 2},
    "capped": {**GEMMA2, "n_kv_head": 2},
    "partly without positions": {**PRESETS["modern"], "qk_norm": False, "unrotated_blocks": [0]},
}


@pytest.fixture
def added(network):
    """The two sites of a block whose values are added to the residual stream."""
    normed = "_normed" if network.config.post_norm else ""
    return lambda block: [f"block.{block}.{half}{normed}" for half in ("attention", "feedforward")]


def uncapped(trace):
    """The logits as the unembedding computes them: the sums that are attributed."""
    return trace.read("logits" if trace.config.logit_cap is None else "logits_raw")


def find_norm(config):
    """The name of a norm that every block has."""
    return "normed" if config.pre_norm else "attention_normed"


# The other choices cover the features of these too.
SLOW = {"gpt2", "shared keys", "shared keys, gpt2", "post-norm, with means"}


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in CHOICES]
)
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
