"""Model folders round-trip bit for bit, and a failed save never leaves a partial model."""

import errno
import json
import os
import struct
import sys

import pytest
import torch

from clearhead.errors import UserError
from clearhead.formats import folder as model_folder
from clearhead.formats.folder import Saved, check_free, load, read_label, save
from clearhead.model.config import Config, preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

SIZES = {"n_vocab": 40, "n_context": 16, "n_block": 2, "n_head": 4, "d_model": 16}
FILES = {
    "clearhead.json",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
}

CONFIGS = {
    "lecture": ("gpt2", preset("lecture", **SIZES)),
    "lecture, untied": ("gpt2", preset("lecture", **SIZES, tied=False)),
    "gpt2": ("gpt2", preset("gpt2", **SIZES, dropout=0.1)),
    "gpt2, narrow hidden layer": ("gpt2", preset("gpt2", **SIZES, d_hidden=24)),
    "gpt2, exact gelu": ("gpt2", preset("gpt2", **{**SIZES, "n_head": 1}, feedforward="gelu")),
    "modern": ("qwen3", preset("modern", **SIZES)),
    "modern, untied": ("qwen3", preset("modern", **SIZES, tied=False, dropout=0.25)),
    "modern, grouped": ("qwen3", preset("modern", **SIZES, n_kv_head=2)),
    "modern, one key": ("qwen3", preset("modern", **SIZES, n_kv_head=1, d_head=6)),
    "modern, biases": ("qwen3", preset("modern", **SIZES, qkv_bias=True, output_bias=True)),
    "bidirectional": ("clearhead", preset("lecture", **SIZES, causal=False)),
    "bidirectional, modern": ("clearhead", preset("modern", **SIZES, causal=False)),
    "sinusoids": ("clearhead", preset("lecture", **SIZES, position="sinusoidal")),
    "no positions": ("clearhead", preset("lecture", **SIZES, position="none", tied=False)),
    "rotary with LayerNorm": ("gpt_neox", preset("lecture", **SIZES, position="rotary", rotary_base=500.0)),
    "parallel": ("gpt_neox", preset("gpt2", **SIZES, position="rotary", rotary_dim=2, parallel=True)),
    "grouped lecture": ("clearhead", preset("lecture", **SIZES, n_kv_head=2)),
    "some biases": ("clearhead", preset("lecture", **SIZES, qkv_bias=False)),
    "gated": ("clearhead", preset("gpt2", **SIZES, feedforward="geglu")),
    "wide heads": ("clearhead", preset("gpt2", **SIZES, d_head=6, norm_epsilon=1e-3)),
    "modern without QK-norm": ("llama", preset("modern", **SIZES, qk_norm=False)),
    "local": ("mistral", preset("modern", **SIZES, qk_norm=False, window=3, local_blocks=[0, 1])),
    "partly local": ("qwen3", preset("modern", **SIZES, window=3, local_blocks=[1])),
    "biased": ("qwen2", preset("modern", **SIZES, qk_norm=False, qkv_bias=True)),
    "post-norm": ("clearhead", preset("modern", **SIZES, post_norm=True)),
    "stretched": (
        "llama",
        preset("modern", **SIZES, qk_norm=False, rope_scaling={"kind": "linear", "factor": 2.0}),
    ),
}


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train("char", ["abc def\n"])


def random_network(config: Config, seed: int = 0) -> Transformer:
    """Return a network with random values in every parameter, including biases and norms."""
    torch.manual_seed(seed)
    network = Transformer(config)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter)
    return network.eval()


def same_weights(one: Transformer, other: Transformer) -> bool:
    a, b = one.state_dict(), other.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_config_round_trips(name, tokenizer, tmp_path):
    family, config = CONFIGS[name]
    network = random_network(config)
    training = {"seed": 3, "text": "été", "losses": [1.5, None]}
    save(tmp_path, Saved(network, tokenizer, training))
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == family
    loaded = load(tmp_path)
    assert loaded.network.config == config
    assert loaded.training == training
    assert loaded.tokenizer.to_json() == tokenizer.to_json()
    assert same_weights(network, loaded.network)
    assert (loaded.network.unembedding.weight is loaded.network.embedding.weight) == config.tied
    assert not loaded.network.training
    ids = torch.arange(SIZES["n_context"])[None]
    assert torch.equal(network(ids), loaded.network(ids))
    label = read_label(tmp_path)
    assert (label.config, label.training, label.family.model_type) == (config, training, family)


@pytest.mark.parametrize("name", CONFIGS)
def test_saving_again_writes_identical_bytes(name, tokenizer, tmp_path):
    _, config = CONFIGS[name]
    save(tmp_path / "a", Saved(random_network(config), tokenizer, None))
    save(tmp_path / "b", load(tmp_path / "a"))
    for file in FILES:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_edited_settings_are_read_once_their_hash_is_deleted(tokenizer, tmp_path):
    save(tmp_path, Saved(random_network(CONFIGS["lecture"][1]), tokenizer, {"seed": 3}))
    path, ours = tmp_path / "tokenizer_config.json", tmp_path / "clearhead.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "chat_template": "{{ messages }}"}))
    with pytest.raises(UserError, match=r"delete its hash and 'sealed' from clearhead.json; put a chat"):
        load(tmp_path)
    label = json.loads(ours.read_text())
    del label["files"]["tokenizer_config.json"], label["sealed"]
    ours.write_text(json.dumps(label))
    loaded = load(tmp_path)
    assert loaded.tokenizer.chat_template == "{{ messages }}"
    assert loaded.training == {"seed": 3}


