"""Skip-gram: its steps against the formulas, what it draws, and words in like surroundings."""

import sys
from itertools import islice

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed, which compiles the training of word vectors")

from clearhead.classics import skip_gram
from clearhead.classics.skip_gram import CERTAIN, Settings, SkipGram, alias, keeping
from clearhead.classics.skip_gram_kernel import descend, draw_against, learn_stretch
from clearhead.errors import UserError
from clearhead.text.corpus import Document
from clearhead.text.stories import ANIMALS, stories
from clearhead.text.word_corpus import END, WordCorpus
from clearhead.word_vectors import learn_words


def learn(text, **settings):
    return learn_words([Document.of("text", text)], Settings(**settings))


@pytest.fixture(scope="module")
def story_words():
    """2,000 stories, a blank line between."""
    return "\n\n".join(told.text for told in islice(stories(), 2000))


def tables(V, D, seed=0):
    draw = np.random.default_rng(seed)
    return draw.normal(size=(V, D)), draw.normal(size=(V, D))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def loss(inputs, outputs, center, neighbor, against):
    """-log σ(x·y) for the neighbor, and -log σ(-x·y) for each word drawn against it."""
    x = inputs[center]
    return -np.log(sigmoid(x @ outputs[neighbor])) - sum(np.log(sigmoid(-x @ outputs[k])) for k in against)


def test_a_step_goes_down_the_gradient_of_the_loss():
    """The gradient is measured by small changes."""
    V, D, rate, small = 5, 6, 0.01, 1e-5
    inputs, outputs = tables(V, D)
    stepped = inputs.copy(), outputs.copy()
    descend(*stepped, 0, np.array([1, 2, 3, 4]), rate, np.ones(D), np.ones(4))
    for table, after in zip((inputs, outputs), stepped, strict=True):
        for place in np.ndindex(V, D):
            kept = table[place]
            table[place] = kept + small
            above = loss(inputs, outputs, 0, 1, [2, 3, 4])
            table[place] = kept - small
            below = loss(inputs, outputs, 0, 1, [2, 3, 4])
            table[place] = kept
            assert after[place] - kept == pytest.approx(-rate * (above - below) / (2 * small), abs=1e-11)


def test_a_step_equals_the_formulas():
    V, D, rate = 3, 5, 0.1
    inputs, outputs = tables(V, D, seed=1)
    x, y = inputs[0].copy(), outputs.copy()
    positive, negative = 1 - sigmoid(x @ y[1]), -sigmoid(x @ y[2])
    untouched = inputs[1:].copy()
    descend(inputs, outputs, 0, np.array([1, 2]), rate, np.ones(D), np.ones(2))
    assert np.allclose(inputs[0], x + rate * (positive * y[1] + negative * y[2]), rtol=0, atol=1e-14)
    assert np.allclose(outputs[1], y[1] + rate * positive * x, rtol=0, atol=1e-14)
    assert np.allclose(outputs[2], y[2] + rate * negative * x, rtol=0, atol=1e-14)
    assert np.array_equal(outputs[0], y[0])
    assert np.array_equal(inputs[1:], untouched)


def test_a_step_from_very_far_off_is_finite():
    inputs, outputs = np.full((1, 4), -1e4, np.float32), np.full((2, 4), 1e4, np.float32)
    outputs[1] *= -1
    descend(inputs, outputs, 0, np.array([0, 1]), 0.5, np.ones(4, np.float32), np.ones(2, np.float32))
    assert np.isfinite(inputs).all()
    assert inputs[0].tolist() == [0] * 4  # half of 1e4 for each of the two
    assert outputs.tolist() == [[5e3] * 4, [-5e3] * 4]


def test_the_neighbor_itself_is_not_drawn_against_its_pair():
    words, weights = np.zeros(2001, np.int64), np.array([1.0, 2.0, 1.0, 4.0])
    n, state = draw_against(1, *alias(weights), words, np.uint64(3))
    assert words[0] == 1
    drawn = np.bincount(words[1:n], minlength=4)
    assert drawn[1] == 0
    # Two of eight were neighbors; deviations are below √2000 / 2 = 22.
    assert drawn / 2000 == pytest.approx([1 / 8, 0, 1 / 8, 1 / 2], abs=0.05)
    again = draw_against(1, *alias(weights), words, state)
    assert again[1] != state


def stretch(ids, window=5, kept=None, seed=1, V=20):
    """How many pairs a stretch of text gives, and which words' vectors changed."""
    inputs, outputs = tables(V, 4)
    before = inputs.copy()
    all_kept = np.full(V, CERTAIN, np.uint32)
    sure, other = alias(np.ones(V))
    n = learn_stretch(
        inputs,
        outputs,
        np.array(ids, np.int32),
        all_kept if kept is None else kept,
        sure,
        other,
        window,
        2,
        0.1,
        0.05,
        np.uint64(seed),
    )
    return n, np.flatnonzero((inputs != before).any(1)).tolist()


def test_a_window_of_one_pairs_each_word_with_the_next():
    assert stretch([0, 1, 2, 3], window=1) == (6, [0, 1, 2, 3])


