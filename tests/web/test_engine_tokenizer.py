"""Tokenizers in the browser give the same ids and the same texts as in Python."""

import json
import os
import random
import shutil
import subprocess
import unicodedata
from pathlib import Path

import pytest
import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

from clearhead.errors import UserError
from clearhead.formats.gguf.splits import SPLITS
from clearhead.text.text_stream import TextStream
from clearhead.text.tokenizer import Tokenizer
from tests.text.small_tokenizers import BPE, BYTE, CHAR, PIECES, TEXT, WORD

WEB = Path(__file__).parents[2] / "web"
WORDS = [
    *("The chicken didn't cross the road because it was too tired.", "I'LL we'Ve it'S 'ſ O'CLOCK'D 'tis"),
    *("12,345.67 €", "2026-11-18T08:30", "½ ² Ⅷ ٣٤٥ १२३", "０１２３", "a" * 40, "=" * 70, "1" * 30),
    *(
        " ",
        "  ",
        "   ",
        "      x",
        "\n",
        "\n\n\n",
        "\r\n",
        " \n \t x",
        "\t\t",
        "\u00a0",
        "\u2009\u3000",
        "\u0085",
    ),
    *("\x00", "\x00\x01\x7f\x1b[31m", "\ufeff", "\u200b\u200d\u200e", "\u2028\u2029", "\ufffd", "\U0010ffff"),
    *(
        "👩‍👩‍👧‍👦",
        "🙂🚀🏳️‍🌈👍🏽",
        "🇩🇪🇫🇷",
        "e\u0301",
        "a\u0328\u0301",
        "ﬁ ﬀ ǆ ß ẞ İ ı Σ ΟΔΟΣ",
        "Å \u212b \u212a",
    ),
    *(
        "Привет, мир!",
        "你好，世界。",
        "こんにちは ｶﾞ",
        "안녕하세요",
        "\u1112\u1161\u11ab",
        "שלום עולם",
        "مرحبا بالعالم",
    ),
    *(
        "नमस्ते",
        "สวัสดี",
        "<|endoftext|>",
        "<|im_start|>user",
        "</s>",
        "<s>",
        "<unk>",
        "[INST]",
        "<extra>",
        "▁",
        "▁▁▁",
    ),
    *(
        "<0x41>",
        "<0xE2>",
        "Ġthe",
        "\\x41",
        "{}[]()^$.|*+?",
        "def f(x):\n    return x ** 2  # it's",
        "https://a.b/c?d=e",
    ),
    *(
        "camelCaseWORDSHere",
        "snake_case_",
        "ALLCAPS lower Title",
        "don’t",
        "naïve café",
        "x\u0303\u0303",
        "  lead",
        "trail  ",
    ),
]


def random_texts(count: int, seed: int) -> list[str]:
    """Texts put together from pieces that are likely to be split in different ways, and random characters."""
    draw = random.Random(seed)
    texts = ["", *WORDS, TEXT]
    while len(texts) < count:
        parts = [
            draw.choice(WORDS) if draw.random() < 0.7 else "".join(_character(draw) for _ in range(3))
            for _ in range(draw.randint(1, 6))
        ]
        texts.append(draw.choice(["", " ", "", "\n"]).join(parts))
    return texts


def _character(draw: random.Random) -> str:
    """A character that every library here knows: the oldest of them uses Unicode 9.0."""
    while True:
        character = chr(draw.choice([draw.randrange(0x250), draw.randrange(0xFFFF), draw.randrange(0x20000)]))
        if unicodedata.ucd_3_2_0.category(character) not in ("Cn", "Cs", "Co"):
            return character


def wrap(inner: tokenizers.Tokenizer, **config: object) -> Tokenizer:
    return Tokenizer(inner, {"eos_token": "</s>", **config})


def byte_level(split) -> Tokenizer:
    """A tokenizer that splits like this GGUF pre-tokenizer, trained on a few lines."""
    inner = tokenizers.Tokenizer(models.BPE(ignore_merges=split.whole_words))
    split.apply(inner)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, show_progress=False)
    inner.train_from_iterator([TEXT, *WORDS * 2], trainer)
    inner.add_tokens(
        [AddedToken("<|im_start|>", special=True, normalized=False), AddedToken("[INST]", special=False)]
    )
    inner.add_special_tokens(["</s>"])
    return wrap(inner, bos_token="<|im_start|>", add_bos_token=split.begins)


