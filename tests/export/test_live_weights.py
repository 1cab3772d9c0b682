"""Weight files for the page, read back as the page reads them."""

import hashlib
import json

import numpy as np
import pytest
import torch

from clearhead.errors import UserError
from clearhead.export import live_weights
from clearhead.export.live_weights import encode_weights, live_files
from clearhead.language_model import LanguageModel
from clearhead.model.config import Config, preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

TYPES = {"float32": "<f4", "float16": "<f2", "int8": "i1"}
SIZES = {"n_context": 10, "n_block": 2, "n_head": 2, "d_model": 12}


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train("char", ["a duck sat by the road"])


def make_model(tokenizer, kind="lecture", **settings):
    torch.manual_seed(0)
    network = Transformer(preset(kind, n_vocab=tokenizer.n_vocab, **SIZES, **settings))
    return LanguageModel(network, tokenizer, name="my")


def write_live_model(model, folder, numbers="float32"):
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, content in live_files(model, numbers):
        (folder / name).write_bytes(content)
        paths.append(folder / name)
    return paths


def read_tensors(folder):
    index = json.loads((folder / "weights.json").read_text())
    pieces = []
    for piece in index["pieces"]:
        content = (folder / piece["file"]).read_bytes()
        assert len(content) == piece["bytes"]
        assert hashlib.sha256(content).hexdigest() == piece["sha256"]
        pieces.append(content)
    stream = b"".join(pieces)
    assert len(stream) == index["bytes"]

    def read(start, shape, kind):
        return np.frombuffer(stream, kind, int(np.prod(shape)), start).reshape(shape).astype(np.float32)

    tensors = {}
    for each in index["tensors"]:
        values = read(each["start"], each["shape"], TYPES[each["type"]])
        if each["type"] == "int8":
            values = values * read(each["scales"], [each["shape"][0], 1], "<f4")
        tensors[each["name"]] = values, each["type"]
    return tensors, index


@pytest.mark.parametrize("kind", ["lecture", "modern"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("numbers", ["float32", "float16", "int8"])
def test_the_files_hold_every_tensor_once(tokenizer, tmp_path, monkeypatch, kind, tied, numbers):
    monkeypatch.setattr(live_weights, "PIECE_SIZE", 1000)
    model = make_model(tokenizer, kind, tied=tied)
    paths = write_live_model(model, tmp_path / "my", numbers)
    assert {path.name for path in paths} == {path.name for path in (tmp_path / "my").iterdir()}
    tensors, index = read_tensors(tmp_path / "my")
    assert len(index["pieces"]) > 3
    assert all(piece["bytes"] <= 1000 for piece in index["pieces"])
    expected = dict(model.network.named_parameters())  # a tied unembedding is not listed
    assert tensors.keys() == expected.keys()
    for name, (values, stored) in tensors.items():
        tensor = expected[name].detach()
        if tensor.dim() == 1 or name == "position.weight":
            assert stored == "float32"
        else:
            assert stored == numbers
        if stored == "int8":
            step = tensor.abs().amax(1, keepdim=True) / 127
            assert ((torch.tensor(values) - tensor).abs() <= 0.501 * step).all()
        else:
            exact = tensor if stored == "float32" else tensor.half().float()
            np.testing.assert_array_equal(values, exact.numpy())


def test_the_config_and_tokenizer_can_be_read_back(tokenizer, tmp_path):
    model = make_model(tokenizer, "modern")
    write_live_model(model, tmp_path)
    assert Config.from_json(json.loads((tmp_path / "config.json").read_text())) == model.config
    assert Tokenizer.load(tmp_path).encode("duck") == tokenizer.encode("duck")


def test_bfloat16_weights_are_stored_exactly(tokenizer, tmp_path):
    model = make_model(tokenizer)
    model.network.bfloat16()
    write_live_model(model, tmp_path)
    tensors, _ = read_tensors(tmp_path)
    np.testing.assert_array_equal(
        tensors["embedding.weight"][0], model.network.embedding.weight.detach().float().numpy()
    )


def test_a_row_of_zeros_stays_zero(tokenizer, tmp_path):
    model = make_model(tokenizer)
    with torch.no_grad():
        model.network.embedding.weight[1] = 0
    write_live_model(model, tmp_path, "int8")
    tensors, _ = read_tensors(tmp_path)
    assert (tensors["embedding.weight"][0][1] == 0).all()


def test_hostile_names_name_no_file(tokenizer, tmp_path):
    model = make_model(tokenizer)
    model.name = "../../</script><b>‮evil"
    paths = write_live_model(model, tmp_path / "site" / "0")
    assert all(path.parent == tmp_path / "site" / "0" and path.name.isascii() for path in paths)
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
    assert b"evil" not in b"".join(path.read_bytes() for path in paths)


@pytest.mark.parametrize(
    ("value", "numbers", "message"),
    [
        (1e5, "float16", "blocks.1.attention.key.weight contains 100000, which is too large for float16"),
        (float("nan"), "int8", "blocks.1.attention.key.weight contains numbers that are not finite"),
    ],
)
def test_what_cannot_be_stored_is_refused(tokenizer, tmp_path, value, numbers, message):
    model = make_model(tokenizer)
    with torch.no_grad():
        model.network.blocks[1].attention.key.weight[0, 0] = value
    with pytest.raises(UserError, match=message):
        write_live_model(model, tmp_path, numbers)


def test_the_pieces_are_available_without_a_folder(tokenizer):
    index, pieces = encode_weights(make_model(tokenizer).network, "int8")
    taken = list(pieces)
    assert [len(piece) for piece in taken] == [piece["bytes"] for piece in index["pieces"]]
    assert sum(map(len, taken)) == index["bytes"]
