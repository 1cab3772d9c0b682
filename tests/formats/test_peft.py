"""LoRA adapters are merged into their base: the logits are those of the base with its matrices changed by hand."""

import json
import time

import pytest
import torch
import transformers
from safetensors.torch import save_file

import clearhead
from clearhead.errors import UserError
from clearhead.formats.listing import describe
from clearhead.formats.opening import hash_weights, is_model
from clearhead.formats.peft import read_adapter
from clearhead.text.tokenizer import Tokenizer

TEXT = "The chicken didn't cross the road"
LLAMA = {
    "vocab_size": 257,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "eos_token_id": 256,
}
GPT2 = {"vocab_size": 257, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "eos_token_id": 256}
SETTINGS = {
    "peft_type": "LORA",
    "r": 3,
    "lora_alpha": 6,
    "bias": "none",
    "use_dora": False,
    "use_rslora": False,
    "modules_to_save": None,
    "fan_in_fan_out": False,
}
TARGETS = {
    "llama": [
        "model.layers.0.self_attn.q_proj",
        "model.layers.1.self_attn.v_proj",
        "model.layers.1.mlp.down_proj",
    ],
    "gpt2": ["transformer.h.0.attn.c_attn", "transformer.h.1.mlp.c_fc"],
}


def make_base(kind, folder):
    torch.manual_seed(0)
    if kind == "llama":
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))
    else:
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2))
    model.save_pretrained(folder)
    Tokenizer.train("byte", []).save(folder, 64)
    return model.eval()


def write_adapter(folder, model, targets, **settings):
    """Write an adapter, and return the changes in its matrices before scaling, [out, in]."""
    tensors, changes = {}, {}
    for name in targets:
        weight = model.get_submodule(name).weight
        turned = settings.get("fan_in_fan_out", False)
        inputs, outputs = weight.shape if turned else reversed(weight.shape)
        first, second = torch.randn(3, inputs), 0.1 * torch.randn(outputs, 3)
        prefix = f"base_model.model.{name}"
        tensors |= {f"{prefix}.lora_A.weight": first, f"{prefix}.lora_B.weight": second}
        changes[name] = second @ first
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors", {"format": "pt"})
    given = {**SETTINGS, "base_model_name_or_path": str(folder.parent / "base"), **settings}
    (folder / "adapter_config.json").write_text(json.dumps(given))
    return changes


@pytest.fixture
def base(tmp_path):
    return make_base("llama", tmp_path / "base")


@pytest.fixture
def adapter(base, tmp_path):
    write_adapter(tmp_path / "adapter", base, TARGETS["llama"])
    return tmp_path / "adapter"


@pytest.mark.parametrize(
    ("kind", "settings", "scale"),
    [
        ("llama", {}, 2.0),
        ("llama", {"use_rslora": True}, 6 / 3**0.5),
        ("llama", {"alpha_pattern": {"layers.0.self_attn.q_proj": 3}}, 2.0),
        ("gpt2", {"fan_in_fan_out": True}, 2.0),
    ],
)
@torch.no_grad()
def test_logits_are_those_of_the_changed_matrices(kind, settings, scale, tmp_path):
    theirs = make_base(kind, tmp_path / "base")
    untouched = clearhead.load(tmp_path / "base", "cpu").logits(TEXT)
    changes = write_adapter(tmp_path / "adapter", theirs, TARGETS[kind], **settings)
    for name, change in changes.items():
        factor = 1.0 if "alpha_pattern" in settings and name.endswith("0.self_attn.q_proj") else scale
        theirs.get_submodule(name).weight.data += factor * (change.T if kind == "gpt2" else change)
    model = clearhead.load(tmp_path / "adapter", "cpu")
    ids = torch.tensor([model.tokenizer.encode(TEXT)])
    assert torch.allclose(model.logits(TEXT), theirs(ids).logits[0], rtol=0, atol=1e-4)
    assert not torch.allclose(model.logits(TEXT), untouched, rtol=0, atol=1e-2)
    assert is_model(tmp_path / "adapter")
    assert describe(tmp_path / "adapter").config == model.config
    assert hash_weights(tmp_path / "adapter") != hash_weights(tmp_path / "base")


