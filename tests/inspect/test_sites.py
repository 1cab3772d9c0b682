"""The lectures' symbols: other names for sites."""

import pytest
import torch

from clearhead.errors import UserError


def test_symbols_are_the_lines_of_the_lectures_block(network, inspect):
    if network.config.parallel:
        pytest.skip("a parallel block has no t3")
    trace = inspect()
    for number, block in enumerate(network.blocks):
        view = trace.block[number]
        torch.testing.assert_close(view.t1, block.norm(view.x))
        torch.testing.assert_close(view.t3, view.t2 + view.x)
        torch.testing.assert_close(view.t4, block.norm2(view.t3))
        torch.testing.assert_close(view.t5, block.feedforward_norm(block.feedforward(view.t4)))
        torch.testing.assert_close(view.h, view.t5 + view.t3)
        assert torch.equal(view.h, trace[f"block.{number}.output"])
        head = view.head[1]
        torch.testing.assert_close(head.a, head.alpha @ head.v)
        torch.testing.assert_close(head.read("scores"), head.q @ head.k.T)


def test_symbol_can_be_edited_and_asked_for(network, inspect):
    trace = inspect()
    assert "block.0.t2" in trace
    half = "attention_normed" if network.config.post_norm else "attention"
    assert torch.equal(trace.edit({"block.0.t2": 0}).logits, trace.edit({f"block.0.{half}": 0}).logits)


@pytest.mark.parametrize(
    "name", ["t1", "block.0.t6", "block.0.q", "block.0.head.0.t1", "block.0.kv_head.0.q"]
)
def test_symbol_in_the_wrong_place_is_refused(inspect, name):
    with pytest.raises(UserError, match="does not exist"):
        inspect()[name]


def test_only_models_with_caps_have_the_sites_around_them(network, inspect):
    trace, config = inspect(), network.config
    head = "block.1.head.2"
    for limit, before, after in (
        (config.score_cap, f"{head}.scaled", f"{head}.capped"),
        (config.logit_cap, "logits_raw", "logits"),
    ):
        changed = after if after.endswith("capped") else before
        assert (changed in trace.sites()) == (limit is not None)
        if limit is None:
            with pytest.raises(UserError, match=f"site '{changed}' does not exist: expected .*"):
                trace[changed]
        else:
            assert trace[before].abs().max() > limit / 2  # the cap has an effect
            torch.testing.assert_close(trace[after], limit * (trace[before] / limit).tanh())
            doubled = trace.edit({before: lambda values: 2 * values})
            torch.testing.assert_close(doubled[after], limit * (2 * trace[before] / limit).tanh())
