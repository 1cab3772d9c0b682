"""Files and folders that are not models here are named by what they are, with what to do instead."""

import json
import zipfile

import pytest
import torch

import clearhead
from clearhead.errors import UserError
from clearhead.text.tokenizer import Tokenizer

FILES = {
    "model.onnx": (b"\x08\x07", "is an ONNX model"),
    "weights.npz": (b"PK\x03\x04", "MLX's old weights"),
    "model.bin": (b"lmgg\x01\0\0\0", "GGML's old format, from before GGUF"),
    "model.ggml": (b"tjgg\x01\0\0\0", "GGML's old format"),
    "model.h5": (b"\x89HDF\r\n\x1a\n", "is an HDF5 file"),
    "archive.zip": (b"PK\x03\x04", "is a zip archive: unpack it"),
    "model.tar.gz": (b"\x1f\x8b\x08", "compressed with gzip"),
    "model.pkl": (b"\x80\x04\x95", "is a pickle"),
    "model.msgpack": (b"\x81", "Flax weights"),
    "tokenizer.model": (b"\n\x0e", "is a SentencePiece tokenizer"),
    "tokenizer.json": (b"{}", "is a tokenizer, not a model: name its folder"),
    "config.json": (b"{}", "is a model's settings"),
    "adapter_config.json": (b"{}", "is an adapter's settings"),
    "big.dat": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "page": (b"\n<!DOCTYPE html>", "is a web page"),
    "model.crdownload": (b"GG", "incomplete download"),
    "empty": (b"", "is empty"),
    "my.txt": (b"Once", "`clearhead train` trains a model on it"),
    "other.safetensors": (b"\x08", r"contains only weights: copy config.json and tokenizer.json"),
    "pointer.safetensors": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "empty.safetensors": (b"", "is empty"),
    "page.safetensors": (b"<html>", "is a web page"),
    "noise": (b"\x01\x02\x03", "is not a GGUF or ARPA file"),
}


@pytest.mark.parametrize("name", FILES)
def test_file_is_named_by_what_it_is(name, tmp_path):
    content, message = FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message) as refusal:
        clearhead.load(tmp_path / name)
    assert str(refusal.value).startswith(f"{tmp_path / name} ")
    assert "\n" not in str(refusal.value)


def test_checkpoint_of_another_program_names_the_command_that_converts_it(tmp_path):
    torch.save({"weight": torch.ones(2)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"only nanoGPT.s, .*save_pretrained"):
        clearhead.load(tmp_path / "pytorch_model.bin")


def test_weights_of_a_model_folder_open_the_folder(tmp_path):
    model = clearhead.load("stories", "cpu")
    model.save(tmp_path / "my")
    again = clearhead.load(tmp_path / "my" / "model.safetensors", "cpu")
    assert torch.equal(again.logits("Once"), model.logits("Once"))
    (tmp_path / "my" / "model.safetensors").rename(tmp_path / "my" / "weights.safetensors")
    with pytest.raises(UserError, match=r"rename it to model\.safetensors"):
        clearhead.load(tmp_path / "my" / "weights.safetensors")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        (b"<!doctype html>", "a web page"),
    ],
)
@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "model.gguf"])
def test_what_a_failed_download_left_is_named(name, content, message, tmp_path):
    """As after `git clone` without Git LFS."""
    clearhead.load("stories", "cpu").save(tmp_path / "my")
    (tmp_path / "my" / "clearhead.json").unlink()  # its hashes would show that the file was changed
    (tmp_path / "my" / name).write_bytes(content)
    named = tmp_path / "my" / name if name.endswith(".gguf") else tmp_path / "my"
    with pytest.raises(UserError, match=message) as refusal:
        clearhead.load(named)
    assert str(refusal.value).startswith(f"{tmp_path / 'my' / name} is ")


def test_folder_is_named_by_what_it_contains(tmp_path):
    def refuse(message):
        with pytest.raises(UserError, match=message):
            clearhead.load(tmp_path)

    refuse("has no config.json; name a folder that contains one")
    Tokenizer.train("byte", []).save(tmp_path, 8)
    refuse("is not a model, but a tokenizer")
    (tmp_path / "model.safetensors").touch()
    refuse("no config.json, which describes its weights")
    with zipfile.ZipFile(tmp_path / "ckpt.pt", "w"):
        refuse(r"name the file, such as .*ckpt\.pt")
    for step in (100, 200):
        (tmp_path / f"checkpoint-{step}").mkdir()
        (tmp_path / f"checkpoint-{step}" / "adapter_config.json").touch()
    refuse(r"contains 2 adapters: name one, such as .*checkpoint-200")
    (tmp_path / "checkpoint-100" / "config.json").touch()
    refuse(r"contains 1: name one, such as .*checkpoint-100")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("bert", "'bert', an encoder, which represents a text"),
        ("xlm-roberta", "an encoder"),
        ("distilbert", "an encoder"),
        ("modernbert", "an encoder"),
        ("t5", "an encoder-decoder"),
        ("mt5", "an encoder-decoder"),
        ("mbart", "an encoder-decoder"),
        ("whisper", "an encoder-decoder"),
        ("mixtral", "a mixture of experts"),
        ("qwen3_moe", "a mixture of experts"),
        ("mamba2", "a recurrent model without attention"),
        ("qwen2_vl", "also reads images"),
        ("llava", "also reads images"),
        ("falcon", "'falcon': expected one of gpt2"),
        (None, "None: expected one of gpt2"),
        ([], r"\[\]: expected"),
    ],
)
def test_other_architectures_are_named(kind, message, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    with pytest.raises(UserError, match=message):
        clearhead.load(tmp_path)
