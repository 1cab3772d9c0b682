"""Tokens: a sequence over many shards that slices like a list."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.errors import UserError
from clearhead.text.tokens import Tokens


@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    start=st.none() | st.integers(-30, 30),
    stop=st.none() | st.integers(-30, 30),
    fraction=st.floats(0, 0.99),
)
def test_slices_and_splits_match_those_of_a_list(
    lengths: list[int], start: int | None, stop: int | None, fraction: float
) -> None:
    ids = np.arange(sum(lengths), dtype=np.uint16)
    tokens = Tokens(np.split(ids, np.cumsum(lengths)[:-1]), 0, len(ids))
    plain = ids.tolist()
    assert tokens[start:stop].tolist() == plain[start:stop]
    assert tokens[start:stop].dtype == np.int64
    first, last = tokens.split(fraction)
    assert len(first) == int(len(ids) * (1 - fraction))
    assert [*first[:], *last[:]] == plain
    assert last[start:stop].tolist() == plain[len(first) :][start:stop]


def test_split_rejects_an_invalid_fraction() -> None:
    with pytest.raises(UserError, match=r"validation = 1\.5"):
        Tokens.of([1, 2, 3]).split(1.5)
