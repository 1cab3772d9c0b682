import pytest
import torch

from clearhead.errors import UserError
from clearhead.inspect.edits import Edit
from clearhead.inspect.sweep import variants


def last_logit(trace):
    return trace.logits[-1, 3].item()


def test_head_sweep_equals_single_edits(inspect):
    trace = inspect()
    table = trace.sweep("head", last_logit)
    assert table.shape == (3, 4)
    for i in range(3):
        for j in range(4):
            alone = trace.edit({f"block.{i}.head.{j}.output": 0})
            assert table[i, j].item() == pytest.approx(last_logit(alone), abs=1e-4)


@pytest.mark.parametrize("over", ["block × position", "block x position"])
def test_position_sweep_equals_single_edits(inspect, over):
    trace, other = inspect(), inspect((3, 1, 4, 1, 6, 8, 2))
    table = trace.sweep(over, last_logit, patch_from=other)
    assert table.shape == (3, 7)
    for i in range(3):
        for t in range(7):
            alone = trace.edit({f"block.{i}.input": Edit(other, at=[t])})
            assert table[i, t].item() == pytest.approx(last_logit(alone), abs=1e-4)


def test_long_sweep_runs_in_several_batches(inspect, monkeypatch):
    monkeypatch.setattr("clearhead.inspect.sweep.MAX_BATCH_TOKENS", 14)
    trace = inspect()
    assert trace.sweep("head", last_logit).shape == (3, 4)


def test_variant_can_be_read_like_any_trace(inspect):
    seen = []
    trace = inspect()
    trace.sweep("head", lambda variant: seen.append(variant["block.2.head.1.output"].abs().sum()) or 0.0)
    assert [float(total) == 0 for total in seen] == [False] * 9 + [True] + [False] * 2


def test_invalid_sweeps_raise(inspect):
    trace = inspect()
    with pytest.raises(UserError, match="expected 'head' or 'block × position'"):
        trace.sweep("neuron", last_logit)
    with pytest.raises(UserError, match="the other text has 6 tokens and this one 7"):
        trace.sweep("head", last_logit, patch_from=inspect((1, 2, 3, 4, 5, 6)))
    with pytest.raises(UserError, match="the trace is a batch"):
        trace.repeat(2).sweep("head", last_logit)


def test_repeated_trace_shares_memory(inspect):
    trace = inspect()
    many = trace.repeat(50)
    assert many.stream.last.untyped_storage().data_ptr() == trace.stream.last.untyped_storage().data_ptr()
    assert torch.equal(many.row(49).logits, trace.logits)


def test_variants_of_selected_blocks(inspect):
    trace = inspect()
    whole = trace.sweep("head", last_logit)
    for block, batch in variants(trace, "head", blocks=[2, 0]):
        torch.testing.assert_close(
            batch.read("logits", rows=[-1])[:, 0, 3], whole[block], rtol=1e-4, atol=1e-4
        )
