"""The measurement of the lab, after too few steps to learn anything: its claim must then fail."""

from bench.pronoun import measure


def test_models_that_have_not_learned_are_told_apart():
    figures = measure(seeds=2, steps=1)
    assert figures["claim"] is False
    for kinds in (figures["asked"], figures["blanks alone"]):
        assert set(kinds) == {"sees both ways", "looks back"}
        assert kinds["looks back"]["apart"] == [0, 0]
        assert kinds["looks back"]["probe"] == [0.5, 0.5]
        for low, high in (each for of_kind in kinds.values() for each in of_kind.values()):
            assert low <= high
