"""Tokenizers converted to GGUF metadata and back produce the same ids as the originals."""

import json

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers

from clearhead.errors import UserError
from clearhead.formats.gguf.file import GGUFFile
from clearhead.formats.gguf.model import MetadataWriter
from clearhead.formats.gguf.splits import SPLITS
from clearhead.formats.gguf.tokenizer import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    derive_merges,
    read_tokenizer,
    write_tokenizer,
)
from clearhead.text.tokenizer import Tokenizer

TEXTS = [
    "",
    " ",
    "Once upon a time, there wasn't a cat; it'll've come IT'S.",
    "  two   spaces\tand\n\n\nlines  \n   end   ",
    "In 1234567890 there were 3.14159 or ½ or ٣٤٥, 10kg",
    "def f(x):\n    return x ** 2  # Grüße\r\n",
    "naïve café, e\u0301 (decomposed), Ångström \u212b",
    "日本語のテキスト と 한국어, العربية, русский, हिन्दी",
    "👋🏽👩‍👩‍👧 emoji\U0001f9e0!",
    "<|endoftext|> is text; <think>so is this</think>",
    "McDonald's HTTPServer iPhone CamelCase ÀÉÎ",
    "\x00\x1f\u200b\ufeff\u2028",
]


def byte_level(split, merges_from=TEXTS, n_vocab=400, normalizer=None, ignore_merges=False):
    """Return a tokenizer like a published model's: trained with its own split, special tokens added last."""
    inner = tokenizers.Tokenizer(models.BPE(ignore_merges=ignore_merges))
    inner.normalizer = normalizer
    inner.pre_tokenizer = split
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=n_vocab, initial_alphabet=alphabet, show_progress=False)
    inner.train_from_iterator(merges_from * 3, trainer)
    inner.add_tokens([AddedToken("<think>", normalized=False, special=False)])
    inner.add_special_tokens(["<|begin|>", "<|endoftext|>"])
    return Tokenizer(inner, {"bos_token": "<|begin|>", "eos_token": "<|endoftext|>"})


GPT_2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
NO_REGEX = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def cut_by(regex):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated"), NO_REGEX])


