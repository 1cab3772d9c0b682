"""Pre-tokenization of byte-level tokenizers, by GGUF's names (`tokenizer.ggml.pre`).

A GGUF file contains the vocabulary and the merges, but only a name for the rest. The meaning of each name is taken
from the tokenizer.json of its models, including normalization.
"""

from __future__ import annotations

from dataclasses import dataclass

import tokenizers
from tokenizers import normalizers, pre_tokenizers

# Contractions; words with a leading non-letter; digits; punctuation; newlines; spaces, the last left for the next word.
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?{word}+|\p{{N}}{digits}"
    r"| ?[^\s{letter}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA_3 = _WORDS.format(word=r"\p{L}", letter=r"\p{L}", digits="{1,3}")
_QWEN_2 = _WORDS.format(word=r"\p{L}", letter=r"\p{L}", digits="")
_QWEN_35 = _WORDS.format(word=r"[\p{L}\p{M}]", letter=r"\p{L}\p{M}", digits="")

# A word is uppercase, then lowercase letters, either optional; contractions, if matched, stay attached to it.
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+%s|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*%s"
    r"|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_GPT_4O = _CASED % (_CONTRACTION, _CONTRACTION, "{1,3}")
_TEKKEN = _CASED % ("", "", "")


@dataclass(frozen=True)
class Split:
    """A pre-tokenizer: a regex, or GPT-2's own, optionally after splitting digits."""

    regex: str | None = None
    digits: bool = False
    nfc: bool = False  # normalize to composed characters first
    whole_words: bool = False  # a word that is a token is used whole, regardless of the merges
    begins: bool = False  # a text starts with the start token, unless the file says otherwise

    def apply(self, inner: tokenizers.Tokenizer) -> None:
        """Configure a tokenizer to split this way."""
        inner.normalizer = normalizers.NFC() if self.nfc else None
        read_bytes = pre_tokenizers.ByteLevel(
            add_prefix_space=False, trim_offsets=False, use_regex=self.regex is None
        )
        if self.regex is not None:
            words = pre_tokenizers.Split(tokenizers.Regex(self.regex), behavior="isolated")
            inner.pre_tokenizer = pre_tokenizers.Sequence([words, read_bytes])
        elif self.digits:
            digits = pre_tokenizers.Digits(individual_digits=True)
            inner.pre_tokenizer = pre_tokenizers.Sequence([digits, read_bytes])
        else:
            inner.pre_tokenizer = read_bytes


_GPT_2 = Split()
_NEOX = Split(nfc=True)
_DIGITS = Split(digits=True)
_LLAMA = Split(_LLAMA_3, whole_words=True, begins=True)
_QWEN = Split(_QWEN_2, nfc=True)

# The first name of each split is the one written.
SPLITS = {
    "gpt-2": _GPT_2,
    "default": _GPT_2,
    "phi-2": _GPT_2,
    "roberta-bpe": _GPT_2,
    "olmo": _NEOX,
    "mpt": _NEOX,
    "smollm": _DIGITS,
    "starcoder": _DIGITS,
    "refact": _DIGITS,
    "codeshell": _DIGITS,
    "command-r": Split(digits=True, nfc=True),
    "llama-bpe": _LLAMA,
    "llama3": _LLAMA,
    "llama-v3": _LLAMA,
    "falcon3": _LLAMA,
    "lfm2": _LLAMA,
    "dbrx": Split(_LLAMA_3),
    "smaug-bpe": Split(_LLAMA_3),
    "qwen2": _QWEN,
    "deepseek-r1-qwen": _QWEN,
    "stablelm2": _QWEN,
    "megrez": _QWEN,
    "qwen35": Split(_QWEN_35, nfc=True),
    "gpt-4o": Split(_GPT_4O),
    "llama4": Split(_GPT_4O),
    "tekken": Split(_TEKKEN, whole_words=True, begins=True),
}
