"""The gradient at every site equals autograd's through an edit of that site, and central differences."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.errors import UserError
from clearhead.inspect.edits import Edit
from tests.inspect.conftest import find_norm

TOKEN = 3


@pytest.fixture
def network(network):
    return network.double()  # small sums of large terms would lose digits


def by_autograd(trace, site, measure):
    leaf = trace[site].clone().requires_grad_()
    (found,) = torch.autograd.grad(
        measure(trace.edit({site: leaf})), [leaf], allow_unused=True, materialize_grads=True
    )
    return found


def near(actual, expected, most=1e-5):
    assert actual.shape == expected.shape
    return (actual - expected).norm() <= most * expected.norm().clamp(min=1e-4)


def test_gradients_of_a_logit_equal_autograd_at_every_site(inspect):
    trace = inspect()
    sites = [site for site in trace.sites() if not site.startswith(("block.0", "block.2"))]
    sites = [site for site in sites if not re.search(r"head\.[12]", site)]
    for site in sites:
        expected = by_autograd(trace, site, lambda edited: edited.logits[4, TOKEN] - edited.logits[4, 5])
        actual = trace.gradient(site, token=TOKEN, position=4, against=5)
        assert not actual.requires_grad
        assert near(actual, expected), site


MEASURES = {
    "probability": lambda trace: trace.logits[-1].softmax(-1)[TOKEN],
    "log_probability": lambda trace: trace.logits[-1].log_softmax(-1)[TOKEN],
    "loss": lambda trace: torch.nn.functional.cross_entropy(trace.logits[:-1], trace.ids[0, 1:]),
}


@pytest.mark.parametrize("of", MEASURES)
def test_gradients_of_probabilities_and_of_the_loss(inspect, of):
    trace = inspect()
    if of == "loss" and not trace.config.causal:
        with pytest.raises(UserError, match="bidirectional"):
            trace.gradient("final", of="loss")
        return
    token = None if of == "loss" else TOKEN
    norm = f"block.0.{find_norm(trace.config)}.scale"
    sites = ["embedding", norm, "block.1.head.2.weights", "block.2.hidden", "logits"]
    for site in sites:
        assert near(trace.gradient(site, of=of, token=token), by_autograd(trace, site, MEASURES[of])), site


def test_gradient_at_the_probabilities(inspect):
    trace = inspect()
    assert not trace.gradient("probabilities", token=TOKEN).any()
    found = trace.gradient("probabilities", of="log_probability", token=TOKEN)
    assert found.count_nonzero() == 1
    torch.testing.assert_close(found[-1, TOKEN], 1 / trace["probabilities"][-1, TOKEN])


def test_gradients_equal_central_differences(inspect):
    trace = inspect()
    random = torch.Generator().manual_seed(1)
    for site in trace.sites()[::7]:
        value, gradient, h = trace[site], trace.gradient(site, token=TOKEN, of="log_probability"), 1e-6
        if site == "probabilities":
            continue
        direction = torch.randn(value.shape, generator=random, dtype=torch.float64)
        direction[~value.isfinite()] = 0
        ahead, behind = (
            trace.edit({site: value + sign * h * direction}).logits[-1].log_softmax(-1)[TOKEN]
            for sign in (1, -1)
        )
        assert abs((ahead - behind) / (2 * h) - (gradient * direction).sum()) <= 1e-6, site


def test_gradients_with_edits_are_those_of_the_edited_model(inspect):
    norm = f"block.1.{find_norm(inspect().config)}.scale"
    trace = inspect().edit(
        {
            "block.0.head.1.weights": Edit(0.1, at=[2]),
            norm: lambda x: 2 * x,
            "block.1.middle": Edit(0.5, columns=[1]),
            "final": lambda x: x + 1,
        }
    ) if "block.1.middle" in inspect() else inspect().edit({norm: lambda x: 2 * x})  # fmt: skip
    for site in ("embedding", "block.0.head.1.value", "block.0.normed", "block.1.input"):
        expected = by_autograd(trace, site, lambda edited: edited.logits[-1, TOKEN])
        assert near(trace.gradient(site, token=TOKEN), expected), site


def test_a_constant_value_stops_the_gradient(inspect):
    trace = inspect().edit({"block.1.output": 0.5})
    assert not trace.gradient("block.1.hidden", token=TOKEN).any()
    assert not trace.gradient("embedding", token=TOKEN).any()
    assert trace.gradient("block.1.output", token=TOKEN).any()
    assert trace.gradient("block.2.hidden", token=TOKEN).any()


def test_the_default_token_is_the_most_likely_one(inspect):
    trace = inspect()
    best = int(trace.logits[-1].argmax())
    assert torch.equal(trace.gradient("final"), trace.gradient("final", token=best))


@settings(max_examples=10)
@given(ids=st.lists(st.integers(0, 10), min_size=1, max_size=12), token=st.integers(0, 10), data=st.data())
def test_gradients_hold_for_any_text_site_and_position(inspect, ids, token, data):
    trace = inspect(tuple(ids))
    site = data.draw(st.sampled_from(trace.sites()))
    position = data.draw(st.integers(0, len(ids) - 1))
    expected = by_autograd(trace, site, lambda edited: edited.logits[position, token])
    assert near(trace.gradient(site, token=token, position=position), expected)


def test_bad_arguments_are_named(inspect):
    trace = inspect()
    with pytest.raises(UserError, match=r"of = 'logits': expected one of logit, .*did you mean 'logit'"):
        trace.gradient("final", of="logits")
    with pytest.raises(UserError, match="site 'nothing' does not exist"):
        trace.gradient("nothing", token=TOKEN)
    with pytest.raises(UserError, match="position 12 does not exist"):
        trace.gradient("final", token=TOKEN, position=12)