# As in the tokenizer.json of each model.
ORIGINALS = {
    "gpt-2": {"split": GPT_2},
    "olmo": {"split": GPT_2, "normalizer": normalizers.NFC()},
    "smollm": {"split": pre_tokenizers.Sequence([pre_tokenizers.Digits(True), GPT_2])},
    "llama-bpe": {
        "split": cut_by(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        "ignore_merges": True,
    },
    "qwen2": {
        "split": cut_by(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        "normalizer": normalizers.NFC(),
    },
    "tekken": {
        "split": cut_by(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
            r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        "ignore_merges": True,
    },
}


@pytest.mark.parametrize("name", ORIGINALS)
def test_published_split_is_recognized_and_preserves_ids(name):
    original = byte_level(**ORIGINALS[name])
    metadata = write_tokenizer(original, original.n_vocab)
    assert metadata["tokenizer.ggml.pre"] == name
    again = read_tokenizer(metadata)
    for text in TEXTS:
        assert again.encode(text) == original.encode(text)
        assert again.decode(again.encode(text)) == original.decode(original.encode(text))
    assert again.end_id == original.end_id
    assert again.n_vocab == original.n_vocab
    assert write_tokenizer(again, again.n_vocab) == metadata


def test_known_splits_differ_from_each_other():
    """Each split cuts differently from the others; otherwise the test above would prove nothing."""
    text = "It'S 1234 naïve CamelCase e\u0301"
    cuts = {}
    for name in ("gpt-2", "smollm", "llama-bpe", "qwen2", "tekken", "gpt-4o", "qwen35"):
        inner = tokenizers.Tokenizer(models.BPE())
        SPLITS[name].apply(inner)
        normalized = inner.normalizer.normalize_str(text) if inner.normalizer else text
        cuts[name] = tuple(piece for piece, _ in inner.pre_tokenizer.pre_tokenize_str(normalized))
    del cuts["qwen35"]  # differs from qwen2 only where a mark does not compose with its letter
    assert len(set(cuts.values())) == len(cuts)


def test_digits_are_split_individually_and_spaces_stay_together():
    inner = tokenizers.Tokenizer(models.BPE())
    SPLITS["smollm"].apply(inner)
    cut = [piece for piece, _ in inner.pre_tokenizer.pre_tokenize_str("in    12 x")]
    assert cut == ["in", "ĠĠĠĠ", "1", "2", "Ġx"]


@pytest.mark.parametrize("kind", ["byte", "bpe"])
def test_our_tokenizers_round_trip(kind):
    ours = Tokenizer.train(kind, TEXTS * 3)
    metadata = write_tokenizer(ours, ours.n_vocab)
    again = read_tokenizer(metadata)
    assert (again.kind, again.n_vocab, again.end_id) == (kind, ours.n_vocab, ours.end_id)
    assert metadata["tokenizer.ggml.pre"] == "gpt-2"
    assert metadata["tokenizer.ggml.add_bos_token"] is False
    assert metadata["tokenizer.ggml.bos_token_id"] == ours.end_id
    for text in TEXTS:
        assert again.encode(text) == ours.encode(text)
        assert again.decode(again.encode(text)) == text


OURS = Tokenizer.train("bpe", TEXTS * 3)
AGAIN = read_tokenizer(write_tokenizer(OURS, OURS.n_vocab + 7))


@settings(max_examples=100)
@given(st.text())
def test_round_trip_preserves_the_ids_of_any_text(text):
    assert AGAIN.encode(text) == OURS.encode(text)


def test_unused_ids_are_padded_and_dropped_again():
    ours = Tokenizer.train("byte", [])
    metadata = write_tokenizer(ours, 260)
    assert metadata["tokenizer.ggml.tokens"][256:] == ["<|endoftext|>", "[PAD257]", "[PAD258]", "[PAD259]"]
    assert metadata["tokenizer.ggml.token_type"][255:] == [NORMAL, CONTROL, UNUSED, UNUSED, UNUSED]
    assert read_tokenizer(metadata).n_vocab == 257
    with pytest.raises(UserError, match="tokenizer has 257 tokens, but the model has only 256"):
        write_tokenizer(ours, 256)


@pytest.mark.parametrize("kind", ["byte", "bpe"])
def test_tokenizer_round_trips_through_a_gguf_file(tmp_path, kind):
    ours = Tokenizer.train(kind, TEXTS * 3)
    writer = MetadataWriter(tmp_path / "t.gguf", "gpt2")
    for key, value in write_tokenizer(ours, ours.n_vocab + 3).items():
        writer.add(key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    again = read_tokenizer(GGUFFile.open(tmp_path / "t.gguf").metadata)
    assert [again.encode(text) for text in TEXTS] == [ours.encode(text) for text in TEXTS]


def test_special_tokens_and_chat_template_are_in_the_config():
    metadata = write_tokenizer(byte_level(GPT_2), 420)
    template = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"
    metadata |= {"tokenizer.chat_template": template, "tokenizer.ggml.add_bos_token": True}
    metadata["tokenizer.ggml.padding_token_id"] = 3
    config = read_tokenizer(metadata).config
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert config["bos_token"] == "<|begin|>"
    assert config["eos_token"] == "<|endoftext|>"
    assert config["pad_token"] == metadata["tokenizer.ggml.tokens"][3]
    assert "unk_token" not in config
    assert config["add_bos_token"] is True
    assert config["chat_template"] == template
    assert write_tokenizer(read_tokenizer(metadata), 420) == metadata


def test_only_user_defined_tokens_are_matched_in_text():
    tokenizer = read_tokenizer(write_tokenizer(byte_level(GPT_2), 420))
    assert tokenizer.pieces(tokenizer.encode("a<think>b")) == ["a", "<think>", "b"]
    assert len(tokenizer.encode("<|endoftext|>")) > 1


def test_saved_tokenizer_opens_in_transformers(tmp_path):
    from transformers import AutoTokenizer

    tokenizer = read_tokenizer(write_tokenizer(byte_level(**ORIGINALS["smollm"]), 420))
    tokenizer.save(tmp_path, 64)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    for text in TEXTS[:9]:
        assert theirs.encode(text, add_special_tokens=False) == tokenizer.encode(text)


# SentencePiece: a reference implementation first, then ours compared with it.


def plain_sentencepiece(text, tokens, types, scores, prefix=True):
    """Merge the adjacent pair that forms the highest-scoring piece, leftmost on ties, until none is left."""
    ids = {token: i for i, token in enumerate(tokens)}
    pieces = {token for token, kind in zip(tokens, types, strict=True) if kind == NORMAL}
    text = text.replace(" ", "▁")
    parts = list("▁" + text if prefix and text else text)
    while True:
        best = None
        for i in range(len(parts) - 1):
            whole = parts[i] + parts[i + 1]
            if whole in pieces and (
                best is None or scores[ids[whole]] > scores[ids[parts[best] + parts[best + 1]]]
            ):
                best = i
        if best is None:
            break
        parts[best : best + 2] = [parts[best] + parts[best + 1]]
    found = []
    for part in parts:
        if part in pieces:
            found.append(ids[part])
        else:
            found += [ids[f"<0x{byte:02X}>"] for byte in part.encode()]
    return found


def sentencepiece_metadata(prefix=True):
    """Metadata like Llama 2's: <unk>, <s>, </s>, 256 bytes, pieces with decreasing scores, then characters."""
    inner = tokenizers.Tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(vocab_size=300, show_progress=False, max_token_length=8)
    words = [text.replace(" ", "▁") for text in TEXTS[:8]] * 3
    inner.train_from_iterator(words, trainer)
    learned = sorted(inner.get_vocab().items(), key=lambda item: item[1])
    learned = [token for token, _ in learned if max(token) < "\u3000"]  # the others fall back to bytes
    pieces = [token for token in learned if len(token) > 1]
    characters = [token for token in learned if len(token) == 1]
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    tokens = ["<unk>", "<s>", "</s>", *bytes_, *pieces, *characters]
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * (len(pieces) + len(characters))
    scores = [0.0] * 259 + [-float(i) for i in range(len(pieces) + len(characters))]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": np.array(types, np.int32),
        "tokenizer.ggml.scores": np.array(scores, np.float32),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_space_prefix": prefix,
    }


def lists(metadata):
    return [metadata[f"tokenizer.ggml.{name}"] for name in ("tokens", "token_type", "scores")]


@pytest.mark.parametrize("prefix", [True, False])
def test_merges_match_sentencepiece(prefix):
    metadata = sentencepiece_metadata(prefix)
    tokenizer = read_tokenizer(metadata)
    for text in TEXTS:
        ids = tokenizer.encode(text)
        assert ids == plain_sentencepiece(text, *lists(metadata), prefix)
        assert tokenizer.decode(ids) == text
    assert tokenizer.config["unk_token"] == "<unk>"
    assert tokenizer.config["add_bos_token"] is True


PIECES = sentencepiece_metadata()
READ = read_tokenizer(PIECES)


@settings(max_examples=100)
@given(st.text(st.sampled_from("Onceuptaim h'x\n日👋 "), max_size=40))
def test_any_text_is_tokenized_like_sentencepiece(text):
    assert READ.encode(text) == plain_sentencepiece(text, *lists(PIECES))


def test_derived_merges_match_transformers():
    from transformers.tokenization_utils_base import generate_merges

    tokens, types, scores = lists(PIECES)
    pieces = {token: i for i, token in enumerate(tokens) if types[i] == NORMAL}
    theirs = generate_merges(pieces, {token: scores[i] for token, i in pieces.items()})
    assert derive_merges(tokens, types, scores) == theirs


@pytest.mark.parametrize("prefix", [True, False])
def test_sentencepiece_tokenizers_round_trip(prefix):
    metadata = sentencepiece_metadata(prefix)
    tokenizer = read_tokenizer(metadata)
    written = write_tokenizer(tokenizer, tokenizer.n_vocab + 5)
    assert written["tokenizer.ggml.model"] == "llama"
    assert written["tokenizer.ggml.add_space_prefix"] is prefix
    assert written["tokenizer.ggml.token_type"][:-5] == metadata["tokenizer.ggml.token_type"].tolist()
    again = read_tokenizer(written)
    assert again.n_vocab == tokenizer.n_vocab
    for text in TEXTS:
        assert again.encode(text) == tokenizer.encode(text)
    assert write_tokenizer(again, again.n_vocab + 5) == written


def test_gemma_style_runs_of_spaces_are_separate_tokens():
    metadata = sentencepiece_metadata(prefix=False)
    metadata["tokenizer.ggml.tokens"] += ["  ", "   ", "\n\t"]
    types = metadata["tokenizer.ggml.token_type"].tolist() + [USER_DEFINED] * 3
    metadata["tokenizer.ggml.token_type"] = np.array(types)
    metadata["tokenizer.ggml.scores"] = np.array([*metadata["tokenizer.ggml.scores"], -1000, -1000, -1000])
    tokenizer = read_tokenizer(metadata)
    n = tokenizer.n_vocab
    assert tokenizer.encode("   \n\t")[-2:] == [n - 2, n - 1]
    assert tokenizer.decode(tokenizer.encode("a   b\n\t c")) == "a   b\n\t c"


def test_end_token_may_be_missing():
    metadata = write_tokenizer(byte_level(GPT_2, n_vocab=300), 303)
    del metadata["tokenizer.ggml.eos_token_id"]
    assert read_tokenizer(metadata).end_ids == (302,)  # recognized by its name
    metadata["tokenizer.ggml.tokens"][302] = "<|over|>"
    endless = read_tokenizer(metadata)
    assert (endless.end_id, endless.end_ids) == (None, ())
    again = read_tokenizer(write_tokenizer(endless, 303))
    assert (again.end_ids, again.encode(TEXTS[2])) == ((), endless.encode(TEXTS[2]))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "t5"}, "tokenizer.ggml.model is 't5', expected one of gpt2, llama"),
        ({"model": None}, "model is None"),
        (
            {"pre": "martian"},
            "pre is 'martian', an unknown pre-tokenizer; expected one of gpt-2, .*llama-bpe",
        ),
        ({"pre": 7}, "pre is 7"),
        ({"tokens": None}, "tokens is missing"),
        ({"tokens": ["a", "a"]}, "tokens has 'a' twice, as 0 and as 1"),
        ({"token_type": [1]}, "token_type is missing or not one number for each of the 412 tokens"),
        ({"merges": ["Ġ"]}, "merges has 'Ġ' at 0, expected two tokens separated by a space"),
        ({"merges": ["a b c"]}, "merges has 'a b c'"),
        ({"merges": ["no such"]}, "does not form a tokenizer .*"),
        ({"merges": 3}, "merges is not an array of strings"),
        ({"eos_token_id": 412}, "eos_token_id is 412, expected a token id below 412"),
        ({"bos_token_id": -1}, "bos_token_id is -1"),
        ({"bos_token_id": "<s>"}, "bos_token_id is '<s>'"),
    ],
)
def test_invalid_metadata_is_named_in_the_error(change, reason):
    tokenizer = byte_level(GPT_2, n_vocab=409)
    metadata = write_tokenizer(tokenizer, tokenizer.n_vocab)
    assert len(metadata["tokenizer.ggml.tokens"]) == 412
    metadata |= {f"tokenizer.ggml.{key}": value for key, value in change.items()}
    metadata = {key: value for key, value in metadata.items() if value is not None}
    with pytest.raises(UserError, match=reason) as refusal:
        read_tokenizer(metadata)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "scores", [None, [0.0], [float("nan")] * len(PIECES["tokenizer.ggml.tokens"]), "abc"]
)
def test_every_piece_needs_a_score(scores):
    with pytest.raises(UserError, match="scores is missing or not one number for each"):
        read_tokenizer({**PIECES, "tokenizer.ggml.scores": scores})


