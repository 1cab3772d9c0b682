"""Model folders made to hang, crash, exhaust memory or mislead: rejected with a one-line error that names the file."""

import base64
import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import clearhead
from clearhead.errors import UserError
from clearhead.formats.folder import FAMILIES, read_label

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
JSON = ("config.json", "clearhead.json", "tokenizer.json", "tokenizer_config.json")
READ = (*JSON, WEIGHTS, "chat_template.jinja")
NORM = "model.norm.weight"


def split(data):
    """Split a weights file into its header and the data after it."""
    (n,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + n]), data[8 + n :]


def join(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def change(path, **settings):
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


@pytest.fixture
def weights(folder):
    return folder / WEIGHTS


@pytest.fixture
def sharded(folder):
    """The model split into two files with an index; the returned function rewrites the index."""
    tensors = load_file(folder / WEIGHTS)
    names = sorted(tensors)
    (folder / WEIGHTS).unlink()
    for number, part in enumerate((names[:3], names[3:])):
        save_file({name: tensors[name] for name in part}, folder / f"{number}.safetensors")

    def index(*files):
        (folder / INDEX).write_text(json.dumps({"weight_map": dict(zip(names, files, strict=False))}))

    index("0.safetensors", "1.safetensors")
    clearhead.load(folder, "cpu")
    return index


def test_valid_models_load(families):
    for family in FAMILIES:
        clearhead.load(families / family.model_type, "cpu")


def test_truncated_weights_are_rejected(folder, weights, refuse):
    data = weights.read_bytes()
    (n,) = struct.unpack("<Q", data[:8])
    for length in [*range(0, 8 + n, 3), *range(n, n + 16), *range(8 + n, len(data), 257), len(data) - 1]:
        weights.write_bytes(data[:length])
        refuse(folder, "is damaged|is empty|too few", weights)


CHANGES = {
    "10^18 elements": {"shape": [10**18]},
    "10^18 bytes": {"shape": [10**18 // 4], "data_offsets": [0, 10**18]},
    "an overflowing product": {"shape": [2**32, 2**32]},
    "another overflowing product": {"shape": [2**63, 2]},
    "a product that overflows to 0": {"shape": [2**32, 2**32, 0], "data_offsets": [0, 0]},
    "beyond 64 bits": {"shape": [2**64]},
    "a negative size": {"shape": [-8]},
    "two negative sizes": {"shape": [-2, -4]},
    "a size of 0": {"shape": [0], "data_offsets": [0, 0]},
    "a scalar": {"shape": [], "data_offsets": [0, 4]},
    "a fractional size": {"shape": [8.5]},
    "a size that is a string": {"shape": ["8"]},
    "no shape": {"shape": None},
    "offsets beyond the end": {"data_offsets": [10**6, 10**6 + 32]},
    "offsets beyond 64 bits": {"data_offsets": [2**64, 2**64 + 32]},
    "negative offsets": {"data_offsets": [-32, 0]},
    "offsets backward": {"data_offsets": [32, 0]},
    "one offset": {"data_offsets": [0]},
    "three offsets": {"data_offsets": [0, 16, 32]},
    "I8": {"dtype": "I8"},
    "BOOL": {"dtype": "BOOL"},
    "F8_E4M3": {"dtype": "F8_E4M3"},
    "I64": {"dtype": "I64"},
    "I32, of the same size": {"dtype": "I32"},
    "F64": {"dtype": "F64"},
    "an unknown dtype": {"dtype": "F33"},
    "a dtype of two lines": {"dtype": "F\n\x1b[31m33"},
    "a dtype of a million letters": {"dtype": "F" * 10**6},
    "no dtype": {"dtype": None},
}


@pytest.mark.parametrize("name", CHANGES)
def test_invalid_tensor_description_is_rejected(name, folder, weights, refuse):
    header, data = split(weights.read_bytes())
    header[NORM] |= CHANGES[name]
    weights.write_bytes(join(header, data))
    refuse(folder, f"is damaged|has no {NORM}|{NORM} is", weights)


@pytest.mark.parametrize(("dtype", "size"), [("I8", 1), ("BOOL", 1), ("F8_E4M3", 1), ("I64", 8), ("F4", 0.5)])
def test_unsupported_dtype_in_a_valid_file_is_rejected(dtype, size, folder, weights, refuse):
    header, data = split(weights.read_bytes())
    n = len(data)
    header["other"] = header.pop(NORM)
    header[NORM] = {"dtype": dtype, "shape": [8], "data_offsets": [n, n + int(8 * size)]}
    weights.write_bytes(join(header, data + bytes(int(8 * size))))
    refuse(folder, f"{NORM} is {dtype}, expected floats", weights)


def test_overlapping_tensors_are_rejected(folder, weights, refuse):
    header, data = split(weights.read_bytes())
    same = {**header, "other": header[NORM]}
    weights.write_bytes(join(same, data))
    refuse(folder, "is damaged", weights)


@pytest.mark.parametrize("hole", [1, 4096])
def test_bytes_outside_any_tensor_are_rejected(hole, folder, weights, refuse):
    header, data = split(weights.read_bytes())
    weights.write_bytes(join(header, data + bytes(hole)))
    refuse(folder, "is damaged", weights)


def test_duplicate_name_in_the_header_is_rejected(folder, weights, refuse):
    header, data = split(weights.read_bytes())
    text = json.dumps(header)[:-1] + f', "{NORM}": {json.dumps(header[NORM])}}}'
    weights.write_bytes(join(text.encode(), data))
    refuse(folder, f"'{NORM}' occurs twice", weights)


def test_duplicate_name_after_very_many_is_found_quickly(folder, weights, refuse):
    names = [f"{i:07}" for i in range(150_000)]
    text = ",".join(f'"{name}":0' for name in [*names, names[-1]])
    weights.write_bytes(join(f"{{{text}}}".encode()))
    refuse(folder, "'0149999' occurs twice", weights)


def test_duplicate_name_in_two_files_is_rejected(folder, sharded, refuse):
    shutil.copy(folder / "0.safetensors", folder / "2.safetensors")
    sharded("0.safetensors", "1.safetensors", "2.safetensors")
    refuse(folder, r"which is also in 0\.safetensors", folder / "2.safetensors")


def test_error_messages_escape_and_shorten_names(folder, sharded, refuse):
    bad = "a\n\x1b[31m" + "x" * 5000
    for name in ("0.safetensors", "1.safetensors"):
        save_file({bad: torch.ones(1)}, folder / name)
    refuse(folder, "which is also in")
    (folder / "\n.bin").touch()
    (folder / INDEX).unlink()
    refuse(folder, "is a pickle")


HEADERS = {
    "of 2^63 bytes": lambda data: struct.pack("<Q", 2**63) + data[8:],
    "of 2^64 - 1 bytes": lambda data: b"\xff" * 8 + data[8:],
    "one byte over the limit": lambda data: struct.pack("<Q", 2**22 + 1) + data[8:],
    "that is empty": lambda data: join(b"", data),
    "that is a list": lambda data: join([], data),
    "that is a number": lambda data: join(b"1" * 5000, data),
    "that is not text": lambda data: join(b"\xff\xfe", data),
    "that is nested": lambda data: join(b'{"a":' * 100_000 + b"1" + b"}" * 100_000, data),
    "with a long number": lambda data: join(b'{"a":' + b"9" * 10**6 + b"}", data),
    "with a list for a tensor": lambda data: join({"a": []}, data),
    "with numeric metadata": lambda data: join({"__metadata__": {"a": 1}}, data),
}


@pytest.mark.parametrize("name", HEADERS)
def test_malformed_header_is_rejected(name, folder, weights, refuse):
    weights.write_bytes(HEADERS[name](weights.read_bytes()))
    refuse(folder, "is damaged", weights)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_non_finite_weights_are_rejected(bad, folder, weights, refuse):
    tensors = load_file(weights)
    tensors[NORM] = torch.full((8,), bad, dtype=torch.float64)
    save_file(tensors, weights)
    refuse(folder, f"{NORM} has non-finite values", weights)


NAMES = [
    "../other.safetensors",
    "/etc/other.safetensors",
    "a/b.safetensors",
    "./0.safetensors",
    "..\\other.safetensors",
    "C:\\other.safetensors",
    "a\0.safetensors",
    "a\n.safetensors",
    "\x1b[31m.safetensors",
    "x" * 10**6 + ".safetensors",
    "x" * 250 + ".safetensors",
    "😀" * 80 + ".safetensors",
    "\ud800.safetensors",
    "",
    ".",
    "..",
    "config.json",
    INDEX,
    "missing.safetensors",
    ".safetensors",
]


@pytest.mark.parametrize("name", NAMES, ids=[repr(name[:20]) for name in NAMES])
def test_invalid_file_name_in_the_index_is_rejected(name, folder, sharded, refuse):
    sharded("0.safetensors", name)
    refuse(folder, "without a path|not safetensors|no such file|cannot be read|is a broken link")


@pytest.mark.parametrize("content", [None, [], "x", 1, {}, {"a": 1}, {"a": None}, {"a": ["0.safetensors"]}])
def test_malformed_index_is_rejected(content, folder, sharded, refuse):
    (folder / INDEX).write_text(json.dumps({"weight_map": content}))
    refuse(folder, "no weight_map|not safetensors", folder / INDEX)


def test_index_of_too_many_files_is_rejected(folder, sharded, refuse):
    names = {str(i): f"{i}.safetensors" for i in range(50_000)}
    (folder / INDEX).write_text(json.dumps({"weight_map": names}))
    refuse(folder, "names 50000 files, expected at most 1000", folder / INDEX)


def test_missing_or_special_weights_files_are_rejected(folder, sharded, refuse, tmp_path):
    path = folder / "1.safetensors"
    whole = path.read_bytes()
    path.unlink()
    refuse(folder, "no such file", path)
    path.mkdir()
    refuse(folder, "no such file", path)
    path.rmdir()
    os.mkfifo(path)
    refuse(folder, "no such file", path)
    for target in ("/dev/zero", "/dev/stdin", tmp_path, tmp_path / "elsewhere"):
        path.unlink()
        path.symlink_to(target)
        (tmp_path / "elsewhere").write_bytes(whole)
        refuse(folder, "is a link to a file outside its folder", path)
    for target in (path.name, INDEX, "0.safetensors", "../model/1.safetensors"):
        path.unlink()
        path.symlink_to(target)
        refuse(folder, "is a broken link|is damaged|which is also in|no such file", folder)
    path.unlink()
    (folder / "other").write_bytes(whole)
    path.symlink_to("other")
    clearhead.load(folder, "cpu")


LINKED = (*READ, "generation_config.json", INDEX)


@pytest.mark.parametrize("name", LINKED)
def test_link_out_of_the_folder_is_rejected(name, folder, refuse, tmp_path):
    path, outside = folder / name, tmp_path / "outside"
    if name == INDEX:
        (folder / WEIGHTS).unlink()
    if path.exists():
        path.replace(outside)
    else:
        outside.write_text("{}")
    for target in (outside, "../outside", "/dev/zero", "/etc/passwd"):
        path.symlink_to(target)
        refuse(folder, "is a link to a file outside its folder", path)
        path.unlink()
    path.symlink_to(name)
    refuse(folder, "is a broken link|is not a model|no such file", folder)


@pytest.mark.parametrize("name", READ)
def test_pipe_in_place_of_a_file_is_rejected(name, folder, refuse):
    path = folder / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    refuse(folder, "is a pipe or device|no such file", path)
    if name == WEIGHTS:
        ours = {"format": 1, "dropout": 0, "sha256": "0" * 64, "training": None}
        (folder / "clearhead.json").write_text(json.dumps(ours))
        refuse(folder, "is a pipe or device", path)


def test_only_links_within_the_hub_cache_are_followed(folder, refuse, tmp_path):
    snapshot, blobs = tmp_path / "models--a--b/snapshots/0123", tmp_path / "models--a--b/blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, path in enumerate(sorted(folder.iterdir())):
        shutil.copy(path, blobs / str(number))
        (snapshot / path.name).symlink_to(f"../../blobs/{number}")
    clearhead.load(snapshot, "cpu")
    target = str((snapshot / WEIGHTS).readlink())
    shutil.copytree(blobs, tmp_path / "blobs")
    for elsewhere in ("../../../blobs/" + Path(target).name, target + "/..", "../../../model/" + WEIGHTS):
        (snapshot / WEIGHTS).unlink()
        (snapshot / WEIGHTS).symlink_to(elsewhere)
        refuse(snapshot, "is a link to a file outside its folder|is a broken link", snapshot / WEIGHTS)
    (snapshot / WEIGHTS).unlink()
    (snapshot / WEIGHTS).symlink_to(target)
    (blobs / Path(target).name).unlink()
    (blobs / Path(target).name).symlink_to(folder / WEIGHTS)
    refuse(snapshot, "is a link to a file outside its folder", snapshot / WEIGHTS)
    shutil.rmtree(blobs)
    blobs.symlink_to(tmp_path / "blobs")
    refuse(snapshot, "is a link to a file outside its folder")


class Attack:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("name", [WEIGHTS, "pytorch_model.bin", "model.pt", "model.ckpt", *JSON])
def test_nothing_is_ever_unpickled(name, folder, refuse, tmp_path):
    marker = tmp_path / "executed"
    if name not in JSON:
        (folder / WEIGHTS).unlink()
    with (folder / name).open("wb") as file:
        torch.save(Attack(marker), file) if name.endswith(".pt") else pickle.dump(Attack(marker), file)
    refuse(folder, "is a pickle|is damaged|is not valid JSON|is not UTF-8|not a tokenizer", folder / name)
    assert not marker.exists()


BOMBS = {
    "nested lists": b"[" * 10**6 + b"]" * 10**6,
    "nested objects": b'{"a":' * 10**6 + b"1" + b"}" * 10**6,
    "a number of 8 MB": b'{"model_type": ' + b"9" * (2**23 - 100) + b"}",
    "a string of 8 MB": b'{"model_type": "' + b"x" * (2**23 - 100) + b'", "format": 1}',
    "a key of 8 MB": b'{"' + b"x" * (2**23 - 100) + b'": 1}',
    "a list": b'[{"model_type": "qwen3"}]',
    "a string": b'"qwen3"',
    "nothing": b"null",
    "Infinity": b"Infinity",
    "not text": b"\xff" * 100,
    "UTF-16": '{"model_type": "qwen3"}'.encode("utf-16"),
    "a NUL": b'{"model_type": "qwen3"}\0',
}


@pytest.mark.parametrize("name", [*JSON, INDEX])
@pytest.mark.parametrize("bomb", BOMBS)
def test_malformed_json_files_are_rejected(name, bomb, folder, refuse):
    (folder / name).write_bytes(BOMBS[bomb])
    if name == "tokenizer_config.json" and bomb in ("a string of 8 MB", "a key of 8 MB"):
        tokenizer = clearhead.load(folder, "cpu").tokenizer  # no special tokens, but valid
        assert tokenizer.special("eos_token") is None
        assert tokenizer.end_id == json.loads((folder / "config.json").read_text())["eos_token_id"]
        return
    if name == INDEX:
        (folder / WEIGHTS).unlink()
    refuse(folder, r"\.json|eos_token")


@pytest.mark.parametrize("name", [*READ, INDEX])
def test_sparse_file_of_300_mb_is_rejected(name, folder, refuse):
    if name == INDEX:
        (folder / WEIGHTS).unlink()
    (folder / name).touch()
    os.truncate(folder / name, 300 * 2**20)
    refuse(folder, "expected at most|is damaged", folder / name)


def test_last_of_duplicate_settings_wins(folder, refuse):
    text = (folder / "config.json").read_text()
    (folder / "config.json").write_text('{"num_hidden_layers": 7,' + text.lstrip()[1:])
    clearhead.load(folder, "cpu")
    (folder / "config.json").write_text(text.rstrip()[:-1] + ', "num_hidden_layers": 7}')
    refuse(folder, "has no|too few", folder / WEIGHTS)


ODD = (
    None,
    True,
    0,
    -1,
    2.5,
    10**9,
    2**40,
    10**400,
    float("nan"),
    float("inf"),
    "4",
    "x\n" * 1000,
    [],
    [4, "x"],
    {"factor": []},
)


def leaves(settings, path=()):
    """Yield the path of every setting, including nested ones."""
    for name, value in settings.items():
        yield (*path, name)
        if isinstance(value, dict):
            yield from leaves(value, (*path, name))


def put(settings, path, value):
    name, *rest = path
    return {**settings, name: put(settings[name], rest, value) if rest else value}


@pytest.mark.parametrize("family", [family.model_type for family in FAMILIES])
def test_odd_value_of_any_setting_loads_or_is_rejected(
    family, families, load_or_refuse, check_message, tmp_path
):
    folder = shutil.copytree(families / family, tmp_path / "model")
    config, sound = folder / "config.json", read_label(folder).config
    whole = json.loads(config.read_text())
    counts = Counter()
    for path in leaves(whole):
        for value in ODD:
            config.write_text(json.dumps(put(whole, path, value)))
            try:
                same = read_label(folder).config == sound
            except UserError as refusal:
                check_message(str(refusal), folder)
                counts["refused"] += 1
            else:  # if the value changes nothing, the model need not be loaded in full
                counts["loaded" if same or load_or_refuse(folder) else "refused"] += 1
    assert counts["loaded"] > len(ODD)
    assert counts["refused"] > 5 * len(ODD)


@pytest.mark.parametrize("family", [family.model_type for family in FAMILIES][:-1])
def test_too_many_blocks_or_features_are_rejected(family, families, refuse, tmp_path):
    folder = shutil.copytree(families / family, tmp_path / "model")
    whole = (folder / "config.json").read_text()
    blocks, width, heads = "num_hidden_layers", "hidden_size", "num_attention_heads"
    if family == "gpt2":
        blocks, width, heads = "n_layer", "n_embd", "n_head"
    if family == "gpt_neo":
        blocks, heads = "num_layers", "num_heads"
    most = {blocks: 1000, width: 2**24}
    for settings in ({blocks: 10**9}, {blocks: 1000}, {width: 2**24}, most, {heads: 2**24}):
        (folder / "config.json").write_text(whole)
        change(folder / "config.json", **settings)
        refuse(folder, "expected|too few|not a multiple|evenly|not supported|the kinds of")


def test_blocks_without_tensors_are_rejected(folder, weights, refuse):
    save_file({f"t{i}": torch.zeros(1000) for i in range(1000)}, weights)
    change(folder / "config.json", num_hidden_layers=999)
    refuse(folder, "has 1000 tensors, too few for the 999 blocks", weights)
    change(folder / "config.json", num_hidden_layers=125)
    refuse(folder, "has no", weights)


def test_model_larger_than_memory_is_rejected(folder, weights, refuse):
    """A sparse file can be as large as its header claims."""
    rows, width, n = 2**22, 2**19, 2**42
    header = {f"t{i}": {"dtype": "F16", "shape": [0], "data_offsets": [0, 0]} for i in range(20)}
    header["model.embed_tokens.weight"] = {"dtype": "F16", "shape": [rows, width], "data_offsets": [0, n]}
    weights.write_bytes(join(header))
    os.truncate(weights, weights.stat().st_size + n)
    change(folder / "config.json", vocab_size=rows, hidden_size=width)
    refuse(folder, "memory", weights)


def test_file_larger_than_the_model_is_not_hashed(folder, weights, refuse):
    header, data = split(weights.read_bytes())
    n = len(data)
    header["more"] = {"dtype": "F32", "shape": [2**38], "data_offsets": [n, n + 2**40]}
    weights.write_bytes(join(header, data))
    os.truncate(weights, weights.stat().st_size + 2**40)
    ours = {"format": 1, "dropout": 0, "sha256": "0" * 64, "training": None}
    (folder / "clearhead.json").write_text(json.dumps(ours))
    refuse(folder, "is not the file that was saved here", weights)


def test_tokenizer_with_more_tokens_than_the_model_is_rejected(folder, refuse):
    path = folder / "tokenizer.json"
    whole = json.loads(path.read_text())
    for i in (12, 2**31, 2**32 - 1):
        whole["model"]["vocab"]["z"] = i
        path.write_text(json.dumps(whole))
        refuse(folder, f"its tokenizer has {i + 1} tokens, but its model has only 12")
    for i in (-1, 2**32, 2.5, "3", None):
        whole["model"]["vocab"]["z"] = i
        path.write_text(json.dumps(whole))
        refuse(folder, "is not a tokenizer", path)


def charsmap(data):
    return {"normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(data).decode()}}


def cut(pattern):
    before = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"pre_tokenizer": before}


def template(*pieces):
    single = [{"SpecialToken": {"id": piece, "type_id": 0}} for piece in pieces]
    return {
        "post_processor": {"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": {}}
    }


TOKENIZERS = {
    "an invalid map": charsmap(b"\xff\xff\xff\x00" + b"x" * 20),
    "an empty map": charsmap(b""),
    "a missing token": template("nowhere"),
    "nested brackets": cut("(" * 5000 + ")" * 5000),
    "an unfinished pattern": cut("("),
    "no model": {"model": None},
    "an unknown model": {"model": {"type": "Evil"}},
    "no tokens": {"model": {"type": "Unigram", "unk_id": 0, "vocab": []}},
    "merges of unknown tokens": {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["b", "c"]]}},
    "added tokens in a string": {"added_tokens": "x"},
    "another version": {"version": "9\n9"},
    "nested normalizers": {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Evil\n"}]}},
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_malformed_tokenizer_is_rejected(name, folder, refuse):
    """The library panics on the first three; `except Exception` would not catch the panic."""
    change(folder / "tokenizer.json", **TOKENIZERS[name])
    refuse(folder, "is not a tokenizer|eos_token")


HARMLESS = {
    "an exponential pattern": cut("(a+)+$"),
    "the same in a normalizer": {
        "normalizer": {"type": "Replace", "pattern": {"Regex": "(a*)*b"}, "content": "x"}
    },
    "counted repetitions": cut("((((x{99}){99}){99}){99})"),
    "many alternatives": cut("|".join(["xxxxx"] * 100_000)),
    "padding to 10^9": {
        "padding": {
            "strategy": {"Fixed": 10**9},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "a",
        }
    },
    "a million letters before each text": {"normalizer": {"type": "Prepend", "prepend": "a" * 10**6}},
}


@pytest.mark.parametrize("name", HARMLESS)
def test_tokenizer_with_slow_settings_loads_quickly(name, folder, load_or_refuse):
    change(folder / "tokenizer.json", **HARMLESS[name])
    assert load_or_refuse(folder)


def replace_all(times, content="aa"):
    one = {"type": "Replace", "pattern": {"String": "a"}, "content": content}
    return [one] * times


def add_tokens(ids, times):
    added = {"A": {"id": "A", "ids": [0] * ids, "tokens": ["a"] * ids}}
    settings = template(*["A"] * times)
    settings["post_processor"]["special_tokens"] = added
    return settings


BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
GROWING = {
    "a normalizer that doubles a text 40 times": {
        "normalizer": {"type": "Sequence", "normalizers": replace_all(40)}
    },
    "the same, nested": {
        "normalizer": {
            "type": "Sequence",
            "normalizers": [{"type": "Sequence", "normalizers": replace_all(10)}] * 4,
        }
    },
    "a normalizer that inserts a long text": {
        "normalizer": {"type": "Replace", "pattern": {"Regex": ""}, "content": "a" * 1000}
    },
    "bytes of bytes": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [BYTES] * 20}},
    "a decoder that doubles a text 40 times": {"decoder": {"type": "Sequence", "decoders": replace_all(40)}},
    "a million tokens, a hundred times": add_tokens(10**6, 100),
}


@pytest.mark.parametrize("name", GROWING)
def test_tokenizer_that_makes_texts_endless_is_rejected(name, folder, refuse):
    change(folder / "tokenizer.json", **GROWING[name])
    refuse(folder, "its tokenizer (can make a text|adds) more than")


def test_tokenizer_with_a_token_of_a_megabyte_is_rejected(folder, refuse):
    document = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = document["model"]["vocab"]
    vocabulary["a" * 2**20] = vocabulary.pop("a")
    change(folder / "tokenizer.json", model=document["model"])
    refuse(folder, "a token of 1048576 characters")


def test_map_with_a_long_replacement_is_rejected(folder, refuse):
    change(folder / "tokenizer.json", **charsmap(b"\x00\x00\x00\x00" + b"a" * 1000 + b"\0"))
    refuse(folder, "more than 100 times longer|is not a tokenizer")


CONFIGS = [
    {"eos_token": "x\n" * 10**6},
    {"eos_token": {"content": []}},
    {"eos_token": ["<|endoftext|>"]},
]


@pytest.mark.parametrize("settings", CONFIGS, ids=[0, 1, 2])
def test_invalid_eos_token_is_rejected(settings, folder, refuse):
    change(folder / "tokenizer_config.json", **settings)
    refuse(folder, "eos_token")


@pytest.mark.parametrize(
    "settings",
    [{"bos_token": []}, {"add_bos_token": "x"}, {"chat_template": 5}, {"chat_template": [[], {"name": []}]}],
    ids=str,
)
def test_odd_tokenizer_settings_load_or_are_rejected(settings, folder, load_or_refuse):
    change(folder / "tokenizer_config.json", **settings)
    load_or_refuse(folder)


def test_chat_template_of_100_mb_is_rejected(folder, refuse):
    (folder / "chat_template.jinja").write_bytes(b"x" * 100 * 2**20)
    refuse(folder, "has 104857600 bytes, expected at most", folder / "chat_template.jinja")


MEASURE = """
import json, resource, sys
import clearhead
from clearhead.errors import UserError

def peak():
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit

good, *bad = sys.argv[1:]
clearhead.load(good, "cpu")
before, told = peak(), {}
for path in bad:
    try:
        clearhead.load(path, "cpu")
        said = "loaded"
    except UserError as error:
        said = str(error)
    told[path.rsplit("/", 1)[1]] = [said, peak() - before]
print(json.dumps(told))
"""


@pytest.mark.slow
def test_loading_hostile_models_uses_little_memory(families, tmp_path):
    """The costliest cases of each kind, one after another in a separate process, stay within the limit."""
    made = []

    def make(name, family="qwen3"):
        made.append(shutil.copytree(families / family, tmp_path / name))
        return made[-1]

    many = {f"{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(66_000)}
    (make("header") / WEIGHTS).write_bytes(join(many))
    (make("lists") / "config.json").write_bytes(b'{"a":[' + b"[]," * (2**23 // 3 - 10) + b"[]]}")
    (make("template") / "chat_template.jinja").write_bytes(b"x" * 100 * 2**20)
    change(make("blocks", "mistral") / "config.json", num_hidden_layers=10**9)
    change(make("layers", "gemma3_text") / "config.json", num_hidden_layers=10**9, layer_types=None)
    os.truncate(make("sparse") / "config.json", 2**40)
    os.truncate(make("tokenizer") / "tokenizer.json", 2**40)
    change(make("padding") / "tokenizer.json", **HARMLESS["padding to 10^9"])
    result = subprocess.run(
        [sys.executable, "-c", MEASURE, str(families / "qwen3"), *map(str, made)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    told = json.loads(result.stdout)
    assert result.stderr == ""
    assert [name for name, (said, _) in told.items() if said == "loaded"] == ["padding"]
    assert max(more for _, more in told.values()) < 200, told


def test_runaway_regex_is_aborted(folder):
    """Loading is safe; the first text that triggers the pattern is rejected, and nothing hangs."""
    document = json.loads((folder / "tokenizer.json").read_text())
    document["pre_tokenizer"] = {
        "type": "Split",
        "pattern": {"Regex": "(x+x+)+y"},
        "behavior": "Isolated",
        "invert": False,
    }
    (folder / "tokenizer.json").write_text(json.dumps(document))
    model = clearhead.load(folder, "cpu")
    with pytest.raises(UserError, match="the tokenizer failed on this text"):
        model.logits("x" * 60)
