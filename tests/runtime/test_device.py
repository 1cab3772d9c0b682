import os
import subprocess
from pathlib import Path

import pytest
import torch

from clearhead.errors import UserError
from clearhead.runtime.device import has_fast_bfloat16, make_deterministic, pick_device


def test_error_for_an_unavailable_device_lists_available_ones():
    with pytest.raises(UserError, match="device = 'tpu': not available on this machine; choose from cpu"):
        pick_device("tpu")
    with pytest.raises(UserError, match="cuda:99"):
        pick_device("cuda:99")


def test_cpu_is_always_available():
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device() in [torch.device(kind) for kind in ("cpu", "cuda", "mps")]


def test_fast_bfloat16_matches_the_cpu_flags():
    """The flags are read from /proc/cpuinfo, where it exists."""
    listed = Path("/proc/cpuinfo")
    if not listed.exists():
        pytest.skip("this system does not list CPU flags in /proc/cpuinfo")
    words = set(listed.read_text().split())
    expected = bool(words & {"amx_bf16", "avx512_bf16", "bf16"})
    assert has_fast_bfloat16(torch.device("cpu")) == expected
    if expected:
        ones = torch.ones(64, 64, dtype=torch.bfloat16)
        assert (ones @ ones)[0, 0] == 64  # must not warn: warnings are errors in these tests


EXACT = """
import os, torch
from clearhead.model.config import preset
from clearhead.runtime.device import make_deterministic
from clearhead.model.transformer import Transformer
from clearhead.training.objective import cross_entropy

make_deterministic(torch.device("cpu"))
assert not torch.are_deterministic_algorithms_enabled()
make_deterministic(torch.device("cuda"))
assert torch.are_deterministic_algorithms_enabled()
assert not torch.is_deterministic_algorithms_warn_only_enabled()  # or fused attention would only warn
assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
for name in ("modern", "lecture"):
    network = Transformer(preset(name, n_vocab=20, n_context=8, n_block=1, n_head=2, d_model=32, dropout=0.1))
    ids = torch.arange(16).view(2, 8)
    cross_entropy(network(ids), ids).backward()  # what has no exact algorithm would raise
"""


def test_deterministic_mode_configures_torch_and_cublas(forked):
    """This runs in a subprocess, because the setting applies to the whole process."""
    env = {name: value for name, value in os.environ.items() if name != "CUBLAS_WORKSPACE_CONFIG"}
    done = subprocess.run([*forked, "-c", EXACT], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no CUDA GPU")
def test_deterministic_mode_after_cuda_initialization_raises(monkeypatch):
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    torch.ones(1, device="cuda")
    with pytest.raises(UserError, match="before CUDA is initialized"):
        make_deterministic(torch.device("cuda"))
