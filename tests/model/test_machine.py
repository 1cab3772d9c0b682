import pytest
import torch

from clearhead.errors import UserError
from clearhead.model.machine import has_fast_bfloat16, pick_device


def test_a_device_that_is_not_here_names_those_that_are():
    with pytest.raises(UserError, match="'tpu' is not on this machine: choose from cpu"):
        pick_device("tpu")
    with pytest.raises(UserError, match="cuda:99"):
        pick_device("cuda:99")


def test_the_processor_is_always_there():
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device() in [torch.device(kind) for kind in ("cpu", "cuda", "mps")]


def test_fast_bfloat16_means_a_product_without_a_warning():
    """Where torch would fall back and warn, which is an error here, the answer must be no."""
    if not has_fast_bfloat16(torch.device("cpu")):
        pytest.skip("this processor has no bfloat16 instructions, and the check says so")
    a = torch.ones(64, 64, dtype=torch.bfloat16)
    assert (a @ a)[0, 0] == 64
