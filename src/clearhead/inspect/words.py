"""Words among tokens: where one stands, though it may be made of several."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate


def find_word(word: str, pieces: Sequence[str]) -> list[int]:
    """For each time a word stands in the text, the position of the last token that it reaches into.

    As a whole word: "it" is not found in "with".
    """
    before = r"(?<!\w)" if word[:1].isalnum() else ""
    after = r"(?!\w)" if word[-1:].isalnum() else ""
    ends = list(accumulate(map(len, pieces)))
    matches = re.finditer(before + re.escape(word) + after, "".join(pieces)) if word else ()
    return [next(i for i, end in enumerate(ends) if end >= match.end()) for match in matches]
