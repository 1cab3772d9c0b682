"""Tokenizers in GGUF metadata, read and written: same text, same ids.

Two types: "gpt2", byte-level BPE with its merges listed; and "llama", SentencePiece BPE, whose merges follow
from the scores of the pieces. Both have a vocabulary with a type for each token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NoReturn

import numpy as np
import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers

from clearhead.errors import UserError
from clearhead.formats.gguf.ends import read_ends, write_ends
from clearhead.formats.gguf.header import shown
from clearhead.formats.gguf.splits import SPLITS
from clearhead.text.tokenizer import Tokenizer

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
KINDS = ("gpt2", "llama")

# Names in tokenizer_config.json, and in GGUF after "tokenizer.ggml.".
ROLES = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id",
}
# Defaults for files of type "llama".
LLAMA_ROLES = {"unknown_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}

SPACE = "▁"
# Limits, so that a file cannot exhaust memory or time. The largest published vocabulary has 262,208 tokens
# with about 1.7 million characters in total.
MOST_TOKENS = 2**18 + 2**16
MOST_ADDED = 2**15
LONGEST_PIECE = 256
MOST_CHARACTERS = 2**22

Merges = list[tuple[str, str]]


def read_tokenizer(metadata: dict[str, Any]) -> Tokenizer:
    """The tokenizer described by a GGUF file's metadata."""
    kind = metadata.get("tokenizer.ggml.model")
    if kind not in KINDS:
        _refuse("model", f"is {kind!r}, expected one of {', '.join(KINDS)}")
    tokens = _read_tokens(metadata)
    types = _read_numbers(metadata, "token_type", len(tokens), np.int64, NORMAL)
    while tokens and types[len(tokens) - 1] == UNUSED and tokens[-1] == _filler(len(tokens) - 1):
        tokens.pop()
    types = types[: len(tokens)]
    roles = _read_roles(metadata, kind, tokens)
    begins = metadata.get("tokenizer.ggml.add_bos_token")
    try:
        if kind == "gpt2":
            inner, usual = _build_bytes(metadata, tokens, types)
        else:
            inner, usual = _build_pieces(metadata, tokens, types, roles.get("unk_token"))
    except UserError:
        raise
    except Exception as error:  # the library raises nothing more specific
        _refuse("tokens", f"does not form a tokenizer ({' '.join(str(error).split())[:200]})")
    if inner.get_vocab(with_added_tokens=True) != {token: i for i, token in enumerate(tokens)}:
        _refuse("tokens", "has tokens whose ids change when combined, expected non-empty special tokens")
    config: dict[str, object] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **roles,
        "add_bos_token": begins if isinstance(begins, bool) else usual,
        "clean_up_tokenization_spaces": False,
    }
    template = metadata.get("tokenizer.chat_template")
    if isinstance(template, str):
        config["chat_template"] = template
    added = np.flatnonzero(np.isin(types, (CONTROL, USER_DEFINED))).tolist()
    return Tokenizer(inner, config, read_ends(metadata, {tokens[i]: i for i in added}, len(tokens)))


def write_tokenizer(tokenizer: Tokenizer, n_vocab: int) -> dict[str, Any]:
    """The metadata for a model of `n_vocab` tokens; unused ids get placeholder names."""
    if tokenizer.n_vocab > n_vocab:
        raise UserError(
            f"the tokenizer has {tokenizer.n_vocab} tokens, but the model has only {n_vocab}; "
            "the tokenizer belongs to a different model"
        )
    document = json.loads(tokenizer.to_json())
    model, added = document["model"], document["added_tokens"]
    if tokenizer.kind == "char":
        _cannot_write("it is a character tokenizer, for which GGUF has no type")
    if tokenizer.kind == "word":
        _cannot_write("it is a word tokenizer, for which GGUF has no type")
    if model["type"] != "BPE" or model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        _cannot_write(f"its type is {model['type']}, expected byte-level or SentencePiece BPE")
    for token in added:
        if not token["special"] and (token["single_word"] or token["lstrip"] or token["rstrip"]):
            _cannot_write(
                f"its token {token['content']!r} strips the spaces around it, which GGUF cannot express"
            )
    vocabulary = {**model["vocab"], **{token["content"]: token["id"] for token in added}}
    tokens = [_filler(i) for i in range(n_vocab)]
    types = [UNUSED] * n_vocab
    for token, i in vocabulary.items():
        tokens[i], types[i] = token, NORMAL
    for token in added:
        types[token["id"]] = CONTROL if token["special"] else USER_DEFINED
    merges = [(left, right) for left, right in model["merges"]]
    if (document["decoder"] or {}).get("type") == "ByteLevel":
        metadata = _write_bytes(document, merges)
    else:
        metadata = _write_pieces(document, tokens, types, merges)
    return {
        **metadata,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        **_write_config(tokenizer, vocabulary),
        **write_ends(tokenizer.end_ids, {token["content"]: token["id"] for token in added}),
    }


