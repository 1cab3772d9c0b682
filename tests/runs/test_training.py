"""Training with a single call: the files it writes and the warnings it gives."""

import inspect
import json
import math
import warnings
from dataclasses import fields
from typing import get_type_hints
from xml.etree import ElementTree

import pytest

import clearhead
from clearhead.errors import UserError
from clearhead.runs import call
from clearhead.runs.request import TrainingRequest, TrainingSettings
from clearhead.runs.run import Run
from clearhead.runs.run_metrics import read_metrics
from clearhead.training.trainer import Trainer
from tests.runs.recording_display import RecordingDisplay

SIZES = {
    "blocks": 1,
    "width": 32,
    "heads": 1,
    "context": 32,
    "batch": 4,
    "tokenizer": "char",
    "device": "cpu",
}


@pytest.fixture
def short_file(story_text, tmp_path):
    path = tmp_path / "short.txt"
    path.write_text(story_text[:600])
    return path


@pytest.mark.slow
def test_loss_curve_is_saved_and_reproducible(story_file, tmp_path, real_curves):
    for name in ("one", "two"):
        assert clearhead.train(story_file, tmp_path / name, steps=4, **SIZES).name == name
    drawn = (tmp_path / "one" / "loss.svg").read_bytes()
    assert drawn == (tmp_path / "two" / "loss.svg").read_bytes()
    ElementTree.fromstring(drawn)
    assert b"4 steps; lowest validation loss" in drawn


def test_warns_when_the_loss_curve_cannot_be_drawn(story_file, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no ink")

    monkeypatch.setattr("clearhead.runs.loss_curve.loss_curve", fail)
    with pytest.warns(UserWarning, match=r"^loss.svg was not drawn \(no ink\)$"):
        clearhead.train(story_file, tmp_path / "run", steps=2, **SIZES)
    assert clearhead.load(tmp_path / "run").training["steps_done"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("kept", [True, False])
def test_warns_about_overfitting_before_and_after(kept, short_file, story_text, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "clearhead.runs.recipes.MAX_REGULARIZATION", (0.0, 0.1, 0.0)
    )  # regularization would prevent overfitting
    other = story_text[5000:6000]
    (tmp_path / "other.txt").write_text(other)
    out = tmp_path / "run" if kept else None
    settings = {**SIZES, "steps": 200, "tokenizer": "byte", "dropout": 0.0}
    settings["validation"] = tmp_path / "other.txt"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        clearhead.train(short_file, out, **settings)
    before, after = (str(each.message) for each in told)
    assert before.startswith("the text is short: ")
    assert after.startswith("the validation loss rose from its minimum of")
    assert after.endswith(f"the best model is saved in {out / 'best'}" if kept else "or on more text")
    assert all(each.filename == __file__ for each in told)
    if kept:
        best, last = (clearhead.load(each, "cpu").evaluate(other).loss for each in (out / "best", out))
        assert best < last - 0.02
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clearhead.train(short_file, **{**settings, "steps": 3})


def test_warns_when_the_loss_is_not_finite(story_file, tmp_path, monkeypatch):
    gather = Trainer._forward_backward

    def break_some(self, rate):
        loss, norm = gather(self, rate)
        return math.nan if self.step in (4, 5, 6) and self.slowdown == 1 else loss, norm

    monkeypatch.setattr(Trainer, "_forward_backward", break_some)
    with pytest.warns(UserWarning, match="step 7: loss or gradients were not finite; returned to step 4"):
        clearhead.train(story_file, tmp_path / "run", steps=20, **SIZES)


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 5.5},
        {"steps": True},
        {"steps": "5"},
        {"minutes": "3"},
        {"steps": 3, "checkpoint_every": 0},
        {"steps": 3, "snapshots": -1},
        {"steps": 3, "width": 32.0},
    ],
)
def test_invalid_numbers_are_rejected_before_anything_is_written(wrong, story_file, tmp_path):
    sizes = {name: value for name, value in SIZES.items() if name not in wrong}
    with pytest.raises(clearhead.UserError, match=f"{list(wrong)[-1]} = .*: expected a"):
        clearhead.train(story_file, tmp_path / "run", **sizes, **wrong)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("option", [{"resume": True}, {"checkpoint_every": 2}, {"snapshots": 1}])
