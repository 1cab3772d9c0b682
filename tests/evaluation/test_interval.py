"""The Wilson score interval against its definition: the proportions that a score test does not reject."""

from math import sqrt

import pytest

from clearhead.evaluation.interval import wilson


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 10), (93, 100), (500, 1000), (7, 7)])
def test_ends_are_where_the_score_test_is_exactly_significant(successes, trials):
    for end in wilson(successes, trials):
        if 0 < end < 1:
            distance = abs(successes / trials - end) / sqrt(end * (1 - end) / trials)
            assert distance == pytest.approx(1.959964, rel=1e-5)
    low, high = wilson(successes, trials)
    assert 0 <= low <= successes / trials <= high <= 1