def _write_config(tokenizer: Tokenizer, vocabulary: dict[str, int]) -> dict[str, Any]:
    config = tokenizer.config
    metadata: dict[str, Any] = {}
    for role, key in ROLES.items():
        token = config.get(role)
        token = token.get("content") if isinstance(token, dict) else token
        if isinstance(token, str) and token in vocabulary:
            metadata[f"tokenizer.ggml.{key}"] = vocabulary[token]
    if tokenizer.end_id is not None:  # config.json may name it instead
        metadata["tokenizer.ggml.eos_token_id"] = tokenizer.end_id
    begins = config.get("add_bos_token")
    if not isinstance(begins, bool):
        # In files made elsewhere, the post-processor may add the start token.
        first = tokenizers.Tokenizer.from_str(tokenizer.to_json()).encode("").ids[:1]
        begins = first == [metadata.get("tokenizer.ggml.bos_token_id")]
    metadata["tokenizer.ggml.add_bos_token"] = begins
    if isinstance(config.get("chat_template"), str):
        metadata["tokenizer.chat_template"] = config["chat_template"]
    return metadata


def _read_tokens(metadata: dict[str, Any]) -> list[str]:
    tokens = metadata.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, list) or not tokens or not all(isinstance(token, str) for token in tokens):
        _refuse("tokens", "is missing or not an array of strings")
    if len(tokens) > MOST_TOKENS:
        _refuse("tokens", f"has {len(tokens)} tokens, expected at most {MOST_TOKENS}")
    places: dict[str, int] = {}
    for i, token in enumerate(tokens):
        if (first := places.setdefault(token, i)) != i:
            _refuse("tokens", f"has {shown(token)} twice, as {first} and as {i}, expected each token once")
    return list(tokens)


def _read_numbers(
    metadata: dict[str, Any], name: str, n: int, dtype: Any, default: int | None
) -> np.ndarray[Any, Any]:
    """One number per token."""
    values = metadata.get(f"tokenizer.ggml.{name}")
    if values is None and default is not None:
        return np.full(n, default, dtype)
    array = np.asarray(values)
    if array.shape != (n,) or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        _refuse(name, f"is missing or not one number for each of the {n} tokens")
    return array.astype(dtype)


def _read_roles(metadata: dict[str, Any], kind: str, tokens: Sequence[str]) -> dict[str, str]:
    roles = {}
    for role, key in ROLES.items():
        i = metadata.get(f"tokenizer.ggml.{key}")
        if i is None and kind == "llama":
            i = LLAMA_ROLES.get(key)
        if i is None:
            continue
        if type(i) is not int or not 0 <= i < len(tokens):
            _refuse(key, f"is {shown(i)}, expected a token id below {len(tokens)}")
        roles[role] = tokens[i]
    return roles


def _build_bytes(
    metadata: dict[str, Any], tokens: Sequence[str], types: np.ndarray[Any, Any]
) -> tuple[tokenizers.Tokenizer, bool]:
    name = metadata.get("tokenizer.ggml.pre", "default")
    if not isinstance(name, str) or name not in SPLITS:
        _refuse("pre", f"is {shown(name)}, an unknown pre-tokenizer; expected one of {', '.join(SPLITS)}")
    split = SPLITS[name]
    merges = _read_merges(metadata)
    added = _added(tokens, types, (CONTROL, USER_DEFINED))
    model = models.BPE(vocab=_model_vocabulary(tokens, types), merges=merges, ignore_merges=split.whole_words)
    inner = tokenizers.Tokenizer(model)
    split.apply(inner)
    if not merges and name == "gpt-2":
        inner.pre_tokenizer.use_regex = False  # without merges, splitting changes nothing
    inner.decoder = decoders.ByteLevel()
    inner.add_tokens(added)
    return inner, split.begins


