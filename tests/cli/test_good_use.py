"""What each command prints on success."""

import io
import json
import math
import re
import sys
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from clearhead.labs.opening import find_opening
from clearhead.language_model import LanguageModel, load
from clearhead.model.transformer import Transformer
from clearhead.runs import demo as demo_run
from clearhead.text.corpus import documents
from clearhead.text.stories import stories
from clearhead.text.tokenizer import Tokenizer

SMALL = ("--steps", 5, "--blocks", 1, "--width", 32, "--heads", 1, "--context", 32, "--tokenizer", "char")


def test_train_prints_plan_progress_and_a_json_summary(clearhead, story_file, tmp_path):
    result = clearhead("train", story_file, "--out", "model", "--json", *SMALL)
    assert result.code == 0, result.err
    summary = json.loads(result.out)
    model = load(tmp_path / "model")
    assert summary["out"] == "model"
    assert summary["steps_done"] == 5
    assert summary["config"] == model.config.to_json()
    assert summary["parameters"] == model.config.n_parameter
    assert summary["validation_loss"] == model.training["validation_loss"] > 0
    assert summary["recipe"]["steps"] == 5
    for row in ("text", "tokenizer", "model", "training", "machine"):
        assert re.search(rf"^{row} +\S", result.err, re.MULTILINE), result.err
    assert re.search(
        r"^step 5/5   loss \d+\.\d{3}   validation \d+\.\d{4} .* tokens/s", result.err, re.MULTILINE
    )
    assert "saved to model; try: clearhead generate model" in result.err
    assert "\x1b" not in result.err


def test_progress_shows_the_step_of_the_last_validation(clearhead, story_file):
    result = clearhead("train", story_file, "--out", "model", *SMALL[2:], "--steps", 20)
    (loss,) = re.findall(
        r"^step 4/20   loss \S+   validation (\S+)   [\d,]+ tokens/s", result.err, re.MULTILINE
    )
    assert re.search(rf"^step 6/20   loss \S+   validation {loss} at 4   ", result.err, re.MULTILINE), (
        result.err
    )


def test_every_line_names_the_teacher_or_the_student(clearhead, story_file):
    result = clearhead("train", story_file, "--out", "model", "--teachers", 2, *SMALL)
    assert result.code == 0, result.err
    phases = re.findall(r"^phase +(.+)$", result.err, re.MULTILINE)
    assert phases == ["teacher 1 of 2", "teacher 2 of 2", "student of 2 teachers"]
    for phase in phases:
        assert re.search(rf"^{phase}   step 5/5   loss", result.err, re.MULTILINE), result.err
    again = clearhead(
        *("train", story_file, "--out", "again", "--from-teachers", "model/teachers/1", *SMALL[:-2])
    )
    assert again.code == 0, again.err
    assert "student of 1 teacher   step 5/5" in again.err


def test_resume_without_a_run_starts_one(clearhead, story_file):
    said = "there is no run in model to resume: starting one"
    result = clearhead("train", story_file, "--out", "model", "--resume", *SMALL)
    assert (result.code, said in result.err) == (0, True)
    assert said not in clearhead("train", story_file, "--out", "model", "--resume", *SMALL).err
    assert said not in clearhead("train", story_file, "--out", "other", *SMALL).err


def test_classic_bidirectional_model_trains_and_fills_blanks(clearhead, story_file, tmp_path):
    result = clearhead(
        "train", story_file, "--out", "m", "--bidirectional", "--recipe", "classic", "--json", *SMALL
    )
    assert result.code == 0, result.err
    assert "bidirectional" in result.err
    assert "classic (adamw, learning rate 0.001, weight decay 0.1)" in result.err
    assert "the text is short" not in result.err
    summary = json.loads(result.out)
    assert (summary["recipe"]["name"], summary["config"]["causal"]) == ("classic", False)
    run = json.loads((tmp_path / "m" / "run.json").read_text())
    assert (run["request"]["recipe"], run["request"]["bidirectional"]) == ("classic", True)
    assert len(load("m").fill("Anna ___ad", count=2)[0]) == 2
    figures = json.loads(clearhead("eval", "m", story_file, "--json").out)
    assert figures["bits_per_byte"] is None
    assert "bits per byte" not in clearhead("eval", "m", story_file).out


