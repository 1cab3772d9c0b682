"""`clearhead inspect`: the numbers shown match the trace."""

import io
import json
import re
from pathlib import Path

import pytest
import torch


def test_default_output_shows_the_lens_for_each_block(clearhead, model_folder, model):
    result = clearhead("inspect", model_folder, "The cat")
    assert (result.code, result.err) == (0, "")
    trace = model.inspect("The cat")
    lines = re.findall(r"^block +(\d+) ", result.out, re.MULTILINE)
    assert len(lines) == model.config.n_block
    _, probability = trace.lens().tokens()[-1][0]
    assert f"{probability:.2f}" in result.out
    assert "7 tokens" in result.out


def test_attention_weights_are_shown_in_percent(clearhead, model_folder, model):
    result = clearhead("inspect", model_folder, "The cat", "--block", 0, "--head", 0)
    weights = model.inspect("The cat")["block.0.head.0.weights"]
    lines = result.out.splitlines()[3:]
    assert len(lines) == 7
    for i, line in enumerate(lines):
        cells = [line[len(line) - 28 + 4 * k : len(line) - 28 + 4 * k + 4].strip() for k in range(7)]
        assert cells[i + 1 :] == ["·"] * (6 - i)
        assert cells[: i + 1] == [f"{100 * weight:.0f}" for weight in weights[i, : i + 1].tolist()]


def test_long_text_shows_its_last_positions(clearhead, model_folder):
    result = clearhead("inspect", model_folder, "The cat sat near the old bench.", "--head", 0)
    assert "Shown: positions 15 to 30 of 31, columns 1" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


@pytest.mark.parametrize("site", ["block.0.head.0.masked", "block.0.normed.scale", "logits"])
def test_json_contains_every_number_of_a_site(clearhead, model_folder, model, site):
    result = clearhead("inspect", model_folder, "The cat", "--site", site, "--json")
    document = json.loads(result.out)
    value = model.inspect("The cat")[site]
    assert document["shape"] == list(value.shape)
    assert document["tokens"] == list("The cat")
    flat = value.flatten().tolist()
    found = document["value"] if value.dim() == 1 else [x for row in document["value"] for x in row]
    assert found == [None if abs(x) == float("inf") else x for x in flat]


def test_wide_values_are_truncated_for_display(clearhead, model_folder):
    result = clearhead("inspect", model_folder, "The cat", "--site", "block.0.input")
    assert "block.0.input, 7×32" in result.out
    assert "Shown: features 0 to 7 of 32." in result.out


def test_all_sites_are_listed(clearhead, model_folder, model):
    result = clearhead("inspect", model_folder, "The cat", "--sites")
    assert result.out.split() == model.inspect("a").sites()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--block", 9), "blocks 0 to"),
        (("--head", 9), "heads 0 to"),
        (("--site", "weights"), "expected embedding"),
        (("--block", -1), "--block -1: this model has blocks 0 to"),
        (("--head", -1), "--head -1: this model has heads 0 to"),
        (("--site", "logits", "--block", 0), "omit --block and --head"),
        (("--site", "logits", "--sites"), "--sites lists"),
        (("--figure", "a.svg", "--json"), "give only one"),
        (("--rows", "x"), "expected positions such as 10:20"),
        (("--rows", "9:12"), "the text has positions 0 to 6"),
        (("--rows", "5:2"), "the text has positions 0 to 6"),
        (("--figure", "nowhere/a.svg"), "the folder nowhere does not exist"),
    ],
)
def test_invalid_options_are_rejected(clearhead, model_folder, options, words):
    result = clearhead("inspect", model_folder, "The cat", *options)
    assert (result.code, result.out) == (2, "")
    assert words in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("columns", [60, 80, 132])