def test_adversarial_vocabularies_are_rejected_or_handled():
    n = len(PIECES["tokenizer.ggml.tokens"]) + 1

    def with_token(token):
        return PIECES | {
            "tokenizer.ggml.tokens": [*PIECES["tokenizer.ggml.tokens"], token],
            "tokenizer.ggml.token_type": [*PIECES["tokenizer.ggml.token_type"], NORMAL],
            "tokenizer.ggml.scores": [0.0] * n,
        }

    assert read_tokenizer(with_token("a" * 2**16)).n_vocab == n
    with pytest.raises(UserError, match="a token of 1048576 characters, expected at most 65536"):
        read_tokenizer(with_token("a" * 2**20))
    crowd = [str(i) for i in range(2**19)]
    with pytest.raises(UserError, match="has 524288 tokens, expected at most 327680"):
        read_tokenizer(PIECES | {"tokenizer.ggml.tokens": crowd})
    many = [f"{i:0200}" for i in range(2**15)]
    with pytest.raises(UserError, match="has 6553600 characters, expected at most 4194304"):
        derive_merges(many, [NORMAL] * len(many), [0.0] * len(many))


def test_unsupported_tokenizers_are_rejected_with_the_reason():
    with pytest.raises(UserError, match="cannot be written to a GGUF file: it is a character tokenizer"):
        write_tokenizer(Tokenizer.train("char", ["abc"]), 10)
    with pytest.raises(UserError, match="its pre-tokenizer is not among those known: gpt-2"):
        write_tokenizer(byte_level(cut_by(r"\w")), 500)
    word_level = tokenizers.Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    with pytest.raises(UserError, match="its type is WordLevel"):
        write_tokenizer(Tokenizer(word_level, {"eos_token": "b"}), 2)
    document = json.loads(READ.to_json())
    document["normalizer"] = {"type": "Lowercase"}
    lower = tokenizers.Tokenizer.from_str(json.dumps(document))
    with pytest.raises(UserError, match="its handling of spaces"):
        write_tokenizer(Tokenizer(lower, READ.config), READ.n_vocab)
    document = json.loads(READ.to_json())
    document["model"]["merges"].pop()
    fewer = tokenizers.Tokenizer.from_str(json.dumps(document))
    with pytest.raises(UserError, match="merges do not follow from a score"):
        write_tokenizer(Tokenizer(fewer, READ.config), READ.n_vocab)
