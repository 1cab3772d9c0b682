"""Counting with runs spilled to disk matches counting in memory."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.classics.tally import FAN, Tally


def tally(parts, folder, memory):
    made = Tally(folder, memory)
    for part in parts:
        made.add(np.array(part, dtype=np.int64))
    keys, counts = made.result()
    return made, dict(zip(keys.tolist(), counts.tolist(), strict=True)), keys


@pytest.mark.parametrize("n", [10, 1_000, 10_000])
def test_spilled_counts_match_in_memory_counts(tmp_path, n):
    numbers = np.random.default_rng(n).zipf(1.3, n) % 5_000
    parts = np.array_split(numbers, 7)
    held, in_memory, _ = tally(parts, tmp_path, memory=2**30)
    spilled, on_disk, keys = tally(parts, tmp_path, memory=0)
    assert held.spills == 0
    assert spilled.spills == (0 if n == 10 else pytest.approx(n / spilled.capacity, rel=0.2))
    assert on_disk == in_memory == Counter(numbers.tolist())
    assert (keys[1:] > keys[:-1]).all()
    assert list(tmp_path.iterdir()) == []  # every run was merged and deleted


def test_many_runs_are_merged_in_levels(tmp_path):
    made = Tally(tmp_path, memory=0)
    for i in range(FAN**2 + 3):
        made.add(np.full(made.capacity, i % 5, dtype=np.int64))
        assert len(list(tmp_path.iterdir())) <= 3 * FAN
    keys, counts = made.result()
    assert keys.tolist() == [0, 1, 2, 3, 4]
    assert counts.sum() == (FAN**2 + 3) * made.capacity


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(0, 2**40), max_size=90), max_size=9))
def test_arbitrary_numbers_are_counted(tmp_path_factory, parts):
    _, found, _ = tally(parts, tmp_path_factory.mktemp("tally"), memory=0)
    assert found == Counter(number for part in parts for number in part)
