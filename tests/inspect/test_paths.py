"""Readouts along paths: after any number of hops, the parts sum to the readout."""

import pytest
import torch

from clearhead.errors import UserError
from clearhead.inspect.paths import LinearReadout, follow_path


def close(actual, expected, values):
    return abs(actual - expected) <= 2e-5 * values.abs().sum().item()


def test_readout_without_hops_equals_the_attribution(inspect):
    trace = inspect()
    split, expected = LinearReadout.of_logit(trace, 5, 6).attribution(), trace.attribute(5)
    assert split.names == expected.names
    torch.testing.assert_close(split.values, expected.values, rtol=1e-4, atol=1e-5)


def test_contributions_by_position_sum_to_the_head_output(inspect):
    trace = inspect()
    readout, whole = LinearReadout.of_logit(trace, 5, 6), trace.attribute(5)
    for block in range(3):
        tokens = readout.by_position(block)
        assert tokens.shape == (4, 7)
        for head in range(4):
            written = whole[f"block.{block}.head.{head}.output"]
            assert close(tokens[head].sum().item(), written, whole.values)


@pytest.mark.parametrize("hops", [[(2, 1, 3)], [(2, 3, 6), (1, 0, 2)], [(2, 0, 4), (1, 2, 4), (0, 1, 0)]])
def test_hop_splits_the_contribution_the_head_moved(inspect, hops):
    trace = inspect()
    before = follow_path(trace, 5, 6, hops[:-1])
    block, head, source = hops[-1]
    if not trace.config.causal:
        source = (source + 1) % 7
    parts = before.through(block, head, source).attribution()
    assert close(parts.total, before.by_position(block)[head, source].item(), parts.values)
    assert len(set(parts.names)) == len(parts.names)
    named = trace.attribute(5, 6, through=[*hops[:-1], (block, head, source)])
    torch.testing.assert_close(named.values, parts.values)


def test_path_of_a_difference_is_the_difference_of_the_paths(inspect):
    trace, hops = inspect(), [(2, 3, 6), (1, 0, 2)]
    one, other = (trace.attribute(token, 6, through=hops) for token in (5, 8))
    parts = trace.attribute(5, 6, through=hops, against=8)
    assert parts.names == one.names
    torch.testing.assert_close(parts.values, one.values - other.values, rtol=1e-4, atol=1e-5)
    moved = follow_path(trace, 5, 6, hops[:1], against=8).by_position(1)[0, 2].item()
    assert close(parts.total, moved, parts.values)
    cap = "" if trace.config.logit_cap is None else ", before the cap"
    assert parts.title == (
        f"the logit of '5' minus that of '8' after position 6{cap}: the part from position 2 before block 1"
    )


@pytest.mark.parametrize(("edit", "factor"), [(0.0, 0.0), (lambda output: 0.5 * output, 0.5), (1.5, 0.0)])
def test_edited_head_moves_only_what_it_writes(inspect, edit, factor):
    trace = inspect()
    before = LinearReadout.of_logit(trace, 5, 6).by_position(2)
    edited = trace.edit({"block.2.head.1.output": edit})
    readout = LinearReadout.of_logit(edited, 5, 6)
    moved = readout.by_position(2)
    # The edit changes the norms' scales, by the same ratio for all heads.
    at = before[0].abs().argmax()
    ratio = moved[0, at] / before[0, at]
    torch.testing.assert_close(moved[1], factor * ratio * before[1], rtol=1e-3, atol=1e-5)
    if factor:
        written = edited.attribute(5)
        assert close(moved[1].sum().item(), written["block.2.head.1.output"], written.values)


def test_edits_are_a_separate_part(inspect):
    trace = inspect().edit({"block.1.head.2.output": 0.3, "block.0.hidden": 0.1})
    parts = follow_path(trace, 5, 6, [(2, 1, 3)]).attribution()
    brought = LinearReadout.of_logit(trace, 5, 6).by_position(2)[1, 3].item()
    assert "edits" in parts.names
    assert close(parts.total, brought, parts.values)


def test_hops_must_go_to_earlier_blocks(inspect):
    trace = inspect()
    with pytest.raises(UserError, match="not before this readout"):
        trace.attribute(5, 6, through=[(1, 0, 3), (1, 0, 2)])
    with pytest.raises(UserError, match="block"):
        trace.attribute(5, 6, through=[(9, 0, 3)])
