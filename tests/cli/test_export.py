import json

import torch
import transformers
from safetensors.torch import save_file

import clearhead as ch


def test_exported_folder_loads_in_transformers(clearhead, model_folder, tmp_path):
    result = clearhead("export", model_folder, tmp_path / "out")
    assert result.code == 0
    assert "MB" in result.out
    transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")


def test_gguf_export_loads_and_existing_targets_are_rejected(clearhead, refused, story_file, tmp_path):
    sizes = ["--steps", "2", "--tokenizer", "byte", "--width", "32"]
    clearhead("train", story_file, *sizes, "--out", tmp_path / "run")
    numbers = ["--to", "gguf", "--numbers", "Q8_0", "--json"]
    result = clearhead("export", tmp_path / "run", tmp_path / "my.gguf", *numbers)
    written = json.loads(result.out)
    assert written["files"] == ["my.gguf"]
    assert written["bytes"] == (tmp_path / "my.gguf").stat().st_size
    said = [
        clearhead("generate", model, "The", "--tokens", "5").code
        for model in (tmp_path / "run", tmp_path / "my.gguf")
    ]
    assert said == [0, 0]
    assert ch.load(tmp_path / "my.gguf", "cpu").config == ch.load(tmp_path / "run", "cpu").config
    refused("export", tmp_path / "run", tmp_path / "my.gguf", "--to", "gguf", words=["already exists"])
    refused("export", tmp_path / "run", tmp_path / "run", words=["is not empty"])
    refused("export", tmp_path / "run", tmp_path / "x", "--to", "onnx", words=["huggingface or gguf"])
    refused(
        "export", tmp_path / "run", tmp_path / "no" / "x.gguf", "--to", "onnx", words=["huggingface or gguf"]
    )


def test_adapter_is_merged_into_the_named_base(clearhead, refused, tmp_path):
    settings = {"peft_type": "LORA", "lora_alpha": 2, "fan_in_fan_out": True}
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text(json.dumps(settings))
    name = "base_model.model.transformer.h.0.mlp.c_fc"
    tensors = {f"{name}.lora_A.weight": torch.ones(1, 128), f"{name}.lora_B.weight": torch.ones(512, 1)}
    save_file(tensors, tmp_path / "adapter" / "adapter_model.safetensors")
    refused("export", tmp_path / "adapter", tmp_path / "out", words=["does not name its base model"])
    assert clearhead("export", tmp_path / "adapter", tmp_path / "out", "--base", "stories").code == 0
    before, after = ch.load("stories", "cpu"), ch.load(tmp_path / "out", "cpu")
    first = [model.network.blocks[0].feedforward.first.weight for model in (before, after)]
    assert torch.allclose(first[1], first[0] + 2)


def test_folder_named_like_a_file_is_rejected(refused, clearhead, model_folder, tmp_path):
    for out, *to in (["x.ggf"], ["out.bin"], ["x.onnx"], ["x.gguf", "--to", "huggingface"]):
        refused("export", model_folder, tmp_path / out, *to, words=[out, "is a folder", "gguf with --to"])
        assert not (tmp_path / out).exists()
    assert clearhead("export", model_folder, tmp_path / "mine-0.6b").code == 0
    (tmp_path / "existing.folder").mkdir()
    assert clearhead("export", model_folder, tmp_path / "existing.folder").code == 0


def test_gguf_export_rejects_unsupported_tokenizers(refused, model_folder, tmp_path):
    refused("export", model_folder, tmp_path / "x.gguf", "--to", "gguf", words=["char"])


def test_unpulled_models_and_ambiguous_folders_are_rejected(refused, clearhead, tmp_path):
    refused("generate", "smollm2", "x", words=["has not been pulled yet", "clearhead pull smollm2"])
    (tmp_path / "two").mkdir()
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / "two" / name).write_bytes(b"GGUF")
    refused("generate", tmp_path / "two", "x", words=["2 GGUF files"])
    refused("generate", tmp_path / "two" / "a.gguf", "x", words=["a.gguf"])
