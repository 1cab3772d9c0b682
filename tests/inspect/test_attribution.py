"""Attributions sum to what they split: logit attributions to the logit, score attributions to the score."""

import pytest
import torch

from clearhead.errors import UserError
from clearhead.inspect.attribution import Attribution
from clearhead.model.norm import Norm
from tests.inspect.conftest import uncapped


def test_attributions_sum_to_the_logit(inspect):
    trace = inspect()
    for position in (0, 3, -1):
        for token in (0, 7):
            attribution = trace.attribute(token, position)
            logit = uncapped(trace)[position, token].item()
            assert abs(attribution.total - logit) <= 1e-5 * attribution.values.abs().sum().item()
            assert len(attribution.names) == len(set(attribution.names)) == len(attribution.values)


def test_attributions_against_a_token_sum_to_the_difference_of_the_logits(inspect, network):
    trace = inspect()
    with torch.no_grad():
        # Computed without a trace, in double precision.
        final = network.double().hidden_states(trace.ids)[0]
        logits = network.unembedding(final)
    network.float()
    for position in (0, 3, -1):
        for token, other in ((0, 7), (7, 0), (5, 4)):
            attribution = trace.attribute(token, position, against=other)
            difference = (logits[position, token] - logits[position, other]).item()
            assert abs(attribution.total - difference) <= 1e-5 * attribution.values.abs().sum().item()
            apart = trace.attribute(token, position), trace.attribute(other, position)
            assert attribution.names == apart[0].names
            torch.testing.assert_close(
                attribution.values, apart[0].values - apart[1].values, rtol=1e-4, atol=1e-4
            )
    before = "" if trace.config.logit_cap is None else ", before the cap"
    assert attribution.title == f"the logit of '5' minus that of '4' after position 6{before}"
    assert trace.attribute(5, against=5).values.abs().max() == 0


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
    whole, rest = uncapped(trace)[-1], uncapped(edited)[-1]
    lost = whole[5] - rest[5]
    assert lost.item() == pytest.approx(trace.attribute(5)[name], abs=1e-4)
    lost = lost - (whole[2] - rest[2])
    assert lost.item() == pytest.approx(trace.attribute(5, against=2)[name], abs=1e-4)


def test_attribution_of_an_edited_trace_has_a_part_for_the_edits(inspect):
    edited = inspect().edit({"block.1.attention": 0.5})
    attribution = edited.attribute(4)
    assert "edits" in attribution.names
    logit = uncapped(edited)[-1, 4].item()
    assert abs(attribution.total - logit) <= 1e-5 * attribution.values.abs().sum().item()


@pytest.mark.parametrize("site", ["block.1.attention", "final", "logits"])
def test_difference_of_an_edited_trace_has_a_part_for_the_edits(inspect, site):
    trace = inspect()
    if site == "logits" and trace.config.logit_cap is not None:
        before = trace.edit({site: 1.0}).attribute(4)  # of the logit before the cap, which is not edited
        assert before["edits"] == pytest.approx(0, abs=1e-5)
        site = "logits_raw"
    edited = trace.edit({site: lambda values: values * torch.linspace(0.5, 1.5, values.shape[-1])})
    attribution = edited.attribute(4, against=9)
    logits = uncapped(edited)[-1]
    difference = (logits[4] - logits[9]).item()
    assert attribution["edits"] != 0
    assert abs(attribution.total - difference) <= 1e-5 * attribution.values.abs().sum().item()


def test_score_attributions_sum_to_the_score(inspect):
    trace = inspect()
    for block, head, i, j in ((0, 0, 6, 2), (1, 3, 4, 4), (2, 1, -1, 0)):
        view = trace.block[block].head[head]
        attribution = view.why(i, j)
        score = view.scores[i, j].item()
        assert abs(attribution.total - score) <= 1e-5 * attribution.values.abs().sum().item()
        assert attribution.values.shape == (len(attribution.names),) * 2


def test_score_differences_are_those_of_the_softmax(inspect):
    trace = inspect()
    for block, head, i, j, other in ((0, 0, 6, 2, 1), (1, 3, 4, 4, 0), (2, 1, -1, 0, -2)):
        view = trace.block[block].head[head]
        attribution = view.why(i, j, against=other)
        difference = (view.scores[i, j] - view.scores[i, other]).item()
        size = attribution.values.abs().sum().item()
        assert abs(attribution.total - difference) <= 1e-5 * (size + view.why(i, j).values.abs().sum().item())
        weight, other_weight = view.weights[i, j], view.weights[i, other]
        if trace.config.score_cap is None and weight > 0 and other_weight > 0:  # neither is masked
            apart = (weight / other_weight).log().item() * trace.config.d_k**0.5
            assert attribution.total == pytest.approx(apart, rel=1e-3, abs=1e-3)
        reverse = view.why(i, other, against=j)
        assert torch.allclose(reverse.values, -attribution.values, atol=1e-6)
    assert "minus that to" in repr(attribution)
    with pytest.raises(UserError, match="position 9 does not exist"):
        view.why(0, 0, against=9)