def test_short_text_warns_before_training(clearhead, story_text, tmp_path):
    (tmp_path / "short.txt").write_text(story_text[:300])
    result = clearhead("train", "short.txt", "--out", "m", *SMALL[2:], "--steps", 60)
    assert result.code == 0, result.err
    before = result.err[: result.err.index("step 1/60")]
    assert re.search(r"^note +the text is short: \d+ epochs", before, re.MULTILINE), before


def test_train_fine_tunes_from_a_model(clearhead, story_file, model_folder, tmp_path):
    options = ("--from", model_folder, "--lora", 2, "--steps", 3, "--context", 32, "--out", "more", "--json")
    result = clearhead("train", story_file, *options)
    assert result.code == 0, result.err
    summary = json.loads(result.out)
    assert (summary["start"], summary["lora"], summary["context"]) == (str(model_folder), 2, 32)
    assert summary["config"]["n_context"] == load(model_folder).config.n_context
    assert re.search(rf"^model +{model_folder}: .* in trainable adapters", result.err, re.MULTILINE)
    assert "adamw" in result.err
    assert load(tmp_path / "more").training["start_sha256"] == summary["start_sha256"]


@pytest.mark.slow
def test_train_reports_to_tensorboard_and_wandb(process, story_file, tmp_path):
    given = ("train", story_file, "--out", "m", "--tensorboard", "--wandb", "stories", "--json", *SMALL)
    result = process(*given, WANDB_MODE="offline", HOME=str(tmp_path / "home"))
    assert result.code == 0, result.err
    assert json.loads(result.out)["steps_done"] == 5
    assert "reports    tensorboard --logdir m/tensorboard\n" in result.err
    assert "reports    wandb sync m/wandb/offline-run-*\n" in result.err
    shown = EventAccumulator("m/tensorboard").Reload()
    assert [each.step for each in shown.Scalars("loss")] == [1, 2, 3, 4, 5]
    [kept] = (tmp_path / "m" / "wandb").glob("offline-run-*/*.wandb")
    assert (tmp_path / "m" / "wandb" / "run-id").read_text().strip() in kept.name


def test_train_without_json_keeps_stdout_empty(clearhead, story_file):
    result = clearhead("train", story_file, *SMALL)
    assert (result.code, result.out) == (0, "")


def test_generate_is_deterministic_for_a_seed(clearhead, model_folder, model):
    given = ("generate", model_folder, "The", "--tokens", 30, "--seed")
    one, same, other = clearhead(*given, 1), clearhead(*given, 1), clearhead(*given, 2)
    assert (one.code, one.err) == (0, "")
    assert one.out == same.out == "The" + model.generate("The", tokens=30, seed=1) + "\n"
    assert one.out != other.out


def test_generate_without_a_prompt_starts_a_document(clearhead, model_folder, model):
    result = clearhead("generate", model_folder, "--tokens", 30)
    assert result.out == model.generate(tokens=30) + "\n"


def test_generate_multiple_samples(clearhead, model_folder, model):
    texts = model.generate("The", tokens=20, seed=3, samples=3)
    given = ("generate", model_folder, "The", "--tokens", 20, "--seed", 3, "--samples", 3)
    assert clearhead(*given).out == "".join(f"--- {i}\nThe{text}\n" for i, text in enumerate(texts))
    document = json.loads(clearhead(*given, "--json").out)
    assert document["texts"] == texts
    assert (document["prompt"], document["seed"], document["tokens"]) == ("The", 3, 20)
    assert document["temperature"] == 0.8