def test_chat_template_can_be_put_into_a_file_of_its_own(tokenizer, tmp_path):
    save(tmp_path, Saved(random_network(CONFIGS["lecture"][1]), tokenizer, {"seed": 3}))
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    assert load(tmp_path).tokenizer.chat_template == "{{ messages }}"


def test_folder_contains_only_json_and_plain_tensors(tokenizer, tmp_path):
    save(tmp_path, Saved(random_network(CONFIGS["modern"][1]), tokenizer, {}))
    assert {path.name for path in tmp_path.iterdir()} == FILES
    for name in FILES - {"model.safetensors"}:
        assert isinstance(json.loads((tmp_path / name).read_text(encoding="utf-8")), dict)
    data = (tmp_path / "model.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    tensors = json.loads(data[8 : 8 + size])
    assert tensors.pop("__metadata__") == {"format": "pt"}
    assert {tensor["dtype"] for tensor in tensors.values()} == {"F32"}
    numbers = CONFIGS["modern"][1].n_parameter
    assert len(data) == 8 + size + 4 * numbers


def test_half_precision_model_loads_in_single_precision(tokenizer, tmp_path):
    network = random_network(CONFIGS["modern"][1]).to(torch.bfloat16)
    save(tmp_path, Saved(network, tokenizer, None))
    assert json.loads((tmp_path / "config.json").read_text())["dtype"] == "bfloat16"
    loaded = load(tmp_path).network
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    assert same_weights(loaded, network.float())


@pytest.mark.skipif(sys.platform != "linux", reason="file names are UTF-8 on macOS and UTF-16 on Windows")
def test_path_that_is_not_utf_8_is_named_as_the_cause(tokenizer, tmp_path):
    folder = tmp_path / os.fsdecode(b"m\xff")
    save(folder, Saved(random_network(CONFIGS["modern"][1]), tokenizer, None))
    with pytest.raises(UserError, match="its path is not valid UTF-8; rename the folder"):
        load(folder)


def test_models_of_other_programs_need_no_clearhead_json(tokenizer, tmp_path):
    network = random_network(CONFIGS["gpt2"][1])
    save(tmp_path, Saved(network, tokenizer, {"seed": 1}))
    (tmp_path / "clearhead.json").unlink()
    (tmp_path / "generation_config.json").unlink()
    loaded = load(tmp_path)
    assert loaded.training is None
    assert loaded.network.config.dropout == 0
    assert same_weights(network, loaded.network)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "clearhead.json"])
def test_folder_with_model_files_is_not_free(name, tmp_path):
    check_free(tmp_path)
    check_free(tmp_path / "new")
    (tmp_path / name).touch()
    with pytest.raises(UserError, match="already contains"):
        check_free(tmp_path)


class Crash(BaseException):
    """A crash that no code catches."""


def crash_at(monkeypatch, count, error):
    """Raise `error` after `count` calls to fsync; a save makes two per file, and one for a new folder."""
    calls = 0
    settle = os.fsync

    def fsync(handle):
        nonlocal calls
        calls += 1
        if calls == count + 1:
            raise error
        settle(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    return lambda: calls


def count_settles(saved, folder):
    with pytest.MonkeyPatch.context() as patch:
        calls = crash_at(patch, 10**9, Crash())
        save(folder, saved)
        return calls()


@pytest.mark.parametrize("old", [False, True], ids=["new folder", "over an old model"])
@pytest.mark.parametrize(
    "error", [Crash(), OSError(errno.ENOSPC, "No space left")], ids=["crash", "full disk"]
)
def test_failed_save_never_leaves_a_partial_model(old, error, tokenizer, tmp_path):
    _, config = CONFIGS["modern"]
    before = Saved(random_network(config, seed=1), tokenizer, {"which": "old"})
    after = Saved(random_network(config, seed=2), tokenizer, {"which": "new"})
    if old:
        (tmp_path / "counted").mkdir()
    settles = count_settles(after, tmp_path / "counted")
    assert settles == 2 * len(FILES) + (not old)
    refused = 0
    for at in range(settles):
        folder = tmp_path / str(at)
        if old:
            save(folder, before)
        with pytest.MonkeyPatch.context() as patch:
            crash_at(patch, at, error)
            with pytest.raises((Crash, UserError)) as caught:
                save(folder, after)
        if isinstance(error, OSError):
            assert "no space left" in str(caught.value)
        assert {path.name for path in folder.iterdir()} <= FILES, "a temporary file was left behind"
        try:
            loaded = load(folder)
        except UserError as refusal:
            assert "is not a model" in str(refusal)  # noqa: PT017
            refused += 1
        else:
            expected = before if loaded.training == before.training else after
            assert same_weights(loaded.network, expected.network)
    # config.json, which makes the folder a model, is written only when everything else is in place.
    assert refused >= settles - 2


def test_full_disk_is_rejected_before_overwriting_the_old_model(tokenizer, tmp_path, monkeypatch):
    saved = Saved(random_network(CONFIGS["modern"][1]), tokenizer, None)
    save(tmp_path, saved)

    def usage(path):
        return type("Usage", (), {"free": 2**20})

    monkeypatch.setattr(model_folder.shutil, "disk_usage", usage)
    with pytest.raises(UserError, match=r"does not fit in 1\.0 MB"):
        save(tmp_path, saved)
    assert same_weights(load(tmp_path).network, saved.network)
