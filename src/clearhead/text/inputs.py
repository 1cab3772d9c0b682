"""Text arguments: a string, token ids, a list of either, or the name of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from clearhead.errors import UserError
from clearhead.text.corpus import Document, readable_documents
from clearhead.text.sources import PACKED_SUFFIXES, TEXT_SUFFIXES
from clearhead.text.tokenizer import Tokenizer

LONGEST_NAME = 1000  # characters; a longer text is not the name of a file


def encode_text(
    given: str | Sequence[int] | Tensor, tokenizer: Tokenizer, n_vocab: int, what: str = "text"
) -> list[int]:
    """The ids of a text, including the start token; ids are taken as they are.

    `n_vocab` is the model's, which may exceed the tokenizer's.
    """
    text = _listed(given)
    if _are_ids(text):
        check_ids(text, n_vocab)
        return list(text)
    if not isinstance(text, str):
        raise UserError(f"the {what} has type {type(text).__name__}: expected a str")
    ids = tokenizer.start_ids + tokenizer.encode(text)
    if not text:
        raise UserError(f"the {what} is empty: expected at least one character")
    return ids


def encode_continuation(
    prefix: str | Sequence[int] | None, text: str | Sequence[int], tokenizer: Tokenizer, n_vocab: int
) -> tuple[list[int], int]:
    """The ids of a prefix and the text that continues it, and the index of the text's first token.

    Two strings are encoded as one, because that is how the model saw text; spaces at the end of the prefix count as
    the start of the text. An empty prefix is the start of a document; without a prefix, nothing precedes the text.
    """
    if prefix is None:
        return encode_text(text, tokenizer, n_vocab), 0
    if not isinstance(prefix, str) or not isinstance(text, str):
        before = encode_prompt(prefix or None, tokenizer, n_vocab)
        start_ids = tokenizer.start_ids if isinstance(text, str) else []
        return before + encode_text(text, tokenizer, n_vocab)[len(start_ids) :], len(before)
    start = tokenizer.start_ids
    if not text:
        raise UserError("the text after the prefix is empty: expected at least one character")
    shorter = prefix.rstrip()
    if not shorter:
        before = encode_prompt(None, tokenizer, n_vocab)
        return before + tokenizer.encode(prefix + text), len(before)
    before = start + tokenizer.encode(shorter)
    whole = start + tokenizer.encode(prefix + text)
    if len(before) < len(whole):
        return whole, len(before)
    return before + tokenizer.encode(prefix[len(shorter) :] + text), len(before)  # one token spans both


def encode_prompt(prompt: str | Sequence[int] | None, tokenizer: Tokenizer, n_vocab: int) -> list[int]:
    """The ids of a prompt; without one, those that start a document."""
    if prompt is None:
        return tokenizer.start_ids or [tokenizer.need_end("generating without a prompt")]
    return encode_text(prompt, tokenizer, n_vocab, "prompt")


def split_texts(given: Any) -> tuple[list[Any], bool]:
    """The texts, each a string or a list of ids, and whether a single text was given."""
    if isinstance(given, str):
        return [given], True
    listed = _listed(given)
    if not isinstance(listed, list | tuple) or not listed:
        raise UserError(f"the text is {repr(given)[:60]}: expected a str, ids, or a list of texts")
    if _are_ids(listed):
        return [list(listed)], True
    for each in listed:
        if not isinstance(each, str) and not (isinstance(each, list) and _are_ids(each)):
            raise UserError(f"one of the texts is {repr(each)[:60]}: expected a str, or ids")
    return list(listed), False


def read_documents(given: str | Path | Sequence[Document]) -> Sequence[Document]:
    """The documents of a file, or of a text that does not name one."""
    if isinstance(given, Path) or (isinstance(given, str) and _names_file(given)):
        return readable_documents([given])
    return [Document.of("the text", given)] if isinstance(given, str) else given


def check_ids(ids: Sequence[int], n_vocab: int) -> None:
    for i in ids:
        if not 0 <= i < n_vocab:
            raise UserError(f"id {i} does not exist: ids range from 0 to {n_vocab - 1}")


def _names_file(text: str) -> bool:
    """Whether a text is the name of a file. A text that only looks like a file name is an error."""
    if not text or "\n" in text or len(text) > LONGEST_NAME:
        return False
    try:
        if Path(text).is_file():
            return True
    except (OSError, ValueError):
        return False
    if " " not in text and Path(text).suffix.lower() in (*TEXT_SUFFIXES, *PACKED_SUFFIXES, ".jsonl"):
        raise UserError(f"no such file: {text}; pass the path of an existing file, or a text")
    return False


def _listed(given: Any) -> Any:
    return given.tolist() if isinstance(given, Tensor) else given


def _are_ids(given: object) -> bool:
    return isinstance(given, list | tuple) and bool(given) and all(type(i) is int for i in given)
