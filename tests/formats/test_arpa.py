"""ARPA files round-trip, KenLM reads the same scores, and malformed files are rejected."""

import gzip
import math
from itertools import islice

import numpy as np
import pytest
import torch

from clearhead.classics.kneser_ney import estimate
from clearhead.classics.ngram_counts import count_ngrams
from clearhead.errors import UserError
from clearhead.formats import arpa
from clearhead.formats.listing import describe
from clearhead.text.stories import stories
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokens import Tokens

SMALL = r"""
made by hand
\data\
ngram 1=5
ngram 2=3
ngram 3=1

\1-grams:
-99	<s>	-0.3
-1.0	</s>
-2.0	<unk>	0
-0.5	the	-0.2
-0.7	cat	-0.1

\2-grams:
-0.1	<s> the	-0.4
-0.3	the cat	-0.5
-0.2	cat </s>

\3-grams:
-0.05	<s> the cat

\end\
"""


def train(kind, order, count=40):
    texts = [story.text for story in islice(stories(1), count)]
    tokenizer = Tokenizer.train(kind, texts, 300 if kind == "bpe" else None)
    end = tokenizer.end_id
    ids = np.array([end, *(i for text in texts for i in [*tokenizer.encode(text), end])])
    return estimate(count_ngrams(Tokens.of(ids), tokenizer.n_vocab, end, order)), tokenizer, texts


def score(network, ids):
    """Return the log10 probability of a whole sentence, including its end."""
    end = network.config.end_id
    logits = network(torch.tensor([end, *ids]))
    return logits.gather(1, torch.tensor([*ids, end])[:, None]).sum().item() / math.log(10)


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.arpa"
    path.write_text(SMALL)
    return path


def test_file_is_read_with_its_own_vocabulary(small):
    found = arpa.read(small)
    network, (unknown, the, cat, end) = found.network, range(4)
    assert found.words == ["<unk>", "the", "cat", "</s>"]
    assert network.config.counts == (3, 1)
    expected = {
        (end, the): -0.1,
        (end, the, cat): -0.05,
        (end, the, cat, end): -0.5 - 0.2,  # only two words of context are used
        (end, cat): -0.3 - 0.7,
        (end, the, the): -0.4 - 0.2 - 0.5,
        (the, cat, the): -0.5 - 0.1 - 0.5,
        (unknown, cat): -0.7,
    }
    for (*context, word), log10 in expected.items():
        assert network(torch.tensor(context))[-1, word].item() == pytest.approx(
            log10 * math.log(10), abs=1e-5
        )


def test_describe_does_not_read_the_whole_file(small):
    small.write_text(SMALL[: SMALL.index("-0.5\tthe")])  # drops the rest of the file
    listed = describe(small)
    assert (listed.family, listed.config.kind, listed.config.order) == ("arpa", "ngram", 3)
    assert (listed.config.n_vocab, listed.config.counts) == (4, (3, 1))


@pytest.mark.parametrize("name", ["model.arpa", "model.arpa.gz"])
@pytest.mark.parametrize("kind", ["char", "byte", "bpe"])
def test_written_files_round_trip(tmp_path, name, kind):
    network, tokenizer, texts = train(kind, 4)
    arpa.write(tmp_path / name, network, tokenizer.tokens)
    back = arpa.read(tmp_path / name, tokenizer.tokens, tokenizer.end_id).network
    ids = torch.tensor(tokenizer.encode(texts[0]))
    assert back.config == network.config
    assert torch.allclose(back(ids), network(ids), atol=1e-5)


def test_gzip_output_is_deterministic(tmp_path):
    network, tokenizer, _ = train("byte", 2, count=3)
    for name in ("one.arpa.gz", "other.arpa.gz"):
        arpa.write(tmp_path / name, network, tokenizer.tokens)
    assert (tmp_path / "one.arpa.gz").read_bytes() == (tmp_path / "other.arpa.gz").read_bytes()


