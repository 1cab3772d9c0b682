"""Loops and matrices compute the same numbers, and matrices are faster."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import clearhead
from clearhead.labs.catalog import LABS
from clearhead.model.lectures import head_as_matrices


class ProductCounter(TorchDispatchMode):
    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func in (torch.ops.aten.mm.default, torch.ops.aten.bmm.default)
        return func(*args, **(kwargs or {}))


def test_head_is_five_matrix_products():
    with ProductCounter() as counter:
        head_as_matrices(*torch.randn(4, 8, 8))
    assert counter.count == 5
    assert "five matrix products" in LABS["matrix"].description


@pytest.mark.parametrize("seed", range(3))
def test_loops_and_matrices_agree(seed):
    result = clearhead.lab("matrix", longest=32, repeats=1, seed=seed)
    assert result.part("difference").x == [2, 4, 8, 16, 32]
    assert result.findings["largest difference"] == max(result.part("difference").lines["of the numbers"])
    assert 0 < result.findings["largest difference"] < 5e-6  # 4e-7 to 1e-6 across seeds


@pytest.mark.clock
def test_matrices_are_faster_especially_for_longer_inputs():
    result = clearhead.lab("matrix")
    ratios = result.part("speedup").lines["matrices"]
    assert ratios[-1] == result.findings["speedup at the longest"] > 10  # about 500
    assert ratios[-1] > ratios[0]
    seconds = result.part("time").lines
    assert seconds["loops"][-1] / seconds["matrices"][-1] == pytest.approx(ratios[-1])
