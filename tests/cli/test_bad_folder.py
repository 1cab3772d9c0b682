"""Models that cannot be saved: rejected before training, or saved elsewhere afterward."""

import os
import re
from pathlib import Path

import pytest

from clearhead.cli.progress import TerminalObserver
from clearhead.errors import UserError
from clearhead.formats import folder as model_folder
from clearhead.language_model import load

SMALL = ("--steps", 2, "--blocks", 1, "--width", 32, "--heads", 1, "--context", 16, "--tokenizer", "char")


@pytest.mark.parametrize("kept", [None, "config.json", "model.safetensors"])
def test_folder_that_contains_a_model_is_rejected(kept, refused, story_file, copied_model):
    """A folder with only a model's config or only its weights counts too."""
    for path in copied_model.iterdir():
        if kept not in (None, path.name):
            path.unlink()
    words = ["model already contains a model"]
    refused("train", story_file, "--out", "model", *SMALL, words=words)
    refused("demo", "--out", "model", words=words)


def test_output_path_that_is_a_file_is_rejected(refused, story_file, tmp_path):
    (tmp_path / "notes").write_text("mine")
    for folder in ("notes", "notes/model", "notes/deep/model"):
        refused("train", story_file, "--out", folder, *SMALL, words=["notes", "file"])
    refused("demo", "--out", "notes", words=["notes is a file"])


def test_folder_name_that_is_too_long_is_rejected(refused, story_file):
    refused("train", story_file, "--out", "a" * 300, *SMALL, words=["aaa", "choose another"])


def test_full_disk_is_rejected_before_training(refused, story_file, disk):
    folder = disk("200k")
    words = [f"not enough space in {folder / 'model'}", "MB", "choose another folder"]
    refused("train", story_file, "--out", folder / "model", *SMALL, words=words)
    assert list(folder.iterdir()) == []


def test_read_only_disk_is_rejected_before_training(refused, story_file, disk):
    folder = disk("8m", read_only=True)
    refused("train", story_file, "--out", folder / "model", *SMALL, words=[folder, "not writable"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_folder_is_rejected_before_training(refused, story_file, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    refused("train", story_file, "--out", "locked/model", *SMALL, words=["locked", "not writable"])


def test_disk_filling_up_during_training_loses_nothing(clearhead, story_file, disk, monkeypatch, tree):
    folder = disk("8m")
    start = TerminalObserver.started

    def fill_then_start(self, *started):
        with (folder / "filler").open("wb") as file:
            while os.statvfs(folder).f_bavail:
                try:
                    file.write(bytes(2**12))
                    file.flush()
                except OSError:
                    break
        start(self, *started)

    monkeypatch.setattr(TerminalObserver, "started", fill_then_start)
    result = clearhead("train", story_file, "--out", folder / "model", *SMALL)
    assert result.code == 0, result.err
    assert f"clearhead: not enough space in {folder / 'model'}" in result.err
    assert not (folder / "model" / "config.json").exists()
    saved = re.search(r"^saved to (\S+);", result.err, re.MULTILINE)
    assert saved is not None
    assert not saved[1].startswith(str(folder))
    assert load(saved[1]).generate("The", tokens=3)


def test_disk_filling_up_during_saving_leaves_no_partial_model(trained, disk):
    """However much space is left, the folder holds a complete model or none."""
    folder = disk("4m")
    needed = 4 * trained.plan.config.n_parameter
    outcomes = set()
    for room in (0, 2**12, needed // 2, needed + 2**12, needed + 2**14, needed + 2**17):
        filler = folder / "filler"
        with filler.open("wb") as file:
            file.write(bytes(os.statvfs(folder).f_bavail * os.statvfs(folder).f_bsize - room))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(model_folder, "check_space", lambda *_: None)
            try:
                trained.model.save(folder / "model")
            except UserError as error:
                assert "no space left" in str(error)  # noqa: PT017
                outcomes.add("refused")
                with pytest.raises(UserError, match=r"is not a model|no such folder"):
                    load(folder / "model")
            else:
                outcomes.add("saved")
                load(folder / "model")
        for path in [*(folder / "model").glob("*"), *(folder / "model").glob(".*")]:
            assert not path.name.startswith(".")
            path.unlink()
        filler.unlink()
    assert outcomes == {"refused", "saved"}


def test_unwritable_home_error_names_its_environment_variable(refused, story_file, tmp_path, monkeypatch):
    (tmp_path / "notes").write_text("mine")
    monkeypatch.setenv("CLEARHEAD_HOME", str(tmp_path / "notes"))
    refused("train", story_file, *SMALL, words=["notes", "CLEARHEAD_HOME"])


def test_default_folder_is_never_an_existing_one(clearhead, story_file, tmp_path):
    for expected in ("stories", "stories-2"):
        result = clearhead("train", story_file, *SMALL)
        assert f"saved to {Path('runs') / expected}" in result.err
        assert (tmp_path / "runs" / expected / "config.json").exists()


def test_default_folder_for_a_glob_has_a_plain_name(clearhead, story_text, tmp_path):
    (tmp_path / "a.txt").write_text(story_text)
    assert clearhead("train", "*.txt", *SMALL).code == 0
    [folder] = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"[\w-]+", folder.name), folder.name


def test_ctrl_c_before_training_saves_nothing(clearhead, story_file, monkeypatch, tree):
    def interrupt(run):
        raise KeyboardInterrupt

    monkeypatch.setattr("clearhead.cli.progress.show_plan", interrupt)
    before = tree()
    result = clearhead("train", story_file, *SMALL)
    assert (result.code, result.out) == (130, "")
    assert result.err.startswith("clearhead: stopped")
    assert result.err.count("\n") == 1
    assert tree() == before
