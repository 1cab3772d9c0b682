"""The script that trains the built-in model: its text, its tokenizer, and what it writes."""

import re

import pytest

import clearhead as ch
from clearhead.formats.opening import list_snapshots
from clearhead.labs.catalog import WILL
from clearhead.text.stories import GIRLS, story
from tools.stories_corpus import HABIT_OF, LECTURE_SENTENCES, list_words, make_corpus, train_tokenizer
from tools.train_stories import main, measure_fluency


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(list_words())


def texts(documents):
    return ["".join(document.read()) for document in documents]


def test_text_is_reproducible_and_validation_is_unseen():
    one, other = make_corpus(20, validation=10), make_corpus(20, validation=10)
    assert texts(one.training) == texts(other.training)
    assert one.tokenizer.to_json() == other.tokenizer.to_json()
    assert not set(texts(one.training)) & set(texts(one.validation))


def test_lists_are_repeated_once():
    *_, lists, _ = texts(make_corpus(100, validation=1).training)
    for line in lists.splitlines():
        words = line.split(" ")
        assert words[: len(words) // 2] == words[len(words) // 2 :]


def test_verb_after_a_pronoun_depends_on_its_antecedent():
    *_, habits = texts(make_corpus(200, validation=1).training)
    nouns = {verb: noun for noun, verb in HABIT_OF.items()}
    assert len(nouns) == len(HABIT_OF)
    checked = 0
    for line in habits.splitlines():
        for found in re.finditer(r"\b(she|he|it) (\w+)", line, re.IGNORECASE):
            if (noun := nouns.get(found[2])) is not None:
                assert re.search(rf"\b{noun}\b", line[: found.start()])
                assert (found[1].lower() == "she") == (noun in GIRLS)
                checked += 1
    assert checked > 100


def test_every_word_is_one_token(tokenizer):
    sentences = [*LECTURE_SENTENCES, WILL, "Once upon a time", *(story(7, i).text for i in range(50))]
    for text in sentences:
        pieces = [piece.strip() for piece in tokenizer.pieces(tokenizer.encode(text))]
        words = re.findall(r"[A-Za-z]+", text)
        assert [piece for piece in pieces if piece.isalpha()] == [
            word
            for word in words
            if word not in ("t", "m")  # as in didn't and I'm
        ]


def test_unknown_words_are_split_into_bytes(tokenizer):
    text = "Zelda für 3 …"
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_fluency_counts_sentences_and_names():
    told = story(3, 1).text
    assert measure_fluency([told]) == {"parsed": 1.0, "same_names": 1.0}
    assert measure_fluency(["Anna saw Ben and Clara run run."]) == {"parsed": 0.0, "same_names": 0.0}


def test_script_writes_a_model_that_opens(tmp_path):
    out = tmp_path / "stories"
    sizes = ["--blocks", "1", "--width", "16", "--heads", "2", "--batch", "2", "--context", "32"]
    small = ["--steps", "16", "--stories", "30", "--validation", "2", "--device", "cpu", "--out", str(out)]
    report = main([*small, *sizes])
    model = ch.load(out, device="cpu")
    assert report["parameters"] == model.config.n_parameter
    assert report["bytes"] == sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    assert report["validation_loss"] > 0
    assert len(report["samples"]) == 3
    assert report["heads"].keys() == {"previous", "first", "repeated", "induction", "antecedent"}
    assert list_snapshots(out) == [1, 2]
    assert str(tmp_path) not in (out / "run.json").read_text()
    assert ch.load(out, device="cpu", step=2).config == model.config