@torch.no_grad()
def test_base_can_be_a_gguf_file_and_be_named(adapter, tmp_path):
    merged = clearhead.load(adapter, "cpu").logits(TEXT)
    clearhead.load(tmp_path / "base", "cpu").export(tmp_path / "base.gguf", numbers="F32")
    by_file = clearhead.load(adapter, "cpu", base=tmp_path / "base.gguf")
    assert torch.allclose(by_file.logits(TEXT), merged, rtol=0, atol=1e-4)
    assert torch.equal(clearhead.load(adapter / "adapter_model.safetensors", "cpu").logits(TEXT), merged)
    with pytest.raises(UserError, match="is not an adapter"):
        clearhead.load(tmp_path / "base", base=tmp_path / "base")


def test_adapter_for_another_model_is_rejected(adapter, base, tmp_path):
    make_base("gpt2", tmp_path / "other")
    with pytest.raises(UserError, match="does not have: the adapter was trained on a different model"):
        clearhead.load(adapter, base=tmp_path / "other")
    theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**LLAMA, "hidden_size": 64}))
    write_adapter(adapter, theirs, TARGETS["llama"])
    with pytest.raises(UserError, match=r"as 64×64, but in .* it is 32×32"):
        clearhead.load(adapter)
    write_adapter(adapter, base, TARGETS["llama"], base_model_name_or_path=str(tmp_path / "missing"))
    with pytest.raises(UserError, match=r"missing', which cannot be opened .* clearhead export ADAPTER"):
        clearhead.load(adapter)
    write_adapter(adapter, base, TARGETS["llama"], base_model_name_or_path=None)
    with pytest.raises(UserError, match="does not name its base model"):
        clearhead.load(adapter)
    write_adapter(adapter, base, TARGETS["llama"], base_model_name_or_path=str(adapter))
    with pytest.raises(UserError, match="cannot be the base of an adapter"):
        clearhead.load(adapter)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"peft_type": "IA3"}, "only LORA adapters"),
        ({"use_dora": True}, "use_dora = True, which is not supported"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"bias": "all"}, "bias = 'all'"),
        ({"lora_alpha": "6"}, "lora_alpha or alpha_pattern that is not a number"),
        ({"lora_alpha": 1e400}, "not a number"),
        ({"alpha_pattern": [1]}, "not a number"),
    ],
)
def test_other_methods_are_rejected(settings, message, adapter, base):
    write_adapter(adapter, base, TARGETS["llama"], **settings)
    with pytest.raises(UserError, match=message):
        clearhead.load(adapter)


def test_one_matrix_cannot_be_changed_twice(adapter):
    path = adapter / "adapter_model.safetensors"
    name = "model.layers.0.self_attn.q_proj"
    pair = {"lora_A": torch.ones(3, 32), "lora_B": torch.ones(32, 3)}
    save_file(
        {
            f"{start}{name}.{part}.weight": tensor.clone()
            for start in ("base_model.model.", "")
            for part, tensor in pair.items()
        },
        path,
    )
    with pytest.raises(UserError, match="changes one matrix twice"):
        clearhead.load(adapter)


def test_very_many_patterns_for_very_many_matrices_take_little_time(tmp_path):
    names = [f"base_model.model.layers.{i}.q_proj" for i in range(3000)]
    tensors = {f"{name}.lora_{part}.weight": torch.ones(1, 1) for name in names for part in "AB"}
    save_file(tensors, tmp_path / "adapter_model.safetensors")
    patterns = {**{f"other.{i}": 5 for i in range(200_000)}, "q_proj": 2, "layers.0.q_proj": 3}
    (tmp_path / "adapter_config.json").write_text(json.dumps({**SETTINGS, "alpha_pattern": patterns}))
    start = time.process_time()
    scales = read_adapter(tmp_path).scales
    assert time.process_time() - start < 10  # comparing each pattern with each name would take minutes
    assert scales == dict.fromkeys(names, 2.0)  # the first pattern that matches


def test_damaged_weights_are_rejected(adapter):
    path = adapter / "adapter_model.safetensors"
    name = "base_model.model.model.layers.0.self_attn.q_proj"
    for tensors, message in (
        ({f"{name}.lora_A.weight": torch.ones(3, 32)}, "do not belong together"),
        (
            {f"{name}.lora_A.weight": torch.ones(3, 32), f"{name}.lora_B.weight": torch.ones(32, 2)},
            "do not belong together",
        ),
        ({f"{name}.lora_embedding_A": torch.ones(3, 32)}, "expected pairs of LoRA matrices only"),
    ):
        save_file(tensors, path)
        with pytest.raises(UserError, match=message):
            clearhead.load(adapter)
    path.unlink()
    (adapter / "adapter_model.bin").touch()
    with pytest.raises(UserError, match="a pickle is never opened"):
        clearhead.load(adapter)
