"""Batches: every window once per epoch, a pure function of the step, sharded without loss."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.errors import UserError
from clearhead.text.batches import Batches, Blanks
from clearhead.text.start_token import StartToken
from clearhead.text.tokens import IGNORED, Tokens


def counting(length: int) -> Tokens:
    return Tokens.of(np.arange(length))


def starts(batches: Batches, epoch: int) -> list[int]:
    """First token of each window in an epoch, in batch order."""
    rows = range(epoch * batches.windows, (epoch + 1) * batches.windows)
    return [int(batches.at(row // batches.batch_size)[0][row % batches.batch_size, 0]) for row in rows]


@given(
    T=st.integers(1, 9),
    extra=st.integers(0, 60),
    B=st.integers(1, 7),
    seed=st.integers(0, 99),
    epoch=st.integers(0, 3),
)
def test_epoch_contains_every_window_once(T: int, extra: int, B: int, seed: int, epoch: int) -> None:
    batches = Batches(counting(2 * T + extra), T, B, seed)
    assert batches.windows == (T + extra) // T
    order = starts(batches, epoch)
    offset = min(order)
    assert 0 <= offset < T
    assert sorted(order) == [offset + i * T for i in range(batches.windows)]


@given(step=st.integers(0, 50))
def test_targets_are_the_next_tokens(step: int) -> None:
    inputs, targets, _ = Batches(counting(100), 7, 4, 0).at(step)
    assert inputs.shape == targets.shape == (4, 7)
    assert inputs.dtype == targets.dtype == np.int64
    assert (targets == inputs + 1).all()
    assert (np.diff(inputs, axis=1) == 1).all()


def test_order_differs_across_epochs_and_seeds() -> None:
    tokens = counting(8 * 101)
    batches = Batches(tokens, 8, 5, seed=1)
    orders = [starts(batches, epoch) for epoch in range(6)]
    assert len({tuple(order) for order in orders}) == 6
    assert len({min(order) for order in orders}) > 1
    assert starts(Batches(tokens, 8, 5, seed=2), 0) != orders[0]
    assert orders[0] != sorted(orders[0])


def test_every_offset_is_used() -> None:
    batches = Batches(counting(20), 4, 1, seed=0)
    assert {min(starts(batches, epoch)) for epoch in range(60)} == {0, 1, 2, 3}


@given(world_size=st.sampled_from([1, 2, 3, 4, 6, 12]), step=st.integers(0, 30))
def test_ranks_partition_the_single_process_batch(world_size: int, step: int) -> None:
    batches = Batches(counting(90), 4, 12, seed=3)
    shares = [batches.at(step, rank, world_size) for rank in range(world_size)]
    whole = batches.at(step)
    assert {inputs.shape for inputs, *_ in shares} == {(12 // world_size, 4)}
    assert (np.concatenate([inputs for inputs, *_ in shares]) == whole[0]).all()
    assert (np.concatenate([targets for _, targets, _ in shares]) == whole[1]).all()


@given(steps=st.lists(st.integers(0, 200), max_size=20))
def test_batch_does_not_depend_on_earlier_calls(steps: list[int]) -> None:
    used = Batches(counting(90), 4, 8, seed=3)
    for step in steps:
        inputs, targets, _ = used.at(step)
        fresh = Batches(counting(90), 4, 8, seed=3).at(step)
        assert (inputs == fresh[0]).all()
        assert (targets == fresh[1]).all()
        inputs[:] = targets[:] = -1


def test_batches_for_a_seed_are_stable() -> None:
    inputs, *_ = Batches(counting(1000), 10, 4, seed=0).at(3)
    assert inputs[:, 0].tolist() == [818, 378, 118, 108]


def test_a_text_shorter_than_a_batch_repeats() -> None:
    inputs, *_ = Batches(counting(8), 4, 10, seed=0).at(0)
    assert inputs.shape == (10, 4)


def test_text_that_is_too_short_is_rejected() -> None:
    with pytest.raises(
        UserError, match=r"the text has 15 tokens, but a context of 8 needs at least 16: .*`context`"
    ):
        Batches(counting(15), 8, 1, seed=0)
    with pytest.raises(UserError, match="seed = -1"):
        Batches(counting(16), 8, 1, seed=-1)


BLANKS = Blanks(mask_id=999)


def blanked(length: int = 900, T: int = 40, B: int = 12, seed: int = 3) -> Batches:
    return Batches(counting(length), T, B, seed, BLANKS)


def test_masking_selects_a_fraction_of_each_row_as_targets() -> None:
    whole = [Batches(counting(900), 40, 12, seed=3).at(step)[0] for step in range(40)]
    cut = [blanked().at(step) for step in range(40)]
    masked = changed = kept = 0
    for tokens, (inputs, targets, _) in zip(whole, cut, strict=True):
        chosen = targets != IGNORED
        assert (chosen.sum(1) == 6).all()  # 15% of 40
        assert (targets[chosen] == tokens[chosen]).all()
        assert (inputs[~chosen] == tokens[~chosen]).all()
        masked += int((inputs[chosen] == 999).sum())
        kept += int((inputs[chosen] == tokens[chosen]).sum())
        changed += int((inputs[chosen] != tokens[chosen]).sum())
    changed -= masked
    assert masked + changed + kept == 40 * 12 * 6
    assert masked / 2880 == pytest.approx(0.8, abs=0.03)
    assert changed / 2880 == pytest.approx(0.1, abs=0.02)


def test_masking_is_a_function_of_seed_and_step() -> None:
    inputs, targets, _ = blanked().at(7)
    for _ in range(2):
        again = blanked().at(7)
        assert (inputs == again[0]).all()
        assert (targets == again[1]).all()
    for other in (blanked().at(8), blanked(seed=4).at(7)):
        assert ((targets == IGNORED) != (other[1] == IGNORED)).any()
    assert inputs[0][targets[0] != IGNORED].tolist() == [999, 999, 999, 999, 999, 999]


@given(world_size=st.sampled_from([2, 3, 12]), step=st.integers(0, 30))
def test_ranks_partition_the_single_process_masking(world_size: int, step: int) -> None:
    shares = [blanked().at(step, rank, world_size) for rank in range(world_size)]
    whole = blanked().at(step)
    assert (np.concatenate([inputs for inputs, *_ in shares]) == whole[0]).all()
    assert (np.concatenate([targets for _, targets, _ in shares]) == whole[1]).all()


def test_windows_number_their_documents() -> None:
    ids = np.array([9, 1, 2, 9, 3, 9, 4, 5, 6, 9])
    separated = Tokens.of(ids, separator=9)
    marked = Tokens.of(ids, starts=[0, 3, 5, 9])
    for step in range(4):
        found, same = (Batches(tokens, 4, 1, seed=1).at(step) for tokens in (separated, marked))
        assert found.documents is not None
        assert (found.documents == (found.inputs == 9).cumsum(1)).all()
        assert (same.documents == found.documents).all()
        cut = Batches(separated, 4, 1, seed=1, blanks=BLANKS).at(step)
        assert cut.documents is not None
        assert (cut.documents[:, 1:] == (found.inputs == 9).cumsum(1)[:, :-1]).all()
    assert Batches(Tokens.of(ids), 4, 1, seed=1).at(0).documents is None


def test_start_token_begins_every_window_and_stands_for_end_tokens():
    ids = np.arange(1, 101)
    ids[[0, 30, 31, 70, 99]] = 0
    tokens = Tokens.of(ids, separator=0)
    plain, begun = (Batches(tokens, 8, 5, 1, start=start) for start in (None, StartToken(500, 0)))
    for step in range(8):
        before, after = plain.at(step), begun.at(step)
        for old, new in zip(zip(*before, strict=True), zip(*after, strict=True), strict=True):
            shown = np.where(old[0] == 0, 500, old[0])
            if old[0][0] == 0:
                expected = shown, old[1], old[2]
            else:
                expected = [500, *shown[:-1]], [IGNORED, *old[1][:-1]], [old[2][0], *old[2][:-1]]
            assert [list(each) for each in new] == [list(each) for each in expected]


def test_start_token_of_conversations_replaces_nothing():
    ids = np.array([500, 1, 2, 0, 3, 4, 5, 6, 500, 7, 8, 0, 9, 10, 11, 12, 13, 14, 15, 16])
    tokens = Tokens.of(ids, Tokens.of(ids), starts=[0, 8])
    batches = Batches(tokens, 4, 6, 0, start=StartToken(500, 0))
    rows = np.concatenate([batches.at(step).inputs for step in range(9)])
    assert (rows[:, 0] == 500).all()
    assert (rows[:, 1:] == 0).any()
