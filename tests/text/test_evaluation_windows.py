"""Evaluation windows: every token is a target once, after its predecessor, with only its own document as context."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clearhead.text.batches import Batch, Blanks
from clearhead.text.evaluation_windows import windows_for_evaluation
from clearhead.text.start_token import StartToken
from clearhead.text.tokens import IGNORED, Tokens

BLANKS = Blanks(mask_id=999)
END = 0


def counting(length: int) -> Tokens:
    return Tokens.of(np.arange(length))


@given(length=st.integers(0, 80), T=st.integers(1, 9), B=st.integers(1, 5))
def test_evaluation_covers_every_token_once_after_its_predecessor(length: int, T: int, B: int) -> None:
    found = list(windows_for_evaluation(counting(length), T, B, before=-1))
    everything = [row for _, targets, _ in found for row in targets.tolist()]
    assert [i for row in everything for i in row] == list(range(length))
    for inputs, targets, _ in found:
        assert inputs.dtype == targets.dtype == np.int64
        assert (inputs == targets - 1).all()
        assert len(inputs) <= B
    assert [len(row) for row in everything] == [T] * (length // T) + [length % T] * (length % T > 0)


@given(length=st.integers(0, 80), T=st.integers(1, 9), B=st.integers(1, 5))
def test_evaluation_masking_does_not_depend_on_batch_size(length: int, T: int, B: int) -> None:
    found = list(windows_for_evaluation(counting(length), T, B, -1, BLANKS))
    single = list(windows_for_evaluation(counting(length), T, 1, -1, BLANKS))
    rows = [
        row for inputs, targets, _ in found for row in zip(inputs.tolist(), targets.tolist(), strict=True)
    ]
    assert rows == [(inputs[0].tolist(), targets[0].tolist()) for inputs, targets, _ in single]
    restored = [
        i if t == IGNORED else t for inputs, targets in rows for i, t in zip(inputs, targets, strict=True)
    ]
    assert restored == list(range(length))
    assert all(any(t != IGNORED for t in targets) for _, targets in rows)


def parts(batches: list[Batch]) -> list[tuple[list[int], list[int]]]:
    """Inputs and targets of each document in each row, without padding."""
    found = []
    for batch in batches:
        documents = np.zeros_like(batch.inputs) if batch.documents is None else batch.documents
        for inputs, targets, numbers in zip(batch.inputs, batch.targets, documents, strict=True):
            for number in range(int(numbers[-1]) + 1):
                here = numbers == number
                if (targets[here] != IGNORED).any():
                    found.append((inputs[here].tolist(), targets[here].tolist()))
    return found


@given(
    texts=st.lists(st.lists(st.integers(1, 50), min_size=1, max_size=20), min_size=1, max_size=9),
    T=st.integers(1, 9),
    B=st.integers(1, 5),
    blanks=st.sampled_from([None, BLANKS]),
)
def test_packed_documents_give_the_windows_of_each_alone(
    texts: list[list[int]], T: int, B: int, blanks: Blanks | None
) -> None:
    tokens = Tokens.of([i for text in texts for i in [*text, END]], separator=END)
    batches = list(windows_for_evaluation(tokens, T, B, END, blanks))
    singles = [list(windows_for_evaluation(Tokens.of([*text, END]), T, B, END, blanks)) for text in texts]
    assert sorted(parts(batches)) == sorted(part for single in singles for part in parts(single))
    assert all(batch.inputs.shape[0] <= B and batch.inputs.shape[1] <= T for batch in batches)


def test_start_token_precedes_every_document() -> None:
    tokens = Tokens.of([5, 6, END, 7, END], separator=END)
    found = parts(list(windows_for_evaluation(tokens, 8, 4, before=99, start=StartToken(99, END))))
    assert found == [([99, 5, 6], [5, 6, END]), ([99, 7], [7, END])]


def test_conversations_start_with_their_first_token() -> None:
    ids = np.array([1, 2, 3, 4, 5, 6])
    targets = np.where(np.isin(ids, [3, 6]), ids, IGNORED)
    tokens = Tokens.of(ids, Tokens.of(targets), starts=[0, 3])
    found = parts(list(windows_for_evaluation(tokens, 8, 4, before=99)))
    assert found == [([1, 2, 3], [IGNORED, 3, IGNORED]), ([4, 5], [IGNORED, 6])]


@given(
    length=st.integers(1, 60),
    T=st.integers(2, 9),
    B=st.integers(1, 4),
    stride=st.integers(1, 9),
    start=st.sampled_from([None, StartToken(99, END)]),
)
def test_overlapping_windows_predict_each_token_once_after_enough_others(
    length: int, T: int, B: int, stride: int, start: StartToken | None
) -> None:
    tokens, stride = Tokens.of(np.arange(1, length + 1)), min(stride, T)
    batches = list(windows_for_evaluation(tokens, T, B, END, start=start, stride=stride))
    counted = []
    for inputs, targets in parts(batches):
        assert len(inputs) <= T
        opening = END if start is None else start.id
        assert (inputs[0] == opening) == (start is not None or inputs[1:2] == [1] or 1 in targets)
        read = [i for i in inputs if i not in (END, 99)]
        assert read == list(range(read[0], read[0] + len(read))) if read else targets == [1]
        for place, target in enumerate(targets):
            if target != IGNORED:
                counted.append(target)
                before = [i for i in inputs[: place + 1] if i not in (END, 99)]
                assert before == list(range(target - len(before), target))
                assert len(before) >= min(target - 1, T - stride)
    assert sorted(counted) == list(range(1, length + 1))


def test_start_token_begins_every_window_of_every_document() -> None:
    start = StartToken(99, END)
    tokens = Tokens.of([1, 2, 3, 4, 5, END, 6, END], separator=END)
    found = parts(list(windows_for_evaluation(tokens, 4, 4, before=END, start=start)))
    X = IGNORED
    assert found == [([99, 1, 2, 3], [1, 2, 3, 4]), ([99, 4, 5], [X, 5, END]), ([99, 6], [6, END])]
    # A text that begins in the middle of a document: the token before it is context, not replaced.
    found = parts(list(windows_for_evaluation(Tokens.of([7, 8, 9, END]), 4, 4, before=6, start=start)))
    assert found == [([99, 6, 7, 8], [X, 7, 8, 9]), ([99, 9], [X, END])]


def test_start_token_begins_windows_of_conversations_that_begin_with_it() -> None:
    ids = np.array([99, 1, 2, END, 3, 4, 99, 5])
    tokens = Tokens.of(ids, Tokens.of(np.where(ids == 99, IGNORED, ids)), starts=[0, 6])
    start = StartToken(99, END)
    found = parts(list(windows_for_evaluation(tokens, 4, 8, before=0, start=start)))
    assert sorted(found) == [
        ([99], [5]),
        ([99, 1, 2, END], [1, 2, END, 3]),
        ([99, 3, 4], [IGNORED, 4, IGNORED]),
    ]