def test_sums_by_key_and_by_query_match_a_direct_computation(inspect, network):
    """Project what one component wrote at each position, using the weights alone."""
    trace = inspect()
    i, j, other, block, head = 5, 2, 3, 1, 1
    split = trace.block[block].head[head].why(i, j, against=other)
    apart = trace.block[block].head[head].scores[i, j] - trace.block[block].head[head].scores[i, other]
    for parts in (split.by_key, split.by_query):
        assert parts.total == pytest.approx(apart.item(), abs=1e-3)
        assert parts.names == split.names
    if trace.config.position == "rotary" or trace.config.qk_norm:
        return  # the projection below includes neither
    norm, d = network.blocks[block].norm, trace.config.d_head
    written = trace["block.0.head.0.output"]
    if network.blocks[0].attention_norm is not None and isinstance(network.blocks[0].attention_norm, Norm):
        return  # the head's output passes through another norm
    centered = written if norm.shift is None else written - written.mean(-1, keepdim=True)
    scaled = norm.gain * centered / trace[f"block.{block}.normed.scale"][:, None]
    shared = head // (trace.config.n_head // trace.config.n_kv_head)
    keys = scaled @ network.blocks[block].attention.key.weight[d * shared : d * (shared + 1)].T
    queries = scaled @ network.blocks[block].attention.query.weight[d * head : d * (head + 1)].T
    query, key = trace.block[block].head[head].query, trace.block[block].head[head].key
    by_key = (query[i] @ (keys[j] - keys[other])).item()
    assert split.by_key["block.0.head.0.output"] == pytest.approx(by_key, abs=1e-4)
    by_query = (queries[i] @ (key[j] - key[other])).item()
    assert split.by_query["block.0.head.0.output"] == pytest.approx(by_query, abs=1e-4)


def test_parts_of_the_key_that_all_positions_share_cancel(inspect):
    trace = inspect()
    whole, apart = trace.block[1].head[0].why(5, 2), trace.block[1].head[0].why(5, 2, against=3)
    if "bias" in whole.names and trace.config.position != "rotary":
        at = whole.names.index("bias")
        assert whole.values[:, at].abs().max() > 0
        assert apart.values[:, at].abs().max() == 0


def test_lens_equals_ablating_all_later_blocks(inspect, added):
    trace = inspect()
    lens = trace.lens()
    assert len(lens) == 3
    assert torch.allclose(lens[2], trace.logits, atol=1e-5)
    silent = {name: 0 for i in (1, 2) for name in added(i)}
    assert torch.allclose(lens[0], trace.edit(silent).logits, atol=1e-4)
    assert [torch.equal(logits, lens[k]) for k, logits in enumerate(lens)] == [True] * 3
    best = lens.tokens(position=2, count=3)
    assert len(best) == 3
    assert best[2][0][0] == str(int(trace.logits[2].argmax()))
    assert best[0][0][1] == pytest.approx(lens[0][2].softmax(-1).max().item())


def test_unknown_tokens_and_positions_raise(inspect):
    trace = inspect()
    with pytest.raises(UserError, match="token 11 does not exist: there are tokens 0 to 10"):
        trace.attribute(11)
    with pytest.raises(UserError, match="token 11 does not exist: there are tokens 0 to 10"):
        trace.attribute(0, against=11)
    with pytest.raises(UserError, match="position 7 does not exist"):
        trace.attribute(0, 7)
    with pytest.raises(UserError, match="positions 0 to 6"):
        trace.block[0].head[0].why(0, 9)


def test_attributions_are_shown_as_short_tables(inspect):
    trace = inspect()
    attribution = trace.attribute(7)
    heading, *parts = repr(attribution).splitlines()
    before = "" if trace.config.logit_cap is None else ", before the cap"
    assert heading.startswith(f"Attribution(the logit of '7' after position 6{before}: ")
    assert f"{attribution.total:.4f}, the sum of {len(attribution.names)} parts" in heading
    [(name, value)] = attribution.top(1)
    assert parts[0].split() == [name, f"{value:+.4f}"]
    assert (len(parts), parts[-1]) == (6, "  …")
    shown = attribution._repr_html_()
    others = attribution.total - sum(value for _, value in attribution.top(10))
    assert f"{len(attribution.names) - 10} others" in shown
    assert f"{others:.4f}" in shown
    score = trace.block[1].head[0].why(4, 2)
    heading, *parts = repr(score).splitlines()
    assert heading.startswith("ScoreAttribution(the score of block 1, head 0, from position 4 to 2: ")
    assert f"the sum of {score.values.numel()} pairs of parts" in heading
    assert len(parts) == 6
    assert "key part" in score._repr_html_()


def test_lens_is_shown_as_a_table(inspect):
    lens = inspect().lens()
    [[(text, probability)]] = [tokens[:1] for tokens in lens.tokens()[-1:]]
    shown = lens._repr_html_()
    assert f"{text!r} {probability:.1%}".replace("'", "&#x27;") in shown
    assert shown.count("after block") == len(lens)


def test_tokens_in_tables_are_escaped():
    shown = Attribution(["<part>"], torch.tensor([1.0]), "the logit of '<b>'")._repr_html_()
    assert "the logit of &#x27;&lt;b&gt;&#x27;" in shown
    assert "&lt;part&gt;" in shown
    assert "others" not in shown
