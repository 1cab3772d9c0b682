"""The tokens in GGUF metadata that end a text: the end of a document, a turn or a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clearhead.errors import UserError

KEYS = ("tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id")  # for eos_token_id, see tokenizer.py
# Files may omit these keys for tokens with these names, which llama.cpp recognizes, too.
NAMES = ("<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>")


def read_ends(metadata: Mapping[str, Any], added: Mapping[str, int], n_token: int) -> list[int]:
    """The ids of the end tokens, found by key, and by name among the added tokens."""
    ends = []
    for key in KEYS:
        i = metadata.get(key)
        if i is not None and (type(i) is not int or not 0 <= i < n_token):
            raise UserError(
                f"the GGUF file's {key} is {str(i)[:40]}, expected a token id below {n_token}; "
                "convert the model again, or use a different one"
            )
        ends += [] if i is None else [i]
    return ends + [added[name] for name in NAMES if name in added]


def write_ends(end_ids: Sequence[int], added: Mapping[str, int]) -> dict[str, int]:
    """Keys for all end tokens but the first, which has a key of its own. Tokens recognized by name need none."""
    known = {added[name] for name in NAMES if name in added}
    ends = sorted(end_ids[1:], key=lambda i: i in known)
    if len(set(ends) - known) > len(KEYS):
        raise UserError(
            f"this tokenizer cannot be written to a GGUF file: it has {len(end_ids)} tokens that end a text, "
            f"but GGUF has keys for only {len(KEYS) + 1}"
        )
    return dict(zip(KEYS, ends, strict=False))
