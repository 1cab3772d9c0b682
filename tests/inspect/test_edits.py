"""Edits: writing the same value changes nothing; a different value changes only what depends on it."""

import pytest
import torch

from clearhead.errors import UserError
from clearhead.inspect.edits import Edit
from clearhead.inspect.sites import all_sites
from tests.inspect.conftest import find_norm


def some_sites(config):
    """All sites except those of middle blocks and heads, which behave like the first and the last."""
    blocks, heads = (None, 0, config.n_block - 1), (None, 0, config.n_head - 1)
    return [site for site in all_sites(config) if site.block in blocks and site.head in heads]


def test_writing_the_same_value_changes_nothing(inspect):
    trace = inspect()
    for name in map(str, some_sites(trace.config)):
        again = trace.edit({name: trace[name]})
        assert torch.allclose(again.logits, trace.logits, rtol=1e-4, atol=1e-4), name
    for name in ("block.0.head.1.weights", "block.1.hidden", "final"):
        assert trace.edit({name: trace[name]}).verify() <= 1e-5, name


def stirred(x: torch.Tensor) -> torch.Tensor:
    """Scale every number by a different factor, so that no norm or softmax is invariant to it."""
    factors = 0.5 + torch.rand(x.shape, generator=torch.Generator().manual_seed(1))
    return torch.where(x.isfinite(), x * factors + 0.1 * factors, x)


def test_writing_a_different_value_changes_the_logits(inspect):
    trace = inspect()
    for site in some_sites(trace.config):
        edited = trace.edit({str(site): stirred})
        changed = not torch.allclose(edited.logits, trace.logits, atol=1e-4)
        assert changed == (site.name != "probabilities"), str(site)
        assert not torch.equal(edited[str(site)], trace[str(site)])


def test_edited_site_reads_back_its_value(inspect):
    trace = inspect()
    for name in ("block.1.head.2.weights", "block.1.hidden", "block.0.input", "embedding", "final", "logits"):
        value = torch.rand_like(trace[name])
        assert torch.equal(trace.edit({name: value})[name], value)


def test_zero_edit_ablates_a_head(inspect):
    trace = inspect()
    edited = trace.edit({"block.1.head.2.output": 0})
    expected = trace["block.1.attention"] - trace["block.1.head.2.output"]
    assert torch.allclose(edited["block.1.attention"], expected, atol=1e-4)
    by_mixed = trace.edit({"block.1.head.2.mixed": 0.0})
    assert torch.allclose(edited.logits, by_mixed.logits, atol=1e-4)


def test_only_selected_positions_change(inspect):
    trace = inspect()
    edited = trace.edit({"block.1.input": Edit(0, at=[2, -1])})
    actual, was = edited["block.1.input"], trace["block.1.input"]
    assert actual[[2, 6]].abs().sum() == 0
    assert torch.equal(actual[[0, 1, 3, 4, 5]], was[[0, 1, 3, 4, 5]])
    if trace.config.causal:
        assert torch.allclose(edited.logits[:2], trace.logits[:2], atol=1e-4)


def test_blocks_before_the_edit_are_not_recomputed(inspect, network, monkeypatch):
    trace = inspect()
    ran = []
    for i, block in enumerate(network.blocks):
        forward = block.forward
        monkeypatch.setattr(block, "forward", lambda *a, i=i, f=forward, **k: ran.append(i) or f(*a, **k))
    edited = trace.edit({"block.1.head.0.output": 0})
    assert ran == [2]
    assert edited.stream.inputs[1] is trace.stream.inputs[1]
    edited.edit({"logits": 0})
    assert ran == [2]


def test_edits_compose(inspect):
    trace = inspect()
    one, other = {"block.0.head.1.output": 0}, {"block.2.hidden": lambda x: x * 2}
    together = trace.edit({**one, **other})
    assert torch.allclose(trace.edit(one).edit(other).logits, together.logits, atol=1e-5)
    # Edit the later block first: the earlier edit must recompute it with its own edit still active.
    assert torch.allclose(trace.edit(other).edit(one).logits, together.logits, atol=1e-5)
    doubled = trace.edit({"block.1.input": lambda x: x + 1}).edit({"block.1.input": lambda x: x * 2})
    assert torch.allclose(doubled["block.1.input"], (trace["block.1.input"] + 1) * 2)


def test_patching_uses_the_value_of_another_trace(inspect):
    trace, other = inspect(), inspect((3, 1, 4, 1, 6, 9, 2))
    patched = trace.edit({"block.1.input": other})
    assert torch.allclose(patched.logits, other.logits, atol=1e-4)
    at_one = trace.edit({"block.1.input": Edit(other, at=[4])})
    assert torch.equal(at_one["block.1.input"][4], other["block.1.input"][4])
    assert torch.equal(at_one["block.1.input"][5], trace["block.1.input"][5])


def test_shared_key_edit_affects_its_group_and_head_edit_only_its_head(inspect):
    trace = inspect()
    group = trace.config.n_head // trace.config.n_kv_head
    shared = trace.edit({"block.0.kv_head.0.key": 0})
    own = trace.edit({"block.0.head.0.key": 0})
    for head in range(4):
        name = f"block.0.head.{head}.scores"
        assert bool((shared[name] == 0).all()) == (head < group)
        assert bool((own[name] == 0).all()) == (head == 0)


def test_wrong_shape_error_names_both_shapes(inspect):
    trace = inspect()
    with pytest.raises(UserError, match=r"block\.0\.input: the value is 7×23, expected 7×24"):
        trace.edit({"block.0.input": torch.zeros(7, 23)})
    with pytest.raises(UserError, match="expected 1×24"):
        trace.edit({"block.0.input": Edit(torch.zeros(7, 24), at=[1])})
    with pytest.raises(UserError, match="returned a str"):
        trace.edit({"block.0.input": lambda x: "no"})
    with pytest.raises(UserError, match="position 7 does not exist: there are positions 0 to 6"):
        trace.edit({"block.0.input": Edit(0, at=[7])})
    with pytest.raises(UserError, match="blocks 0 to 2"):
        trace.edit({"block.9.input": 0})


def test_only_selected_columns_change(inspect):
    trace = inspect()
    plain, site = trace["block.1.hidden"], "block.1.hidden"
    changed = trace.edit({site: Edit(7.0, at=[2, -1], columns=[0, -1])})[site]
    expected = plain.clone()
    expected[2, [0, -1]] = expected[-1, [0, -1]] = 7.0
    torch.testing.assert_close(changed, expected)
    doubled = trace.edit({site: Edit(lambda x: 2 * x, columns=[3])})[site]
    torch.testing.assert_close(doubled[:, 3], 2 * plain[:, 3])
    torch.testing.assert_close(doubled[:, 4:], plain[:, 4:])
    other = inspect((3, 1, 4, 1, 6, 8, 2))
    taken = trace.edit({"block.1.head.0.weights": Edit(other, at=[5], columns=[4])})["block.1.head.0.weights"]
    assert taken[5, 4] == other["block.1.head.0.weights"][5, 4]
    torch.testing.assert_close(taken[:5], trace["block.1.head.0.weights"][:5])
    with pytest.raises(UserError, match="column 99"):
        trace.edit({site: Edit(0, columns=[99])})
    with pytest.raises(UserError, match="columns cannot be selected"):
        trace.edit({f"block.0.{find_norm(trace.config)}.scale": Edit(1, columns=[0])})
