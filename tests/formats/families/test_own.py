"""Clearhead's own family: networks that no other program supports, saved as safetensors and JSON."""

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import clearhead as ch
from clearhead.classics.recurrent import Recurrent
from clearhead.classics.recurrent_cell import CELLS
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.errors import UserError
from clearhead.formats.listing import describe
from clearhead.language_model import LanguageModel
from clearhead.text.tokenizer import Tokenizer


def save(folder, kind="lstm", **more):
    tokenizer = Tokenizer.train("byte", [])
    sizes = {"n_vocab": tokenizer.n_vocab, "n_context": 16, "n_block": 2, "d_model": 8, **more}
    model = LanguageModel(Recurrent(RecurrentConfig(kind, **sizes)), tokenizer)
    model.save(folder)
    return model


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("tied", [True, False])
def test_saved_models_round_trip(kind, tied, tmp_path):
    model = save(tmp_path / "model", kind, tied=tied, dropout=0.25)
    again = ch.load(tmp_path / "model", "cpu")
    assert again.config == model.config
    assert torch.equal(again.logits("The hen"), model.logits("The hen"))
    assert {path.suffix for path in (tmp_path / "model").iterdir()} == {".json", ".safetensors"}
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["model_type"] == "clearhead"
    assert config["config"]["kind"] == kind
    with safe_open(tmp_path / "model" / "model.safetensors", "pt") as file:
        assert len(file.keys()) == 1 + 8 + (not tied)
    listed = describe(tmp_path / "model")
    assert listed.config.kind == kind
    half = ch.load(tmp_path / "model", "cpu", "bfloat16")
    assert half.logits("The hen").dtype == torch.bfloat16


def change(path, **settings):
    document = json.loads(path.read_text())
    document["config"] |= settings
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "rnn"}, "kind = 'rnn': expected one of transformer, elman, gru, lstm"),
        ({"kind": ["lstm"]}, "kind = "),
        ({"kind": "gru"}, "belong to different models"),
        ({"d_model": 9}, "belong to different models|too few"),
        ({"d_model": 10**6}, "too few"),
        ({"n_block": 1}, "specify 1 block;"),
        ({"n_block": 900}, "too few"),
        ({"n_head": 2}, "unknown setting 'n_head'"),
        ({"n_vocab": -1}, "n_vocab = -1"),
    ],
)
def test_mismatched_settings_are_rejected_with_a_one_line_error(settings, words, tmp_path):
    save(tmp_path)
    change(tmp_path / "config.json", **settings)
    with pytest.raises(UserError, match=words) as error:
        ch.load(tmp_path, "cpu")
    assert "\n" not in str(error.value)


def test_damaged_weights_are_rejected_with_a_one_line_error(tmp_path):
    weights = tmp_path / "model.safetensors"
    for damage, words in (
        (lambda tensors: tensors.pop("blocks.1.cell.bias_hh_l0"), r"has no blocks.1.cell.bias_hh_l0"),
        (lambda tensors: tensors["blocks.0.cell.weight_ih_l0"].fill_(float("nan")), "non-finite"),
        (lambda tensors: tensors.update(tensors | {"embedding.weight": torch.zeros(3, 3)}), "3×3"),
    ):
        save(tmp_path)
        tensors = load_file(weights)
        damage(tensors)
        save_file(tensors, weights)
        with pytest.raises(UserError, match="is not the file that was saved here"):
            ch.load(tmp_path, "cpu")
        (tmp_path / "clearhead.json").unlink()
        with pytest.raises(UserError, match=words) as error:
            ch.load(tmp_path, "cpu")
        assert "\n" not in str(error.value)
        for path in tmp_path.iterdir():
            path.unlink()
    save(tmp_path)
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(UserError):
        ch.load(tmp_path, "cpu")


def test_export_to_other_programs_is_rejected(tmp_path):
    model = save(tmp_path / "model", "gru")
    for name in ("x", "x.gguf"):
        with pytest.raises(UserError, match="this gru cannot be exported: no architecture outside Clearhead"):
            model.export(tmp_path / name)
        assert not (tmp_path / name).exists()
