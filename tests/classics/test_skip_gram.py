"""Skip-gram: its steps against the formulas, its sampling, and similar vectors in similar contexts."""

import sys
from itertools import islice

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba, which compiles word-vector training, is not installed")

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
    """2,000 stories separated by blank lines."""
    return "\n\n".join(told.text for told in islice(stories(), 2000))


def tables(V, D, seed=0):
    draw = np.random.default_rng(seed)
    return draw.normal(size=(V, D)), draw.normal(size=(V, D))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def loss(inputs, outputs, center, neighbor, against):
    """-log σ(x·y) for the neighbor, and -log σ(-x·y) for each negative sample."""
    x = inputs[center]
    return -np.log(sigmoid(x @ outputs[neighbor])) - sum(np.log(sigmoid(-x @ outputs[k])) for k in against)


def test_step_descends_the_gradient_of_the_loss():
    """The gradient is computed by finite differences."""
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


def test_step_matches_the_formulas():
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


def test_step_from_extreme_values_is_finite():
    inputs, outputs = np.full((1, 4), -1e4, np.float32), np.full((2, 4), 1e4, np.float32)
    outputs[1] *= -1
    descend(inputs, outputs, 0, np.array([0, 1]), 0.5, np.ones(4, np.float32), np.ones(2, np.float32))
    assert np.isfinite(inputs).all()
    assert inputs[0].tolist() == [0] * 4  # each of the two contributes half of 1e4
    assert outputs.tolist() == [[5e3] * 4, [-5e3] * 4]


def test_neighbor_is_never_its_own_negative_sample():
    words, weights = np.zeros(2001, np.int64), np.array([1.0, 2.0, 1.0, 4.0])
    n, state = draw_against(1, *alias(weights), words, np.uint64(3))
    assert words[0] == 1
    drawn = np.bincount(words[1:n], minlength=4)
    assert drawn[1] == 0
    # The neighbor has 2/8 of the weight; standard deviations are below √2000 / 2 = 22.
    assert drawn / 2000 == pytest.approx([1 / 8, 0, 1 / 8, 1 / 2], abs=0.05)
    again = draw_against(1, *alias(weights), words, state)
    assert again[1] != state


def stretch(ids, window=5, kept=None, seed=1, V=20):
    """Return the number of pairs in a stretch of text, and the words whose vectors changed."""
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


def test_window_of_one_pairs_adjacent_words():
    assert stretch([0, 1, 2, 3], window=1) == (6, [0, 1, 2, 3])


def test_windows_do_not_cross_passage_ends():
    assert stretch([0, END, 1, END, END, 2], window=5) == (0, [])
    assert stretch([0, 1, END, 2, 3, END], window=5) == (4, [0, 1, 2, 3])


def test_window_sizes_are_sampled_uniformly():
    """A window has 1 to 5 words on each side, 3 on average."""
    n, _ = stretch(list(range(20)) * 500)
    assert n / 10_000 == pytest.approx(6, abs=0.1)  # standard deviation: 2·√2 / √10,000 = 0.03


def test_skipped_words_form_no_pairs():
    kept = np.full(20, CERTAIN, np.uint32)
    kept[5:] = 0
    n, changed = stretch(list(range(20)), window=1, kept=kept)
    assert (n, changed) == (8, [0, 1, 2, 3, 4])
    kept[:] = CERTAIN // 4
    n, _ = stretch(list(range(20)) * 500, window=1, kept=kept)
    assert n == pytest.approx(2 * 2500, rel=0.1)


def test_frequent_words_are_subsampled_by_the_word2vec_formula():
    counts = np.array([9000, 900, 99, 1])
    assert keeping(counts, 1e-2).tolist() == pytest.approx(
        [(np.sqrt(f / 1e-2) + 1) * 1e-2 / f if f > 0.02 else 1 for f in counts / 10_000]
    )
    assert keeping(counts, 0).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("seed", range(5))
