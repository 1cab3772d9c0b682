import numpy as np
import pytest
import torch

from clearhead.errors import UserError
from clearhead.inspect.indexing import select_indices


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (None, None),
        (2, [2]),
        (-1, [4]),
        (np.int64(3), [3]),
        (torch.tensor(3), [3]),
        ([0, -1], [0, 4]),
        (np.array([1, 2]), [1, 2]),
        (torch.tensor([1, 2]), [1, 2]),
        (range(2), [0, 1]),
        (slice(1, 3), [1, 2]),
        (slice(None, None, -2), [4, 2, 0]),
        (slice(7, 9), []),
        ([], []),
        ([True, False, True, False, False], [0, 2]),
        (torch.tensor([False, True, False, False, False]), [1]),
    ],
)
def test_select_indices(selection, expected):
    assert select_indices(selection, 5, "row") == expected


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (5, "row 5 does not exist: there are rows 0 to 4"),
        ([0, -6], "row -6 does not exist"),
        (1.0, "expected an integer"),
        ([1.5], "expected an integer"),
        ("a", "expected an integer"),
        (True, "expected an integer"),
        ([True, False], "the mask has 2 entries for 5 rows"),
        (slice("a", None), "expected an integer"),
        (slice(0, 2, 0), "expected an integer"),
    ],
)
def test_invalid_selections_raise(selection, message):
    with pytest.raises(UserError, match=message):
        select_indices(selection, 5, "row")