def test_options_that_need_a_folder_are_rejected_without_one(option, story_file):
    with pytest.raises(clearhead.UserError, match="are saved with the run: give its folder with out=…"):
        clearhead.train(story_file, steps=1, **SIZES, **option)


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_warns_when_conversations_are_read_as_plain_text(story_text, tmp_path, suffix):
    (tmp_path / f"talks{suffix}").write_text(story_text[:3000])
    with pytest.warns(UserWarning, match=rf"^a \{suffix} file is read as plain text"):
        clearhead.train(tmp_path / f"talks{suffix}", steps=1, **SIZES)


def test_unknown_settings_are_rejected_with_a_suggestion(story_file):
    with pytest.raises(clearhead.UserError, match="unknown setting 'minute'; did you mean 'minutes'"):
        clearhead.train(story_file, minute=1)


def test_empty_file_is_skipped(story_file, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    small = {"blocks": 1, "heads": 1, "width": 16, "context": 32, "batch": 2, "device": "cpu"}
    with pytest.warns(UserWarning, match=r"skipped .*empty\.txt: empty"):
        clearhead.train([story_file, tmp_path / "empty.txt"], steps=1, **small)
    with pytest.raises(UserError, match=r"empty\.txt is empty"):
        clearhead.train(tmp_path / "empty.txt", steps=1, **small)


def test_unreadable_file_among_others_is_skipped(story_text, tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text(story_text[:3000])
    (notes / "b.md").write_bytes("cafés".encode("latin-1"))
    (notes / "c.md").write_bytes(b"\x89PNG\r\n\0\0")
    with pytest.warns(UserWarning, match="skipped") as caught:
        clearhead.train(notes, steps=1, **SIZES)
    messages = [str(each.message) for each in caught]
    assert any("b.md, which is not UTF-8: byte 3 is 0xe9" in each for each in messages)
    assert any("c.md, which is not UTF-8" in each or "c.md, which is not text" in each for each in messages)
    with pytest.raises(UserError, match=r"^.*b\.md is not UTF-8: .*convert it, for example with iconv"):
        clearhead.train(notes / "b.md", steps=1, **SIZES)
    (notes / "a.md").unlink()
    with pytest.raises(UserError, match=r"none of the 2 files contains readable text: .*b\.md is not UTF-8"):
        clearhead.train(notes, steps=1, **SIZES)


def test_text_without_a_prompt_starts_where_a_line_does(story_file, tmp_path):
    small = {"blocks": 1, "heads": 1, "width": 16, "context": 32, "batch": 2, "device": "cpu"}
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"line {i}\n" for i in range(400)))
    model = clearhead.train(path, steps=1, tokenizer="byte", **small)
    assert model.tokenizer.decode(model.training["opening_ids"]) == "\n"
    assert model.generate(tokens=5, seed=1) == model.generate("\n", tokens=5, seed=1)
    both = clearhead.train([path, story_file], steps=1, tokenizer="byte", **small)
    assert both.training["opening_ids"] == model.training["opening_ids"]  # these documents are long
    path.write_text("<|endoftext|>".join(f"line {i}\n" for i in range(400)))
    short = clearhead.train(path, steps=1, tokenizer="byte", **small)
    assert "opening_ids" not in short.training  # the end token starts a document


def test_signature_shows_every_setting_with_its_type_and_default():
    parameters = inspect.signature(clearhead.train).parameters
    settings = {field.name: field for field in fields(TrainingRequest) if not field.name.endswith("_sha256")}
    assert list(parameters)[:2] == ["sources", "out"]
    assert list(settings) == list(parameters)[2 : 2 + len(settings)]
    assert {"resume", "callbacks", "progress"} < parameters.keys() - settings.keys()
    for name, field in settings.items():
        parameter = parameters[name]
        assert parameter.kind is parameter.KEYWORD_ONLY
        assert (parameter.default, parameter.annotation) == (field.default, field.type)
    assert all(each.kind is not each.VAR_KEYWORD for each in parameters.values())