def test_no_window_reaches_over_the_end_of_a_passage():
    assert stretch([0, END, 1, END, END, 2], window=5) == (0, [])
    assert stretch([0, 1, END, 2, 3, END], window=5) == (4, [0, 1, 2, 3])


def test_windows_are_reduced_evenly():
    """Of 1 to 5 words on each side, 3 on average."""
    n, _ = stretch(list(range(20)) * 500)
    assert n / 10_000 == pytest.approx(6, abs=0.1)  # its deviation is 2·√2 / √10,000 = 0.03


def test_skipped_words_make_no_pairs():
    kept = np.full(20, CERTAIN, np.uint32)
    kept[5:] = 0
    n, changed = stretch(list(range(20)), window=1, kept=kept)
    assert (n, changed) == (8, [0, 1, 2, 3, 4])
    kept[:] = CERTAIN // 4
    n, _ = stretch(list(range(20)) * 500, window=1, kept=kept)
    assert n == pytest.approx(2 * 2500, rel=0.1)


def test_frequent_words_are_skipped_by_word2vec_s_formula():
    counts = np.array([9000, 900, 99, 1])
    assert keeping(counts, 1e-2).tolist() == pytest.approx(
        [(np.sqrt(f / 1e-2) + 1) * 1e-2 / f if f > 0.02 else 1 for f in counts / 10_000]
    )
    assert keeping(counts, 0).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("seed", range(5))
def test_words_are_drawn_by_their_weights(seed):
    """What the two numbers a word mean together is exactly the weights."""
    weights = np.random.default_rng(seed).integers(1, 10_000, 50) ** 0.75
    sure, other = alias(weights)
    drawn = np.zeros(50)
    for word in range(50):
        drawn[word] += sure[word] / CERTAIN / 50
        drawn[other[word]] += (1 - sure[word] / CERTAIN) / 50
    assert np.allclose(drawn, weights / weights.sum(), atol=1e-9)
    assert alias(np.ones(1))[1].tolist() == [0]


SMALL = {"width": 16, "epochs": 2, "min_count": 1}


def test_one_worker_and_a_seed_give_the_same_bits(story_text, monkeypatch):
    monkeypatch.setattr(skip_gram, "STRETCH", 1000)
    one = learn(story_text, **SMALL, seed=3, workers=1)
    again = learn(story_text, **SMALL, seed=3, workers=1)
    other = learn(story_text, **SMALL, seed=4, workers=1)
    assert one.words == again.words == other.words
    assert one.vectors.tobytes() == again.vectors.tobytes()
    assert not np.allclose(one.vectors, other.vectors, atol=1e-3)


def test_several_workers_learn_from_the_same_pairs(story_text, monkeypatch):
    monkeypatch.setattr(skip_gram, "STRETCH", 1000)
    corpus = WordCorpus.read([Document.of("text", story_text)])
    ends = []
    for workers in (1, 3):
        *_, last = SkipGram(corpus, Settings(**SMALL, workers=workers))
        ends.append(last)
    assert ends[0] == ends[1]
    assert ends[0].words == ends[0].of == 2 * len(corpus.ids)


def test_the_rate_falls_to_word2vec_s_last():
    learner = SkipGram(WordCorpus.read([Document.of("text", "a b c d")]), Settings(epochs=2, min_count=1))
    assert [learner._rate(n) for n in (0, 5, 10)] == pytest.approx([0.025, 0.0125, 0.0001])


def test_breaking_off_ends_the_threads(story_text, monkeypatch):
    monkeypatch.setattr(skip_gram, "STRETCH", 100)
    corpus = WordCorpus.read([Document.of("text", story_text)])
    learner = iter(SkipGram(corpus, Settings(**SMALL, workers=2)))
    assert next(learner).words == 100
    learner.close()
    with pytest.raises(StopIteration):
        next(learner)


@pytest.mark.parametrize("seed", range(3))
def test_animals_are_the_neighbors_of_the_cat(story_words, seed):
    """Words in like surroundings get like vectors: with eight seeds no other word came among the first 15."""
    vectors = learn(story_words, width=50, window=2, epochs=10, workers=1, seed=seed)
    nearest = [word for word, _ in vectors.nearest("cat", len(ANIMALS) - 1)]
    assert sorted(nearest) == sorted(set(ANIMALS) - {"cat"})
    assert vectors.cosine("cat", "dog") > 0.5  # 0.62 to 0.74
    assert vectors.cosine("cat", "kite") < 0.25  # 0.09 to 0.13


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "width = 0: expected a whole number from 1"),
        ({"window": 2.5}, "window = 2.5"),
        ({"epochs": True}, "epochs = True"),
        ({"seed": -1}, "seed = -1: expected a whole number from 0"),
        ({"workers": 0}, "workers = 0"),
        ({"sample": 2}, "sample = 2: expected a number from 0 to 1"),
        ({"rate": float("nan")}, "rate = nan"),
        ({"min_count": None}, "min_count = None"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(UserError, match=message):
        Settings(**settings)


def test_without_numba_a_line_says_what_to_install(monkeypatch, story_text):
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(
        UserError, match=r"needs numba, which is not installed: pip install 'clearhead\[numba\]'"
    ):
        learn(story_text)