@pytest.mark.parametrize("site", ["block.0.hidden", "block.0.head.0.masked", "block.0.head.0.weights"])
def test_lines_fill_the_terminal_without_overflow(clearhead, model_folder, monkeypatch, site, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    text = "The cat sat near the old bench and the dog ran far away"
    result = clearhead("inspect", model_folder, text, "--site", site)
    longest = max(map(len, result.out.splitlines()))
    assert columns - 9 <= longest <= columns


@pytest.mark.parametrize("name", ["scores", "scaled", "masked", "weights"])
def test_columns_are_numbered_and_rows_can_be_selected(clearhead, model_folder, model, name):
    site = f"block.0.head.0.{name}"
    result = clearhead("inspect", model_folder, "The cat", "--site", site, "--rows", "2:5")
    header, *lines = result.out.splitlines()[2:6]
    assert header.split() == ["0", "1", "2", "3", "4"]
    assert [line.split()[0] for line in lines] == ["2", "3", "4"]
    last = model.inspect("The cat")[site][4, :5].tolist()
    shown = [f"{100 * x:.0f}" if name == "weights" else f"{x:.3f}" for x in last]
    assert lines[-1].split()[2:] == shown
    assert "Shown: positions 2 to 4 of 7" in result.out


def test_large_numbers_stay_aligned():
    from clearhead.cli.tables import number_table

    table = number_table(["a"], torch.tensor([[-123456.0, 1e9, float("-inf"), 0.5]]), range(1), range(4))
    assert table.plain.splitlines()[1].split()[2:] == ["-1.2e+05", "1.0e+09", "-inf", "0.500"]
    assert len({len(line) for line in table.plain.splitlines()}) == 1


def test_rows_apply_to_json_figures_and_the_lens(clearhead, model_folder, model):
    trace = model.inspect("The cat")
    result = clearhead("inspect", model_folder, "The cat", "--site", "embedding", "--rows", "-2:", "--json")
    document = json.loads(result.out)
    assert (document["rows"], document["shape"][0]) == ([5, 7], 2)
    assert document["value"] == trace["embedding"][5:].tolist()
    clearhead("inspect", model_folder, "The cat", "--site", "lens", "--rows", "1:3", "--figure", "a.svg")
    assert "positions 1 to 2 of 7" in Path("a.svg").read_text(encoding="utf-8")
    result = clearhead("inspect", model_folder, "The cat", "--rows", "3", "--json")
    (found,) = json.loads(result.out)["lens"]
    assert found["position"] == 3
    expected = trace.lens().tokens(position=3)
    assert [token for token, _ in found["tokens"][-1]] == [token for token, _ in expected[-1]]
    assert "after 3 ␣" in clearhead("inspect", model_folder, "The cat", "--rows", "3").out


def test_text_is_read_from_standard_input(clearhead, model_folder, monkeypatch):
    def given(text):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        return clearhead("inspect", model_folder, "-", "--json")

    assert json.loads(given(b"The cat").out)["tokens"] == list("The cat")
    assert given(b"").err == ("clearhead: standard input is empty: remove it, or give another\n")


@pytest.mark.parametrize(
    ("given", "site"),
    [
        (["t1"], "block.0.normed"),
        (["h", "--block", 0], "block.0.output"),
        (["alpha"], "block.0.head.0.weights"),
        (["a", "--block", 0, "--head", 0], "block.0.head.0.mixed"),
    ],
)
def test_lectures_symbol_names_a_site(clearhead, model_folder, model, given, site):
    result = clearhead("inspect", model_folder, "The cat", "--site", *given, "--json")
    document = json.loads(result.out)
    assert document["site"] == site
    torch.testing.assert_close(torch.tensor(document["value"]), model.inspect("The cat")[site])


def test_symbol_of_a_block_takes_no_head(refused, model_folder):
    refused(
        "inspect", model_folder, "The cat", "--site", "t1", "--head", 1, words=["--site t1", "omit --head"]
    )
    refused(
        "inspect", model_folder, "The cat", "--site", "a", "--block", 7, words=["--block 7", "blocks 0 to 0"]
    )