def test_generate_prints_the_exact_text(clearhead, story_text, tmp_path):
    """Tabs, carriage returns and trailing spaces on long lines are preserved."""
    (tmp_path / "code.txt").write_bytes(b"a\tb  \r\n\x0c" * 400)
    assert clearhead("train", "code.txt", "--out", "code", *SMALL[2:], "--steps", 40).code == 0
    model = load("code")
    text = model.generate("a", tokens=100, temperature=0)
    assert "\t" in text
    assert "\r" in text
    assert clearhead("generate", "code", "a", "--tokens", 100, "--temperature", 0).out == f"a{text}\n"
    several = clearhead("generate", "code", "a", "--tokens", 100, "--temperature", 0, "--samples", 2)
    assert several.out == f"--- 0\na{text}\n--- 1\na{text}\n"


def test_generate_ends_at_a_stop_string(clearhead, model_folder):
    result = clearhead("generate", model_folder, "The", "--stop", "e", "--tokens", 200)
    assert "e" not in result.out.removeprefix("The")


def test_generate_follows_a_regex_or_json_schema(clearhead, model_folder, tmp_path):
    result = clearhead("generate", model_folder, "The", "--regex", " (cat|dog) [a-z]{4}")
    assert re.fullmatch("The (cat|dog) [a-z]{4}\n", result.out)
    (tmp_path / "schema.json").write_text('{"enum": ["red", "green"]}')
    (tmp_path / "few.txt").write_text('{"red": "green"} ' * 300)
    assert clearhead("train", "few.txt", "--out", "few", *SMALL[2:], "--steps", 5).code == 0
    result = clearhead("generate", "few", "--json-schema", "schema.json")
    assert json.loads(result.out) in ("red", "green")


def test_json_says_how_many_tokens_were_drafted(clearhead, tmp_path):
    (tmp_path / "stories.txt").write_text("\n".join(each.text for each in islice(stories(1), 200)))
    start = "Once upon a time, a girl named Lily lived near the castle. She had a"
    words = ["generate", "stories", start, "--temperature", "0", "--tokens", "40", "--json"]
    plain = json.loads(clearhead(*words).out)
    drafted = json.loads(clearhead(*words, "--draft", str(tmp_path / "stories.txt")).out)
    assert "drafted" not in plain
    assert drafted["texts"] == plain["texts"]
    [count] = drafted["drafted"]
    assert 10 <= count <= 40


def test_a_message_after_streamed_text_starts_on_a_line_of_its_own(clearhead, model_folder, monkeypatch):
    def stopped(*_, **__):
        yield " a"
        raise KeyboardInterrupt

    monkeypatch.setattr(LanguageModel, "stream", stopped)
    result = clearhead("generate", model_folder, "The")
    assert (result.out, result.err) == ("The a\n", "clearhead: stopped\n")


def test_generate_reports_sampled_tokens_and_log_probabilities(clearhead, model_folder, model):
    given = ("generate", model_folder, "The", "--tokens", 5, "--seed", 3, "--json", "--logit-bias", "e=-100")
    result = clearhead(*given, "--log-probabilities", 2, "--logit-bias", f"#{model.tokenizer.end_id}=-100")
    document = json.loads(result.out)
    assert document["finish_reasons"] == ["length"]
    assert document["logit_bias"] == {"e": -100.0, str(model.tokenizer.end_id): -100.0}
    [sampled] = document["sampled"]
    assert "".join(each["token"] for each in sampled) == document["texts"][0]
    assert all(each["log_probability"] < 0 and len(each["alternatives"]) == 2 for each in sampled)
    first = model.logits("The")[-1].log_softmax(-1).max().item()
    assert sampled[0]["alternatives"][0]["log_probability"] == pytest.approx(first, abs=1e-5)


def test_generate_with_beam_search(clearhead, model_folder, model):
    text = model.generate("The", tokens=12, beams=3)
    given = ("generate", model_folder, "The", "--tokens", 12, "--beams", 3)
    assert clearhead(*given).out == f"The{text}\n"
    document = json.loads(clearhead(*given, "--length-penalty", 1, "--seconds", 60, "--json").out)
    assert document["texts"] == [text]
    assert (document["beams"], document["length_penalty"], document["tokens"]) == (3, 1, 12)


