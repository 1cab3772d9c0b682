"""Small models of every family to damage, and what it means to refuse one."""

import os
import shutil
import signal
import time

import pytest
import torch

import clearhead
from clearhead.errors import UserError
from clearhead.formats import folder as model_folder
from clearhead.formats.saved import Saved
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

LONGEST = 30.0  # seconds of processor time: what takes longer has no bound
SIZES = {"n_vocab": 12, "n_context": 8, "n_block": 1, "n_head": 2, "d_model": 8}
LLAMA = {**SIZES, "qk_norm": False}
LINEAR = {"kind": "linear", "factor": 2.0}
CONFIGS = {
    "gpt2": preset("gpt2", **SIZES),
    "llama": preset("modern", **LLAMA, rope_scaling={"kind": "llama3", "factor": 8.0}),
    "mistral": preset("modern", **LLAMA, window=3, local_blocks=[0]),
    "qwen2": preset("modern", **LLAMA, qkv_bias=True, window=3, local_blocks=[0]),
    "qwen3": preset("modern", **SIZES),
    "gpt_neox": preset("lecture", **SIZES, position="rotary", parallel=True, rope_scaling=LINEAR),
    "gemma3_text": preset(
        "modern",
        **SIZES,
        feedforward="geglu",
        embedding_scale=8**0.5,
        post_norm=True,
        window=3,
        local_blocks=[0],
        local_rotary_base=500.0,
    ),
    "clearhead": preset("modern", **SIZES, causal=False, rope_scaling=LINEAR),
}


@pytest.fixture(scope="session")
def families(tmp_path_factory):
    """A folder of each family, without our own file, whose hash would refuse every other file of weights."""
    place, tokenizer = tmp_path_factory.mktemp("families"), Tokenizer.train("char", ["abc def\n"])
    torch.manual_seed(0)
    for name, config in CONFIGS.items():
        model_folder.save(place / name, Saved(Transformer(config), tokenizer, None))
        assert (place / name / "clearhead.json").stat().st_size < 1000
        (place / name / "clearhead.json").unlink()
        assert model_folder.read_label(place / name).family.model_type == name
    assert set(CONFIGS) == {family.model_type for family in model_folder.FAMILIES}
    return place


@pytest.fixture
def folder(families, tmp_path):
    """One of them, to damage."""
    return shutil.copytree(families / "qwen3", tmp_path / "model")


@pytest.fixture(autouse=True)
def no_hanging():
    """A test that waits for ever, at a pipe or in a loop, fails instead."""

    def stop(*_):
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def tree(place):
    """All that is there, and when it changed last."""
    found = [place, *place.rglob("*")] if place.is_dir() else [place]
    stats = [(path, os.lstat(path)) for path in found]
    return {path: (stat.st_mode, stat.st_size, stat.st_mtime_ns) for path, stat in stats}


def check_message(message, path):
    """One line that can be shown, not long, and that names what is wrong."""
    assert message.isprintable()
    assert str(path) in message
    assert len(message) <= 1000 + len(str(path))


@pytest.fixture(scope="session", name="check_message")
def _check_message():
    return check_message


@pytest.fixture(scope="session")
def refuse():
    """Refused for the reason given, soon, in a line that names the file, and nothing is written."""

    def refuse(path, match, named=None):
        before, start = tree(path), time.process_time()
        with pytest.raises(UserError, match=match) as refusal:
            clearhead.load(path, "cpu")
        assert time.process_time() - start < LONGEST
        check_message(str(refusal.value), path if named is None else named)
        assert tree(path) == before
        return str(refusal.value)

    return refuse


@pytest.fixture(scope="session")
def load_or_refuse():
    """Whether it is a model; what is none is refused as above."""

    def load_or_refuse(path, named=None):
        start = time.process_time()
        try:
            clearhead.load(path, "cpu")
        except UserError as refusal:
            check_message(str(refusal), path if named is None else named)
            return False
        finally:
            assert time.process_time() - start < LONGEST
        return True

    return load_or_refuse
