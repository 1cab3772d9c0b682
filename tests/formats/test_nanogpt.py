"""nanoGPT's checkpoints open with the logits of its model, and nothing in them is executed."""

import os
import pickle
import zipfile

import pytest
import torch
import torch.nn.functional as F

import clearhead
from clearhead.errors import UserError
from clearhead.formats.torch_file import TorchFile, read_pickle

CHARACTERS = "\n abcdefghij"
ARGUMENTS = {
    "n_layer": 2,
    "n_head": 4,
    "n_embd": 32,
    "block_size": 16,
    "bias": False,
    "vocab_size": 12,
    "dropout": 0.2,
}
META = {
    "vocab_size": 12,
    "itos": dict(enumerate(CHARACTERS)),
    "stoi": {character: i for i, character in enumerate(CHARACTERS)},
}
TEXT = "bad cafe\nhid"


def make_tensors(bias):
    torch.manual_seed(0)
    shapes = {"transformer.wte": (12, 32), "transformer.wpe": (16, 32)}
    norms = ["transformer.ln_f"]
    for i in range(2):
        block = f"transformer.h.{i}."
        shapes |= {f"{block}attn.c_attn": (96, 32), f"{block}attn.c_proj": (32, 32)}
        shapes |= {f"{block}mlp.c_fc": (128, 32), f"{block}mlp.c_proj": (32, 128)}
        norms += [f"{block}ln_1", f"{block}ln_2"]
    tensors = {f"{name}.weight": 0.3 * torch.randn(shape) for name, shape in shapes.items()}
    tensors |= {f"{name}.weight": 1 + 0.3 * torch.randn(32) for name in norms}
    if bias:
        rows = {name: shape[0] for name, shape in shapes.items() if name[-3:] not in ("wte", "wpe")}
        tensors |= {f"{name}.bias": torch.randn(n) for name, n in (rows | dict.fromkeys(norms, 32)).items()}
    return {**tensors, "lm_head.weight": tensors["transformer.wte.weight"]}


def compute(tensors, ids):
    """The logits, computed as nanoGPT's model.py does."""

    def linear(x, name):
        return F.linear(x, tensors[f"{name}.weight"], tensors.get(f"{name}.bias"))

    def norm(x, name):
        return F.layer_norm(x, (32,), tensors[f"{name}.weight"], tensors.get(f"{name}.bias"), 1e-5)

    T = len(ids)
    x = tensors["transformer.wte.weight"][ids] + tensors["transformer.wpe.weight"][:T]
    for i in range(2):
        block = f"transformer.h.{i}."
        q, k, v = (
            part.view(T, 4, 8).transpose(0, 1)
            for part in linear(norm(x, block + "ln_1"), block + "attn.c_attn").split(32, dim=1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1).reshape(T, 32)
        x = x + linear(mixed, block + "attn.c_proj")
        x = x + linear(F.gelu(linear(norm(x, block + "ln_2"), block + "mlp.c_fc")), block + "mlp.c_proj")
    return norm(x, "transformer.ln_f") @ tensors["lm_head.weight"].T


def save(path, tensors, arguments=ARGUMENTS, **more):
    """Write a checkpoint with the entries that nanoGPT writes."""
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.ones(3))])
    config = {"dataset": "shakespeare_char", "compile": True, "learning_rate": 1e-3, "wandb_log": None}
    path.parent.mkdir(exist_ok=True)
    entries = {
        "model": tensors,
        "optimizer": optimizer.state_dict(),
        "model_args": arguments,
        "iter_num": 250,
        "best_val_loss": torch.tensor(1.5),
        "config": config,
    }
    torch.save({**entries, **more}, path)


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint in nanoGPT's places: out/ckpt.pt, and data/shakespeare_char/meta.pkl."""
    place = tmp_path / "data" / "shakespeare_char"
    place.mkdir(parents=True)
    (place / "meta.pkl").write_bytes(pickle.dumps(META))
    return tmp_path / "out" / "ckpt.pt"


