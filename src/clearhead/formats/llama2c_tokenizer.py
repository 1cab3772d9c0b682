"""The tokenizer.bin of llama2.c: the pieces of a SentencePiece vocabulary, each with its score."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

from clearhead.errors import UserError
from clearhead.files import open_regular, read_all
from clearhead.text.tokenizer import LARGEST_FILE, Tokenizer

SPACE = "▁"
UNKNOWN, START, END = 0, 1, 2  # ids
NAMES = {UNKNOWN: "<unk>", START: "<s>", END: "</s>"}


def find_tokenizer(model: Path, n_vocab: int) -> Tokenizer:
    """Load a model's tokenizer from a file in the same folder."""
    names = ("tokenizer.bin", f"tok{n_vocab}.bin")
    for name in names:
        path = model.with_name(name)
        if path.is_file() and path != model:
            return read_tokenizer(path, n_vocab)
    if model.with_name("tokenizer.json").is_file():
        return Tokenizer.load(model.parent)
    raise UserError(
        f"{model} has no tokenizer beside it: copy llama2.c's {' or '.join(names)} to {model.parent}"
    )


def read_tokenizer(path: Path, n_vocab: int) -> Tokenizer:
    """Read exactly `n_vocab` tokens. Raises UserError if the file has fewer or more, or is not valid."""
    from clearhead.formats.gguf.tokenizer import BYTE, CONTROL, MOST_TOKENS, NORMAL
    from clearhead.formats.gguf.tokenizer import UNKNOWN as UNKNOWN_TYPE
    from clearhead.formats.gguf.tokenizer import read_tokenizer as read_metadata

    if n_vocab > MOST_TOKENS:
        raise UserError(f"{path} has {n_vocab} tokens, expected at most {MOST_TOKENS}")
    pieces, scores = _read_pieces(path, n_vocab)
    tokens = [NAMES.get(i, piece.replace(" ", SPACE)) for i, piece in enumerate(pieces)]
    types = [BYTE if re.fullmatch("<0x[0-9A-F]{2}>", token) else NORMAL for token in tokens]
    types[:3] = [UNKNOWN_TYPE, CONTROL, CONTROL]
    metadata: dict[str, Any] = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.scores": scores,
        # Texts are separated by the start token, where llama2.c stops.
        "tokenizer.ggml.eot_token_id": START,
    }
    try:
        return read_metadata(metadata)
    except UserError as error:
        raise UserError(f"{path} is not a llama2.c tokenizer: {error}") from None


def _read_pieces(path: Path, n_vocab: int) -> tuple[list[str], list[float]]:
    try:
        with open_regular(path) as file:
            data = read_all(file, LARGEST_FILE + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    pieces, scores, place = [], [], 4  # after the length of the longest piece
    try:
        if n_vocab <= len(NAMES) or len(data) > LARGEST_FILE:
            raise ValueError("it is too large, or its model too small")
        for _ in range(n_vocab):
            score, length = struct.unpack_from("<fI", data, place)
            piece = data[place + 8 : place + 8 + length]
            if len(piece) < length:
                raise ValueError("it is truncated")
            pieces.append(piece.decode())
            scores.append(score)
            place += 8 + length
        if place != len(data):
            raise ValueError(f"it has more than {n_vocab} tokens")
    except (struct.error, ValueError) as error:
        reason = "it has too few" if isinstance(error, struct.error) else error
        raise UserError(
            f"{path} does not have the {n_vocab} tokens of its model ({reason}): copy the tokenizer.bin that the "
            "model was trained with"
        ) from None
    return pieces, scores
