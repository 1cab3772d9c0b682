from pathlib import Path

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


def test_fast_bfloat16_is_what_the_processor_says_of_itself():
    """By the instructions it lists, where the system tells them."""
    listed = Path("/proc/cpuinfo")
    if not listed.exists():
        pytest.skip("this system does not list the processor's instructions in /proc/cpuinfo")
    words = set(listed.read_text().split())
    expected = bool(words & {"amx_bf16", "avx512_bf16", "bf16"})
    assert has_fast_bfloat16(torch.device("cpu")) == expected
    if expected:
        ones = torch.ones(64, 64, dtype=torch.bfloat16)
        assert (ones @ ones)[0, 0] == 64  # without a warning, which is an error here
