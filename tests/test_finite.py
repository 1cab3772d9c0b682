"""Non-finite numbers in JSON."""

import json
import math

from clearhead.finite import finite


def test_nested_non_finite_numbers_become_null():
    given = {"a": [1, 2.5, (math.nan, -math.inf)], "b": math.inf, "c": "inf", "d": None, "e": True}
    assert finite(given) == {"a": [1, 2.5, [None, None]], "b": None, "c": "inf", "d": None, "e": True}
    assert json.loads(json.dumps(finite(given), allow_nan=False)) == finite(given)
    assert finite(math.nan) is None