def test_generate_past_the_context_prints_a_warning(clearhead, model_folder, model):
    result = clearhead("generate", model_folder, "The", "--tokens", 120, "--shift", "--seed", 2)
    assert result.out == "The" + model.generate("The", tokens=120, shift=True, seed=2) + "\n"
    assert result.err.count("\n") == 1
    assert "after 64 tokens, the older half of the context is dropped: an approximation" in result.err


def test_generate_respects_the_time_limit(clearhead, model_folder):
    result = clearhead("generate", model_folder, "The", "--tokens", 10**6, "--seconds", 0.3, "--json")
    assert json.loads(result.out)["finish_reasons"][0] in ("time", "stop")


def losses_by_hand(model, texts):
    """Return the loss at every token of each text and at its end, computed window by window, text by text."""
    losses, T, end = [], model.config.n_context, model.tokenizer.end_id
    for text in texts:
        ids = [end, *model.tokenizer.encode(text), end]
        for start in range(0, len(ids) - 1, T):
            window = torch.tensor(ids[start : start + T + 1])
            with torch.no_grad():
                logits = model.network(window[None, :-1])[0].double()
            losses += (logits.logsumexp(-1) - logits.gather(1, window[1:, None])[:, 0]).tolist()
    return losses


def test_eval_metrics_are_exact(clearhead, model_folder, model, tmp_path):
    texts = ["Anna had a kite. " * 30, "The fox ran."]
    for name, text in zip("ab", texts, strict=True):
        (tmp_path / f"{name}.txt").write_text(text)
    result = clearhead("eval", model_folder, "a.txt", "b.txt", "--json")
    assert (result.code, result.err) == (0, "")
    figures = json.loads(result.out)
    losses = losses_by_hand(model, texts)
    mean, n_bytes = sum(losses) / len(losses), sum(map(len, texts))
    assert (figures["tokens"], figures["bytes"]) == (len(losses), n_bytes)
    assert figures["loss"] == pytest.approx(mean, rel=1e-6)
    assert figures["perplexity"] == pytest.approx(math.exp(mean), rel=1e-5)
    assert figures["bits_per_byte"] == pytest.approx(sum(losses) / math.log(2) / n_bytes, rel=1e-6)
    evaluation = model.evaluate(list(documents(["a.txt", "b.txt"])))
    assert figures["loss"] == evaluation.loss
    assert figures["bits_per_byte"] == evaluation.bits_per_byte


def test_eval_reports_empty_files(clearhead, model_folder, tmp_path):
    for name, text in {"a": "The fox ran.", "b": "", "c": ""}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    alone = clearhead("eval", model_folder, "a.txt", "--json")
    result = clearhead("eval", model_folder, "a.txt", "b.txt", "c.txt", "--json")
    assert (result.code, result.out) == (0, alone.out)
    assert result.err == "clearhead: skipped b.txt and 1 more: empty\n"