def unigram(byte_fallback: bool) -> Tokenizer:
    source = tokenizers.Tokenizer(models.Unigram())
    source.pre_tokenizer = pre_tokenizers.Metaspace()
    source.train_from_iterator(
        [TEXT, *WORDS],
        trainers.UnigramTrainer(
            vocab_size=300, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
        ),
    )
    vocabulary = [tuple(entry) for entry in json.loads(source.to_str())["model"]["vocab"]]
    vocabulary = [(token, score) for token, score in vocabulary if token.isascii() or "▁" in token]
    if byte_fallback:
        vocabulary += [(f"<0x{byte:02X}>", -20.0) for byte in range(256)]
    inner = tokenizers.Tokenizer(models.Unigram(vocabulary, unk_id=0, byte_fallback=byte_fallback))
    inner.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Strip(left=False, right=True),
        ]
    )
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
        if byte_fallback
        else [pre_tokenizers.Metaspace(prepend_scheme="first")]
    )
    inner.decoder = (
        decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
        if byte_fallback
        else decoders.Metaspace()
    )
    inner.add_special_tokens(["<s>", "</s>"])
    inner.add_tokens([AddedToken("<extra>", lstrip=True, rstrip=True, normalized=False)])
    ids = [(token, inner.token_to_id(token)) for token in ("<s>", "</s>")]
    inner.post_processor = processors.Sequence(
        [
            processors.ByteLevel(),
            processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A $B </s>", special_tokens=ids),
        ]
    )
    return wrap(inner, bos_token={"content": "<s>"})


def words(lower: bool) -> Tokenizer:
    """A word-level tokenizer with added tokens of every kind."""
    found = sorted({word.lower() if lower else word for word in TEXT.split()})
    inner = tokenizers.Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(["<unk>", *found])}, "<unk>")
    )
    if lower:
        inner.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()])
    inner.pre_tokenizer = (
        pre_tokenizers.Whitespace()
        if lower
        else pre_tokenizers.Sequence([pre_tokenizers.Digits(), pre_tokenizers.WhitespaceSplit()])
    )
    inner.add_special_tokens(["</s>", "<s>"])
    inner.add_tokens(
        [
            AddedToken("CROSS the", normalized=True),
            AddedToken("tired", single_word=True),
            AddedToken("it", lstrip=True, normalized=False),
            AddedToken("<extra>", rstrip=True),
        ]
    )
    inner.post_processor = processors.RobertaProcessing(
        ("</s>", inner.token_to_id("</s>")), ("<s>", inner.token_to_id("<s>"))
    )
    return wrap(inner, bos_token="<s>")


def pieces(**settings) -> Tokenizer:
    """A SentencePiece-like BPE tokenizer, trained on a few lines."""
    inner = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", **settings))
    inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=False)
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>", "</s>"], show_progress=False)
    inner.train_from_iterator([TEXT], trainer)
    inner.decoder = decoders.Metaspace(prepend_scheme="never")
    return wrap(inner)


def gemma() -> Tokenizer:
    """A tokenizer with byte fallback that joins runs of spaces, and splits where no space is left, as Gemma's does."""
    words = [
        "<unk>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "▁",
        *"acdehiknorst",
        "th",
        "the",
        "▁the",
        "ro",
    ]
    inner = tokenizers.Tokenizer(
        models.BPE(
            vocab={word: i for i, word in enumerate(words)},
            merges=[("t", "h"), ("th", "e"), ("▁", "the"), ("r", "o")],
            unk_token="<unk>",
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    inner.normalizer = normalizers.Replace(" ", "▁")
    inner.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    inner.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    inner.add_special_tokens(["<s>", "</s>"])
    inner.add_tokens(
        [AddedToken("▁" * count, normalized=False) for count in range(2, 6)] + [AddedToken("\n\n")]
    )
    return wrap(inner, bos_token="<s>", add_bos_token=True)


def split(pattern: str, behavior: str, invert: bool = False) -> Tokenizer:
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior, invert),
            pre_tokenizers.ByteLevel(add_prefix_space=behavior == "isolated", use_regex=False),
        ]
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False)
    inner.train_from_iterator([TEXT, *WORDS * 3], trainer)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens(["</s>"])
    return wrap(inner)


CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
KINDS = {
    "char": lambda: CHAR,
    "byte": lambda: BYTE,
    "bpe": lambda: BPE,
    "word": lambda: WORD,
    "mask": lambda: Tokenizer.train("bpe", [TEXT], 300, mask=True),
    "given words": lambda: Tokenizer.of_words(["the", "cat", "it", "<unk>", "</s>"], "<unk>"),
    "given words only": lambda: Tokenizer.of_words(["the", "cat", "it", "</s>"], None),
    **{f"pieces, {name}": lambda name=name: PIECES[name] for name in PIECES},
    **{
        f"byte-level, {name}": lambda name=name: byte_level(SPLITS[name])
        for name in (
            "gpt-2",
            "olmo",
            "smollm",
            "command-r",
            "llama-bpe",
            "qwen2",
            "qwen35",
            "gpt-4o",
            "tekken",
        )
    },
    "pieces": lambda: pieces(),
    "pieces, fused": lambda: pieces(fuse_unk=True),
    "gemma": gemma,
    "unigram": lambda: unigram(False),
    "unigram with bytes": lambda: unigram(True),
    "words": lambda: words(False),
    "words in lower case": lambda: words(True),
    "cl100k": lambda: split(CL100K, "isolated"),
    "removed": lambda: split(r"\s+|(?<=\w)[.,]", "removed"),
    "inverted": lambda: split(r"[\w']+|[^\w\s]", "removed", True),
    "merged with previous": lambda: split(r"(?>\W+)", "merged_with_previous"),
    "merged with next": lambda: split(r"\p{^L}", "merged_with_next"),
    "contiguous": lambda: split(r"[\h\p{Lu}\p{Cyrillic}.-]|^\S", "contiguous"),
}


def record(tokenizer: Tokenizer, n_texts: int, seed: int = 0) -> dict[str, object]:
    tokenizer = Tokenizer(tokenizers.Tokenizer.from_str(tokenizer.to_json()), tokenizer.config)
    draw = random.Random(seed)
    texts = []
    for text in random_texts(n_texts, seed):
        known = (
            text if tokenizer._characters is None else "".join(c for c in text if c in tokenizer._characters)
        )
        texts += [_record_text(tokenizer, each) for each in dict.fromkeys([text, known])]
    sequences = [
        [draw.randrange(tokenizer.n_vocab + 1) for _ in range(draw.randint(0, 24))] for _ in range(n_texts)
    ]
    return {
        "json": tokenizer.to_json(),
        "config": tokenizer.config,
        "facts": {
            "nVocab": tokenizer.n_vocab,
            "kind": tokenizer.kind,
            "endId": tokenizer.end_id,
            "endIds": tokenizer.end_ids,
            "maskId": tokenizer.mask_id,
            "startIds": tokenizer.start_ids,
            "letter": tokenizer.letter,
            "specials": tokenizer.specials,
        },
        "texts": texts,
        "ids": [
            [ids, tokenizer.decode(ids), _stream(tokenizer, ids, False), _stream(tokenizer, ids, True)]
            for ids in sequences
        ],
        "tokens": [
            [tokenizer.pieces([i])[0], list(tokenizer.spell(i)), tokenizer.has_text(i)]
            for i in range(min(tokenizer.n_vocab + 2, 5000))
        ],
    }


def _record_text(tokenizer: Tokenizer, text: str) -> list[object]:
    try:
        ids = tokenizer.encode(text)
    except UserError:
        return [text, None, "", []]
    return [text, ids, tokenizer.decode(ids), tokenizer.pieces(ids)]


def _stream(tokenizer: Tokenizer, ids: list[int], continues: bool) -> str:
    stream = TextStream(tokenizer, continues)
    return "".join([*(stream.push(i) for i in ids), stream.close()])


def compare(recorded: dict[str, dict[str, object]], folder: Path) -> None:
    npx = shutil.which("npx")
    if npx is None or not (WEB / "node_modules" / "vitest").is_dir():
        pytest.skip("requires npm and the packages in web/node_modules: run `make check`")
    path = folder / "recorded.json"
    path.write_text(json.dumps(recorded))
    done = subprocess.run(
        [npx, "vitest", "run", "--testTimeout=900000", "tests/engine/tokenizer/recorded.test.ts"],
        cwd=WEB,
        env={**os.environ, "CLEARHEAD_RECORDED": str(path), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=1000,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert f"{len(recorded)} passed" in done.stdout


@pytest.mark.slow
def test_every_kind_of_tokenizer_gives_the_same_ids_and_texts(tmp_path):
    compare({kind: record(make(), 200) for kind, make in KINDS.items()}, tmp_path)


@pytest.mark.slow
def test_a_published_tokenizer_gives_the_same_ids_and_texts(smollm2, tmp_path):
    compare({"SmolLM2": record(smollm2.tokenizer, 1000)}, tmp_path)
