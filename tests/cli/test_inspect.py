"""`clearhead inspect`: the numbers shown are the trace's."""

import json
import re

import pytest


def test_without_more_it_shows_what_each_block_would_say(clearhead, model_folder, model):
    result = clearhead("inspect", model_folder, "The cat")
    assert (result.code, result.err) == (0, "")
    trace = model.inspect("The cat")
    lines = re.findall(r"^block +(\d+) ", result.out, re.MULTILINE)
    assert len(lines) == model.config.n_block
    _, probability = trace.lens().words()[-1][0]
    assert f"{probability:.2f}" in result.out
    assert "7 tokens" in result.out


def test_a_head_is_drawn_in_hundredths(clearhead, model_folder, model):
    result = clearhead("inspect", model_folder, "The cat", "--block", 0, "--head", 0)
    weights = model.inspect("The cat")["block.0.head.0.weights"]
    lines = result.out.splitlines()[3:]
    assert len(lines) == 7
    for i, line in enumerate(lines):
        cells = [line[len(line) - 28 + 4 * k : len(line) - 28 + 4 * k + 4].strip() for k in range(7)]
        assert cells[i + 1 :] == ["·"] * (6 - i)
        assert cells[: i + 1] == [f"{100 * weight:.0f}" for weight in weights[i, : i + 1].tolist()]


def test_a_long_text_shows_its_end(clearhead, model_folder):
    result = clearhead("inspect", model_folder, "The cat sat near the old bench.", "--head", 0)
    assert "Only the last 16 of 31 tokens" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


@pytest.mark.parametrize("site", ["block.0.head.0.masked", "block.0.normed.scale", "logits"])
def test_json_gives_every_number_of_a_site(clearhead, model_folder, model, site):
    result = clearhead("inspect", model_folder, "The cat", "--site", site, "--json")
    document = json.loads(result.out)
    value = model.inspect("The cat")[site]
    assert document["shape"] == list(value.shape)
    assert document["tokens"] == list("The cat")
    flat = value.flatten().tolist()
    found = document["value"] if value.dim() == 1 else [x for row in document["value"] for x in row]
    assert found == [None if abs(x) == float("inf") else x for x in flat]


def test_numbers_are_cut_to_what_can_be_read(clearhead, model_folder):
    result = clearhead("inspect", model_folder, "The cat", "--site", "block.0.input")
    assert "block.0.input, 7×32" in result.out
    assert "…" in result.out


def test_all_names_are_listed(clearhead, model_folder, model):
    result = clearhead("inspect", model_folder, "The cat", "--sites")
    assert result.out.split() == model.inspect("a").sites()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--block", 9), "blocks 0 to"),
        (("--head", 9), "heads 0 to"),
        (("--site", "weights"), "there are embedding"),
        (("--block", -1), "site"),
    ],
)
def test_what_does_not_exist(clearhead, model_folder, options, words):
    result = clearhead("inspect", model_folder, "The cat", *options)
    assert (result.code, result.out) == (2, "")
    assert words in result.err
    assert result.err.count("\n") == 1
