"""Shell completion as bash requests it: in a separate process where torch cannot be imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clearhead.cli.completion import complete_models, complete_sites
from clearhead.inspect.sites import all_sites
from clearhead.model.config import PRESETS
from clearhead.networks import KINDS as NETWORKS
from clearhead.text.tokenizer_kinds import KINDS
from clearhead.training.recipe import OPTIMIZERS, RECIPES


@pytest.fixture
def complete():
    """The completions offered for the last word."""
    code = "import sys; sys.modules['torch'] = None; from clearhead.cli import main; main()"

    def ask(*words):
        asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **asked, "_CLEARHEAD_COMPLETE": "complete_bash"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    return ask


def test_commands_and_labs_are_completed(complete):
    assert complete("clearhead", "ex") == ["explore", "export"]
    assert complete("clearhead", "lab", "s") == ["senses", "scale", "stream"]


def test_models_in_runs_and_home_are_completed(complete, copied_model, home):
    Path("runs").mkdir()
    copied_model.rename("runs/austen")
    Path("runs/empty").mkdir()
    (home / "models" / "other").mkdir(parents=True)
    (home / "models" / "other" / "other.gguf").touch()
    assert complete("clearhead", "generate", "runs/") == ["runs/austen"]
    assert complete_models("") == ["runs/austen", str(home / "models" / "other" / "other.gguf"), "stories"]


@pytest.mark.parametrize(
    ("option", "known"),
    [
        ("--preset", PRESETS),
        ("--kind", NETWORKS),
        ("--tokenizer", KINDS),
        ("--recipe", RECIPES),
        ("--optimizer", OPTIMIZERS),
    ],
)
def test_option_values_are_completed(option, known, complete):
    assert complete("clearhead", "train", "my.txt", option, "") == list(known)


def test_site_completion_keeps_the_typed_indices(complete):
    offered = complete("clearhead", "inspect", "model", "--site", "block.3.head.2.s")
    assert offered == ["block.3.head.2.scores", "block.3.head.2.scaled"]


def test_every_site_of_a_model_is_completed(model):
    ours = {str(site) for site in all_sites(model.config)}
    assert ours <= {*complete_sites(""), *complete_sites("block.0.")}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_show_completion_prints_the_shell_script(shell, clearhead, monkeypatch):
    monkeypatch.setattr("shellingham.detect_shell", lambda *_: (shell, f"/bin/{shell}"))
    result = clearhead("--show-completion")
    assert result.code == 0
    assert f"_CLEARHEAD_COMPLETE=complete_{shell}" in result.out


def test_unsupported_shell_is_rejected(refused, monkeypatch):
    monkeypatch.setattr("shellingham.detect_shell", lambda *_: ("dash", "/bin/dash"))
    refused("--show-completion", words=["bash, zsh, fish", "dash"])


def test_install_completion_writes_to_bashrc(clearhead, monkeypatch, tmp_path):
    monkeypatch.setattr("shellingham.detect_shell", lambda *_: ("bash", "/bin/bash"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert clearhead("--install-completion").code == 0
    assert "clearhead" in (tmp_path / ".bashrc").read_text()
