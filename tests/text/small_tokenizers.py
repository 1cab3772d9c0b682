"""One small tokenizer of each kind, trained on a few lines, plus two in SentencePiece style."""

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers

from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokenizer_kinds import KINDS

TEXT = (
    "The chicken didn't cross the road because it was too tired.\n"
    "It wasn't tired;  the road\twas 12 miles wide.\r\n\n"
    "Ærøskøbing café — naïve 日本語 🐔🐔 \u00a0\u2009x\n"
) * 20

CHAR = Tokenizer.train("char", [TEXT])
BYTE = Tokenizer.train("byte", [])
BPE = Tokenizer.train("bpe", [TEXT], 340)
WORD = Tokenizer.train("word", [TEXT], 270)
ALL = pytest.mark.parametrize("tokenizer", [CHAR, BYTE, BPE, WORD], ids=KINDS)


def sentencepiece(prefix: bool) -> Tokenizer:
    """A tokenizer with ▁ for spaces and byte fallback; with `prefix`, it prepends a space, as Llama 2's does."""
    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"abcd", "▁a", "ab", "▁▁"]
    inner = tokenizers.Tokenizer(
        models.BPE(
            vocab={token: i for i, token in enumerate(tokens)},
            merges=[("▁", "a"), ("a", "b"), ("▁", "▁")],
            unk_token="<unk>",
            byte_fallback=True,
        )
    )
    replace = normalizers.Replace(" ", "▁")
    back = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    inner.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), replace]) if prefix else replace
    inner.decoder = decoders.Sequence([*back, *([decoders.Strip(" ", 1, 0)] if prefix else [])])
    inner.add_special_tokens(["<unk>", "</s>"])
    inner.add_tokens([tokenizers.AddedToken("▁▁▁", normalized=False)])
    return Tokenizer(inner, {"eos_token": "</s>"})


PIECES = {"after a space": sentencepiece(True), "as it is": sentencepiece(False)}
