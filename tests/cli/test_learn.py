"""`clearhead learn`: the numbers shown are those of the lesson."""

import json
import math
import re

import pytest

import clearhead as ch
from clearhead.cli.learn import _why

TEXT = "The cat sat."


@pytest.fixture
def lesson(model):
    return ch.learn(model, TEXT)


def test_step_is_shown_with_its_losses(clearhead, model_folder, lesson):
    result = clearhead("learn", model_folder, TEXT, "--other", "A dog ran.")
    assert (result.code, result.err) == (0, "")
    after = ch.learn(lesson.apply(), TEXT)
    shown = re.search(r"^loss on this text +([\d.]+) → ([\d.]+)$", result.out, re.MULTILINE)
    assert list(map(float, shown.groups())) == pytest.approx([lesson.loss, after.loss], abs=6e-5)
    others = [ch.learn(each, "A dog ran.").loss for each in (lesson.model, lesson.apply())]
    shown = re.search(r"^loss on the other +([\d.]+) → ([\d.]+)$", result.out, re.MULTILINE)
    assert list(map(float, shown.groups())) == pytest.approx(others, abs=6e-5)
    rows = re.findall(r"^(\S+) +(\S+) +<?([\d.]+) +([\d.]+) +([\d.]+)$", result.out, re.MULTILINE)
    assert [row[0] for row in rows] == list(TEXT[:-1].replace(" ", "␣"))
    assert [float(row[3]) for row in rows] == pytest.approx(lesson.losses[:-1].tolist(), abs=6e-5)
    assert [float(row[4]) for row in rows] == pytest.approx(after.losses[:-1].tolist(), abs=6e-5)


def test_step_as_json(clearhead, model_folder, lesson):
    document = json.loads(clearhead("learn", model_folder, TEXT, "--json").out)
    assert document["other"] is None
    assert document["loss"]["before"] == pytest.approx(lesson.loss)
    assert [each["target"] for each in document["tokens"]] == list(TEXT[1:])
    changes = [each["loss_change"] for each in document["weights"]]
    assert changes == sorted(changes)
    name = document["weights"][0]["name"]
    change = lesson.apply().weight(name) - lesson.model.weight(name)
    assert document["weights"][0]["change"] == pytest.approx(change.norm().item(), rel=1e-4)
    shown = clearhead("learn", model_folder, TEXT).out
    change = document["loss"]["after"] - document["loss"]["before"]
    assert f"The loss changed by {change:+.4f}." in shown
    assert f"it would have changed by {document['expected']:+.4f}" in shown
    assert f"{name:<24} {changes[0]:+.4f}" in shown


def test_one_number_is_explained(clearhead, model_folder, lesson):
    name = "block.0.head.0.W_V"
    document = json.loads(
        clearhead("learn", model_folder, TEXT, "--weight", name, "--at", "3,5", "--json").out
    )
    assert document["before"] == lesson.model.weight(name)[3, 5].item()
    assert document["after"] == pytest.approx(lesson.apply().weight(name)[3, 5].item())
    assert document["gradient"] == pytest.approx(lesson.gradient[name][3, 5].item(), rel=1e-4, abs=1e-9)
    change = document["after"] - document["before"]
    assert sum(document["terms"].values()) == pytest.approx(change, abs=1e-9)
    shown = clearhead("learn", model_folder, TEXT, "--weight", name, "--at", "3,5").out
    lines = dict(re.findall(r"^(\w[\w ]*?)  +(\S+)$", shown, re.MULTILINE))
    for term in ("before", "gradient", "after"):
        number = document["terms"].get(term, document[term])
        assert lines[term] == f"{number:+.5g}"
    values = [abs(part["value"]) for part in document["tokens"]]
    assert values == sorted(values, reverse=True)
    assert len(values) == 5
    assert all(map(math.isfinite, values))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--weight", "block.0.W_1"], "--weight and --at belong together"),
        (["--at", "1,2"], "--weight and --at belong together"),
        (["--weight", "block.0.W_1", "--at", "x"], "--at x: expected a row and a column"),
        (["--weight", "block.0.W_1", "--at", "1"], "expected a row and a column"),
        (["--weight", "block.0.W_1", "--at", "1,99999"], "column 99999 does not exist"),
        (["--weight", "block.0.W_1", "--at", "1,2", "--other", "a b"], "--other applies to the whole step"),
        (["--weight", "nothing", "--at", "1,2"], "weight 'nothing' does not exist"),
        (["--optimizer", "sgd"], "--optimizer sgd: expected one of muon, adamw"),
    ],
)
def test_errors_are_one_line(options, words, refused, model_folder):
    refused("learn", model_folder, TEXT, *options, words=words)


def test_text_of_one_token_has_nothing_to_learn(refused, model_folder):
    refused("learn", model_folder, "T", words="no next token to learn")


@pytest.mark.parametrize(
    ("cause", "gradient", "after", "expected"),
    [
        (None, 0.1, 1.0, "It stays the same."),
        ("gradient", 0.1, 0.9, "It goes down because its gradient is positive."),
        (
            "momentum",
            0.1,
            1.1,
            "It goes up although its gradient is positive: the deciding term is momentum.",
        ),
        (
            "second_moment",
            -0.1,
            1.1,
            "It goes up, as its negative gradient requires: the deciding term is second moment.",
        ),
    ],
)
def test_reason_agrees_with_the_direction(cause, gradient, after, expected):
    assert _why({"cause": cause, "gradient": gradient, "before": 1.0, "after": after}) == expected
