"""Multiple end tokens: read from where transformers and llama.cpp store them, and written back."""

import json

import gguf
import pytest
import torch
import transformers

import clearhead
from clearhead.errors import UserError
from clearhead.language_model import LanguageModel
from clearhead.text.tokenizer import Tokenizer

BYTE = Tokenizer.train("byte", [])
SIZES = {
    "vocab_size": 257,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 256,
}


@pytest.fixture
def theirs():
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, eos_token_id=256)).eval()
    for parameter in model.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    return model


def saved(theirs, folder):
    theirs.save_pretrained(folder)
    BYTE.save(folder, 64)
    return clearhead.load(folder, "cpu")


def ends_of(folder, name):
    return json.loads((folder / name).read_text()).get("eos_token_id")


def test_multiple_end_tokens_stop_generation_and_round_trip(theirs, tmp_path):
    """They are in generation_config.json, as for Llama 3 and Gemma; the eleventh token is made an end token."""
    ids = torch.tensor([list(b"The road")])
    written = theirs.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=30, do_sample=False)[
        0, 8:
    ]
    end = int(written[10])
    theirs.generation_config.eos_token_id = [256, end]
    model = saved(theirs, tmp_path / "theirs")
    assert ends_of(tmp_path / "theirs", "generation_config.json") == [256, end]
    assert model.tokenizer.end_ids == (256, end)
    expected = theirs.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=30, do_sample=False)[
        0, 8:
    ]
    text = model.generate("The road", tokens=30, temperature=0)
    assert text.ids == expected.tolist()
    assert text.ids[-1] == end
    assert text.finish_reason == "stop"
    assert text == model.tokenizer.decode(text.ids[:-1])

    model.save(tmp_path / "ours")
    for name in ("config.json", "generation_config.json"):
        assert ends_of(tmp_path / "ours", name) == [256, end]
    assert clearhead.load(tmp_path / "ours", "cpu").tokenizer.end_ids == (256, end)
    there = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "ours")
    assert there.generation_config.eos_token_id == [256, end]
    again = there.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=30, do_sample=False)[
        0, 8:
    ]
    assert again.tolist() == text.ids


def test_end_tokens_fall_back_to_the_model_config(theirs, tmp_path):
    saved(theirs, tmp_path)
    (tmp_path / "generation_config.json").unlink()
    for given, expected in {(3, 5): (256, 3, 5), (5,): (256, 5), (256,): (256,)}.items():
        config = json.loads((tmp_path / "config.json").read_text())
        config["eos_token_id"] = given[0] if len(given) == 1 else list(given)
        (tmp_path / "config.json").write_text(json.dumps(config))
        assert clearhead.load(tmp_path, "cpu").tokenizer.end_ids == expected
    # generation_config.json takes precedence when it exists.
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": 7}')
    assert clearhead.load(tmp_path, "cpu").tokenizer.end_ids == (256, 7)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": null}')
    assert clearhead.load(tmp_path, "cpu").tokenizer.end_ids == (256,)


def test_end_token_outside_the_vocabulary_is_ignored(theirs, tmp_path):
    """For example, GPT-2's usual end token in a smaller model."""
    theirs.generation_config.eos_token_id = [50256, 256]
    assert saved(theirs, tmp_path).tokenizer.end_ids == (256,)


@pytest.mark.parametrize("ends", ['"x"', "1.5", "true", '[1, "x"]', "[[1]]", "{}"])
def test_invalid_end_tokens_are_rejected(ends, theirs, tmp_path):
    saved(theirs, tmp_path)
    (tmp_path / "generation_config.json").write_text(f'{{"eos_token_id": {ends}}}')
    with pytest.raises(
        UserError, match=r"generation_config\.json has eos_token_id .*expected one or more token ids"
    ):
        clearhead.load(tmp_path, "cpu")


def test_gguf_stores_up_to_three_end_tokens(theirs, tmp_path):
    theirs.generation_config.eos_token_id = [256, 3, 5]
    model = saved(theirs, tmp_path / "theirs")
    model.export(tmp_path / "three.gguf")
    fields = gguf.GGUFReader(tmp_path / "three.gguf").fields
    keys = [f"tokenizer.ggml.{name}_token_id" for name in ("eos", "eot", "eom")]
    assert [fields[key].contents() for key in keys] == [256, 3, 5]
    again = clearhead.load(tmp_path / "three.gguf", "cpu")
    assert again.tokenizer.end_ids == (256, 3, 5)
    many = Tokenizer(BYTE._inner, BYTE.config, ends=[3, 5, 7])
    with pytest.raises(UserError, match="has 4 tokens that end a text, but GGUF has keys for only 3"):
        LanguageModel(model.network, many).export(tmp_path / "four.gguf")