def _build_pieces(
    metadata: dict[str, Any], tokens: Sequence[str], types: np.ndarray[Any, Any], unknown: str | None
) -> tuple[tokenizers.Tokenizer, bool]:
    prefix = metadata.get("tokenizer.ggml.add_space_prefix", True)
    if "tokenizer.ggml.merges" in metadata:
        merges = _read_merges(metadata)
    else:
        n = len(metadata["tokenizer.ggml.tokens"])  # including unused ones
        scores = _read_numbers(metadata, "scores", n, np.float64, None)
        merges = derive_merges(tokens, types.tolist(), scores.tolist())
    added = _added(tokens, types, (UNKNOWN, CONTROL, USER_DEFINED))
    model = models.BPE(
        vocab=_model_vocabulary(tokens, types),
        merges=merges,
        unk_token=unknown,
        fuse_unk=True,
        byte_fallback=True,
    )
    inner = tokenizers.Tokenizer(model)
    replace = normalizers.Replace(" ", SPACE)
    back = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    if prefix:
        inner.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), replace])
        inner.decoder = decoders.Sequence([*back, decoders.Strip(" ", 1, 0)])
    else:
        inner.normalizer = replace
        inner.decoder = decoders.Sequence(back)
    inner.add_tokens(added)
    return inner, True


def derive_merges(tokens: Sequence[str], types: Sequence[int], scores: Sequence[float]) -> Merges:
    """Every way to form a piece from two others: the highest-scoring piece first, then the longest left part.

    SentencePiece merges the neighbors that form the highest-scoring piece; a list in this order does the same.
    User-defined tokens are split off beforehand and are never merged.
    """
    pieces = {
        token: i for i, token in enumerate(tokens) if types[i] == NORMAL and len(token) <= LONGEST_PIECE
    }
    if (total := sum(map(len, pieces))) > MOST_CHARACTERS:
        _refuse("tokens", f"has {total} characters, expected at most {MOST_CHARACTERS}")
    found = []
    for token, i in pieces.items():
        parts = [(token[:cut], token[cut:]) for cut in range(1, len(token))]
        ways = [(left, right) for left, right in parts if left in pieces and right in pieces]
        found += [(scores[i], way) for way in sorted(ways, key=lambda way: (pieces[way[0]], pieces[way[1]]))]
    found.sort(key=lambda item: (item[0], len(item[1][0]), len(item[1][1])), reverse=True)
    return [way for _, way in found]


def _read_merges(metadata: dict[str, Any]) -> Merges:
    merges = metadata.get("tokenizer.ggml.merges", [])
    if isinstance(merges, np.ndarray) and not len(merges):
        return []  # an empty array without a type
    if not isinstance(merges, list) or not all(isinstance(merge, str) for merge in merges):
        _refuse("merges", "is not an array of strings")
    pairs = []
    for i, merge in enumerate(merges):
        left, _, right = merge.partition(" ")
        if not left or not right or " " in right:
            _refuse("merges", f"has {shown(merge)} at {i}, expected two tokens separated by a space")
        pairs.append((left, right))
    return pairs


def _model_vocabulary(tokens: Sequence[str], types: np.ndarray[Any, Any]) -> dict[str, int]:
    """All but the special tokens at the end, which get their ids when added."""
    n = len(tokens)
    while n and types[n - 1] in (CONTROL, USER_DEFINED):
        n -= 1
    return {token: i for i, token in enumerate(tokens[:n])}


def _added(tokens: Sequence[str], types: np.ndarray[Any, Any], which: Sequence[int]) -> list[AddedToken]:
    places = np.flatnonzero(np.isin(types, which))
    if len(places) > MOST_ADDED:
        _refuse("token_type", f"makes {len(places)} tokens special, expected at most {MOST_ADDED}")
    return [
        AddedToken(tokens[i], special=bool(types[i] != USER_DEFINED), normalized=False)
        for i in places.tolist()
    ]


