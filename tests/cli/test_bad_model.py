"""Folders that are not models, or are damaged ones: a one-line error names the file, whatever is wrong."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from clearhead.errors import UserError
from clearhead.formats.folder import load

NESTED = "[" * 100_000 + "]" * 100_000


def read(refused, folder, *words):
    return refused("generate", folder, "The", words=[folder.name, *words])


def test_missing_folders_and_non_models_are_rejected(refused, story_file, tmp_path):
    read(refused, tmp_path / "nowhere", "no such folder or file", "clearhead train")
    (tmp_path / "empty").mkdir()
    read(refused, tmp_path / "empty", "is not a model", "config.json")
    (tmp_path / "file").write_bytes(b"\x01")
    read(refused, tmp_path / "file", "is not a GGUF or ARPA file")
    refused("eval", "nowhere", story_file, words=["no such folder or file: nowhere"])
    refused("generate", "a" * 300, words=["aaa"])


WEIGHTS = {
    "cut at 0": lambda data: b"",
    "cut at 1": lambda data: data[:1],
    "cut at 7": lambda data: data[:7],
    "cut at 8": lambda data: data[:8],
    "cut in the header": lambda data: data[:100],
    "cut in the middle": lambda data: data[: len(data) // 2],
    "one byte short": lambda data: data[:-1],
    "one byte too long": lambda data: data + b"\0",
    "random": lambda data: np.random.default_rng(0).bytes(len(data)),
    "zeros": lambda data: bytes(len(data)),
    "a header of 2^63 bytes": lambda data: struct.pack("<Q", 2**63) + data[8:],
    "a header of 100 MB": lambda data: struct.pack("<Q", 10**8) + data[8:],
    "a header as long as the file": lambda data: struct.pack("<Q", len(data)) + data[8:],
    "a header that ends early": lambda data: struct.pack("<Q", 20) + data[8:],
    "a nested header": lambda data: struct.pack("<Q", len(NESTED)) + NESTED.encode() + data,
    "an enormous tensor": lambda data: _with_header(data, shape=[2**31, 2**31]),
    "an overflowing tensor": lambda data: _with_header(data, shape=[2**63, 2**63]),
    "offsets beyond the end": lambda data: _with_header(data, data_offsets=[0, 2**60]),
    "offsets that run backward": lambda data: _with_header(data, data_offsets=[400, 0]),
    "an unknown dtype": lambda data: _with_header(data, dtype="F33"),
}


def _with_header(data, **changes):
    """The file with changes to the header entry of its first tensor."""
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    first = next(name for name in header if name != "__metadata__")
    header[first] |= changes
    written = json.dumps(header).encode()
    return struct.pack("<Q", len(written)) + written + data[8 + size :]


@pytest.mark.parametrize("damage", WEIGHTS)
def test_damaged_weights_are_rejected(damage, refused, copied_model):
    path = copied_model / "model.safetensors"
    path.write_bytes(WEIGHTS[damage](path.read_bytes()))
    read(refused, copied_model, "model.safetensors", "copy it again", "clearhead.json")
    (copied_model / "clearhead.json").unlink()
    read(refused, copied_model, "model.safetensors", "copy it again")


def test_flipped_bits_are_detected(copied_model, refused):
    path = copied_model / "model.safetensors"
    data = path.read_bytes()
    for at in (0, 8, 60, len(data) // 2, len(data) - 1):
        flipped = bytearray(data)
        flipped[at] ^= 1
        path.write_bytes(flipped)
        read(refused, copied_model, "model.safetensors", "truncated or changed")


def test_flipped_header_bits_are_harmless_or_detected_without_a_hash(copied_model):
    path = copied_model / "model.safetensors"
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    (copied_model / "clearhead.json").unlink()
    before = load(copied_model).network.state_dict()
    refusals = 0
    for at in range(0, 8 + size, 13):
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 8
        path.write_bytes(flipped)
        try:
            after = load(copied_model).network.state_dict()
        except UserError as error:
            assert "model.safetensors" in str(error)  # noqa: PT017
            refusals += 1
        else:
            assert all(torch.equal(before[name], after[name]) for name in before)
    assert refusals > size / 13 / 2


TENSORS = {
    "does not match the settings": (
        lambda t: {**t, "model.norm.weight": torch.ones(31)},
        ["model.norm.weight", "31", "32"],
    ),
    "turned": (
        lambda t: {**t, "model.embed_tokens.weight": t["model.embed_tokens.weight"].T.contiguous()},
        ["model.embed_tokens.weight", "different models"],
    ),
    "one missing": (
        lambda t: (
            {name: tensor for name, tensor in t.items() if name != "model.norm.weight"}
            | {"more": torch.ones(1000)}
        ),
        ["has no model.norm.weight"],
    ),
    "other names": (lambda t: {f"other.{name}": tensor for name, tensor in t.items()}, ["has no"]),
    "nan": (
        lambda t: {**t, "model.norm.weight": torch.full((32,), torch.nan)},
        ["model.norm.weight", "non-finite"],
    ),
    "inf": (
        lambda t: {**t, "model.norm.weight": torch.full((32,), -torch.inf)},
        ["model.norm.weight", "non-finite"],
    ),
}


@pytest.mark.parametrize("change", TENSORS)
def test_mismatched_or_non_finite_weights_are_rejected(change, refused, copied_model):
    path = copied_model / "model.safetensors"
    changed, words = TENSORS[change]
    save_file(changed(load_file(path)), path)
    read(refused, copied_model, "model.safetensors", "truncated or changed")
    (copied_model / "clearhead.json").unlink()
    read(refused, copied_model, "model.safetensors", *words)


@pytest.mark.parametrize("ours", [True, False])
def test_missing_weights_are_rejected(ours, refused, copied_model):
    path = copied_model / "model.safetensors"
    path.unlink()
    if not ours:
        (copied_model / "clearhead.json").unlink()
    read(refused, copied_model, "no such file", "model.safetensors")
    path.mkdir()
    read(refused, copied_model, "model.safetensors")


QWEN3 = [
    ({"model_type": "bert"}, ["'bert'", "gpt2, llama, mistral, qwen2, qwen3, gpt_neox, gemma3_text"]),
    ({"model_type": None}, ["None"]),
    ({"model_type": ["qwen3"]}, ["['qwen3']"]),
    ({"num_hidden_layers": 0}, ["n_block = 0"]),
    ({"num_hidden_layers": -1}, ["n_block = -1"]),
    ({"num_hidden_layers": 10**9}, ["n_block = 1000000000"]),
    ({"num_hidden_layers": 10**30}, ["n_block"]),
    ({"num_hidden_layers": 1000}, ["too few", "copy it again"]),
    ({"num_hidden_layers": 2.5}, ["n_block = 2.5"]),
    ({"num_hidden_layers": "2"}, ["n_block = '2'"]),
    ({"num_hidden_layers": True}, ["n_block = True"]),
    ({"num_hidden_layers": []}, ["n_block = []"]),
    ({"num_hidden_layers": float("nan")}, ["n_block = nan"]),
    ({"hidden_size": 33}, ["model.safetensors"]),
    ({"hidden_size": 2**24}, ["too few"]),
    ({"hidden_size": 0}, ["d_model = 0"]),
    ({"vocab_size": 2**24}, ["too few"]),
    ({"head_dim": 31}, ["d_head = 31", "even"]),
    ({"head_dim": 0, "num_attention_heads": 3, "num_key_value_heads": 3}, ["32", "3 heads"]),
    ({"num_attention_heads": 3, "num_key_value_heads": 2}, ["3 heads", "2 key-value heads"]),
    ({"max_position_embeddings": 0}, ["n_context = 0"]),
    ({"rms_norm_eps": 0}, ["norm_epsilon = 0"]),
    ({"rms_norm_eps": "small"}, ["norm_epsilon = 'small'"]),
    ({"hidden_act": "gelu"}, ["hidden_act = 'gelu'"]),
    (
        {"use_sliding_window": True, "sliding_window": -1, "layer_types": ["sliding_attention"]},
        ["window = -1"],
    ),
    ({"use_sliding_window": True, "sliding_window": 8, "layer_types": ["linear"]}, ["layer_types"]),
    ({"rope_scaling": 2}, ["rope_scaling = 2"]),
    ({"rope_parameters": {"rope_type": "llama3", "factor": 2}}, ["low_freq_factor"]),
    ({"rope_parameters": {"rope_type": "linear", "factor": "x"}}, ["factor = 'x'"]),
    ({"rope_parameters": {"rope_type": "dynamic"}}, ["rope_type 'dynamic'"]),
    ({"rope_parameters": {"rope_type": "default", "rope_theta": "big"}}, ["rotary_base = 'big'"]),
    ({"rope_parameters": [1]}, ["rope_parameters"]),
    ({"rope_parameters": "default"}, ["rope_parameters"]),
    ({"attention_bias": "no"}, ["qkv_bias = 'no'"]),
    ({"tie_word_embeddings": 1}, ["tied = 1"]),
]


@pytest.mark.parametrize(("settings", "words"), QWEN3, ids=str)
def test_invalid_qwen3_config_is_rejected(settings, words, refused, copied_model, change_json):
    change_json(copied_model / "config.json", **settings)
    read(refused, copied_model, *words)


GPT2 = [
    ({"n_head": 3}, ["16", "3 heads", "15", "18"]),
    ({"n_embd": 17}, ["17", "4 heads"]),
    ({"n_layer": 0}, ["n_block = 0"]),
    ({"n_layer": 1000}, ["too few"]),
    ({"n_layer": 3}, ["model.safetensors"]),
    ({"n_positions": 2**24}, ["too few"]),
    ({"n_positions": -1}, ["n_context = -1"]),
    ({"n_inner": "x"}, ["d_hidden = 'x'"]),
    ({"activation_function": "tanh"}, ["'tanh'", "gelu_new"]),
    ({"activation_function": ["relu"]}, ["['relu']", "gelu_new"]),
    ({"activation_function": {}}, ["{}", "gelu_new"]),
    ({"scale_attn_by_inverse_layer_idx": True}, ["scale_attn_by_inverse_layer_idx"]),
    ({"model_type": "qwen3"}, ["config.json", "has no"]),
    ({"model_type": "clearhead"}, ["'config'"]),
    ({"model_type": "clearhead", "config": []}, ["config = []"]),
    ({"model_type": "clearhead", "config": {"n_block": 1}}, ["is missing"]),
    ({"model_type": "clearhead", "config": {"n_blocks": 1}}, ["'n_blocks'", "did you mean 'n_block'"]),
]


@pytest.mark.parametrize(("settings", "words"), GPT2, ids=str)
def test_invalid_gpt2_config_is_rejected(settings, words, refused, gpt2_folder, change_json):
    change_json(gpt2_folder / "config.json", **settings)
    read(refused, gpt2_folder, *words)


NEEDED = {
    "qwen3": (
        "vocab_size max_position_embeddings num_hidden_layers num_attention_heads "
        "hidden_size intermediate_size model_type"
    ),
    "gpt2": "vocab_size n_positions n_layer n_head n_embd model_type",
}


@pytest.mark.parametrize("family", NEEDED)
def test_config_with_a_missing_setting_is_rejected(family, request, refused, change_json):
    folder = request.getfixturevalue("copied_model" if family == "qwen3" else "gpt2_folder")
    whole = (folder / "config.json").read_bytes()
    for name in NEEDED[family].split():
        (folder / "config.json").write_bytes(whole)
        change_json(folder / "config.json", without=[name])
        read(refused, folder, "config.json", name)


NOT_JSON = {
    "empty": b"",
    "cut off": b'{"model_type": "qwen3", ',
    "words": b"not json",
    "not text": b"\xff\xfe\x00",
    "a list": b"[]",
    "a number": b"1",
    "nothing": b"null",
    "nested": NESTED.encode(),
    "a long number": b'{"format": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("name", ["config.json", "clearhead.json", "tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", NOT_JSON)
def test_malformed_json_file_is_rejected(name, content, refused, copied_model):
    (copied_model / name).write_bytes(NOT_JSON[content])
    read(refused, copied_model, name)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
def test_missing_file_or_folder_in_its_place_is_rejected(name, refused, copied_model):
    (copied_model / name).unlink()
    read(refused, copied_model, name)
    (copied_model / name).mkdir()
    read(refused, copied_model, name)


OURS = [
    ({"more": 1}, ["'more'", "unknown"]),
    ({"Sha256": "0"}, ["'Sha256'"]),
    ({"format": 2}, ["format 2", "reads 1"]),
    ({"format": "1"}, ["format '1'"]),
    ({"dropout": "0"}, ["'dropout'"]),
    ({"dropout": 2}, ["dropout = 2"]),
    ({"dropout": float("nan")}, ["dropout = nan"]),
    ({"sha256": 5}, ["'sha256'"]),
    ({"sha256": None}, ["'sha256'"]),
    ({"sha256": "0" * 64}, ["model.safetensors", "truncated or changed"]),
    ({"training": []}, ["'training'"]),
]


@pytest.mark.parametrize(("settings", "words"), OURS, ids=str)
def test_clearhead_json_is_validated_strictly(settings, words, refused, copied_model, change_json):
    change_json(copied_model / "clearhead.json", **settings)
    read(refused, copied_model, *words)


@pytest.mark.parametrize("name", ["format", "dropout", "sha256", "training"])
def test_clearhead_json_must_be_complete(name, refused, copied_model, change_json):
    change_json(copied_model / "clearhead.json", without=[name])
    read(refused, copied_model, "clearhead.json", name)


def test_tokenizer_of_another_model_is_rejected(refused, copied_model, clearhead, story_file):
    small = ("--steps", 1, "--blocks", 1, "--width", 32, "--heads", 1, "--context", 16)
    assert clearhead("train", story_file, "--out", "other", "--vocab", 300, *small).code == 0
    for name in ("tokenizer.json", "tokenizer_config.json"):
        Path("other", name).replace(copied_model / name)
    read(refused, copied_model, "tokenizer has 300 tokens", "different model")


def test_tokenizer_with_an_unknown_end_token_is_rejected(refused, copied_model, change_json):
    (copied_model / "clearhead.json").unlink()  # it has a hash of the file changed here
    for token in ("<nowhere>", 5, []):
        change_json(copied_model / "tokenizer_config.json", eos_token=token)
        refused("generate", copied_model, words=["tokenizer_config.json", "eos_token"])


def test_huge_context_uses_no_memory_until_needed(copied_model, clearhead, change_json):
    change_json(copied_model / "config.json", max_position_embeddings=2**24)
    (copied_model / "clearhead.json").unlink()
    result = clearhead("generate", copied_model, "The", "--tokens", 5)
    assert (result.code, result.err) == (0, "")


def test_huge_weights_still_evaluate_and_generate(copied_model, clearhead, story_file):
    """A loss too large for a finite perplexity is reported as a number, not as an error."""
    path = copied_model / "model.safetensors"
    tensors = load_file(path)
    tensors["model.norm.weight"] *= 1e6
    save_file(tensors, path)
    (copied_model / "clearhead.json").unlink()
    result = clearhead("eval", copied_model, story_file, "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["loss"] > 1000
    assert json.loads(result.out)["perplexity"] is None
    assert clearhead("generate", copied_model, "The", "--tokens", 5).code == 0


def test_models_list_skips_damaged_models_with_a_warning(copied_model, clearhead, tmp_path, change_json):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{")
    result = clearhead("models", ".", "--json")
    assert result.code == 0
    assert [row["model"] for row in json.loads(result.out)["models"]] == ["model"]
    assert result.err.startswith("skipped: broken/config.json is not valid JSON")
    change_json(copied_model / "clearhead.json", training={"validation_loss": "low"})
    assert clearhead("models", ".").code == 0
