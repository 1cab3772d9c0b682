"""Attributions by gradients: gradient × input, and integrated gradients."""

import re

import pytest
import torch

from clearhead.errors import UserError
from tests.inspect.conftest import find_norm

TOKEN = 3


def test_gradient_x_input_multiplies_value_and_gradient(inspect):
    trace = inspect()
    for site in (
        "embedding",
        "block.1.input",
        "block.1.head.0.weights",
        f"block.0.{find_norm(trace.config)}.scale",
    ):
        found = trace.attribute_inputs(TOKEN, site=site)
        product = trace[site] * trace.gradient(site, token=TOKEN)
        torch.testing.assert_close(found.values, product.sum(1) if product.dim() > 1 else product)
    assert trace.attribute_inputs(TOKEN).names[:2] == ["0 3", "1 1"]


@pytest.mark.parametrize(
    "site",
    [
        "block.0.input",
        pytest.param("block.1.middle", marks=pytest.mark.slow),
        pytest.param("block.2.hidden", marks=pytest.mark.slow),
        "block.1.head.2.weights",
    ],
)
def test_integrated_gradients_sum_to_the_difference_of_the_logits(inspect, site):
    trace = inspect()
    if site not in trace:
        pytest.skip("a parallel block has no middle")
    value = trace[site]
    baseline = 0.3 * value
    found = trace.attribute_inputs(TOKEN, 5, "integrated_gradients", site, points=100, baseline=baseline)
    difference = trace.logits[5, TOKEN] - trace.edit({site: baseline}).logits[5, TOKEN]
    assert found.total == pytest.approx(difference.item(), abs=0.01)
    shown = re.search(r"from that of the baseline by (\S+): (\S+), the sum of", repr(found))
    assert [float(each) for each in shown.groups()] == pytest.approx(
        [difference.item(), found.total], abs=1e-3
    )


def test_the_final_vector_is_attributed_exactly(inspect):
    trace = inspect()
    if trace.config.logit_cap is not None:
        pytest.skip("a capped logit is not linear in the final vector")
    total = trace.attribute_inputs(TOKEN, site="final", against=4).total
    assert total == pytest.approx((trace.logits[-1, TOKEN] - trace.logits[-1, 4]).item(), abs=1e-4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "shap"}, "method = 'shap': expected one of gradient_x_input, integrated_gradients"),
        ({"points": 0}, "points = 0: expected an integer of at least 1"),
        ({"site": "block.0.head.0.masked"}, "attribute to (scaled|capped) instead"),
        ({"baseline": torch.zeros(3)}, "baseline is 3: expected a number or a tensor like embedding, "),
        ({"baseline": "x"}, "baseline is 'x': expected a number or a tensor like embedding, "),
    ],
)
def test_bad_arguments_are_named(inspect, given, message):
    with pytest.raises(UserError, match=message):
        inspect().attribute_inputs(TOKEN, **given)
