"""Text held to a regular expression or a JSON schema: at each word, the words that may come next.

llguidance follows the text byte by byte; it is told how each token of our vocabulary is spelled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper
from torch import Tensor

from clearhead.errors import UserError
from clearhead.text.tokenizer import Tokenizer

LONGEST = 2**16  # characters of an expression or a schema
# Bounds on what following one may cost: some seconds and 100 MB, then it is refused.
LIMITS = LLParserLimits(
    initial_lexer_fuel=500_000,
    step_lexer_fuel=200_000,
    step_max_items=50_000,
    max_lexer_states=50_000,
    max_grammar_size=100_000,
    verbose_errors=False,
)
# On one line, as Python writes it; where any space is allowed, a weak model writes nothing but spaces.
JSON_STYLE: Any = {
    "item_separator": ", ",
    "key_separator": ": ",
    "whitespace_flexible": False,
    "whitespace_pattern": None,
    "coerce_one_of": False,
    "lenient": False,
}


class Grammar:
    """An expression or a schema, ready to be followed by any number of samples."""

    def __init__(
        self, tokenizer: Tokenizer, n_vocab: int, regex: str | None = None, json_schema: Any = None
    ) -> None:
        self.name = "regex" if regex is not None else "JSON schema"
        self.n_vocab = n_vocab
        source = _read_regex(regex) if regex is not None else _read_schema(json_schema)
        self.matcher = LLMatcher(_vocabulary(tokenizer, n_vocab), source, log_level=0, limits=LIMITS)
        if self.matcher.is_error():
            raise UserError(f"the {self.name} cannot be used: {_reason(self.matcher.get_error())}")
        self.begin().allowed()  # what allows nothing at all is refused before anything is written

    def begin(self) -> Constraint:
        return Constraint(self)


class Constraint:
    """Where one sample stands in its grammar."""

    def __init__(self, grammar: Grammar) -> None:
        self.name, self.n_vocab = grammar.name, grammar.n_vocab
        self.matcher = grammar.matcher.deep_copy()

    def allowed(self) -> Tensor:
        """The words that may come next: V, true or false."""
        bits = np.frombuffer(self.matcher.compute_bitmask(), np.uint8)
        self._check()
        return torch.from_numpy(np.unpackbits(bits, count=self.n_vocab, bitorder="little")).bool()

    def take(self, i: int) -> bool:
        """Go on by one word. Whether another may follow it."""
        self.matcher.consume_token(i)
        self._check()
        return not self.matcher.is_stopped()

    def _check(self) -> None:
        if not self.matcher.is_error():
            return
        error = self.matcher.get_error()
        if "NoExtension" in error:
            raise UserError(f"no text fits the {self.name} that this model's tokenizer can write on with")
        raise UserError(f"the {self.name} is too large to be followed ({_reason(error)}); make it simpler")


class _Spelling:
    """What llguidance asks of a tokenizer."""

    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer, n_vocab: int) -> None:
        self.tokenizer = tokenizer
        self.eos_token_id = tokenizer.end_id
        # What ends a text is not part of it, whatever its name.
        silent = {i for i in range(n_vocab) if i in tokenizer.end_ids or not tokenizer.has_text(i)}
        self.special_token_ids = sorted(silent)
        self.tokens = [b"" if i in silent else tokenizer.spell(i) for i in range(n_vocab)]
        self.ids = {token: i for i, token in reversed(list(enumerate(self.tokens))) if token}
        self.longest = max(map(len, self.ids), default=1)

    def __call__(self, text: bytes) -> list[int]:
        """How the tokenizer would write a text; else, from the longest tokens, as much of it as can be."""
        try:
            ids = self.tokenizer.encode(text.decode())
            if b"".join(self.tokens[i] for i in ids) == text:
                return ids
        except ValueError:  # not a whole text, or with characters that the tokenizer does not know
            pass
        ids = []
        while text:
            parts = (text[:length] for length in range(min(self.longest, len(text)), 0, -1))
            token = next((part for part in parts if part in self.ids), None)
            if token is None:
                break
            ids.append(self.ids[token])
            text = text[len(token) :]
        return ids


_made: WeakKeyDictionary[Tokenizer, dict[int, LLTokenizer]] = WeakKeyDictionary()


def _vocabulary(tokenizer: Tokenizer, n_vocab: int) -> LLTokenizer:
    """Made once for each tokenizer: it takes some tenths of a second for a large one."""
    made = _made.setdefault(tokenizer, {})
    if n_vocab not in made:
        spelling = TokenizerWrapper(_Spelling(tokenizer, n_vocab))
        made[n_vocab] = LLTokenizer(spelling, eos_token=list(tokenizer.end_ids))
    return made[n_vocab]


def _read_regex(regex: Any) -> str:
    if not isinstance(regex, str):
        raise UserError(f"the regex is {str(regex)[:60]!r}: expected a str")
    _check_text("regex", regex)
    return LLMatcher.grammar_from_regex(regex)


def _read_schema(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        raise UserError(f"the JSON schema is {str(schema)[:60]!r}: expected an object, as a dict")
    try:
        text = json.dumps(dict(schema), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(f"the JSON schema cannot be written as JSON: {_reason(str(error))}") from None
    _check_text("JSON schema", text)
    try:
        return LLMatcher.grammar_from_json_schema(text, overrides=JSON_STYLE)
    except ValueError as error:  # nested too deeply
        raise UserError(f"the JSON schema cannot be used: {_reason(str(error))}") from None


def _check_text(name: str, text: str) -> None:
    if len(text) > LONGEST:
        raise UserError(f"the {name} has {len(text)} characters: expected at most {LONGEST}")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UserError(f"the {name} has a lone surrogate in it: expected characters")


def _reason(error: str) -> str:
    """The one line of a message that says what is wrong."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    told = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), None)
    told = told or next(iter(lines), "no reason is given")
    return "it is too large" if "limits." in told else told[:200]