@pytest.mark.parametrize("kind", ["char", "byte", "bpe"])
@pytest.mark.parametrize("order", [2, 3, 5])
def test_sentence_scores_match_kenlm(tmp_path, kind, order):
    kenlm = pytest.importorskip(
        "kenlm",
        reason="KenLM is not installed: pip install --no-build-isolation kenlm (requires cmake and a compiler)",
    )
    network, tokenizer, texts = train(kind, order)
    path = tmp_path / "model.arpa"
    arpa.write(path, network, tokenizer.tokens)
    theirs = kenlm.Model(str(path))
    assert theirs.order == order
    names = arpa.escape(tokenizer.tokens, tokenizer.end_id)
    for text in [*texts[:5], "The cat the the", texts[0][::-1], "x"]:
        ids = tokenizer.encode(text[:120])
        said = " ".join(names[i] for i in ids)
        assert theirs.score(said, bos=True, eos=True) == pytest.approx(
            score(network, ids), abs=1e-4, rel=1e-6
        )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("\\data\\", "\\date\\", "no line is"),
        ("ngram 2=3", "ngram 3=3", "line 5 is 'ngram 3=3', expected ngram 2="),
        ("ngram 2=3", "ngram 2=-3", "expected ngram 2="),
        ("ngram 2=3", "ngram 2=4", r"expected a number, 2 words"),
        ("ngram 2=3", "ngram 2=2", r"expected \\3-grams:"),
        ("ngram 2=3", "ngram 2=999999999999", "GB of memory"),
        ("ngram 1=5", "ngram 1=" + "9" * 40, "at most"),
        ("-0.3	the cat", "0.3	the cat", "log-probabilities"),
        ("-0.3	the cat", "nan	the cat", "log-probabilities"),
        ("-0.3	the cat", "x	the cat", "log-probabilities"),
        ("the cat	-0.5", "the cat	inf", "log-probabilities"),
        ("the cat	-0.5", "the dog	-0.5", "'dog', which is not among the 1-grams"),
        ("-0.3	the cat", "-0.3	the <s>", "where no sentence begins"),
        ("-0.3	the cat", "-0.3	</s> cat", "where no sentence begins"),
        ("<s> the cat", "cat the cat", "context is not among the shorter"),
        ("-0.2	cat </s>", "-0.2	the cat", "repeats the n-gram from an earlier line"),
        ("-0.7	cat", "-0.7	the", "repeats the word 'the' from an earlier line"),
        ("\\end\\", "", "the end of the file"),
        ("-0.5	the", "-0.5	" + "t" * 70_000, "longer than"),
    ],
)
def test_malformed_file_is_rejected_with_a_one_line_error(small, old, new, said):
    assert old in SMALL
    small.write_text(SMALL.replace(old, new, 1))
    with pytest.raises(UserError, match=said) as caught:
        arpa.read(small)
    assert "small.arpa" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_file_truncated_anywhere_is_rejected(small):
    whole = SMALL.encode().rstrip()
    for length in range(0, len(whole) - 1, 7):
        small.write_bytes(whole[:length])
        with pytest.raises(UserError):
            arpa.read(small)


def test_invalid_or_truncated_gzip_is_rejected(tmp_path):
    path = tmp_path / "small.arpa.gz"
    packed = gzip.compress(SMALL.encode())
    for content in (b"not packed", packed[: len(packed) // 2], packed[:40] + bytes(20) + packed[60:]):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"small\.arpa\.gz"):
            arpa.read(path)


@pytest.mark.parametrize("start", ["", "\\data\\\n", SMALL.partition("-2.0")[0]])
def test_only_the_beginning_of_many_empty_lines_is_read(start, tmp_path):
    path = tmp_path / "bomb.arpa.gz"
    path.write_bytes(gzip.compress(f"{start}{chr(10) * 5000}{SMALL}".encode()))
    with pytest.raises(UserError, match=r": line \d+ is the 1001st empty line"):
        arpa.load(path)


def test_only_the_beginning_of_a_long_preamble_is_read(tmp_path):
    path = tmp_path / "bomb.arpa.gz"
    path.write_bytes(gzip.compress(b"a\n" * 5000 + SMALL.encode()))
    with pytest.raises(UserError, match=r": line 1001 should be .data. or come after it"):
        arpa.load(path)


def test_words_missing_from_the_tokenizer_are_rejected(small):
    tokenizer = Tokenizer.train("byte", [])
    with pytest.raises(UserError, match="'the', which the tokenizer does not have"):
        arpa.read(small, tokenizer.tokens, tokenizer.end_id)


def test_missing_file_or_folder_is_rejected(tmp_path):
    for path, said in ((tmp_path / "none.arpa", "no such file"), (tmp_path, "folder")):
        with pytest.raises(UserError, match=said):
            arpa.read(path)