def _write_bytes(document: dict[str, Any], merges: Merges) -> dict[str, Any]:
    model = document["model"]
    if model["byte_fallback"] or model["fuse_unk"]:
        _cannot_write("it mixes byte-level tokens with byte fallback")
    name = next((name for name in SPLITS if _cuts_alike(document, name)), None)
    if name is None:
        _cannot_write(f"its pre-tokenizer is not among those known: {', '.join(SPLITS)}")
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": name,
        "tokenizer.ggml.merges": [f"{left} {right}" for left, right in merges],
    }


def _cuts_alike(document: dict[str, Any], name: str) -> bool:
    """Whether this tokenizer splits a text like the named pre-tokenizer."""
    split, model = SPLITS[name], document["model"]
    inner = tokenizers.Tokenizer(models.BPE())
    split.apply(inner)
    ours, theirs = _cut(document), _cut(json.loads(inner.to_str()))
    if not model["merges"]:  # then it does not matter where a text is split
        ours, theirs = ours[:1], theirs[:1]
    return ours == theirs and split.whole_words == model["ignore_merges"]


def _cut(document: dict[str, Any]) -> tuple[Any, ...]:
    """Normalizer and pre-tokenizer, without parts that affect only offsets."""

    def plain(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: plain(value) for key, value in part.items() if key != "trim_offsets"}
        return [plain(one) for one in part] if isinstance(part, list) else part

    return plain(document["normalizer"]), plain(document["pre_tokenizer"])


def _write_pieces(
    document: dict[str, Any], tokens: Sequence[str], types: list[int], merges: Merges
) -> dict[str, Any]:
    """Return the metadata, and mark bytes and the unknown token in `types`."""
    model = document["model"]
    if not model["byte_fallback"]:
        _cannot_write("it is not byte-level and has no byte fallback")
    prefix = _prefix(document)
    unknown = model["unk_token"]
    for i, token in enumerate(tokens):
        if token == unknown:
            types[i] = UNKNOWN
        elif types[i] == NORMAL and re.fullmatch(r"<0x[0-9A-F]{2}>", token):
            types[i] = BYTE
    pieces = {token for token, kind in zip(tokens, types, strict=True) if kind == NORMAL}
    merges = [way for way in merges if pieces.issuperset((*way, "".join(way)))]
    groups = [piece for piece, _ in groupby(left + right for left, right in merges)]
    ranks = {piece: rank for rank, piece in enumerate(groups)}
    # Single characters come after all merged pieces; the scores of other tokens are not used.
    scores = [
        float(-ranks.get(token, len(ranks) + i)) if token in pieces else 0.0 for i, token in enumerate(tokens)
    ]
    if len(ranks) < len(groups) or set(merges) != set(derive_merges(tokens, types, scores)):
        _cannot_write("its merges do not follow from a score for each piece")
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.add_space_prefix": prefix,
    }


def _prefix(document: dict[str, Any]) -> bool:
    """Whether a space is prepended to a text; any other change is an error."""
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    prepend = {"type": "Prepend", "prepend": SPACE}
    metaspace = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "never", "split": False}
    normalizer, before = _cut(document)
    # Gemma's file splits at spaces, but none are left after normalization.
    idle = before is None or (before["type"] == "Split" and before["pattern"] == {"String": " "})
    if normalizer == {"type": "Sequence", "normalizers": [prepend, replace]} and idle:
        return True
    if (normalizer == replace and idle) or (normalizer is None and before == metaspace):
        return False
    return _cannot_write("its handling of spaces differs from SentencePiece's")


def _filler(i: int) -> str:
    """The placeholder name of an unused id."""
    return f"[PAD{i}]"


def _refuse(name: str, found: str) -> NoReturn:
    raise UserError(
        f"the GGUF file's tokenizer.ggml.{name} {found}; convert the model again, or use a different one"
    )


def _cannot_write(reason: str) -> NoReturn:
    raise UserError(
        f"this tokenizer cannot be written to a GGUF file: {reason}; use a byte or bpe tokenizer"
    ) from None
