"""A pronoun that only looks back cannot know the adjective; the adjective can."""

from dataclasses import replace

import pytest

import clearhead
from clearhead.errors import UserError


def test_weights_are_summed_over_all_heads(model):
    result = clearhead.lab("pronoun", model)
    for row, adjective in enumerate(("tired", "wide")):
        trace = model.inspect(f"The chicken didn't cross the road because it was too {adjective}.")
        chicken, road, it, last = (trace.position_of(word) for word in ("chicken", "road", "it", adjective))
        for part, looking in (("from the last word", last), ("from the pronoun", it)):
            weights = trace["block.0.head.0.weights"][looking]
            expected = [weights[chicken], weights[road], weights[chicken] - weights[road]]
            assert result.part(part).values[row] == pytest.approx(
                [each.item() for each in expected], abs=1e-6
            )
    assert result.found["largest difference of it between the two"] < 1e-6
    assert result.part("from the last word").values[0] != result.part("from the last word").values[1]


def test_what_cannot_be_asked_is_told(model):
    with pytest.raises(UserError, match="'hen' is not a word"):
        clearhead.lab("pronoun", model, one="hen")
    with pytest.raises(UserError, match="'road' stands after what looks"):
        clearhead.lab("pronoun", model, pronoun="chicken")
    with pytest.raises(UserError, match="both 'tired'"):
        clearhead.lab("pronoun", model, second="tired")
    model.network.config = replace(model.config, causal=False)
    with pytest.raises(UserError, match="sees both ways"):
        clearhead.lab("pronoun", model)


def test_tired_means_the_chicken_and_wide_the_road(smollm2):
    found = clearhead.lab("pronoun", smollm2).found
    assert round(found["tired: to chicken less to road"], 2) == 1.28
    assert round(found["wide: to chicken less to road"], 2) == -0.73
    assert found["largest difference of it between the two"] < 1e-5
