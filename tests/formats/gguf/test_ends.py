"""End tokens in GGUF metadata: given by key, or recognized by names that other programs know too."""

import pytest

from clearhead.errors import UserError
from clearhead.formats.gguf.tokenizer import read_tokenizer, write_tokenizer
from clearhead.text.tokenizer import Tokenizer

BYTE = Tokenizer.train("byte", [])


def named(*names: str, ends: tuple[int, ...] = ()) -> Tokenizer:
    """Return a byte tokenizer with special tokens of these names, starting at id 257."""
    made = Tokenizer.train("byte", [])
    made._inner.add_special_tokens(list(names))
    return Tokenizer(made._inner, made.config, ends)


def test_end_tokens_without_keys_are_recognized_by_name():
    """Gemma and SmolLM2 files omit the keys; llama.cpp checks the names too."""
    tokenizer = named("<|im_start|>", "<|im_end|>", "<end_of_turn>", "<|eot_id|>", "<|eom_id|>")
    metadata = write_tokenizer(tokenizer, tokenizer.n_vocab)
    assert "tokenizer.ggml.eot_token_id" not in metadata
    assert read_tokenizer(metadata).end_ids == (256, 258, 260, 261, 259)
    every = named("<|im_start|>", "<|im_end|>", "<end_of_turn>", "<x>", "<y>", ends=(258, 259, 260, 261))
    metadata = write_tokenizer(every, every.n_vocab)
    assert metadata["tokenizer.ggml.eot_token_id"] == 260
    assert metadata["tokenizer.ggml.eom_token_id"] == 261
    assert set(read_tokenizer(metadata).end_ids) == set(every.end_ids)


@pytest.mark.parametrize("end", [-1, 257, "x", 1.5, True])
def test_invalid_end_token_id_is_rejected(end):
    metadata = write_tokenizer(BYTE, 257) | {"tokenizer.ggml.eot_token_id": end}
    with pytest.raises(UserError, match=r"eot_token_id is .*expected a token id below 257"):
        read_tokenizer(metadata)


def test_normal_token_that_looks_like_an_end_is_ignored():
    metadata = write_tokenizer(BYTE, 257)
    tokens = metadata["tokenizer.ggml.tokens"]
    tokens[0], metadata["tokenizer.ggml.pre"] = "<|im_end|>", "gpt-2"
    assert read_tokenizer(metadata).end_ids == (256,)
