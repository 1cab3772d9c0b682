"""Attributions sum to what they split: logit attributions to the logit, score attributions to the score."""

import pytest
import torch

from clearhead.errors import UserError
from clearhead.model.norm import Norm


def test_attributions_sum_to_the_logit(inspect):
    trace = inspect()
    for position in (0, 3, -1):
        for token in (0, 7):
            attribution = trace.attribute(token, position)
            logit = trace.logits[position, token].item()
            assert abs(attribution.total - logit) <= 1e-5 * attribution.values.abs().sum().item()
            assert len(attribution.names) == len(set(attribution.names)) == len(attribution.values)


def test_removing_a_part_removes_its_contribution(inspect, network):
    """With a fixed final scale, removing a head's output from the final residual stream removes exactly
    its contribution.
    """
    trace = inspect()
    name = "block.2.head.1.output"  # in the last block, so only the feed-forward depends on it
    share, norm = trace[name], network.blocks[2].attention_norm
    if isinstance(norm, Norm):  # the head output after the post-norm
        share = share if norm.shift is None else share - share.mean(-1, keepdim=True)
        share = norm.gain.detach() * share / trace["block.2.attention_normed.scale"][:, None]
    without = trace["block.2.output"] - share
    edited = trace.edit({"block.2.output": without, "final.scale": trace["final.scale"]})
    lost = trace.logits[-1, 5] - edited.logits[-1, 5]
    assert lost.item() == pytest.approx(trace.attribute(5)[name], abs=1e-4)


def test_attribution_of_an_edited_trace_has_a_part_for_the_edits(inspect):
    edited = inspect().edit({"block.1.attention": 0.5})
    attribution = edited.attribute(4)
    assert "edits" in attribution.names
    assert (
        abs(attribution.total - edited.logits[-1, 4].item()) <= 1e-5 * attribution.values.abs().sum().item()
    )


def test_score_attributions_sum_to_the_score(inspect):
    trace = inspect()
    for block, head, i, j in ((0, 0, 6, 2), (1, 3, 4, 4), (2, 1, -1, 0)):
        view = trace.block[block].head[head]
        attribution = view.why(i, j)
        score = view.scores[i, j].item()
        assert abs(attribution.total - score) <= 1e-5 * attribution.values.abs().sum().item()
        assert attribution.values.shape == (len(attribution.names),) * 2


def test_lens_equals_ablating_all_later_blocks(inspect, added):
    trace = inspect()
    lens = trace.lens()
    assert len(lens) == 3
    assert torch.allclose(lens[2], trace.logits, atol=1e-5)
    silent = {name: 0 for i in (1, 2) for name in added(i)}
    assert torch.allclose(lens[0], trace.edit(silent).logits, atol=1e-4)
    assert [torch.equal(logits, lens[k]) for k, logits in enumerate(lens)] == [True] * 3
    words = lens.tokens(position=2, count=3)
    assert len(words) == 3
    assert words[2][0][0] == str(int(trace.logits[2].argmax()))
    assert words[0][0][1] == pytest.approx(lens[0][2].softmax(-1).max().item())


def test_unknown_tokens_and_positions_raise(inspect):
    trace = inspect()
    with pytest.raises(UserError, match="token 11 does not exist: there are tokens 0 to 10"):
        trace.attribute(11)
    with pytest.raises(UserError, match="position 7 does not exist"):
        trace.attribute(0, 7)
    with pytest.raises(UserError, match="positions 0 to 6"):
        trace.block[0].head[0].why(0, 9)
