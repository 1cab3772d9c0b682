"""How much longer a tokenizer's settings make a text: a hostile file can make it exceed any memory."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import tokenizers

from clearhead.errors import UserError

# NFKC makes some characters 18 times longer, and byte-level tokenizers four times.
MOST_GROWTH = 100
MOST_PIECES = 10_000  # that a template adds to a text
LONGEST_TOKEN = 2**16  # characters


def check_growth(inner: tokenizers.Tokenizer) -> None:
    """Raise an error if a text could become very much longer while it is encoded or decoded."""
    for parts in ((inner.normalizer, inner.pre_tokenizer), (inner.decoder,)):
        growth = 1
        for step in (each for part in parts for each in _steps(part)):
            growth *= _growth(step)
            if growth > MOST_GROWTH:
                raise UserError(
                    f"its tokenizer can make a text more than {MOST_GROWTH} times longer; copy it again from its source"
                )
    for step in _steps(inner.post_processor):
        pieces = step.get("single") or []
        longest = max(
            (len(each.get("ids", [])) for each in step.get("special_tokens", {}).values()), default=1
        )
        if len(pieces) * max(longest, 1) > MOST_PIECES:
            raise UserError(
                f"its tokenizer adds more than {MOST_PIECES} tokens to a text; copy it again from its source"
            )
    longest = max(map(len, inner.get_vocab(with_added_tokens=True)), default=0)
    if longest > LONGEST_TOKEN:
        raise UserError(
            f"its tokenizer has a token of {longest} characters, expected at most {LONGEST_TOKEN}; "
            "copy it again from its source"
        )


def _steps(part: Any) -> Iterator[dict[str, Any]]:
    """The settings of a part of a tokenizer or, if it is a sequence, of each of its steps."""
    if part is None:
        return
    found = [json.loads(part.__getstate__())]
    while found:
        step = found.pop()
        if step.get("type") == "Sequence":
            found += next(each for each in step.values() if isinstance(each, list))[::-1]
        else:
            yield step


def _growth(step: dict[str, Any]) -> int:
    """The largest number of characters that one character becomes."""
    kind = step.get("type")
    if kind == "Replace":
        pattern, content = step["pattern"], len(step["content"])
        n = len(pattern.get("String", ""))  # a regular expression can match between characters
        return max(1, -(-content // n)) if n else content + 1
    if kind == "ByteLevel":
        return 4
    if kind == "Precompiled":
        return _longest_replacement(base64.b64decode(step["precompiled_charsmap"]))
    return 1


def _longest_replacement(charsmap: bytes) -> int:
    """The longest text in a SentencePiece map, which holds a trie's size, the trie, and texts that end with NUL."""
    texts = charsmap[4 + int.from_bytes(charsmap[:4], "little") :]
    return max((len(text.decode(errors="replace")) for text in texts.split(b"\0")), default=1) or 1
