"""Probes on a small random network find what must be there, and nothing where nothing can be."""

import random

import numpy as np
import pytest
import threadpoolctl
import torch

import clearhead
from clearhead.errors import UserError
from clearhead.labs.probe import probe
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = preset("gpt2", n_vocab=257, n_context=24, n_block=2, n_head=2, d_model=16)
    network = Transformer(config)
    for parameter in network.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    return LanguageModel(network, Tokenizer.train("byte", []))


@pytest.fixture(scope="module")
def texts():
    """Distinct five-letter words with the same last letter."""
    draw = random.Random(0)
    made = {draw.choice("ab") + "".join(draw.choices("cdef", k=3)) + "x" for _ in range(80)}
    return sorted(made)


@pytest.fixture(autouse=True)
def one_control(request, monkeypatch):
    """Shuffle the labels once, except where the accuracy with shuffled labels is tested."""
    if not request.node.get_closest_marker("slow"):
        monkeypatch.setattr("clearhead.labs.probe.SHUFFLES", 1)


@pytest.mark.slow
def test_first_letter_reaches_the_last_position_through_attention(model, texts):
    labels = [text[0] for text in texts]
    static = probe(model, texts, labels, "embedding")
    moved = probe(model, texts, labels, "block.1.input")
    assert static.accuracy == pytest.approx(static.majority, abs=0.05)
    assert moved.accuracy > 0.85
    assert moved.control < 0.65
    assert len(moved.folds) == 5
    assert moved.labels == ["a", "b"]
    assert "shuffled" in str(moved)


def test_random_labels_are_not_predictable(model, texts):
    draw = random.Random(1)
    found = probe(model, texts, [draw.choice([True, False]) for _ in texts], "block.1.output")
    assert found.accuracy < 0.7


def test_labels_per_token(model, texts):
    labels = [[letter if letter in "abcd" else None for letter in text] for text in texts]
    found = probe(model, texts, labels, "block.0.input", folds=3)
    assert found.labels == ["a", "b", "c", "d"]
    assert found.count == sum(letter in "abcd" for text in texts for letter in text)
    assert found.accuracy == 1
    vectors = torch.cat([model.inspect(text)["block.0.input"] for text in texts])
    said = found.predict(vectors)
    letters = "".join(texts)
    assert all(one == other for one, other in zip(said, letters, strict=True) if other in "abcd")


def test_direction_is_in_the_units_of_the_site_values(model, texts):
    found = probe(model, texts, [text[0] for text in texts], "block.1.input", at=[0] * len(texts))
    assert found.direction.shape == (1, 16)
    assert found.predict(torch.stack([model.inspect(t)["block.1.input"][0] for t in texts])) == [
        text[0] for text in texts
    ]


def test_copies_of_a_text_share_a_fold(model):
    """Twenty texts, ten copies each, with random labels: memorizable, but not predictable for unseen texts."""
    draw = random.Random(3)
    texts = ["".join(draw.choices("cdef", k=6)) for _ in range(20)]
    labels = [draw.choice("pq") for _ in texts]
    found = probe(model, texts * 10, labels * 10, "block.1.output")
    assert found.accuracy < 0.8


def test_words_as_positions_and_scalar_sites(model):
    texts = [f"{noun} sat {verb}" for noun in ("cat", "dog") for verb in ("up", "in", "by", "on", "to", "at")]
    found = probe(model, texts, [text[:3] for text in texts], "block.0.output", at="sat")
    assert found.accuracy > 0.9
    assert probe(model, texts, [text[:3] for text in texts], "block.1.normed.scale", at="sat").count == 12


def test_arrays_and_tensors_are_accepted_as_lists(model, texts):
    letters = [text[0] for text in texts]
    plain = probe(model, texts, letters, "block.1.input")
    numbers = [int(letter == "b") for letter in letters]
    assert (
        probe(model, np.array(texts), np.array(letters), "block.1.input", at=np.int64(-1)).folds
        == plain.folds
    )
    for labels in (
        torch.tensor(numbers),
        list(np.array(numbers)),
    ):
        found = probe(model, texts, labels, "block.1.input", at=np.full(len(texts), -1), folds=np.int64(5))
        assert found.labels == [0, 1]
        assert type(found.labels[0]) is int
        assert found.folds == plain.folds
    tokens = [torch.tensor([ord(letter) for letter in text]) for text in texts]
    assert probe(model, texts, tokens, "embedding", folds=2).count == 5 * len(texts)


