"""Tokenizers: text to ids and back, in the file format of the `tokenizers` library."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors

from clearhead.errors import UserError
from clearhead.files import (
    describe_placeholder,
    inside,
    make_folder,
    open_regular,
    read_all,
    read_json,
    read_text,
    write_json,
    write_text,
)
from clearhead.text import guard
from clearhead.text.guard import JsonT
from clearhead.text.tokenizer_growth import check_growth
from clearhead.text.tokenizer_kinds import BYTE_OF, END, MASK, kind_of, read_as_bytes, train

VOCABULARY, MERGES = "vocab.json", "merges.txt"  # instead of tokenizer.json in older folders
MOST_WAYS = 16  # to form a token, in a list of merges; most have one
LARGEST_FILE = 2**26  # bytes; the largest published tokenizer.json is about 35 MB


class Tokenizer:
    """A tokenizer from the `tokenizers` library with its end-of-document token, if it has one; adds nothing to plain
    text.

    `ends` are further tokens that end a text, such as the end of a turn in a conversation.
    """

    def __init__(
        self, inner: tokenizers.Tokenizer, config: dict[str, object], ends: Iterable[int] = ()
    ) -> None:
        # A file may ask for truncation or padding, or for "<|endoftext|>" in a text to be parsed as the
        # special token.
        inner.no_truncation()
        inner.no_padding()
        inner.encode_special_tokens = True
        check_growth(inner)
        self._inner = inner
        self._config = config
        self._added = {i: str(token.content) for i, token in inner.get_added_tokens_decoder().items()}
        self._silent = {i for i, token in inner.get_added_tokens_decoder().items() if token.special}
        vocabulary = inner.get_vocab(with_added_tokens=True)
        self.n_vocab = max(vocabulary.values(), default=-1) + 1
        # Files may name end tokens that their tokenizer lacks, such as those of a larger vocabulary.
        known = [i for i in ends if 0 <= i < self.n_vocab]
        end = _find_end(vocabulary, config)
        self.end_ids = tuple(dict.fromkeys(known if end is None else [end, *known]))
        self.end_id = self.end_ids[0] if self.end_ids else None  # the end of a document
        self.mask_id = vocabulary.get(self.special("mask_token") or "")  # the mask token, if there is one
        self.start_ids = self._find_start(vocabulary)  # what the model expects before a text
        self.kind = kind_of(inner)
        self._in_bytes = isinstance(inner.decoder, decoders.ByteLevel)
        self._characters = (
            frozenset(inner.get_vocab(with_added_tokens=False)) if self.kind == "char" else None
        )

    @classmethod
    def train(
        cls, kind: str, pieces: Iterable[str], n_vocab: int | None = None, mask: bool = False
    ) -> "Tokenizer":
        """Train a tokenizer on this text. The last id is the end-of-document token or, with `mask`, the mask token."""
        inner = train(kind, pieces, n_vocab, mask)
        config: dict[str, object] = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": END,
            "eos_token": END,
            "clean_up_tokenization_spaces": False,
        }
        if mask:
            config["mask_token"] = MASK
        return cls(inner, config)

    @classmethod
    def of_words(cls, words: Sequence[str], unknown: str | None) -> "Tokenizer":
        """A word-level tokenizer that splits on whitespace; the last word is the end token."""
        vocabulary = {word: i for i, word in enumerate(words[:-1])}
        inner = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=unknown or ""))
        inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        inner.add_special_tokens([words[-1]])
        return cls(inner, {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": words[-1]})

    @classmethod
    def load(cls, folder: Path | str, ends: Iterable[int] = ()) -> "Tokenizer":
        """The tokenizer in a model folder."""
        folder = Path(folder)
        path = inside(folder, "tokenizer.json")
        if not path.exists() and (folder / "tokenizer.model").exists():
            raise UserError(
                f"{folder} has a tokenizer.model but no tokenizer.json: create it with transformers' "
                "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"
            )
        if not path.exists() and (folder / VOCABULARY).exists() and (folder / MERGES).exists():
            return cls._of_merges(folder, ends)
        text = read_text(path, LARGEST_FILE)
        config = read_json(inside(folder, "tokenizer_config.json"))
        return cls._build(path, config, ends, lambda: tokenizers.Tokenizer.from_str(text))

    @classmethod
    def _of_merges(cls, folder: Path, ends: Iterable[int]) -> "Tokenizer":
        """GPT-2's byte-level BPE from vocab.json and merges.txt, as in older folders."""
        path = inside(folder, VOCABULARY)
        vocabulary = read_json(path)
        text = read_text(inside(folder, MERGES))
        if text.count("\n") > MOST_WAYS * len(vocabulary) + 2:
            raise UserError(
                f"{folder / MERGES} has {text.count(chr(10))} lines, but {path} only {len(vocabulary)} tokens; "
                "copy both again from their source"
            )
        lines = text.split("\n")
        lines = lines[1:] if lines[0].startswith("#version") else lines
        merges = [(left, right) for left, _, right in (line.partition(" ") for line in lines if line)]
        about = inside(folder, "tokenizer_config.json")
        config = read_json(about) if about.exists() else {}
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
        if config.get("eos_token") is None and END in vocabulary:
            config["eos_token"] = END

        def build() -> tokenizers.Tokenizer:
            inner = read_as_bytes(tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=merges)), True)
            roles = (config.get(role) for role in ("bos_token", "eos_token", "unk_token", "pad_token"))
            named = (role.get("content") if isinstance(role, dict) else role for role in roles)
            inner.add_special_tokens([each for each in dict.fromkeys(named) if each in vocabulary])
            return inner

        return cls._build(path, config, ends, build)

    @classmethod
    def _build(
        cls,
        path: Path,
        config: dict[str, object],
        ends: Iterable[int],
        build: Callable[[], tokenizers.Tokenizer],
    ) -> "Tokenizer":
        folder = path.parent
        template = inside(folder, "chat_template.jinja")
        if template.exists():
            config["chat_template"] = read_text(template)
        elif isinstance(named := config.get("chat_template"), list):
            config["chat_template"] = _default_template(named)
        try:
            return cls(build(), config, ends)
        except UserError as error:
            raise UserError(f"{folder}: {error}") from None
        except (KeyboardInterrupt, SystemExit):
            raise
        except (
            BaseException
        ) as error:  # the library raises nothing narrower, and its panics are not Exceptions
            reason = " ".join(str(error).split())[:300]
            with open_regular(path) as file:
                if (what := describe_placeholder(read_all(file, 64))) is not None:
                    raise UserError(f"{path} {what}") from None
            raise UserError(f"{path} is not a tokenizer ({reason}); copy it again from its source") from None

    def save(self, folder: Path | str, model_max_length: int) -> None:
        """Write tokenizer.json and tokenizer_config.json, each atomically."""
        config = {**self._config, "model_max_length": model_max_length}
        make_folder(Path(folder))
        write_text(Path(folder) / "tokenizer.json", self._inner.to_str(pretty=True))
        write_json(Path(folder) / "tokenizer_config.json", config)

    @property
    def config(self) -> dict[str, object]:
        """The contents of tokenizer_config.json except the maximum length: special tokens and a chat template."""
        return dict(self._config)

    def to_json(self) -> str:
        """The contents of tokenizer.json, on one line."""
        return str(self._inner.to_str())

    @property
    def chat_template(self) -> str | None:
        template = self._config.get("chat_template")
        return template if isinstance(template, str) else None

    def need_end(self, what: str) -> int:
        """The end token; without one, raise an error. `what` names the feature."""
        if self.end_id is None:
            raise UserError(
                f"{what} requires an end token, but this model's tokenizer has none: set eos_token in its "
                "tokenizer_config.json to the token that ends a document"
            )
        return self.end_id

    @property
    def sha256(self) -> str:
        """A hash of the contents of both files, except the maximum length."""
        config = {name: value for name, value in self._config.items() if name != "model_max_length"}
        return hashlib.sha256(json.dumps([self.to_json(), config], sort_keys=True).encode()).hexdigest()

    def special(self, role: str) -> str | None:
        """A special token by its role, such as bos_token, if there is one."""
        token = self._config.get(role)
        token = token.get("content") if isinstance(token, dict) else token
        return token if isinstance(token, str) else None

    def _find_start(self, vocabulary: dict[str, int]) -> list[int]:
        """The token that starts a text, if the tokenizer's post-processor adds one."""
        start = vocabulary.get(self.special("bos_token") or "")
        if start is None:
            return []
        if self._inner.post_processor is None and self._config.get("add_bos_token") is True:
            token = self.special("bos_token")
            self._inner.post_processor = processors.TemplateProcessing(
                single=[token, "$A"], special_tokens=[(token, start)]
            )
        return [start] if self._inner.encode("", add_special_tokens=True).ids[:1] == [start] else []

    def check(self, text: str, name: str = "", start: int = 0) -> None:
        """Raise an error if this text, which starts at character `start` of the file `name`, cannot be encoded."""
        where = f"{name}: " if name else ""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UserError(
                f"{where}{text[error.start]!a} at character {start + error.start} is a lone surrogate, "
                "which is not a character; read the text as UTF-8"
            ) from None
        if self._characters is None or not (unknown := set(text) - self._characters):
            return
        at = min(text.index(character) for character in unknown)
        code = f"U+{ord(text[at]):04X} {unicodedata.name(text[at], '')}".rstrip()
        raise UserError(
            f"{where}{text[at]!r} ({code}) at character {start + at} "
            f"is not among the {len(self._characters)} characters of this model's tokenizer: "
            "remove it, or train with the byte or bpe tokenizer, which can encode any character",
            "character_unknown",
            character=text[at],
        )

    @cached_property
    def _reading_specials(self) -> tokenizers.Tokenizer:
        """A copy of the tokenizer that parses special tokens in the text."""
        inner = tokenizers.Tokenizer.from_str(self._inner.to_str())
        inner.encode_special_tokens = False
        return inner

    @property
    def tokens(self) -> list[str]:
        """Every token by its id, as spelled in the vocabulary; an id without a token is shown as its number."""
        return [self._inner.id_to_token(i) or f"<{i}>" for i in range(self.n_vocab)]

    @property
    def specials(self) -> list[str]:
        """The special tokens, as they are spelled."""
        return [self._added[i] for i in sorted(self._silent)]

    def encode_template(self, text: str) -> tuple[list[int], list[int]]:
        """The ids of a rendered chat template, with special tokens parsed, and the offset of each.

        Not for untrusted text, which could contain the end of a turn: see `encode_guarded`.
        """
        self.check(text)
        encoding = self._reading_specials.encode(text, add_special_tokens=False)
        return list(encoding.ids), [start for start, _ in encoding.offsets]

    def guard(self, messages: JsonT) -> JsonT:
        """The messages, or any JSON value, as `encode_guarded` needs them, with special tokens as text."""
        return guard.guard(messages, self._control)

    def encode_guarded(self, text: str) -> list[int]:
        """The ids of a chat template rendered with guarded messages: only the template's own special tokens are
        parsed.
        """
        if guard.MARK not in text:
            return self.encode_template(text)[0]
        self.check(text.replace(guard.MARK, ""))
        with _panics():
            return guard.encode_guarded(self._guarded_copy, text, {*self._silent, *self.end_ids})

    @cached_property
    def _control(self) -> list[str]:
        """The tokens that users must not be able to write: special ones, and those that end a text."""
        return [self._added[i] for i in sorted({*self._silent, *self.end_ids}) if self._added.get(i)]

    @cached_property
    def _guarded_copy(self) -> tokenizers.Tokenizer:
        return guard.guarded_copy(self._inner, self._control)

    def encode(self, text: str) -> list[int]:
        """The ids of this text and nothing else; "<|endoftext|>" in it is thirteen ordinary characters."""
        self.check(text)
        with _panics():
            return list(self._inner.encode(text, add_special_tokens=False).ids)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each text, on all cores."""
        for text in texts:
            self.check(text)
        with _panics():
            encodings = self._inner.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids. Special tokens are skipped; invalid UTF-8 becomes U+FFFD."""
        return str(self._inner.decode(list(ids), skip_special_tokens=True))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The text to display for each id; part of a character is shown as an escape such as "\\xe2"."""
        return [self._piece(i) for i in ids]

    def _piece(self, i: int) -> str:
        token = self._inner.id_to_token(i)
        if token is None:
            return f"<{i}>"
        if i in self._added:
            return self._added[i]
        return self._spell(token).decode(errors="backslashreplace")

    def spell(self, i: int) -> bytes:
        """The bytes that an id adds to the text before it; they can end within a character."""
        token = self._inner.id_to_token(i)
        return b"" if token is None or i in self._silent else self._spell(token)

    def _spell(self, token: str) -> bytes:
        if self._in_bytes and BYTE_OF.keys() >= set(token):
            return bytes(BYTE_OF[character] for character in token)
        if self.kind != "other" or self._in_bytes:
            return token.encode()
        if byte := re.fullmatch(r"<0x([0-9A-F]{2})>", token):
            return bytes.fromhex(byte[1])
        return token.replace("▁", " ").encode()

    def has_text(self, i: int) -> bool:
        """Whether `decode` shows this id at all."""
        return i not in self._silent and self._inner.id_to_token(i) is not None

    @cached_property
    def letter(self) -> int | None:
        """A token of plain letters or digits, if there is one."""
        tokens = ((i, self._inner.id_to_token(i) or "") for i in range(self.n_vocab) if i not in self._added)
        plain = ((i, token.removeprefix("▁")) for i, token in tokens)
        return next((i for i, token in plain if token.isascii() and token.isalnum()), None)

    def find(self, token: str) -> int:
        """The id of a token by its text, or of a special token by its name."""
        for i in self._silent:
            if self._added[i] == token:
                return i
        ids = self.encode(token)
        if len(ids) != 1:
            raise UserError(
                f"{token!r} is {len(ids)} tokens ({self.pieces(ids)[:9]}): expected a single token"
            )
        return ids[0]


@contextmanager
def _panics() -> Iterator[None]:
    """Turn the library's panics, such as those on a pathological regular expression, into one-line errors.

    Panics are not Exceptions.
    """
    try:
        yield
    except (UserError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        reason = " ".join(str(error).split())[:200]
        if "Missing [UNK]" in reason:
            raise UserError(
                "the text has a word that is not in the vocabulary, which has no token for unknown words"
            ) from None
        raise UserError(f"the tokenizer failed on this text ({reason}); copy its files again") from None


def _default_template(named: list[object]) -> object:
    """The default template among several named ones."""
    found = (each for each in named if isinstance(each, dict) and each.get("name") == "default")
    return next(found, {}).get("template")


def _find_end(vocabulary: dict[str, int], config: dict[str, object]) -> int | None:
    token = config.get("eos_token")
    if isinstance(token, dict):
        token = token.get("content")
    if token is None:
        return None
    if not isinstance(token, str) or token not in vocabulary:
        raise UserError(
            f"tokenizer_config.json has eos_token {token!r}: expected a token in the vocabulary; "
            "set it to the token that ends a document, or remove it"
        )
    return vocabulary[token]
