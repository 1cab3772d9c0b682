"""The command line as users run it: in this process (fast) or in a separate one (realistic)."""

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from clearhead.cli import run
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def workplace(tmp_path, tmp_path_factory, monkeypatch):
    """The folder the command runs in, and a temporary folder that can be checked for leftovers."""
    monkeypatch.chdir(tmp_path)
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    return tmp_path


@pytest.fixture
def tree(tmp_path, home):
    """Everything in the working, temporary and home folders except the token cache."""

    cache = home / "tokens"

    def look():
        found = {}
        for root in (tmp_path, Path(tempfile.gettempdir()), home):
            for path in root.rglob("*"):
                kept = path == cache or (cache in path.parents and not path.name.startswith("."))
                kept = kept or path.name.startswith("torchinductor_")  # created by torch
                if not kept:
                    found[path] = path.read_bytes() if path.is_file() else None
        return found

    return look


@pytest.fixture
def clearhead(capsys):
    """Run a command in this process."""

    def call(*arguments):
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        return Result(code, *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def command(forked):
    """The command that starts `clearhead` in a separate process."""
    return [*forked, "-m", "clearhead"]


@pytest.fixture
def process(command):
    """Run a command in a separate process."""

    def call(*arguments, **environment):
        done = subprocess.run(
            [*command, *map(str, arguments)],
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, **environment},
            timeout=300,
            stdin=subprocess.DEVNULL,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def refused(clearhead, tree):
    """Run a command that fails with a user error, and return its one-line message."""

    def call(*arguments, words=(), through=clearhead):
        before = tree()
        result = through(*arguments)
        assert result.code == 2, result
        assert result.out == ""
        assert result.err.startswith("clearhead: "), result.err
        assert result.err.count("\n") == 1, result.err
        assert result.err.endswith("\n")
        assert "Traceback" not in result.err
        assert tree() == before
        for word in words:
            assert str(word) in result.err, f"{word!r} is not in: {result.err}"
        return result.err

    return call


@pytest.fixture
def gpt2_folder(trained, tmp_path):
    """An untrained GPT-2 with the trained model's tokenizer."""
    config = preset("gpt2", n_vocab=trained.tokenizer.n_vocab, n_context=16, n_block=2, n_head=4, d_model=16)
    LanguageModel(Transformer(config), trained.tokenizer).save(tmp_path / "gpt2")
    return tmp_path / "gpt2"


@pytest.fixture
def change_json():
    """Set some keys in a JSON file and remove others."""

    def change(path, without=(), **settings):
        document = json.loads(path.read_text(encoding="utf-8"))
        document.pop("sealed", None)  # the hash of its content
        document.update(settings)
        for name in without:
            del document[name]
        path.write_text(json.dumps(document), encoding="utf-8")

    return change
