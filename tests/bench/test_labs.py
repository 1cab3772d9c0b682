"""The measurement of the labs, with networks too small to learn anything: their claims must then fail."""

import pytest

from bench.labs import CLAIMS, measure
from clearhead.labs.catalog import LABS


def test_claims_are_those_of_labs_that_train():
    assert all(LABS[name].long for name in CLAIMS)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("any-one", {"steps": 1, "batch": 2, "width": 4}),
        ("stream", {"steps": 1}),
        ("pronoun", {"steps": 1}),
    ],
)
def test_a_network_that_has_not_learned_is_told_apart(name, settings):
    figures = measure([name], seeds=2, **settings)
    assert figures["claims"] is False
    measured = figures["labs"][name]
    assert measured["claim"] is False
    assert measured["numbers"]
    for low, mean, high in measured["numbers"].values():
        assert low <= mean <= high
    assert any(low < high for low, _, high in measured["numbers"].values()), "both seeds gave the same"


def test_senses_that_do_not_part_are_told_apart():
    assert measure(["senses"], seeds=1, steps=1)["claims"] is False


@pytest.mark.slow
def test_what_has_learned_is_told_too():
    """The stream's head in the short mode: one seed, two thirds of the steps."""
    figures = measure(["stream"], seeds=1, steps=400)
    assert figures["claims"] is True
    low, _, high = figures["labs"]["stream"]["numbers"]["without all induction heads"]
    assert low == high > 3