def test_texts_labeled_none_are_skipped(model, texts):
    labels = [text[0] for text in texts]
    found = probe(model, [*texts, "not this"], [*labels, None], "block.1.input")
    assert found.folds == probe(model, texts, labels, "block.1.input").folds
    assert found.count == len(texts)


def test_small_fits_use_one_thread(model, texts, monkeypatch):
    """With more threads, a busy machine spends most of the time synchronizing them."""
    threads = []

    def fit(vectors, numbers):
        pools = threadpoolctl.threadpool_info()
        threads.append(max(each["num_threads"] for each in pools if each["user_api"] == "blas"))
        return torch.zeros(1, 16), torch.zeros(1)

    monkeypatch.setattr("clearhead.labs.probe._fit", fit)
    with threadpoolctl.threadpool_limits(2):
        probe(model, texts, [text[0] for text in texts], "embedding")
        monkeypatch.setattr("clearhead.labs.probe.SMALL", 0)
        probe(model, texts, [text[0] for text in texts], "embedding")
    assert threads == [1, 2]


def test_probe_is_public_and_rejects_non_models():
    with pytest.raises(UserError, match="a str cannot be probed"):
        probe("runs/my", ["a"], [1], "embedding")
    assert clearhead.probe is probe


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"labels": [1, 0]}, "80 texts and 2 labels"),
        ({"texts": "one text"}, "expected a list"),
        ({"site": "block.9.input"}, "blocks 0 to 1"),
        ({"site": "block.0.head.0.weights"}, "a column for each position"),
        ({"at": 99}, "positions 0 to 4"),
        ({"at": "nowhere"}, "not a word of this text"),
        ({"at": [1, 2]}, "2 places for"),
        ({"labels": "same"}, "at least two different"),
        ({"labels": "rare"}, "too few for 5 folds"),
        ({"labels": "none"}, "all labels are None"),
        ({"texts": [], "labels": []}, "no texts were given"),
        ({"texts": 3}, "texts has type int: expected a list"),
        ({"texts": "numbers"}, r"texts\[0\] has type int"),
        ({"labels": None}, "labels has type NoneType"),
        ({"labels": "sets"}, "a label has type set"),
        ({"at": 1.5}, "expected a position, a word"),
        ({"site": 3}, "site = 3: expected a name"),
        ({"folds": 1}, "expected at least 2"),
        ({"folds": "a"}, "folds = 'a': expected at least 2"),
        ({"seed": -1}, "seed = -1: expected 0 to"),
        ({"seed": 0.5}, "seed = 0.5: expected 0 to"),
        ({"labels": "short"}, "1 labels and 5 tokens"),
    ],
)
def test_invalid_arguments_are_rejected(model, texts, changed, message):
    n = len(texts)
    odd = {"same": ["y"] * n, "rare": ["y", *["z"] * (n - 1)], "short": [["y"]] * n}
    odd |= {"none": [None] * n, "sets": [{text[0]} for text in texts]}
    asked = {"texts": texts, "labels": [text[0] for text in texts], "site": "embedding", **changed}
    if asked["texts"] == "numbers":
        asked["texts"] = [1] * n
    if isinstance(asked["labels"], str):
        asked["labels"] = odd[asked["labels"]]
    with pytest.raises(UserError, match=message.replace("80", str(n))):
        probe(model, **asked)


def test_probe_is_shown_without_its_weights(model, texts):
    found = probe(model, texts, [text[0] for text in texts], "block.1.input", at=[0] * len(texts))
    assert repr(found) == f"Probe({found})"
    assert "\n" not in repr(found)
    assert f"{found.accuracy:.1%}" in found._repr_html_()
