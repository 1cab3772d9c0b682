"""Tokenizers: lossless, readable by other libraries, and strict about what they do not know."""

import json
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers

from clearhead.errors import UserError
from clearhead.text.text_stream import TextStream
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokenizer_kinds import END, KINDS
from tests.text.small_tokenizers import ALL, BPE, BYTE, CHAR, PIECES, TEXT, WORD

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@ALL
def test_known_text_round_trips(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(TEXT)
    assert tokenizer.decode(ids) == TEXT
    assert tokenizer.encode_batch([TEXT, "", "it"]) == [ids, [], tokenizer.encode("it")]
    assert max(ids) < tokenizer.n_vocab


def test_given_word_vocabulary_splits_on_whitespace() -> None:
    tokenizer = Tokenizer.of_words(["the", "cat", "<unk>", "</s>"], "<unk>")
    assert tokenizer.encode("the  cat\nsat") == [0, 1, 2]
    assert tokenizer.decode([0, 1, 3]) == "the cat"
    assert (tokenizer.end_id, tokenizer.n_vocab) == (3, 4)


@pytest.mark.parametrize("tokenizer", [BYTE, BPE], ids=["byte", "bpe"])
@given(text=ANY_TEXT)
def test_any_text_round_trips(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


@ALL
def test_end_token_name_in_text_is_plain_text(tokenizer: Tokenizer) -> None:
    if tokenizer.kind == "char":
        with pytest.raises(UserError, match=r"'<' \(U\+003C LESS-THAN SIGN\) at character 3 "):
            tokenizer.encode(f"it {END}")
        tokenizer = Tokenizer.train("char", [f"it {END}"])
    ids = tokenizer.encode(f"it {END}")
    assert tokenizer.end_id not in ids
    assert tokenizer.decode(ids) == f"it {END}"


@ALL
def test_end_token_decodes_to_nothing_and_displays_its_name(tokenizer: Tokenizer) -> None:
    ids = [tokenizer.end_id, *tokenizer.encode("it"), tokenizer.end_id]
    assert tokenizer.decode(ids) == "it"
    assert tokenizer.pieces(ids)[0] == END


def test_pieces_are_readable() -> None:
    assert CHAR.pieces(CHAR.encode("it ")) == ["i", "t", " "]
    assert BYTE.pieces(BYTE.encode("a €")) == ["a", " ", "\\xe2", "\\x82", "\\xac"]
    assert BPE.pieces(BPE.encode(" the road")) == [" the", " road"]
    assert BYTE.pieces([300]) == ["<300>"]


def test_unknown_character_is_named_in_the_error() -> None:
    tokenizer = Tokenizer.train("char", ["abc \n"])
    with pytest.raises(UserError) as caught:
        tokenizer.encode("a b c\nééa")
    message = "'é' (U+00E9 LATIN SMALL LETTER E WITH ACUTE) at character 6 is not among the 5 characters"
    assert message in str(caught.value)
    with pytest.raises(UserError, match=r"'\\x07' \(U\+0007\) at character 1"):
        tokenizer.encode_batch(["abc", "a\a"])


@ALL
def test_lone_surrogate_is_rejected(tokenizer: Tokenizer) -> None:
    with pytest.raises(UserError, match=r"'\\ud800' at character 2 is a lone surrogate"):
        tokenizer.encode("it\ud800")


@ALL
def test_save_and_load_round_trips(tokenizer: Tokenizer, tmp_path: Path) -> None:
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
def test_transformers_produces_the_same_ids(tokenizer: Tokenizer, tmp_path: Path) -> None:
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


def test_foreign_tokenizer_keeps_its_own_end_token(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("tokenizer", [CHAR, BYTE, BPE, WORD, *PIECES.values()], ids=[*KINDS, *PIECES])
def test_token_is_spelled_as_decoded_after_another_token(tokenizer: Tokenizer) -> None:
    before = tokenizer.decode([tokenizer.letter])
    for i in range(tokenizer.n_vocab + 1):
        spelled = tokenizer.spell(i)
        assert tokenizer.decode([tokenizer.letter, i]) == before + spelled.decode(errors="replace"), i
    assert tokenizer.spell(tokenizer.end_id) == b""


def test_tokenizer_may_have_several_end_tokens() -> None:
    assert BYTE.end_ids == (256,)
    more = Tokenizer(BYTE._inner, BYTE.config, ends=[10, 256, 10, 257, -1, 3])
    assert (more.end_id, more.end_ids) == (256, (256, 10, 3))


def test_a_token_is_found_by_its_text() -> None:
    assert BYTE.find("a") == ord("a")
    assert BYTE.find(END) == BYTE.end_id
    assert [BPE.find(piece) for piece in BPE.pieces([300])] == [300]
    with pytest.raises(UserError, match=r"'ab' is 2 tokens \(\['a', 'b'\]\): expected a single token"):
        BYTE.find("ab")
    with pytest.raises(UserError, match="is 0 tokens"):
        BYTE.find("")


def test_damaged_folders_are_rejected(tmp_path: Path) -> None:
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
    refused("tokenizer_config.json is not valid JSON")
    config.write_text("[" * 100_000)
    refused("tokenizer_config.json is not valid JSON")
    config.write_text("[]")
    refused("expected an object")
    config.write_text('{"eos_token": "</s>"}')
    refused("eos_token '</s>': expected a token in the vocabulary")
    config.unlink()
    refused("no such file: .*tokenizer_config.json")
