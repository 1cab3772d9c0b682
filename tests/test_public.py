"""The public package: importing it is cheap, and torch is loaded only when needed."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import clearhead
from clearhead.errors import UserError


def run(code):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_importing_clearhead_does_not_import_torch():
    run(
        "import sys, clearhead; clearhead.__version__, clearhead.UserError, clearhead.runs, dir(clearhead); "
        "heavy = {'torch', 'numpy', 'numba', 'tokenizers', 'rich', 'typer'} & set(sys.modules); "
        "assert not heavy, heavy"
    )


@pytest.mark.slow
def test_submodules_do_not_shadow_public_names():
    run(
        "import clearhead.runs.call, clearhead.cli, clearhead.formats.folder\n"
        "import clearhead.training.trainer\n"
        "import clearhead.generate.detokenizer, clearhead.inspect.trace, clearhead.cli.train\n"
        "from clearhead import load, train\n"
        "assert load is clearhead.language_model.load and clearhead.load is load\n"
        "assert train is clearhead.runs.call.train and clearhead.train is train\n"
        "assert callable(clearhead.runs) and clearhead.runs.call.train is train\n"
        "assert isinstance(clearhead.Config, type) and isinstance(clearhead.LanguageModel, type)\n"
    )


def test_public_names_are_listed_and_callable():
    for name in clearhead.__all__:
        assert callable(getattr(clearhead, name))
        assert getattr(clearhead, name).__module__.startswith("clearhead.")
    names = dir(clearhead)
    assert set(clearhead.__all__) <= set(names)
    assert len(names) == len(set(names)), "a name is listed twice"
    with pytest.raises(AttributeError, match="'clearhead' has no attribute 'nothing'"):
        clearhead.nothing  # noqa: B018


def test_version_matches_package_metadata():
    assert clearhead.__version__ == version("clearhead")


SMALL = {"steps": 3, "blocks": 1, "heads": 1, "width": 32, "context": 16, "tokenizer": "char"}


def test_trained_model_can_be_loaded(story_file, tmp_path):
    model = clearhead.train(story_file, out=tmp_path / "model", **SMALL)
    assert model.training["steps_done"] == 3
    loaded = clearhead.load(tmp_path / "model")
    assert isinstance(loaded, clearhead.LanguageModel)
    assert loaded.generate("The", tokens=9) == model.generate("The", tokens=9)
    with pytest.raises(clearhead.UserError, match="already contains a finished run"):
        clearhead.train(str(story_file), out=str(tmp_path / "model"), **SMALL)


def test_train_on_several_files_with_separate_validation(story_file, tmp_path):
    (tmp_path / "more.txt").write_text("Anna had a kite. " * 20)
    (tmp_path / "check.txt").write_text("The kite had Anna.")
    sources = [story_file, str(tmp_path / "more.txt")]
    for validation in (
        str(tmp_path / "check.txt"),
        tmp_path / "check.txt",
        [str(tmp_path / "check.txt")],
        [tmp_path / "check.txt"],
    ):
        model = clearhead.train(sources, validation=validation, **SMALL)
        assert model.training["validation_tokens"] == 19


def test_train_rejects_bad_arguments_before_training(story_file):
    with pytest.raises(UserError, match="steps = 0"):
        clearhead.train(story_file, steps=0)
    with pytest.raises(UserError, match="no such file: nowhere"):
        clearhead.train("nowhere", steps=1)
    with pytest.raises(UserError, match="no text was given"):
        clearhead.train([], steps=1)
    with pytest.raises(UserError, match="unknown setting 'stepz'; did you mean 'steps'"):
        clearhead.train(story_file, stepz=1)


def test_trained_model_survives_a_failed_save(story_file, tmp_path, monkeypatch):
    """If the disk fills up during training, the model is saved elsewhere and the error says where."""
    from clearhead.formats import folder
    from clearhead.runs import training as runs

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(runs, "check_space", lambda *_: None)
    check = folder.check_space

    def refuse(place, config):
        if place.name == "model":
            raise UserError(f"no space left in {place}")
        check(place, config)

    monkeypatch.setattr(folder, "check_space", refuse)
    with pytest.raises(UserError, match=r"no space left in .*model.* saved (in|to) ") as caught:
        clearhead.train(story_file, out=tmp_path / "model", **SMALL)
    [kept] = tmp_path.glob("clearhead-*")
    assert str(kept) in str(caught.value)
    assert clearhead.load(kept).training["steps_done"] == 3
