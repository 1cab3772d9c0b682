"""Constrained decoding: the tokens that a regular expression or a JSON schema allows at each step.

llguidance matches the text byte by byte, with the bytes of each token in the vocabulary.
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
from clearhead.generate.closed_schema import close_schema
from clearhead.generate.schema_patterns import check_patterns
from clearhead.text.tokenizer import Tokenizer

MAX_CHARACTERS = 2**16  # in an expression or a schema
# Limits on the cost of matching, a fraction of a second and 50 MB; llguidance rejects what exceeds them.
LIMITS = LLParserLimits(
    initial_lexer_fuel=100_000,  # also bounds the text that a grammar forces
    step_lexer_fuel=200_000,
    step_max_items=50_000,
    max_lexer_states=50_000,
    max_grammar_size=100_000,
    verbose_errors=False,
)
MAX_FORCED = 1024  # bytes that are encoded at each step, if only one text can follow
EXCEEDED = ("limits.", "(limit", "too many expressions", "too many states")  # in llguidance's messages
# On one line, as json.dumps formats it: where any whitespace is allowed, a weak model generates nothing else.
JSON_STYLE: Any = {
    "item_separator": ", ",
    "key_separator": ": ",
    "whitespace_flexible": False,
    "whitespace_pattern": None,
    "coerce_one_of": False,
    "lenient": False,
}


class Grammar:
    """A compiled expression or schema, shared by any number of samples.

    `lark` is the grammar of replies with tool calls, in llguidance's Lark syntax.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        n_vocab: int,
        regex: str | None = None,
        json_schema: Any = None,
        lark: str | None = None,
    ) -> None:
        self.name = "regex" if regex is not None else "JSON schema"
        self.n_vocab = n_vocab
        if lark is not None:
            source = LLMatcher.grammar_from_lark(lark)
        else:
            source = _compile_regex(regex) if regex is not None else _compile_schema(json_schema)
        self.matcher = LLMatcher(_make_vocabulary(tokenizer, n_vocab), source, log_level=0, limits=LIMITS)
        if self.matcher.is_error():
            raise UserError(f"the {self.name} cannot be used: {_reason(self.matcher.get_error())}")
        self._try()

    def _try(self) -> None:
        """Take one step, which raises at once if nothing at all is allowed, or if what must follow is too long."""
        first = self.begin()
        allowed = first.allowed().nonzero()
        if len(allowed) == 1 and first.accept(int(allowed)):
            first.allowed()

    def begin(self) -> Constraint:
        return Constraint(self)


class Constraint:
    """The state of one sample in its grammar."""

    def __init__(self, grammar: Grammar) -> None:
        self.name, self.n_vocab = grammar.name, grammar.n_vocab
        self.matcher = grammar.matcher.deep_copy()

    def allowed(self) -> Tensor:
        """Return a mask of the tokens that may come next: V, bool."""
        bits = np.frombuffer(self.matcher.compute_bitmask(), np.uint8)
        self._check()
        return torch.from_numpy(np.unpackbits(bits, count=self.n_vocab, bitorder="little")).bool()

    def accept(self, i: int) -> bool:
        """Advance by one token and return whether another may follow."""
        self.matcher.consume_token(i)
        self._check()
        return not self.matcher.is_stopped()

    def _check(self) -> None:
        if not self.matcher.is_error():
            return
        error = self.matcher.get_error()
        if "NoExtension" in error:
            raise UserError(f"no text that this model's tokenizer can produce matches the {self.name}")
        raise UserError(f"the {self.name} cannot be matched ({_reason(error)}): simplify it")


class _Spelling:
    """The interface that llguidance expects of a tokenizer."""

    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer, n_vocab: int) -> None:
        self.tokenizer = tokenizer
        self.eos_token_id = tokenizer.need_end("a regex or JSON schema")
        # An end token adds no text, whatever it is called.
        silent = {i for i in range(n_vocab) if i in tokenizer.end_ids or not tokenizer.has_text(i)}
        self.special_token_ids = sorted(silent)
        self.tokens = [b"" if i in silent else tokenizer.spell(i) for i in range(n_vocab)]
        self.ids = {token: i for i, token in reversed(list(enumerate(self.tokens))) if token}
        self.longest = max(map(len, self.ids), default=1)

    def __call__(self, text: bytes) -> list[int]:
        """Encode a text; if the tokenizer cannot, split it greedily into the longest matching tokens.

        Only the first token is used, so that the end of a long text need not be encoded.
        """
        if len(text) > MAX_FORCED:
            text = text[:MAX_FORCED].decode(errors="ignore").encode() or text[:MAX_FORCED]
        try:
            ids = self.tokenizer.encode(text.decode())
            if b"".join(self.tokens[i] for i in ids) == text:
                return ids
        except ValueError:  # incomplete UTF-8, or characters unknown to the tokenizer
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


_vocabularies: WeakKeyDictionary[Tokenizer, dict[int, LLTokenizer]] = WeakKeyDictionary()


def _make_vocabulary(tokenizer: Tokenizer, n_vocab: int) -> LLTokenizer:
    """Return llguidance's tokenizer, cached because a large one takes a few tenths of a second to build."""
    made = _vocabularies.setdefault(tokenizer, {})
    if n_vocab not in made:
        spelling = TokenizerWrapper(_Spelling(tokenizer, n_vocab))
        made[n_vocab] = LLTokenizer(spelling, eos_token=list(tokenizer.end_ids))
    return made[n_vocab]


def _compile_regex(regex: Any) -> str:
    if not isinstance(regex, str):
        raise UserError(f"regex = {str(regex)[:60]!r}: expected a str")
    _check_text("regex", regex)
    return LLMatcher.grammar_from_regex(regex)


def _compile_schema(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        raise UserError(f"json_schema = {str(schema)[:60]!r}: expected an object (a dict)")
    try:
        _check_text("JSON schema", json.dumps(dict(schema), allow_nan=False))
        text = json.dumps(close_schema(schema), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(f"the JSON schema cannot be serialized as JSON: {_reason(str(error))}") from None
    check_patterns(schema)
    try:
        return LLMatcher.grammar_from_json_schema(text, overrides=JSON_STYLE)
    except ValueError as error:  # nested too deeply
        raise UserError(f"the JSON schema cannot be used: {_reason(str(error))}") from None


def _check_text(name: str, text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise UserError(f"the {name} has {len(text)} characters: expected at most {MAX_CHARACTERS}")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UserError(f"the {name} contains a lone surrogate: expected valid Unicode")


def _reason(error: str) -> str:
    """Return the line of an llguidance message that states the problem."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    reason = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), None)
    reason = reason or next(iter(lines), "no reason given")
    return "it is too large" if any(sign in reason for sign in EXCEEDED) else reason[:200]
