"""Other kinds of networks on the command line: the same commands, or a one-line error if unsupported."""

import json
import shutil

import pytest

SMALL = ["--steps", "6", "--tokenizer", "char", "--width", "24", "--context", "32", "--batch", "4"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Where the first test puts a copy of its runs for the others."""
    return tmp_path_factory.mktemp("finished") / "runs"


@pytest.fixture
def lstm(clearhead, story_file, tmp_path, finished):
    if finished.exists():
        shutil.copytree(finished, tmp_path / "runs")
        return next((tmp_path / "runs").iterdir())
    result = clearhead("train", story_file, "--kind", "lstm", *SMALL, "--device", "cpu", "--json")
    assert result.code == 0, result.err
    assert "lstm: 1 block, width 24, context 32" in result.err
    made = json.loads(result.out)
    assert made["kind"] == made["config"]["kind"] == "lstm"
    assert "preset" not in made
    shutil.copytree(tmp_path / "runs", finished)
    return tmp_path / made["out"]


def test_lstm_works_with_the_usual_commands(lstm, clearhead, story_file):
    said = clearhead("generate", lstm, "The hen", "--tokens", "12", "--seed", "3")
    assert said.code == 0
    assert said.out.startswith("The hen")
    assert clearhead("generate", lstm, "The hen", "--tokens", "12", "--seed", "3").out == said.out
    judged = json.loads(clearhead("eval", lstm, story_file, "--json").out)
    assert 1 < judged["bits_per_byte"] < 8
    assert clearhead("generate", lstm, "The", "--beams", "2", "--tokens", "5").code == 0


def test_lstm_is_listed_with_its_kind(lstm, clearhead):
    models, runs = clearhead("models"), clearhead("runs")
    assert models.out.splitlines()[1].split()[:3] == ["runs/stories", "clearhead", "lstm"]
    assert runs.out.splitlines()[1].split()[:2] == ["runs/stories", "lstm"]
    model, _ = json.loads(clearhead("models", "--json").out)["models"]  # and the built-in one
    [run] = json.loads(clearhead("runs", "--json").out)["runs"]
    assert model["kind"] == run["kind"] == "lstm"
    assert model["heads"] is None
    assert model["parameters"] == run["parameters"]


def test_lstm_states_are_shown(lstm, clearhead, tmp_path):
    shown = clearhead("inspect", lstm, "The hen")
    assert shown.code == 0
    assert shown.out.startswith("block.0.state, 7×24:")
    sites = clearhead("inspect", lstm, "The hen", "--sites").out.split()
    assert sites[0] == "embedding"
    assert "block.0.forget_gate" in sites
    cell = json.loads(clearhead("inspect", lstm, "The hen", "--site", "block.0.cell", "--json").out)
    assert cell["shape"] == [7, 24]
    assert clearhead("inspect", lstm, "The hen", "--figure", tmp_path / "x.svg").code == 0
    assert (tmp_path / "x.svg").exists()


def test_unsupported_lstm_options_are_rejected(lstm, refused, story_file, tmp_path):
    refused("export", lstm, tmp_path / "x.gguf", words=["this lstm cannot be exported"])
    refused("export", lstm, tmp_path / "x", words=["this lstm cannot be exported"])
    refused("inspect", lstm, "The", "--block", "0", words=["of kind lstm", "block.i.state"])
    refused("inspect", lstm, "The", "--site", "block.0.head.0.weights", words=["of kind lstm"])
    refused("inspect", lstm, "The", "--site", "lens", "--json", words=["of kind lstm"])
    refused("explore", lstm, "--no-browser", words=["of kind lstm", f"clearhead inspect {lstm}"])
    refused("fill", lstm, "The ___", words=["is causal"])
    refused("chat", lstm, "--no-plain-chat", words=["no chat template"])
    refused("generate", lstm, "The", "--shift", words=["kind lstm"])
    refused("train", story_file, "--kind", "rnn", words=["transformer, elman, gru, lstm"])
    refused("train", story_file, "--kind", "gru", "--heads", "2", words=["--heads applies to transformers"])


def test_resume_with_a_different_kind_is_rejected(lstm, refused, story_file):
    options = [*SMALL, "--kind", "gru", "--resume", "--device", "cpu"]
    refused("train", story_file, *options, words=["kind was 'lstm'"])


@pytest.fixture
def ngram(clearhead, story_file, tmp_path):
    result = clearhead("train", story_file, "--kind", "ngram", "--order", "4", "--device", "cpu", "--json")
    assert result.code == 0, result.err
    assert "n-grams of up to 4 tokens" in result.err
    made = json.loads(result.out)
    assert made["kind"] == made["config"]["kind"] == "ngram"
    assert made["order"] == 4
    assert made["validation_loss"] > 0
    return tmp_path / made["out"]


def test_resume_passes_over_folders_without_a_run(clearhead, story_file, tmp_path):
    """The n-gram model in the newest folder has no steps to resume."""
    command = ["train", story_file, *SMALL, "--device", "cpu"]
    assert clearhead(*command).code == 0
    assert clearhead("train", story_file, "--kind", "ngram", "--device", "cpu").code == 0
    result = clearhead(*command, "--resume")
    assert result.code == 0, result.err
    assert "extending the run after step" in result.err


def test_ngram_works_with_the_usual_commands(ngram, clearhead, story_file, tmp_path):
    said = clearhead("generate", ngram, "The hen", "--tokens", "12", "--seed", "3")
    assert said.code == 0
    assert said.out.startswith("The hen")
    judged = json.loads(clearhead("eval", ngram, story_file, "--json").out)
    assert 0 < judged["bits_per_byte"] < 4
    assert clearhead("generate", ngram, "The", "--beams", "2", "--tokens", "5").code == 0
    model, _ = json.loads(clearhead("models", "--json").out)["models"]  # and the built-in one
    assert (model["kind"], model["blocks"], model["heads"], model["context"]) == ("ngram", None, None, 3)
    assert clearhead("models").out.splitlines()[1].split()[:3] == ["runs/stories", "clearhead", "ngram"]
    exported = json.loads(clearhead("export", ngram, tmp_path / "my.arpa", "--json").out)
    assert exported["to"] == "arpa"
    assert clearhead("runs").code == 0


def test_unsupported_ngram_options_are_rejected(ngram, refused, story_file, tmp_path):
    refused("inspect", ngram, "The", words=["no residual stream to inspect", "next token"])
    refused("export", ngram, tmp_path / "x.gguf", words=["exported as an ARPA file"])
    refused("explore", ngram, "--no-browser", words=["of kind ngram", f"clearhead generate {ngram}"])
    refused("fill", ngram, "The ___", words=["is causal"])
    refused("generate", ngram, "The", "--shift", words=["omit --shift"])
    refused("eval", tmp_path / "none.arpa", story_file, words=["no such folder or file"])
    refused(
        "train", story_file, "--kind", "ngram", "--resume", words=["counting, in one pass", "omit --resume, "]
    )
    refused("train", story_file, "--kind", "ngram", "--order", "99", words=["--order 99:"])
    refused(
        "train",
        story_file,
        "--kind",
        "ngram",
        "--blocks",
        "2",
        words=["--blocks does not apply to an n-gram"],
    )
    refused("train", story_file, "--from", str(ngram), "--steps", "2", words=["cannot be fine-tuned"])