@pytest.mark.parametrize(("bias", "prefix"), [(False, "_orig_mod."), (True, "")])
@torch.no_grad()
def test_logits_are_those_of_nanogpt(bias, prefix, checkpoint):
    tensors = make_tensors(bias)
    module = torch.nn.Module()
    state = module.state_dict()  # an OrderedDict with further attributes, as a module's is
    state.update({prefix + name: tensor for name, tensor in tensors.items()})
    save(checkpoint, state, {**ARGUMENTS, "bias": bias})
    model = clearhead.load(checkpoint, "cpu")
    ids = [CHARACTERS.index(character) for character in TEXT]
    assert model.tokenizer.encode(TEXT) == ids
    assert model.config.dropout == 0.2
    expected = compute(tensors, ids)
    assert torch.allclose(model.logits(TEXT), expected, rtol=0, atol=1e-4)
    model.export(checkpoint.parent / "exported")
    assert torch.equal(clearhead.load(checkpoint.parent / "exported", "cpu").logits(TEXT), model.logits(TEXT))
    with pytest.raises(UserError, match=r"'z' .* is not among the 12 characters"):
        model.tokenizer.encode("z")


def test_values_are_those_that_torch_loads(checkpoint):
    tensors = {**make_tensors(True), "half": torch.randn(3, 2).half(), "part": torch.arange(10.0)[4:]}
    save(checkpoint, tensors)
    file, expected = TorchFile(checkpoint), torch.load(checkpoint, weights_only=True)
    assert file.values["config"] == expected["config"]
    assert file.values["optimizer"]["param_groups"][0]["lr"] == 1e-3
    for name, tensor in expected["model"].items():
        assert torch.equal(file.read(file.values["model"][name], tensor.dtype), tensor), name


def test_missing_parts_are_named(checkpoint):
    tensors = make_tensors(False)
    save(checkpoint, {name: tensor for name, tensor in tensors.items() if "ln_2" not in name})
    with pytest.raises(UserError, match=r"blocks\.0\.norm2\.gain"):
        clearhead.load(checkpoint)
    save(checkpoint, tensors, {**ARGUMENTS, "n_layer": 1})
    with pytest.raises(UserError, match="its settings specify 1 block;"):
        clearhead.load(checkpoint)
    save(checkpoint, tensors, {**ARGUMENTS, "vocab_size": 10})
    with pytest.raises(UserError, match="has 12 tokens, but the model has only 10"):
        clearhead.load(checkpoint)
    save(checkpoint, tensors, {**ARGUMENTS, "n_head": 5})
    with pytest.raises(UserError, match="invalid model_args: width 32 is not a multiple"):
        clearhead.load(checkpoint)
    save(checkpoint, tensors, config={"dataset": "../../elsewhere"})
    with pytest.raises(UserError, match=r"has no tokenizer: copy its dataset's meta.pkl"):
        clearhead.load(checkpoint)
    torch.save({"model": tensors}, checkpoint)
    with pytest.raises(UserError, match="is a PyTorch checkpoint: only nanoGPT's"):
        clearhead.load(checkpoint)


class Attack:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("place", ["model", "model_args", "config", "more"])
def test_nothing_is_executed(place, checkpoint, tmp_path):
    marker = tmp_path / "executed"
    tensors = make_tensors(False)
    if place == "model":
        tensors["more"] = Attack(marker)
        save(checkpoint, tensors)
    else:
        save(checkpoint, tensors, **{place: {**ARGUMENTS, "dataset": Attack(marker)}})
        (checkpoint.parent / "meta.pkl").write_bytes(pickle.dumps(META))
    clearhead.load(checkpoint, "cpu")  # the attack is an entry that is ignored
    assert not marker.exists()
    (checkpoint.parent / "meta.pkl").write_bytes(pickle.dumps(Attack(marker)))
    with pytest.raises(UserError, match="does not map characters to ids"):
        clearhead.load(checkpoint, "cpu")
    assert not marker.exists()
    assert read_pickle(pickle.dumps(Attack(marker))).name.endswith("mkdir")
    assert not marker.exists()


@pytest.mark.parametrize("place", ["model", "model_args", "all", "model alone"])
def test_code_in_place_of_a_model_is_named(place, checkpoint, tmp_path):
    marker = tmp_path / "executed"
    attack = Attack(marker)
    save(checkpoint, make_tensors(False))
    if place == "all":
        torch.save(attack, checkpoint)
    elif place == "model alone":
        torch.save({"model": attack}, checkpoint)
    else:
        torch.save({"model": make_tensors(False), "model_args": ARGUMENTS, place: attack}, checkpoint)
    message = (
        rf"is a pickle that calls {os.mkdir.__module__}\.mkdir when it is opened.* save only its weights"
    )
    with pytest.raises(UserError, match=message):
        clearhead.load(checkpoint)
    rewrite(checkpoint, lambda _, data: data.replace(b"mkdir", b"\x1b[2Jx"))
    with pytest.raises(UserError, match="calls a function when"):
        clearhead.load(checkpoint)
    assert not marker.exists()


