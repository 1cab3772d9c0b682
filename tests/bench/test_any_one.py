"""The measurement of the lab, with networks too small to learn anything: its claim must then fail."""

from bench.any_one import measure


def test_a_network_that_has_not_learned_is_told_apart():
    figures = measure(seeds=2, steps=1, batch=2, width=4)
    assert figures["claim"] is False
    for right in figures["right"].values():
        assert set(right) == {"n-gram", "Elman", "LSTM", "attention"}
        for low, mean, high in (row for rows in right.values() for row in rows.values()):
            assert 0 <= low <= mean <= high <= 1
