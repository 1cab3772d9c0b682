"""Int8 quantization of linear layers."""

import copy
import subprocess

import pytest
import torch
from torch import nn

from clearhead.errors import UserError
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.runtime.quantization import (
    GROUP,
    QuantizedLinear,
    is_quantized,
    need_exact,
    quantize,
    quantize_rows,
)

pytest.importorskip("numba", reason="numba is not installed: pip install '.[numba]'")

SIZES = {"n_block": 2, "n_head": 4, "d_model": 96, "n_context": 64, "n_vocab": 300}


@pytest.mark.parametrize("preset_name", ["lecture", "gpt2", "modern"])
def test_quantized_network_stays_close_to_the_original(preset_name):
    torch.manual_seed(0)
    network = Transformer(preset(preset_name, **SIZES)).eval()
    rounded = quantize(copy.deepcopy(network))
    ids = torch.randint(300, (2, 20))
    with torch.inference_mode():
        exact, found = network(ids), rounded(ids)
    assert 0 < (found - exact).norm() / exact.norm() < 0.03
    assert rounded.embedding.weight.equal(network.embedding.weight)


@pytest.mark.parametrize(("K", "N", "bias"), [(64, 8, True), (96, 33, False), (200, 5, True)])
def test_output_is_the_product_of_the_quantized_values(K, N, bias):
    torch.manual_seed(0)
    linear = nn.Linear(K, N, bias=bias)
    layer = QuantizedLinear(linear)
    vectors = torch.randn(70, K)  # more than one tile of rows
    vectors[3] = 0
    codes, scales = quantize_rows(vectors)
    rounded = (codes.view(70, -1, GROUP) * scales[..., None]).flatten(1)[:, :K]
    expected = rounded.double() @ layer.weight.double().T
    expected = expected if linear.bias is None else expected + linear.bias.detach()
    with torch.inference_mode():
        assert torch.allclose(layer(vectors).double(), expected, atol=1e-5)
        assert torch.allclose(layer(vectors[None])[0], layer(vectors))


def test_row_does_not_depend_on_its_batch():
    layer = QuantizedLinear(nn.Linear(128, 40))
    vectors = torch.randn(100, 128)
    with torch.inference_mode():
        assert torch.equal(layer(vectors)[66:67], layer(vectors[66:67]))


def test_each_group_has_its_own_scale():
    weight = torch.ones(1, 2 * GROUP)
    weight[0, GROUP:] = 1e-6
    codes, scales = quantize_rows(weight)
    assert codes.unique().tolist() == [127]
    assert torch.allclose(scales, torch.tensor([[1 / 127, 1e-6 / 127]]))


def test_operations_that_need_the_original_weights_are_rejected():
    network = Transformer(preset("gpt2", **SIZES)).eval()
    need_exact(network, "saving")
    quantize(network)
    assert is_quantized(network)
    with pytest.raises(UserError, match="saving needs the original weights"):
        need_exact(network, "saving")


def test_only_float32_can_be_quantized():
    with pytest.raises(UserError, match="float32"):
        quantize(Transformer(preset("gpt2", **SIZES)).to(torch.bfloat16))


def test_torch_keeps_its_number_of_threads(forked):
    """In a new process, since only numba's first parallel call would change it."""
    program = (
        "import torch\n"
        "from clearhead.runtime.quantization import QuantizedLinear\n"
        "torch.set_num_threads(1)\n"
        "with torch.inference_mode():\n"
        "    QuantizedLinear(torch.nn.Linear(64, 8))(torch.ones(1, 64))\n"
        "print(torch.get_num_threads())\n"
    )
    done = subprocess.run([*forked, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
