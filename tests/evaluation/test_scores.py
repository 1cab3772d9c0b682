"""Scores against sums of `model.logits`, computed here token by token."""

import dataclasses
import json
import math
import string

import pytest
import torch

import clearhead as ch
from clearhead.cli import run
from clearhead.errors import UserError
from clearhead.evaluation.continuation import Continuation
from clearhead.evaluation.item_file import write_items
from clearhead.evaluation.items import EvaluationItem
from clearhead.evaluation.minimal_pairs import minimal_pairs
from clearhead.language_model import LanguageModel
from clearhead.text.tokenizer import Tokenizer

QUESTION = "Anna lived near the"


@pytest.fixture(scope="module")
def stories():
    return ch.load("stories", "cpu")


def log_probability(model, context, text):
    """The log-probability of a text after a context, one forward pass per token."""
    first = model.tokenizer.start_ids or ([] if context else [model.tokenizer.end_id])
    before = first + model.tokenizer.encode(context)
    ids = first + model.tokenizer.encode(context + text)
    total = 0.0
    for i in range(len(before), len(ids)):
        total += torch.log_softmax(model.logits(ids[:i])[-1].double(), -1)[ids[i]].item()
    return total


def test_log_probabilities_equal_a_computation_by_hand(stories):
    items = [
        EvaluationItem("pair", "", ("The cat was tired.", "The cat were tired.")),
        EvaluationItem("choice", QUESTION, ("park.", "forest", "was"), 1),
        EvaluationItem("choice", QUESTION + " ", ("park.", "valley"), 0),
        EvaluationItem("cloze", "Once upon a", ("time",)),
    ]
    scores = ch.score(stories, items).scores
    assert [each.item for each in scores] == items
    for each in scores:
        context = each.item.context.rstrip()
        between = " " if context else ""
        for option, found in zip(each.item.options, each.log_probabilities, strict=True):
            expected = log_probability(stories, context, between + option)
            assert found == pytest.approx(expected, abs=1e-4)
    assert scores[1].tokens == (2, 1, 1)
    assert scores[1].bytes == (5, 6, 3)
    ids = stories.generate("Once upon a", tokens=1, temperature=0).ids
    assert scores[3].correct == (stories.tokenizer.decode(ids) == " time")


def test_table_holds_the_shares_of_right_answers(stories):
    items = [
        EvaluationItem("choice", QUESTION, ("park", "was", "."), 0, "easy"),
        EvaluationItem("choice", QUESTION, ("was", "park"), 0, "hard"),
        EvaluationItem("choice", QUESTION, ("valley", "was"), 0, "easy"),
    ]
    scores = ch.score(stories, items)
    assert [(each.category, each.items, each.accuracy) for each in scores.groups] == [
        (None, 3, pytest.approx(2 / 3)),
        ("easy", 2, 1.0),
        ("hard", 1, 0.0),
    ]
    whole = scores.groups[0]
    assert whole.chance == pytest.approx((1 / 3 + 1 / 2 + 1 / 2) / 3)
    nats = sum(each.log_probabilities[0] for each in scores.scores)
    assert whole.bits_per_byte == pytest.approx(-nats / math.log(2) / len("parkwasvalley"))
    assert "66.7%" in repr(scores)
    assert "hard" in scores._repr_html_()


@pytest.fixture
def indifferent(model):
    """A model for which every token has the same probability."""
    model.network.unembedding.weight.data *= 0
    return LanguageModel(model.network, model.tokenizer, name="indifferent")


def test_ties_count_as_wrong(indifferent):
    items = [
        EvaluationItem("pair", "", ("abc", "cba")),
        EvaluationItem("pair", "", ("ab", "cba")),
        EvaluationItem("cloze", "ab", ("c",)),
    ]
    scores = ch.score(indifferent, items).scores
    assert [each.correct for each in scores] == [False, True, False]
    assert [each.correct_per_byte for each in scores] == [False, False, False]


def test_long_contexts_are_cut(model):
    limit = model.config.n_context
    [cut, whole] = ch.score(
        model, [EvaluationItem("cloze", "cat " * limit, ("c",)), EvaluationItem("cloze", "cat", ("c",))]
    ).scores
    assert (cut.truncated, whole.truncated) == (True, False)
    kept = ("cat " * limit).rstrip()[-(limit - 1) :]  # the model reads it, and the space, to predict the c
    assert cut.log_probabilities[0] == pytest.approx(log_probability(model, kept, " c"), abs=1e-4)