def test_type_checkers_see_the_settings_that_exist():
    types = get_type_hints(TrainingRequest)
    del types["start_sha256"], types["teachers_sha256"]
    assert get_type_hints(TrainingSettings) == types
    assert call.train.__annotations__["settings"] == "Unpack[TrainingSettings]"


def test_name_from_another_library_gets_a_suggestion(story_file):
    with pytest.raises(UserError, match="unknown setting 'lr'; did you mean 'learning_rate'"):
        clearhead.train(story_file, lr=0.01)


def test_callbacks_receive_the_records_in_the_metrics(story_file, tmp_path):
    first, second = [], []
    clearhead.train(story_file, tmp_path / "run", steps=4, callbacks=[first.append, second.append], **SIZES)
    assert first == second == read_metrics(tmp_path / "run")
    assert any("sample" in record for record in first)
    alone = []
    clearhead.train(story_file, steps=4, callbacks=alone.append, **SIZES)
    assert [record["loss"] for record in alone] == [record["loss"] for record in first]


@pytest.mark.parametrize("error", [RuntimeError("enough"), KeyboardInterrupt()])
def test_run_stopped_by_a_callback_is_saved_and_can_be_resumed(error, story_file, tmp_path):
    def stop(record):
        if record["step"] == 2:
            raise error

    folder = tmp_path / "run"
    with pytest.raises(type(error)) as caught:
        clearhead.train(story_file, folder, steps=4, callbacks=stop, **SIZES)
    assert caught.value is error
    assert error.__notes__[-1] == f"training stopped after step 2; the model so far is saved in {folder}"
    assert clearhead.load(folder).training["steps_done"] == 2
    assert [record["step"] for record in read_metrics(folder)] == [1, 2]
    resumed = []
    clearhead.train(story_file, folder, steps=4, resume=True, callbacks=resumed.append, **SIZES)
    clearhead.train(story_file, tmp_path / "whole", steps=4, **SIZES)
    assert [record["step"] for record in resumed] == [3, 4]
    assert read_metrics(folder) == read_metrics(tmp_path / "whole")


def test_unsaved_run_is_stopped_by_a_callback(story_file):
    def stop(_):
        raise LookupError("no")

    with pytest.raises(LookupError) as caught:
        clearhead.train(story_file, steps=4, callbacks=[stop], **SIZES)
    assert caught.value.__notes__ == ["training stopped after step 1"]


@pytest.mark.parametrize("wrong", [3, "print", [None]])
def test_callbacks_that_cannot_be_called_are_rejected(wrong, story_file, tmp_path):
    with pytest.raises(UserError, match=r"callbacks = .*: expected a function that takes a dict"):
        clearhead.train(story_file, tmp_path / "run", steps=1, callbacks=wrong, **SIZES)
    assert not (tmp_path / "run").exists()


def test_callbacks_of_an_ngram_model_are_rejected(story_file):
    with pytest.raises(UserError, match="omit `callbacks`"):
        clearhead.train(story_file, kind="ngram", callbacks=print)


def test_progress_is_shown_unless_turned_off(story_file, monkeypatch, capsys):
    clearhead.train(story_file, steps=2, **SIZES)
    assert capsys.readouterr().out == ""
    display = RecordingDisplay()
    monkeypatch.setattr(call, "find_display", lambda: display)
    clearhead.train(story_file, steps=3, progress=False, **SIZES)
    assert display.said == []
    clearhead.train(story_file, steps=3, **SIZES)
    assert display.said[0].startswith("step 1/3   loss ")
    last = display.said.index("close") - 1
    assert display.said[last].startswith("step 3/3   loss ")


def test_progress_makes_room_for_warnings(story_file, monkeypatch):
    display, validate = RecordingDisplay(), Run.validate

    def validate_with_note(run):
        run.notes.append("the disk is almost full")
        return validate(run)

    monkeypatch.setattr(call, "find_display", lambda: display)
    monkeypatch.setattr(Run, "validate", validate_with_note)
    with pytest.warns(UserWarning, match="the disk is almost full"):
        clearhead.train(story_file, steps=1, **SIZES)
    assert display.said[0] == "clear"


def test_run_folder_names_the_texts_of_a_call(story_file, tmp_path):
    clearhead.train([story_file], tmp_path / "run", steps=1, **SIZES)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["command"] == ["ch.train", str(story_file)]
