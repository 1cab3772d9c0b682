"""Special tokens that are spelled out in a message are text, like everything else that a user writes.

A chat template is rendered as text and then encoded with its special tokens parsed. To keep those in the messages from
being parsed too, a mark is put into each before rendering; the result is encoded by a tokenizer that removes the marks
after parsing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import tokenizers
from tokenizers import normalizers

from clearhead.errors import UserError

MARK = "\ufdd0"  # a code point that is permanently not a character

JsonT = TypeVar("JsonT")


def guard(value: JsonT, tokens: Collection[str]) -> JsonT:
    """The value, any JSON, with a mark after the first character of each of these tokens in its strings and names."""
    guarded: Any = value
    if isinstance(value, str):
        for token in tokens:
            guarded = guarded.replace(token, token[0] + MARK + token[1:])
        if any(token in guarded for token in tokens):  # of one character, or overlapping
            guarded = MARK.join(["", *value, ""])
        if any(token in guarded for token in tokens):
            one = next(token for token in tokens if token in guarded)
            raise UserError(f"a message contains {one!r}, which is a special token of the model: remove it")
    elif isinstance(value, Mapping):
        guarded = {guard(name, tokens): guard(each, tokens) for name, each in value.items()}
    elif isinstance(value, list | tuple):
        guarded = [guard(each, tokens) for each in value]
    return guarded


def guarded_copy(inner: tokenizers.Tokenizer, tokens: Collection[str]) -> tokenizers.Tokenizer:
    """A copy of the tokenizer that parses special tokens and removes marks from all other text."""
    document = json.loads(inner.to_str())
    for token in document["added_tokens"]:
        if token["content"] in tokens:
            token["normalized"] = False  # parsed while the marks are still there
    copy = tokenizers.Tokenizer.from_str(json.dumps(document))
    copy.encode_special_tokens = False
    remove = normalizers.Replace(MARK, "")
    own = copy.normalizer
    copy.normalizer = remove if own is None else normalizers.Sequence([remove, own])
    return copy


def encode_guarded(copy: tokenizers.Tokenizer, text: str, ids: Collection[int]) -> list[int]:
    """The ids of a rendered template. Raises an error if a message, not the template, contains one of these ids."""
    encoding = copy.encode(text, add_special_tokens=False)
    for i, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
        # Word-level tokenizers find even a marked special token in their vocabulary.
        if i in ids and MARK in text[start:end]:
            token = text[start:end].replace(MARK, "")
            raise UserError(f"a message contains {token!r}, which is a special token of the model: remove it")
    return list(encoding.ids)