def test_items_with_a_long_text_are_left_out(model, model_folder, tmp_path, capsys):
    long = "cat " * model.config.n_context
    items = [
        EvaluationItem("pair", "", ("cat", "dog")),
        EvaluationItem("pair", "", (long, "cat")),
        EvaluationItem("cloze", "", (long,)),
        EvaluationItem("cloze", "cat", ("c",)),
    ]
    path = tmp_path / "items.jsonl"
    write_items(path, items)
    scores = ch.score(model, path)
    alone = ch.score(model, [items[0], items[3]])
    assert [each.item.options for each in scores.scores] == [("cat", "dog"), ("c",)]
    assert [each.log_probabilities for each in scores.scores] == [
        pytest.approx(each.log_probabilities) for each in alone.scores
    ]
    assert [each.item.place for each in scores.left_out] == [f"{path}, line 2", f"{path}, line 3"]
    assert run(["score", str(model_folder), str(path), "--device", "cpu"]) == 0
    tokens = len(model.tokenizer.encode(long))
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith(
        f"items.jsonl, line 2: a text has {tokens:,} tokens; the model's context is {model.config.n_context}"
    )
    assert last.startswith("2 of 4 items left out as too long: first, ")
    assert last in repr(scores)
    assert "2 of 4 items left out" in scores._repr_html_()
    assert run(["score", str(model_folder), str(path), "--device", "cpu", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [(each["place"], each["kind"], each["tokens"]) for each in data["left_out"]] == [
        (f"{path}, line 2", "pair", tokens),
        (f"{path}, line 3", "cloze", tokens),
    ]
    assert sum(each["items"] for each in data["groups"]) == 2
    assert (alone.left_out, alone.note, alone.to_dict()["left_out"]) == ((), "", [])
    with pytest.raises(UserError, match=r"^none of the 2 items fits: first, a text has \d+ tokens"):
        ch.score(model, items[1:3])


def test_context_and_text_are_split_where_the_context_alone_ends(stories):
    tokenizer, n_vocab = stories.tokenizer, stories.config.n_vocab
    for context, text in (("The cat", " was tired"), ("The cat ", "was")):
        found = Continuation.encode(tokenizer, context, text, n_vocab)
        assert list(found.ids) == tokenizer.encode(context + text)
        assert found.start == len(tokenizer.encode("The cat"))
    alone = Continuation.encode(tokenizer, "", "The cat", n_vocab)
    assert alone.ids == (tokenizer.end_id, *tokenizer.encode("The cat"))
    assert alone.start == 1


def test_text_that_merges_with_its_context_keeps_a_token(stories):
    tokenizer = stories.tokenizer
    assert len(tokenizer.encode("The c")) == len(tokenizer.encode("The cat was")) == 3
    assert Continuation.encode(tokenizer, "The c", "at was", stories.config.n_vocab).length == 1


def test_the_built_in_model_knows_its_english(stories):
    """Far above chance in every category. The figures of all pairs are in docs/report.md."""
    scores = ch.score(stories, minimal_pairs(pairs=8))
    assert len(scores.groups) == 7
    assert min(group.accuracy for group in scores.groups) >= 0.9
    assert scores.groups[0].interval[0] > 0.85 > scores.groups[0].chance == 0.5


def test_command_prints_the_table_and_every_item(stories, tmp_path, capsys):
    path = tmp_path / "pairs.jsonl"
    write_items(path, minimal_pairs(pairs=2))
    assert run(["score", "stories", str(path), "--device", "cpu", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    scores = ch.score(stories, path)
    assert printed == json.loads(json.dumps(scores.to_dict()))
    assert printed["items"][0]["place"] == f"{path}, line 1"
    assert run(["score", "stories", "--pairs", "2", "--save", str(tmp_path / "again.jsonl")]) == 0
    assert (tmp_path / "again.jsonl").read_text() == path.read_text()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:4] == ["kind", "category", "items", "accuracy"]
    assert [line.split()[0] for line in lines[1:]] == ["pair"] * 7


def test_pairs_that_a_model_cannot_read_are_left_out(stories, capsys, tmp_path):
    """A model of characters that has seen no quotation marks, and one whose context is short."""
    letters = Tokenizer.train("char", [string.ascii_letters + " .,!?'"])
    config = dataclasses.replace(stories.config, n_vocab=letters.n_vocab, n_context=400)
    ch.LanguageModel(ch.Transformer(config), letters).save(tmp_path / "letters")
    assert run(["score", str(tmp_path / "letters"), "--device", "cpu", "--json"]) == 0
    shown = capsys.readouterr()
    data = json.loads(shown.out)
    known = [
        item for item in minimal_pairs() if not set(item.context + "".join(item.options)) & {'"', "-", ";"}
    ]
    assert [each["good"] for each in data["items"]] == [item.options[0] for item in known]
    assert 300 < len(known) < 600
    assert f"{600 - len(known)} pairs of 600 left out: letters lacks a character" in shown.err
    short = ch.LanguageModel(ch.Transformer(dataclasses.replace(config, n_context=20)), letters)
    assert all(len(item.item.options[0]) <= 20 for item in ch.score(short).scores)
    digits = Tokenizer.train("char", ["0123456789"])
    numbers = ch.LanguageModel(ch.Transformer(dataclasses.replace(config, n_vocab=digits.n_vocab)), digits)
    with pytest.raises(UserError, match="is not among the 10 characters"):
        ch.score(numbers)