def rewrite(path, change, compression=zipfile.ZIP_STORED):
    """Write the archive again, with each member changed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, change(name, data))


def doubled(times=60):
    """A tuple that takes hardly any memory but 2^times letters to print."""
    value = ()
    for _ in range(times):
        value = (value, value)
    return value


PICKLES = {
    "an argument that is endless to print": pickle.dumps(
        {"model": {}, "model_args": {**ARGUMENTS, "vocab_size": doubled()}}, protocol=2
    ),
    "a name that is endless to print": pickle.dumps(doubled(), protocol=4)[:-1] + b"\x8c\x01x\x93.",
    "endless": b"\x80\x02",
    "underflow": b"\x80\x02\x86.",
    "unmarked": b"\x80\x02u.",
    "unknown memo": b"\x80\x02h\x07.",
    "an instance": b"\x80\x02(cos\nsystem\nU\x02lso.",
    "nested keys": b"\x80\x02}" + b")" + b"\x85" * 200_000 + b"Ns.",
    "nested": b"\x80\x02" + b"]" + b"\x85" * 200_000 + b".",
    "a string beyond the end": b"\x80\x02X\xff\xff\xff\x7fa.",
    "a long number": b"\x80\x02L" + b"9" * 10_000 + b"L\n.",
    "too many values": b"\x80\x02" + b"}" * 2**20 + b".",
    "half a character": pickle.dumps({"stoi": {"\ud800": 0}, "model": {}, "model_args": {}}),
    "nothing": b"",
    "text": b"hello",
}


@pytest.mark.parametrize("name", PICKLES)
def test_hostile_pickles_are_rejected(name, checkpoint):
    save(checkpoint, make_tensors(False))
    rewrite(checkpoint, lambda member, data: PICKLES[name] if member.endswith("data.pkl") else data)
    with pytest.raises(UserError, match=r"checkpoint|model_args|calls a function"):
        clearhead.load(checkpoint)
    (checkpoint.parent / "meta.pkl").write_bytes(PICKLES[name])
    save(checkpoint, make_tensors(False))
    with pytest.raises(UserError, match=r"meta\.pkl"):
        clearhead.load(checkpoint)


def test_damaged_archives_are_rejected(checkpoint):
    save(checkpoint, make_tensors(False))
    whole = checkpoint.read_bytes()
    for length in range(0, len(whole), 997):
        checkpoint.write_bytes(whole[:length])
        with pytest.raises(UserError):
            clearhead.load(checkpoint)
    checkpoint.write_bytes(whole)
    rewrite(checkpoint, lambda name, data: data[:4] if "/data/" in name else data)
    with pytest.raises(UserError, match="a tensor does not fit its storage"):
        clearhead.load(checkpoint)
    checkpoint.write_bytes(whole)
    rewrite(checkpoint, lambda _, data: data, zipfile.ZIP_DEFLATED)  # which could unpack to any size
    with pytest.raises(UserError, match="checkpoint"):
        clearhead.load(checkpoint)


def test_archive_with_a_huge_table_of_contents_is_rejected(checkpoint):
    save(checkpoint, make_tensors(False))
    with zipfile.ZipFile(checkpoint, "a") as archive:
        for i in range(2**21 // 200):
            archive.writestr(zipfile.ZipInfo(f"{i:0200}"), b"")
    with pytest.raises(UserError, match="is a zip archive"):
        clearhead.load(checkpoint)


def test_tensors_that_share_a_large_storage_are_not_read_again_and_again(checkpoint):
    tensors = make_tensors(False)
    storage = torch.zeros(2**20)
    shared = {name: storage[: tensor.numel()].view(tensor.shape) for name, tensor in tensors.items()}
    save(checkpoint, shared)
    with pytest.raises(UserError, match="too many of its tensors share storage"):
        clearhead.load(checkpoint)


def test_flipped_bit_in_the_weights_is_detected(checkpoint):
    save(checkpoint, make_tensors(False))
    with zipfile.ZipFile(checkpoint) as archive:
        largest = max(archive.infolist(), key=lambda entry: entry.file_size)
        with archive.open(largest) as member:
            at = checkpoint.read_bytes().index(member.read(64))
    data = bytearray(checkpoint.read_bytes())
    data[at] ^= 1
    checkpoint.write_bytes(data)
    with pytest.raises(UserError, match="does not match its checksum"):
        clearhead.load(checkpoint)
