"""Tests for the labs benchmark: claims fail for untrained networks and hold for a trained one."""

import pytest

from bench.labs import CLAIMS, measure
from clearhead.labs.catalog import LABS


def test_every_claim_belongs_to_a_lab_that_trains():
    assert all(LABS[name].long for name in CLAIMS)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("any-one", {"steps": 1, "batch": 2, "width": 4}),
        ("stream", {"steps": 1}),
        ("pronoun", {"steps": 1}),
    ],
)
@pytest.mark.slow
def test_claims_fail_for_an_untrained_network(name, settings):
    figures = measure([name], seeds=2, **settings)
    assert figures["claims"] is False
    measured = figures["labs"][name]
    assert measured["claim"] is False
    assert measured["numbers"]
    for low, mean, high in measured["numbers"].values():
        assert low <= mean <= high
    assert any(low < high for low, _, high in measured["numbers"].values()), (
        "both seeds gave the same numbers"
    )


@pytest.mark.slow
def test_senses_claim_fails_without_training():
    assert measure(["senses"], seeds=1, steps=1)["claims"] is False


@pytest.mark.slow
def test_claim_holds_for_a_trained_network():
    """Run the stream lab with one seed and two thirds of the steps."""
    figures = measure(["stream"], seeds=1, steps=400)
    assert figures["claims"] is True
    low, _, high = figures["labs"]["stream"]["numbers"]["without any induction heads"]
    assert low == high > 3
