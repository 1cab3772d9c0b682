"""Saved models load in transformers with the same logits and token ids, and models saved there load here."""

import pytest
import torch
import transformers

import clearhead
from clearhead.language_model import LanguageModel
from clearhead.model.config import PRESETS, preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokenizer_kinds import KINDS

TEXT = (
    "The chicken didn't cross the road, because it was too tired.\n\n\tNaïve café — 漢字 🙂 12 345\r\n  end "
)
FAMILIES = {"lecture": "GPT2LMHeadModel", "gpt2": "GPT2LMHeadModel", "modern": "Qwen3ForCausalLM"}


def make(name: str, kind: str, **more: object) -> LanguageModel:
    torch.manual_seed(0)
    tokenizer = Tokenizer.train(kind, [TEXT * 3], 300 if kind == "bpe" else None)
    config = preset(name, n_vocab=tokenizer.n_vocab, n_context=160, n_block=3, n_head=4, d_model=64, **more)
    network = Transformer(config)
    for parameter in network.parameters():  # so that a mixed-up bias or gain is detected
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    return LanguageModel(network, tokenizer)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PRESETS)
def test_transformers_loads_saved_models(name, kind, tmp_path):
    model = make(name, kind)
    model.save(tmp_path)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert type(theirs).__name__ == FAMILIES[name]
    ids = tokenizer(TEXT).input_ids
    assert ids == model.tokenizer.encode(TEXT)
    assert tokenizer.decode(ids) == TEXT == model.tokenizer.decode(ids)
    assert tokenizer.eos_token_id == theirs.config.eos_token_id == model.tokenizer.end_id
    with torch.no_grad():
        logits = theirs(torch.tensor([ids])).logits[0]
    assert torch.allclose(logits, model.logits(TEXT), rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("modern", {"n_kv_head": 2}),
        ("modern", {"n_kv_head": 1, "d_head": 32}),
        ("modern", {"tied": False, "qkv_bias": True, "output_bias": True}),
        ("modern", {"rotary_base": 500.0, "d_hidden": 100, "norm_epsilon": 1e-3}),
        ("gpt2", {"tied": False, "d_hidden": 100}),
        ("gpt2", {"feedforward": "gelu", "norm_epsilon": 1e-3}),
    ],
)
def test_transformers_loads_models_with_other_settings(name, more, tmp_path):
    model = make(name, "byte", **more)
    model.save(tmp_path)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    with torch.no_grad():
        logits = theirs(torch.tensor([model.tokenizer.encode(TEXT)])).logits[0]
    assert torch.allclose(logits, model.logits(TEXT), rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", PRESETS)
def test_greedy_continuations_match(name, tmp_path):
    model = make(name, "bpe")
    model.save(tmp_path)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    prompt = "The chicken"
    ids = torch.tensor([model.tokenizer.encode(prompt)])
    mask = torch.ones_like(ids)
    written = theirs.generate(ids, attention_mask=mask, max_new_tokens=30, do_sample=False)[0, ids.shape[1] :]
    expected = model.tokenizer.decode([i for i in written.tolist() if i != model.tokenizer.end_id])
    assert model.generate(prompt, tokens=30, temperature=0) == expected


@pytest.mark.parametrize("name", PRESETS)
def test_models_saved_by_transformers_load(name, tmp_path):
    model = make(name, "byte")
    model.save(tmp_path / "ours")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "ours")
    theirs.save_pretrained(tmp_path / "theirs")
    transformers.AutoTokenizer.from_pretrained(tmp_path / "ours").save_pretrained(tmp_path / "theirs")
    again = clearhead.load(tmp_path / "theirs", device="cpu")
    assert torch.equal(again.logits(TEXT), model.logits(TEXT))
    assert again.tokenizer.encode(TEXT) == model.tokenizer.encode(TEXT)