def test_eval_reports_unreadable_files(clearhead, model_folder, tmp_path):
    Path("notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("The fox ran.")
    (tmp_path / "notes" / "b.md").write_bytes("été".encode("latin-1"))
    result = clearhead("eval", model_folder, "notes", "--json")
    assert (result.code, result.out) == (0, clearhead("eval", model_folder, "notes/a.md", "--json").out)
    assert result.err.startswith(
        "clearhead: skipped notes/b.md, which is not UTF-8: byte 0 is 0xe9; convert it"
    )
    assert result.err.count("\n") == 1


def test_eval_prints_a_readable_summary(clearhead, model_folder, model, story_file):
    evaluation = model.evaluate(list(documents([story_file])))
    lines = clearhead("eval", model_folder, story_file).out.splitlines()
    assert lines == [
        f"loss            {evaluation.loss:.4f} nats per token",
        f"perplexity      {evaluation.perplexity:.2f}",
        f"bits per byte   {evaluation.bits_per_byte:.4f}",
        f"over            {evaluation.tokens:,} tokens, {evaluation.bytes:,} bytes",
        f"in windows of   {model.config.n_context:,} tokens",
    ]


def test_eval_takes_the_length_and_stride_of_windows(clearhead, model_folder, model):
    Path("a.txt").write_text("Anna had a kite. She let it fly.", encoding="utf-8")
    given = ("--context", "16", "--stride", "6")
    evaluation = model.evaluate(Path("a.txt"), context=16, stride=6)
    found = json.loads(clearhead("eval", model_folder, "a.txt", "--json", *given).out)
    assert found["loss"] == pytest.approx(evaluation.loss, rel=1e-6)
    assert (found["context"], found["stride"]) == (16, 6)
    assert clearhead("eval", model_folder, "a.txt", *given).out.endswith(
        "in windows of   16 tokens, 6 apart\n"
    )
    long = clearhead("eval", model_folder, "a.txt", "--context", 10**6)
    assert (long.code, long.out) == (2, "")
    assert f"--context 1000000: expected 2 to {model.config.n_context}, the context of this model" in long.err


def test_eval_of_conversations_scores_only_replies(clearhead, trained, tmp_path):
    template = (
        "{% for m in messages %}{{ m.role + ': ' + m.content + '\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}"
    )
    tokenizer = Tokenizer.train("byte", [])
    tokenizer = Tokenizer(tokenizer._inner, {**tokenizer.config, "chat_template": template})
    config = replace(trained.plan.config, n_vocab=tokenizer.n_vocab)
    LanguageModel(Transformer(config), tokenizer).save(tmp_path / "talker")
    talk = [{"role": "user", "content": "Hi, who are you?"}, {"role": "assistant", "content": "A crow."}]
    (tmp_path / "talks.jsonl").write_text(json.dumps({"messages": talk}))
    figures = json.loads(clearhead("eval", "talker", "talks.jsonl", "--json").out)
    assert (figures["replies"], figures["tokens"], figures["bits_per_byte"]) == (True, len("A crow.\n"), None)
    assert figures["loss"] == load("talker").evaluate(Path("talks.jsonl")).loss
    n_bytes = (tmp_path / "talks.jsonl").stat().st_size
    lines = clearhead("eval", "talker", "talks.jsonl").out.splitlines()
    assert lines[-2] == f"over            8 tokens of replies, {n_bytes} bytes"
    assert not any(line.startswith("bits") for line in lines)


def test_text_is_read_from_standard_input(clearhead, model_folder, story_file, monkeypatch, tmp_path):
    def give():
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(story_file.read_bytes())))

    give()
    piped = clearhead("eval", model_folder, "-", "--json")
    assert piped.out == clearhead("eval", model_folder, story_file, "--json").out
    give()
    assert clearhead("train", "-", *SMALL).code == 0
    [folder] = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"\w+", folder.name), folder.name


def test_models_lists_what_train_saved(clearhead, story_file, tmp_path):
    [built_in] = json.loads(clearhead("models", "--json").out)["models"]
    assert built_in["model"] == "stories"
    Path("empty").mkdir()
    assert "no models in empty" in clearhead("models", "empty").out
    trained = json.loads(clearhead("train", story_file, "--json", *SMALL).out)
    [row, last] = json.loads(clearhead("models", "--json").out)["models"]
    assert last == built_in
    size = (tmp_path / "runs/stories/model.safetensors").stat().st_size
    assert row == {
        "model": "runs/stories",
        "family": "qwen3",
        "kind": "transformer",
        "parameters": trained["parameters"],
        "blocks": 1,
        "heads": 1,
        "width": 32,
        "context": 32,
        "validation_loss": trained["validation_loss"],
        "bytes": size,
        "license": None,
    }
    table = clearhead("models").out
    assert "\x1b" not in table
    line = next(line for line in table.splitlines() if "runs/stories" in line)
    cells = [
        "qwen3",
        "transformer",
        f"{row['parameters']:,}",
        "1",
        "1",
        "32",
        "32",
        f"{row['validation_loss']:.4f}",
    ]
    assert line.split() == ["runs/stories", *cells, f"{size / 1e6:.1f}"]


def test_models_shows_long_names_in_full(clearhead, model_folder, tmp_path):
    folder = tmp_path / ("a" * 60) / ("b" * 60)
    folder.mkdir(parents=True)
    for path in model_folder.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    assert str(folder) in clearhead("models", folder.parent).out


