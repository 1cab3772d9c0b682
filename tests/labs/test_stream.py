"""An induction head forms from scratch and is found; ablating it removes the behavior."""

import math

import pytest
import torch

import clearhead
from clearhead.labs.stream import TOKENS, _said_twice

SHORT = 400  # steps; the head formed after 220 to 300 with eight seeds


@pytest.fixture(scope="module")
def result():
    return clearhead.lab("stream", steps=SHORT, seed=0)


@pytest.mark.slow
def test_induction_head_forms_and_loss_on_repetitions_falls(result):
    loss, looking = result.part("loss").lines, result.part("attention").lines
    assert result.part("loss").x == result.part("attention").x
    assert (result.part("loss").x[0], result.part("loss").x[-1]) == (0, SHORT)
    assert loss["repetition"][0] == pytest.approx(math.log(TOKENS), abs=0.5)
    assert loss["repetition"][-1] < 0.5
    assert min(loss["first occurrence"]) > 3  # first occurrences are random, so their loss stays high
    assert looking["to the token after the earlier occurrence"][0] < 0.1
    assert looking["to the token after the earlier occurrence"][-1] > 0.7
    assert looking["to the previous token"][-1] > looking["to the previous token"][0] + 0.15


@pytest.mark.slow
def test_ablating_the_head_raises_the_loss_on_repetitions(result):
    found, silenced = result.findings, result.part("ablated")
    loss = {row: values[2] for row, values in zip(silenced.rows, silenced.values, strict=True)}
    assert found["induction head"].startswith("block.1.")
    assert found["previous-token head"].startswith("block.0.")
    assert found["without the induction head"] > found["loss, repetition"] + 0.5
    assert found["without any induction heads"] > 3
    assert found["without the previous-token head"] > found["loss, repetition"] + 1
    same_block = [loss[row] for row in loss if row.startswith("block.1.")]
    assert loss[found["induction head"]] == found["without the induction head"]
    assert max(same_block) < found["without any induction heads"]


@pytest.mark.slow
def test_head_attends_to_the_token_after_the_earlier_occurrence(result):
    """Each repeated token attends to the one after its first occurrence: the diagonal above the main one."""
    weights = torch.tensor(result.part("attention pattern").values)
    assert weights.diagonal(1).mean() > 0.7
    assert weights.diagonal(0).mean() < 0.2


def test_any_number_of_heads_and_reproducible_results():
    one = clearhead.lab("stream", heads=3, steps=3)
    assert len(one.part("ablated").rows) == 2 + 2 * 3
    assert one.part("loss").x == [0, 1, 2, 3]
    assert one.findings["induction heads"] == 0
    assert one.findings["without any induction heads"] == one.findings["loss, repetition"]
    assert clearhead.lab("stream", heads=3, steps=3).to_json() == one.to_json()
    assert clearhead.lab("stream", heads=3, steps=3, seed=1).to_json() != one.to_json()


def test_global_random_state_is_unchanged():
    torch.manual_seed(5)
    drawn = torch.rand(3)
    torch.manual_seed(5)
    clearhead.lab("stream", steps=1)
    assert torch.equal(torch.rand(3), drawn)


def test_sequences_repeat_distinct_tokens():
    ids = _said_twice(10, 7, torch.Generator().manual_seed(0))
    assert torch.equal(ids[:, :7], ids[:, 7:])
    assert all(len(set(row[:7])) == 7 for row in ids.tolist())


def test_interrupt_stops_training():
    def leave():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clearhead.lab("stream", watch=leave)
