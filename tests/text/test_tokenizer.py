"""Tokenizers: lossless, deterministic, readable elsewhere, and loud about what they do not know."""

import json
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers

from clearhead.errors import UserError
from clearhead.text.tokenizer import END, KINDS, TextStream, Tokenizer

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
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@ALL
def test_known_text_makes_the_round_trip(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(TEXT)
    assert tokenizer.decode(ids) == TEXT
    assert tokenizer.encode_batch([TEXT, "", "it"]) == [ids, [], tokenizer.encode("it")]
    assert max(ids) < tokenizer.n_vocab


def test_a_word_that_is_known_is_a_token_and_any_other_its_bytes() -> None:
    tokenizer = Tokenizer.train("word", ["The cat saw the cat. A dog"], 300)
    assert tokenizer.pieces(tokenizer.encode("A cat, the cat")) == [
        "A",
        " cat",
        ",",
        " ",
        "t",
        "h",
        "e",
        " cat",
    ]
    assert (tokenizer.kind, tokenizer.end_id) == ("word", tokenizer.n_vocab - 1)
    assert tokenizer.n_vocab == 256 + 1 + 1  # bytes, the only word that was seen twice, the end


def test_the_most_frequent_words_are_those_that_are_known() -> None:
    tokenizer = Tokenizer.train("word", [" a few" * 3 + " of them" * 2 + " and you" * 9], 256 + 2 + 1)
    assert tokenizer.pieces(range(256, 258)) == [" and", " you"]


def test_words_between_spaces_for_a_model_that_has_its_own() -> None:
    tokenizer = Tokenizer.of_words(["the", "cat", "<unk>", "</s>"], "<unk>")
    assert tokenizer.encode("the  cat\nsat") == [0, 1, 2]
    assert tokenizer.decode([0, 1, 3]) == "the cat"
    assert (tokenizer.end_id, tokenizer.n_vocab) == (3, 4)


def test_char_ids_follow_the_code_points() -> None:
    tokenizer = Tokenizer.train("char", ["cab", "b\n"])
    assert tokenizer.encode("\nabc") == [0, 1, 2, 3]
    assert (tokenizer.n_vocab, tokenizer.end_id, tokenizer.kind) == (5, 4, "char")


def test_byte_ids_are_the_bytes() -> None:
    every = "".join(map(chr, range(0x250)))
    assert BYTE.encode(every) == list(every.encode())
    assert (BYTE.n_vocab, BYTE.end_id, BYTE.kind) == (257, 256, "byte")


def test_bpe_has_the_size_asked_for_and_the_end_last() -> None:
    assert (BPE.n_vocab, BPE.end_id, BPE.kind) == (340, 339, "bpe")
    assert len(BPE.encode("the road was tired")) < len("the road was tired")
    assert Tokenizer.train("bpe", ["it it it it"], 340).n_vocab < 340


def test_bpe_splits_as_gpt2_does() -> None:
    tokenizer = Tokenizer.train("bpe", ["I'll  say it's 10 miles, I'll  say it's 10 miles, " * 9], 1000)
    assert tokenizer.pieces(tokenizer.encode("I'll  say it's 10 miles,")) == [
        *("I", "'ll", " ", " say", " it", "'s", " 10", " miles", ",")
    ]


@ALL
def test_training_twice_gives_the_same_file(tokenizer: Tokenizer) -> None:
    n_vocab = {"bpe": 340, "word": 270}.get(tokenizer.kind)
    halves = [TEXT[: len(TEXT) // 2], TEXT[len(TEXT) // 2 :]]
    again = Tokenizer.train(tokenizer.kind, halves, n_vocab)
    assert again.to_json() == tokenizer.to_json()


@pytest.mark.parametrize("tokenizer", [BYTE, BPE], ids=["byte", "bpe"])
@given(text=ANY_TEXT)
def test_any_text_makes_the_round_trip(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


@ALL
def test_the_name_of_the_end_token_in_a_text_is_text(tokenizer: Tokenizer) -> None:
    if tokenizer.kind == "char":
        with pytest.raises(UserError, match=r"'<' \(U\+003C LESS-THAN SIGN\) at character 3 "):
            tokenizer.encode(f"it {END}")
        tokenizer = Tokenizer.train("char", [f"it {END}"])
    ids = tokenizer.encode(f"it {END}")
    assert tokenizer.end_id not in ids
    assert tokenizer.decode(ids) == f"it {END}"


@ALL
def test_the_end_token_decodes_to_nothing_and_shows_its_name(tokenizer: Tokenizer) -> None:
    ids = [tokenizer.end_id, *tokenizer.encode("it"), tokenizer.end_id]
    assert tokenizer.decode(ids) == "it"
    assert tokenizer.pieces(ids)[0] == END


def test_pieces_are_readable() -> None:
    assert CHAR.pieces(CHAR.encode("it ")) == ["i", "t", " "]
    assert BYTE.pieces(BYTE.encode("a €")) == ["a", " ", "\\xe2", "\\x82", "\\xac"]
    assert BPE.pieces(BPE.encode(" the road")) == [" the", " road"]
    assert BYTE.pieces([300]) == ["<300>"]


def test_an_unknown_character_is_named() -> None:
    tokenizer = Tokenizer.train("char", ["abc \n"])
    with pytest.raises(UserError) as caught:
        tokenizer.encode("a b c\nééa")
    message = "'é' (U+00E9 LATIN SMALL LETTER E WITH ACUTE) at character 6 is not among the 5 characters"
    assert message in str(caught.value)
    with pytest.raises(UserError, match=r"'\\x07' \(U\+0007\) at character 1"):
        tokenizer.encode_batch(["abc", "a\a"])


@ALL
def test_a_lone_surrogate_is_the_users_mistake(tokenizer: Tokenizer) -> None:
    with pytest.raises(UserError, match=r"'\\ud800' at character 2 is a lone surrogate"):
        tokenizer.encode("it\ud800")


@pytest.mark.parametrize(
    ("kind", "n_vocab", "message"),
    [
        ("letter", None, "choose one of char, byte, bpe, word"),
        ("word", 256, "the vocabulary is 256, expected 257"),
        ("bpe", 256, "the vocabulary is 256, expected 257"),
        ("bpe", 2**40, "expected 257"),
        ("byte", 300, "leave it out for byte"),
    ],
)
def test_impossible_wishes_are_refused(kind: str, n_vocab: int | None, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Tokenizer.train(kind, ["it"], n_vocab)


def test_no_characters_are_refused() -> None:
    with pytest.raises(UserError, match="no characters"):
        Tokenizer.train("char", [""])


@ALL
def test_saved_and_loaded_it_is_the_same(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path, model_max_length=64)
    loaded = Tokenizer.load(tmp_path)
    assert loaded.to_json() == tokenizer.to_json()
    assert (loaded.kind, loaded.n_vocab, loaded.end_id) == (
        tokenizer.kind,
        tokenizer.n_vocab,
        tokenizer.end_id,
    )
    assert loaded.encode(TEXT) == tokenizer.encode(TEXT)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tokenizer.json", "tokenizer_config.json"]
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert config == {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END,
        "eos_token": END,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 64,
    }


@ALL
def test_transformers_reads_the_same_ids(tokenizer: Tokenizer, tmp_path: Path) -> None:
    transformers = pytest.importorskip(
        "transformers", reason="transformers is not installed: pip install .[dev]"
    )
    tokenizer.save(tmp_path, model_max_length=10**6)
    other = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    assert other(TEXT).input_ids == tokenizer.encode(TEXT)
    assert other.decode(tokenizer.encode(TEXT)) == TEXT
    assert (other.eos_token_id, len(other)) == (tokenizer.end_id, tokenizer.n_vocab)
    if tokenizer.kind == "char":
        with pytest.raises(Exception, match="not found in the vocabulary"):
            other("it ß")


def test_a_foreign_tokenizer_brings_its_own_end(tmp_path: Path) -> None:
    inner = tokenizers.Tokenizer(
        models.WordLevel({"▁it": 0, "▁was": 1, "<0xE2>": 2, "</s>": 9}, unk_token="</s>")
    )
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Metaspace()
    inner.add_special_tokens(["</s>"])
    inner.enable_truncation(1)
    inner.save(str(tmp_path / "tokenizer.json"))
    config = {"eos_token": {"content": "</s>"}, "chat_template": "{{ messages }}"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))

    tokenizer = Tokenizer.load(tmp_path)
    assert (tokenizer.kind, tokenizer.end_id, tokenizer.n_vocab) == ("other", 9, 10)
    assert tokenizer.encode("it was it") == [0, 1, 0]
    assert tokenizer.pieces([0, 1, 2, 9]) == [" it", " was", "\\xe2", "</s>"]
    stream = TextStream(tokenizer)
    assert [stream.push(i) for i in [9, 0, 9, 1]] == ["", "it", "", " was"]
    tokenizer.save(tmp_path, model_max_length=5)
    assert json.loads((tmp_path / "tokenizer_config.json").read_text()) == {**config, "model_max_length": 5}


def sentencepiece(prefix: bool) -> Tokenizer:
    """Spaces as ▁, what is not in the vocabulary as bytes; Llama 2 puts a space before every text."""
    words = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"abcd", "▁a", "ab", "▁▁"]
    inner = tokenizers.Tokenizer(
        models.BPE(
            vocab={word: i for i, word in enumerate(words)},
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


@pytest.mark.parametrize("tokenizer", [CHAR, BYTE, BPE, WORD, *PIECES.values()], ids=[*KINDS, *PIECES])
def test_a_token_is_spelled_as_it_is_decoded_after_another(tokenizer: Tokenizer) -> None:
    before = tokenizer.decode([tokenizer.letter])
    for i in range(tokenizer.n_vocab + 1):
        spelled = tokenizer.spell(i)
        assert tokenizer.decode([tokenizer.letter, i]) == before + spelled.decode(errors="replace"), i
    assert tokenizer.spell(tokenizer.end_id) == b""


@pytest.mark.parametrize("name", PIECES)
@given(text=st.text("ab é€🐔漢", max_size=20))
def test_a_stream_of_characters_in_bytes_adds_up_to_the_whole(name: str, text: str) -> None:
    """One after another, none of them in the vocabulary: the run of bytes between is never whole."""
    ids = PIECES[name].encode(text)
    stream = TextStream(PIECES[name])
    assert "".join([*(stream.push(i) for i in ids), stream.close()]) == PIECES[name].decode(ids)
    stream = TextStream(PIECES[name], continues=True)
    spelled = b"".join(map(PIECES[name].spell, ids)).decode()
    assert "".join([*(stream.push(i) for i in ids), stream.close()]) == spelled


def test_more_tokens_may_end_a_text() -> None:
    assert BYTE.end_ids == (256,)
    more = Tokenizer(BYTE._inner, BYTE.config, ends=[10, 256, 10, 257, -1, 3])
    assert (more.end_id, more.end_ids) == (256, (256, 10, 3))


def test_a_token_is_found_by_its_text() -> None:
    assert BYTE.find("a") == ord("a")
    assert BYTE.find(END) == BYTE.end_id
    assert [BPE.find(piece) for piece in BPE.pieces([300])] == [300]
    with pytest.raises(UserError, match=r"'ab' is 2 tokens \(\['a', 'b'\]\), expected one"):
        BYTE.find("ab")
    with pytest.raises(UserError, match="is 0 tokens"):
        BYTE.find("")


def test_broken_folders_are_the_users_to_mend(tmp_path: Path) -> None:
    def refused(match: str) -> None:
        with pytest.raises(UserError, match=match) as caught:
            Tokenizer.load(tmp_path)
        assert "\n" not in str(caught.value)

    tokens, config = tmp_path / "tokenizer.json", tmp_path / "tokenizer_config.json"
    refused("no such file: .*tokenizer.json")
    BYTE.save(tmp_path, model_max_length=5)
    good = tokens.read_text()
    tokens.write_text(good[:1000])
    refused("tokenizer.json is not a tokenizer")
    tokens.write_bytes(b"\xff\xfe")
    refused("tokenizer.json is not UTF-8")
    with tokens.open("wb") as file:
        file.truncate(2**40)
    refused("expected at most")
    tokens.unlink()
    tokens.mkdir()
    refused("tokenizer.json is a folder, expected a file")
    tokens.rmdir()
    tokens.write_text(good)
    config.write_text("{")
    refused("tokenizer_config.json is not JSON")
    config.write_text("[" * 100_000)
    refused("tokenizer_config.json is not JSON")
    config.write_text("[]")
    refused("expected an object")
    config.write_text('{"eos_token": "</s>"}')
    refused("eos_token '</s>', expected a token of the vocabulary")
    config.unlink()
    refused("no such file: .*tokenizer_config.json")


@given(
    ids=st.lists(
        st.integers(0, 256) | st.sampled_from([0xE2, 0x82, 0xAC, 0xF0, 0x9F, 0x90, 0x94, 0xFF]), max_size=80
    )
)
@settings(max_examples=300)
def test_a_stream_of_any_bytes_adds_up_to_the_whole(ids: list[int]) -> None:
    stream = TextStream(BYTE)
    assert "".join([*(stream.push(i) for i in ids), stream.close()]) == BYTE.decode(ids)


@given(ids=st.lists(st.integers(0, 350), max_size=40))
def test_a_stream_of_any_tokens_adds_up_to_the_whole(ids: list[int]) -> None:
    stream = TextStream(BPE)
    assert "".join([*(stream.push(i) for i in ids), stream.close()]) == BPE.decode(ids)


def test_a_stream_never_breaks_a_character_and_never_waits_for_a_whole_one() -> None:
    stream = TextStream(BYTE)
    assert [stream.push(i) for i in BYTE.encode("a€🐔b")] == ["a", "", "", "€", "", "", "", "🐔", "b"]
    assert [stream.push(0xE2), stream.push(0x82), stream.close()] == ["", "", "\ufffd"]
    assert [stream.push(ord("c")), stream.close()] == ["c", ""]


def test_a_stream_of_garbage_stays_short() -> None:
    stream = TextStream(BYTE)
    pieces = [stream.push(0xFF) for _ in range(1000)]
    assert len(stream._ids) < 40
    assert "".join(pieces) + stream.close() == "\ufffd" * 1000


@pytest.mark.parametrize("kind", ["char", "byte", "bpe"])
def test_a_mask_token_comes_after_the_end_and_changes_no_other_id(kind, tmp_path):
    text = "it was too tired to cross the road because it was tired. " * 5
    n_vocab = 270 if kind == "bpe" else None
    plain = Tokenizer.train(kind, [text], n_vocab)
    masked = Tokenizer.train(kind, [text], n_vocab + 1 if n_vocab else None, mask=True)
    assert plain.mask_id is None
    assert (masked.mask_id, masked.end_id) == (masked.n_vocab - 1, plain.end_id)
    assert masked.n_vocab == plain.n_vocab + 1
    assert masked.kind == kind
    assert masked.encode(text) == plain.encode(text)
    assert masked.decode([*masked.encode(text), masked.mask_id]) == text
    masked.save(tmp_path, 8)
    assert Tokenizer.load(tmp_path).mask_id == masked.mask_id