@pytest.mark.parametrize(
    ("preset", "parts"),
    [("lecture", ("layer", "learned", "relu")), ("modern", ("rms", "rotary", "swiglu"))],
)
def test_demo_trains_the_chosen_preset(preset, parts, clearhead, monkeypatch, work_clock):
    monkeypatch.setattr(demo_run, "demo_texts", partial(demo_run.demo_texts, 600))
    result = clearhead("demo", "--preset", preset, "--minutes", 0.02, "--out", "model")
    assert result.code == 0, result.err
    config = load("model").config
    assert (config.norm, config.position, config.feedforward) == parts
    assert "Attention weights of block" in result.out


def test_demo_prints_a_story_and_attention_weights(clearhead, monkeypatch, work_clock):
    monkeypatch.setattr(demo_run, "demo_texts", partial(demo_run.demo_texts, 600))  # fewer, for speed
    result = clearhead("demo", "--minutes", 0.05, "--out", "model")
    assert result.code == 0, result.err
    assert "saved to model" in result.err
    model = load("model")
    story = f"A story it generated:\n\n{model.generate(tokens=250, seed=0)}\n"
    assert story in result.out
    assert "\x1b" not in result.out.replace(story, "") + result.err  # the story may contain any character
    assert "See every step in a browser: clearhead explore model\n" in result.out
    head = re.search(r"Attention weights of block (\d+), head (\d+), in percent:\n\n", result.out)
    assert head is not None
    opening = find_opening(model)
    assert (opening.block, opening.head) == (int(head[1]), int(head[2]))
    tokens = model.tokenizer.encode(opening.text)
    heading, *rows = result.out[head.end() :].splitlines()[: len(tokens) + 1]
    weights = model.inspect(opening.text).block[int(head[1])].head[int(head[2])].weights
    assert heading.split() == [str(i) for i in range(len(tokens))]
    for i, (row, line) in enumerate(zip(rows, weights.tolist(), strict=True)):
        assert len(row) == len(heading), "the numbers are not aligned with their headings"
        cells = row[-4 * len(tokens) :]
        expected = [f"{100 * weight:4.0f}" for weight in line[: i + 1]]
        assert [cells[at : at + 4] for at in range(0, 4 * (i + 1), 4)] == expected
        assert sum(map(int, expected)) == pytest.approx(100, abs=max(1, len(expected) / 2))
        assert cells[4 * (i + 1) :].split() == ["·"] * (len(tokens) - i - 1)


@pytest.mark.parametrize(
    "command", [None, "demo", "train", "generate", "fill", "eval", "pull", "models", "explore"]
)
def test_help_is_readable(command, clearhead):
    result = clearhead(*([command] if command else []), "--help")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"Usage: clearhead {command or ''}".rstrip())
    assert "\x1b" not in result.out
    assert "\n\n\n" not in result.out
    if command == "train":
        for option in (
            "--minutes",
            "--steps",
            "--preset",
            "--blocks",
            "--out",
            "--seed",
            "--wandb",
            "--json",
        ):
            assert option in result.out
    if command is None:
        for name in ("demo", "train", "generate", "fill", "eval", "pull", "models", "explore", "--version"):
            assert name in result.out


def test_help_is_shown_without_a_command(clearhead):
    assert "Usage: clearhead" in clearhead().out


def test_version_is_printed(clearhead):
    result = clearhead("--version")
    assert (result.code, result.out, result.err) == (0, f"clearhead {version('clearhead')}\n", "")


def test_control_characters_are_escaped_for_a_terminal(monkeypatch, capsys):
    from clearhead.cli.console import print_text, printable

    assert printable("a\tb\n\x00\x0e\x1b[31m\x9b\r") == "a\tb\n\\x00\\x0e\\x1b[31m\\x9b\\r"
    print_text("\x1b[31m")
    assert capsys.readouterr().out == "\x1b[31m"  # a file gets the text as it is
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    print_text("\x1b[31m")
    assert capsys.readouterr().out == "\\x1b[31m"
