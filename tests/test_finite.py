"""Numbers as JSON has them."""

import json
import math

from clearhead.finite import finite


def test_what_is_not_finite_is_null_however_deep():
    given = {"a": [1, 2.5, (math.nan, -math.inf)], "b": math.inf, "c": "inf", "d": None, "e": True}
    assert finite(given) == {"a": [1, 2.5, [None, None]], "b": None, "c": "inf", "d": None, "e": True}
    assert json.loads(json.dumps(finite(given), allow_nan=False)) == finite(given)
    assert finite(math.nan) is None