def test_words_are_sampled_by_weight(seed):
    """Together, the two numbers the alias table stores per word reproduce the weights exactly."""
    weights = np.random.default_rng(seed).integers(1, 10_000, 50) ** 0.75
    sure, other = alias(weights)
    drawn = np.zeros(50)
    for word in range(50):
        drawn[word] += sure[word] / CERTAIN / 50
        drawn[other[word]] += (1 - sure[word] / CERTAIN) / 50
    assert np.allclose(drawn, weights / weights.sum(), atol=1e-9)
    assert alias(np.ones(1))[1].tolist() == [0]


SMALL = {"width": 16, "epochs": 2, "min_count": 1}


def test_one_worker_is_bitwise_reproducible_with_a_seed(story_text, monkeypatch):
    monkeypatch.setattr(skip_gram, "STRETCH", 1000)
    one = learn(story_text, **SMALL, seed=3, workers=1)
    again = learn(story_text, **SMALL, seed=3, workers=1)
    other = learn(story_text, **SMALL, seed=4, workers=1)
    assert one.words == again.words == other.words
    assert one.vectors.tobytes() == again.vectors.tobytes()
    assert not np.allclose(one.vectors, other.vectors, atol=1e-3)


def test_several_workers_train_on_the_same_pairs(story_text, monkeypatch):
    monkeypatch.setattr(skip_gram, "STRETCH", 1000)
    corpus = WordCorpus.read([Document.of("text", story_text)])
    ends = []
    for workers in (1, 3):
        *_, last = SkipGram(corpus, Settings(**SMALL, workers=workers))
        ends.append(last)
    assert ends[0] == ends[1]
    assert ends[0].words == ends[0].of == 2 * len(corpus.ids)


def test_learning_rate_decays_to_the_word2vec_minimum():
    learner = SkipGram(WordCorpus.read([Document.of("text", "a b c d")]), Settings(epochs=2, min_count=1))
    assert [learner._rate(n) for n in (0, 5, 10)] == pytest.approx([0.025, 0.0125, 0.0001])


def test_closing_the_iterator_stops_the_threads(story_text, monkeypatch):
    monkeypatch.setattr(skip_gram, "STRETCH", 100)
    corpus = WordCorpus.read([Document.of("text", story_text)])
    learner = iter(SkipGram(corpus, Settings(**SMALL, workers=2)))
    assert next(learner).words == 100
    learner.close()
    with pytest.raises(StopIteration):
        next(learner)


@pytest.mark.parametrize("seed", range(3))
def test_nearest_neighbors_of_cat_are_animals(story_words, seed):
    """Words in similar contexts get similar vectors: with eight seeds, only animals were in the top 15."""
    vectors = learn(story_words, width=50, window=2, epochs=10, workers=1, seed=seed)
    nearest = [word for word, _ in vectors.nearest("cat", len(ANIMALS) - 1)]
    assert sorted(nearest) == sorted(set(ANIMALS) - {"cat"})
    assert vectors.cosine("cat", "dog") > 0.5  # observed: 0.62 to 0.74
    assert vectors.cosine("cat", "kite") < 0.25  # observed: 0.09 to 0.13


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "width = 0: expected an integer from 1"),
        ({"window": 2.5}, "window = 2.5"),
        ({"epochs": True}, "epochs = True"),
        ({"seed": -1}, "seed = -1: expected an integer from 0"),
        ({"workers": 0}, "workers = 0"),
        ({"sample": 2}, "sample = 2: expected a number from 0 to 1"),
        ({"learning_rate": float("nan")}, "learning_rate = nan"),
        ({"min_count": None}, "min_count = None"),
    ],
)
def test_invalid_settings_are_rejected(settings, message):
    with pytest.raises(UserError, match=message):
        Settings(**settings)


def test_missing_numba_error_says_what_to_install(monkeypatch, story_text):
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(
        UserError, match=r"needs numba, which is not installed: pip install 'clearhead\[numba\]'"
    ):
        learn(story_text)
