"""A model folder: config.json, model.safetensors and the tokenizer's files, in Hugging Face's layout.

Our own `clearhead.json` beside them records how the model was trained, and the hashes of all files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from clearhead.classics.ngram_config import NGramConfig
from clearhead.errors import UserError
from clearhead.files import (
    SEAL,
    check_seal,
    disk_errors,
    inside,
    make_folder,
    open_regular,
    read_json,
    seal,
    to_json_text,
    write_json,
    write_text,
)
from clearhead.formats.families import (
    gemma2,
    gemma3,
    gpt2,
    gpt_neo,
    gpt_neox,
    llama,
    mistral,
    olmo2,
    opt,
    own,
    phi3,
    qwen2,
    qwen3,
    smollm3,
)
from clearhead.formats.families.family import Family, Named
from clearhead.formats.network import TensorSource, check_tensors, outline, own_tensors, read_network
from clearhead.formats.ngram_tensors import read_ngram
from clearhead.formats.recognition import describe_folder, describe_type
from clearhead.formats.saved import Saved
from clearhead.formats.shards import LARGEST_HEADER, WEIGHTS, Shards, write_tensors
from clearhead.model.config import Config
from clearhead.networks import SingleConfig, SingleNetwork
from clearhead.text.tokenizer import LARGEST_FILE, Tokenizer

# The first family that can express a config is used.
FAMILIES = (
    gpt2.FAMILY,
    llama.FAMILY,
    mistral.FAMILY,
    qwen2.FAMILY,
    qwen3.FAMILY,
    gpt_neox.FAMILY,
    gemma3.FAMILY,
    gemma2.FAMILY,
    phi3.FAMILY,
    gpt_neo.FAMILY,
    opt.FAMILY,
    smollm3.FAMILY,
    olmo2.FAMILY,
    own.FAMILY,
)

CONFIG, OURS, GENERATION = "config.json", "clearhead.json", "generation_config.json"
FILES = (CONFIG, WEIGHTS, OURS, "tokenizer.json", "tokenizer_config.json", GENERATION)
HASHED = ("tokenizer.json", "tokenizer_config.json", GENERATION)  # besides config.json and the weights
FORMAT = 1


def save(folder: Path, saved: Saved) -> None:
    """Write the folder file by file, config.json last: without it, the folder is not a model."""
    network, config, end = saved.network, saved.network.config, saved.tokenizer.end_id
    family = _family_for(config)
    with disk_errors(folder, "the model was not saved"):
        check_space(folder, config)
        make_folder(folder)
        (folder / CONFIG).unlink(missing_ok=True)
        tensors = family.write_tensors(_on_cpu(network), config)
        write_tensors(folder / WEIGHTS, tensors, {"format": "pt"})
        saved.tokenizer.save(folder, model_max_length=config.n_context)
        start = saved.tokenizer.start_ids[0] if saved.tokenizer.start_ids else end
        ends = end if len(saved.tokenizer.end_ids) <= 1 else saved.tokenizer.end_ids
        ids = {"bos_token_id": start, "eos_token_id": ends, "pad_token_id": end}
        write_json(folder / GENERATION, {**ids, "do_sample": True})
        dtype = str(next(network.parameters()).dtype).removeprefix("torch.")
        written = {"model_type": family.model_type, **family.write_config(config), **ids, "dtype": dtype}
        text = to_json_text(written)
        hashes = {name: _sha256(folder / name, LARGEST_FILE) for name in HASHED}
        ours = {
            "format": FORMAT,
            "dropout": 0.0 if isinstance(config, NGramConfig) else config.dropout,
            "sha256": _sha256(folder / WEIGHTS, _most_bytes(config)),
            "files": {**hashes, CONFIG: hashlib.sha256(text.encode()).hexdigest()},
            "training": saved.training,
        }
        write_json(folder / OURS, seal(ours))
        write_text(folder / CONFIG, text)


def opens_elsewhere(config: SingleConfig) -> bool:
    """Whether an architecture outside Clearhead can express the config."""
    return _family_for(config) is not own.FAMILY


def _family_for(config: SingleConfig) -> Family:
    """The first family that can express the config; our own for networks other than transformers."""
    if not isinstance(config, Config):
        return own.FAMILY
    return next(family for family in FAMILIES if family.holds(config))


@dataclass(frozen=True)
class Label:
    """What a folder states about its model, without the weights."""

    family: Family
    config: SingleConfig
    training: dict[str, Any] | None
    sha256: str | None  # hash of the weights, if we saved them
    files: dict[str, str] = field(default_factory=dict)  # hashes of other files, if we saved them


def read_label(folder: Path) -> Label:
    """Read config.json and clearhead.json. Raises UserError if they are invalid."""
    if not os.path.isdir(folder):  # noqa: PTH112 (Path.is_dir raises for a name that is too long)
        raise UserError(
            f"no such folder: {folder}; name a folder that `clearhead train` or transformers saved"
        )
    if not (folder / CONFIG).exists():
        raise UserError(f"{folder} {describe_folder(folder)}")
    settings = read_json(inside(folder, CONFIG))
    kind = settings.get("model_type")
    family = next((family for family in FAMILIES if family.model_type == kind), None)
    if family is None:
        known = ", ".join(family.model_type for family in FAMILIES)
        what = describe_type(kind)
        called = f"{kind!r}" if what is None else f"{kind!r}, {what}"
        raise UserError(f"{folder / CONFIG} has model_type {called}: expected one of {known}")
    if isinstance(quantized := settings.get("quantization_config"), dict):
        kind = str(quantized.get("quant_method"))[:40]
        raise UserError(
            f"{folder / CONFIG} says that its weights are quantized ({kind}), which is not supported: "
            "use the original, or a GGUF file"
        )
    try:
        config = family.read_config(settings)
    except UserError as error:
        raise UserError(f"{folder / CONFIG}: {error}") from None
    ours = _read_ours(inside(folder, OURS))
    if ours is None:
        return Label(family, config, None, None)
    try:
        config = config if isinstance(config, NGramConfig) else replace(config, dropout=ours["dropout"])
    except UserError as error:
        raise UserError(f"{folder / OURS}: {error}") from None
    return Label(family, config, ours["training"], ours["sha256"], ours.get("files", {}))


def load(
    folder: Path,
    dtype: torch.dtype = torch.float32,
    adapt: Callable[[TensorSource], TensorSource] | None = None,
) -> Saved:
    """Load the model in a folder; `adapt` changes its tensors as they are read. Raises UserError if it is invalid."""
    for name in FILES:
        inside(folder, name)
    label = read_label(folder)
    config = label.config
    if label.sha256 is not None and label.sha256 != _sha256(folder / WEIGHTS, _most_bytes(config)):
        raise UserError(
            f"{folder / WEIGHTS} is not the file that was saved here: it was truncated or changed; "
            f"copy it again, or delete {OURS} if you changed it yourself"
        )
    shards = Shards(folder)
    network = _read_network(shards, label, dtype, adapt)
    tokenizer = Tokenizer.load(folder, _read_ends(folder))
    if tokenizer.n_vocab > config.n_vocab:
        raise UserError(
            f"{folder}: its tokenizer has {tokenizer.n_vocab} tokens, but its model has only {config.n_vocab}; "
            "the tokenizer belongs to a different model"
        )
    _check_files(folder, label.files)
    return Saved(network, tokenizer, label.training)


def _check_files(folder: Path, hashes: dict[str, str]) -> None:
    """Raise an error if one of the small files has changed in a way that its reader would accept."""
    for name, expected in hashes.items():
        if name in (CONFIG, *HASHED) and expected != _sha256(folder / name, LARGEST_FILE):
            template = (
                "; put a chat template into chat_template.jinja" if name == "tokenizer_config.json" else ""
            )
            raise UserError(
                f"{folder / name} is not the file that was saved here: it was changed; copy it again, or, if you "
                f"changed it yourself, delete its hash and {SEAL!r} from {OURS}{template}"
            )


def _read_network(
    shards: Shards, label: Label, dtype: torch.dtype, adapt: Callable[[TensorSource], TensorSource] | None
) -> SingleNetwork:
    config = label.config
    if isinstance(config, NGramConfig):
        return read_ngram(shards, config)
    if shards.n_bytes < config.n_parameter:
        raise UserError(
            f"{shards.described} has {shards.n_bytes} bytes, too few for the {config.n_parameter} parameters "
            f"in {CONFIG}: copy it again from its source"
        )
    check_tensors(shards.described, len(shards.shapes()), config, dtype)
    source = shards if adapt is None else adapt(shards)
    return read_network(source, outline(config), label.family, dtype)


def _read_ends(folder: Path) -> list[int]:
    """The tokens that end a text, from generation_config.json, or else from config.json."""
    for name in (GENERATION, CONFIG):
        path = inside(folder, name)
        ends = read_json(path).get("eos_token_id") if path.exists() else None
        if ends is None:
            continue
        ends = ends if isinstance(ends, list) else [ends]
        if not all(type(i) is int for i in ends):
            raise UserError(f"{path} has eos_token_id {str(ends)[:80]}: expected one or more token ids")
        return ends
    return []


def check_free(folder: Path) -> None:
    """Raise an error if saving to the folder would overwrite a model, or is not possible."""
    try:
        found = [name for name in FILES if (folder / name).exists()]
        existing = _existing(folder)
    except OSError as error:
        raise UserError(f"{folder} cannot be used as a folder ({error.strerror}); choose another") from None
    if found:
        raise UserError(
            f"{folder} already contains a model ({found[0]}): choose another folder, or move it elsewhere"
        )
    if not existing.is_dir():
        raise UserError(f"{existing} is a file, expected a folder; choose another")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(f"{existing} is not writable: choose another folder")


def check_space(folder: Path, config: SingleConfig) -> None:
    """Raise an error if the model does not fit on the disk."""
    needed = (config.n_byte if isinstance(config, NGramConfig) else 4 * config.n_parameter) + 2**20
    free = shutil.disk_usage(_existing(folder)).free
    if free < needed:
        raise UserError(
            f"not enough space in {folder}: a model of {needed / 1e6:.1f} MB "
            f"does not fit in {free / 1e6:.1f} MB; free some space, or choose another folder"
        )


def _existing(folder: Path) -> Path:
    """The folder, or its nearest existing parent."""
    return next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())


def _on_cpu(network: SingleNetwork) -> Named:
    return {name: tensor.cpu() for name, tensor in own_tensors(network).items()}


def _read_ours(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    ours = read_json(path)
    if ours.get("format") != FORMAT:
        raise UserError(f"{path} has format {ours.get('format')!r}: this version reads {FORMAT}")
    kinds: dict[str, Any] = {
        "format": int,
        "dropout": (int, float),
        "sha256": str,
        "training": (dict, type(None)),
        "files": dict,
        SEAL: str,
    }
    for name in kinds.keys() | ours.keys():
        optional = name in ("files", SEAL) and name not in ours
        if not optional and (
            name not in kinds or name not in ours or not isinstance(ours[name], kinds[name])
        ):
            raise UserError(f"{path}: {name!r} is unknown, missing or of the wrong type; copy it again")
    return check_seal(path, ours)


def _most_bytes(config: SingleConfig) -> int:
    """An upper bound on the size of the weights of any model we save."""
    return 12 * config.n_parameter + LARGEST_HEADER


def _sha256(path: Path, at_most: int) -> str | None:
    """The hash, or None if the file is larger than any valid one."""
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > at_most:
                return None
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise UserError(f"no such file: {path}; is {path.parent} a complete model?") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
