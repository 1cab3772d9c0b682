"""Small models of every family to corrupt, and checks that corrupted ones are rejected."""

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

LONGEST = 30.0  # seconds of CPU time; anything slower counts as unbounded
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
    "gemma2": preset(
        "modern",
        **LLAMA,
        feedforward="geglu",
        embedding_scale=8**0.5,
        post_norm=True,
        window=3,
        local_blocks=[0],
        score_cap=50.0,
        logit_cap=30.0,
    ),
    "phi3": preset("modern", **LLAMA, rotary_dim=2),
    "gpt_neo": preset("gpt2", **SIZES, d_k=1, qkv_bias=False, window=3, local_blocks=[0]),
    "opt": preset("lecture", **SIZES, qkv_bias=False, output_bias=False, feedforward_bias=False),
    "smollm3": preset("modern", **LLAMA, unrotated_blocks=[0]),
    "olmo2": preset("modern", **SIZES, qk_norm_joint=True, pre_norm=False, post_norm=True),
    "clearhead": preset("modern", **SIZES, causal=False, rope_scaling=LINEAR),
}


@pytest.fixture(scope="session")
def families(tmp_path_factory):
    """A folder for each family, without clearhead.json, whose hash would reject any modified weights."""
    place, tokenizer = tmp_path_factory.mktemp("families"), Tokenizer.train("char", ["abc def\n"])
    torch.manual_seed(0)
    for name, config in CONFIGS.items():
        model_folder.save(place / name, Saved(Transformer(config), tokenizer, None))
        assert (place / name / "clearhead.json").stat().st_size < 2000
        (place / name / "clearhead.json").unlink()
        assert model_folder.read_label(place / name).family.model_type == name
    assert set(CONFIGS) == {family.model_type for family in model_folder.FAMILIES}
    return place


@pytest.fixture
def folder(families, tmp_path):
    """A model folder to corrupt."""
    return shutil.copytree(families / "qwen3", tmp_path / "model")


@pytest.fixture(autouse=True)
def no_hanging():
    """Fail any test that would wait forever, on a pipe or in a loop."""

    def stop(*_):
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def tree(place):
    """Return all files in the tree with their mode, size and modification time."""
    found = [place, *place.rglob("*")] if place.is_dir() else [place]
    stats = [(path, os.lstat(path)) for path in found]
    return {path: (stat.st_mode, stat.st_size, stat.st_mtime_ns) for path, stat in stats}


def check_message(message, path):
    """Check that the message is one printable line, is not too long, and names the file."""
    assert message.isprintable()
    assert str(path) in message
    assert len(message) <= 1000 + len(str(path))


@pytest.fixture(scope="session", name="check_message")
def _check_message():
    return check_message


@pytest.fixture(scope="session")
def refuse():
    """Check that loading fails fast, with a matching one-line error naming the file, and writes nothing."""

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
    """Return whether the model loads; if it does not, check the error as above."""

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
