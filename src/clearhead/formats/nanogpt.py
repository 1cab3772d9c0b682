"""nanoGPT's checkpoints: `ckpt.pt`, and a tokenizer beside it or the dataset's `meta.pkl`. Neither is unpickled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import tokenizers
import torch
from tokenizers import decoders, models
from torch import Tensor

from clearhead.errors import UserError
from clearhead.files import open_regular, read_all
from clearhead.formats.families import own
from clearhead.formats.network import check_tensors, outline, read_network
from clearhead.formats.saved import Saved
from clearhead.formats.torch_file import (
    LARGEST_PICKLE,
    StoredTensor,
    TorchFile,
    describe_code,
    is_torch_file,
    read_pickle,
)
from clearhead.model.config import MOST_BLOCKS, Config, preset
from clearhead.text.tokenizer import Tokenizer

COMPILED = "_orig_mod."  # prefix of the tensor names in a compiled model
ARGUMENTS = {
    "n_vocab": "vocab_size",
    "n_context": "block_size",
    "n_block": "n_layer",
    "n_head": "n_head",
    "d_model": "n_embd",
}
ENDS = {
    "embedding.weight": "transformer.wte.weight",
    "position.weight": "transformer.wpe.weight",
    "final_norm.gain": "transformer.ln_f.weight",
    "final_norm.shift": "transformer.ln_f.bias",
}
BLOCK = {
    "norm.gain": "ln_1.weight",
    "norm.shift": "ln_1.bias",
    "norm2.gain": "ln_2.weight",
    "norm2.shift": "ln_2.bias",
    "attention.output": "attn.c_proj",
    "feedforward.first": "mlp.c_fc",
    "feedforward.second": "mlp.c_proj",
}
THIRDS = ("attention.query", "attention.key", "attention.value")  # of attn.c_attn


def is_nanogpt(path: Path) -> bool:
    """Whether this is a checkpoint with nanoGPT's entries."""
    if not is_torch_file(path):
        return False
    try:
        values = _open(path).values
    except UserError:
        return False
    return isinstance(values, dict) and {"model", "model_args"} <= values.keys()


def describe_objects(path: Path) -> str | None:
    """Describe a PyTorch file that has an object in place of a model; None for any other."""
    try:
        values = _open(path).values
    except UserError:
        return None
    parts = [values.get(name) for name in ("model", "model_args")] if isinstance(values, dict) else [values]
    return describe_code(*parts)


def read_config(path: Path) -> Config:
    return _read_config(path, _open(path).values)


def load(path: Path, dtype: torch.dtype = torch.float32) -> Saved:
    """Load a model and its tokenizer. Raises UserError if either is missing or invalid."""
    file = _open(path)
    config = _read_config(path, file.values)
    tokenizer = _find_tokenizer(path, file.values)
    if tokenizer.n_vocab > config.n_vocab:
        raise UserError(
            f"{path}: the tokenizer found for it has {tokenizer.n_vocab} tokens, but the model has only "
            f"{config.n_vocab}; the tokenizer belongs to a different model"
        )
    tensors = _Tensors(file, config)
    check_tensors(str(path), len(tensors.shapes()), config, dtype)
    return Saved(read_network(tensors, outline(config), own.FAMILY, dtype), tokenizer, None)


def _open(path: Path) -> TorchFile:
    try:
        about = path.stat()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    return _open_unchanged(path, about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=2)
def _open_unchanged(path: Path, *_: int) -> TorchFile:
    return TorchFile(path)


def _read_config(path: Path, values: Any) -> Config:
    arguments = values.get("model_args") if isinstance(values, dict) else None
    if (code := describe_objects(path)) is not None:
        raise UserError(f"{path} {code}")
    if not isinstance(arguments, dict) or not isinstance(values.get("model"), dict):
        raise UserError(f"{path} is not a nanoGPT checkpoint: it has no model and model_args")
    missing = [name for name in ARGUMENTS.values() if name not in arguments]
    if missing:
        raise UserError(f"{path} has no {missing[0]!r} in its model_args")
    dropout = arguments.get("dropout", 0.0)
    for name in (*ARGUMENTS.values(), "dropout"):
        if type(arguments.get(name, 0)) not in (int, float):  # another value may be too large to show
            raise UserError(f"{path} has invalid model_args: expected a number for {name}")
    settings = {ours: arguments[theirs] for ours, theirs in ARGUMENTS.items()}
    try:
        return preset("gpt2", **settings, feedforward="gelu", dropout=dropout)
    except UserError as error:
        raise UserError(f"{path} has invalid model_args: {error}") from None


class _Tensors:
    """A checkpoint's tensors by our names. Biases that it does not have are zero."""

    def __init__(self, file: TorchFile, config: Config) -> None:
        self.file, self.described, self.config = file, str(file.path), config
        self.odd: dict[str, str] = {}
        self.stored: dict[str, StoredTensor] = {
            str(name).removeprefix(COMPILED): value
            for name, value in file.values["model"].items()
            if isinstance(value, StoredTensor)
        }
        self._biased = "transformer.ln_f.bias" in self.stored

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        found = {}
        for name in self._names():
            theirs, third = _place(name)
            if theirs in self.stored:
                shape = self.stored[theirs].shape
                found[name] = (shape[0] // 3, *shape[1:]) if third is not None and shape else shape
            elif not self._biased and name.endswith((".bias", ".shift")):
                found[name] = (self.config.d_hidden if "first" in name else self.config.d_model,)
        return found

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        theirs, third = _place(name)
        if theirs not in self.stored:
            return torch.zeros(self.shapes()[name], dtype=dtype)
        tensor = self.file.read(self.stored[theirs], dtype)
        return tensor if third is None else tensor.chunk(3)[third]

    def _names(self) -> list[str]:
        """Our names: those that the config needs, and those of blocks beyond it, which do not fit."""
        blocks = [re.match(r"transformer\.h\.(\d{1,4})\.", name) for name in self.stored]
        n_block = max((int(found[1]) + 1 for found in blocks if found), default=0)
        inside = [name for name in BLOCK if name.startswith("norm")]
        matrices = [name for name in (*THIRDS, *BLOCK) if name not in inside]
        inside += [f"{name}.{kind}" for name in matrices for kind in ("weight", "bias")]
        count = min(max(n_block, self.config.n_block), MOST_BLOCKS)
        return [*ENDS, *(f"blocks.{i}.{name}" for i in range(count) for name in inside)]


def _place(name: str) -> tuple[str, int | None]:
    """Where a tensor is stored in the checkpoint: a name and, if it is only a third of that tensor, which one."""
    if name in ENDS:
        return ENDS[name], None
    _, i, rest = name.split(".", 2)
    if rest in BLOCK:
        return f"transformer.h.{i}.{BLOCK[rest]}", None
    part, _, kind = rest.rpartition(".")
    if part in THIRDS:
        return f"transformer.h.{i}.attn.c_attn.{kind}", THIRDS.index(part)
    return f"transformer.h.{i}.{BLOCK[part]}.{kind}", None


def _find_tokenizer(path: Path, values: dict[str, Any]) -> Tokenizer:
    """A tokenizer in the checkpoint's folder, or the characters of its dataset, where nanoGPT stores them."""
    folder = path.absolute().parent
    if (folder / "tokenizer.json").is_file() or (folder / "vocab.json").is_file():
        return Tokenizer.load(folder)
    settings = values.get("config")
    dataset = settings.get("dataset") if isinstance(settings, dict) else None
    places = [folder / "meta.pkl"]
    if isinstance(dataset, str) and re.fullmatch(r"[\w-]{1,100}", dataset):
        places.append(folder.parent / "data" / dataset / "meta.pkl")
    for place in places:
        if place.is_file():
            return _read_characters(place)
    raise UserError(
        f"{path} has no tokenizer: copy its dataset's meta.pkl to {folder} or, if it was trained on GPT-2's tokens, "
        "GPT-2's tokenizer.json, or its vocab.json and merges.txt"
    )


def _read_characters(path: Path) -> Tokenizer:
    """The tokenizer of a character-level dataset: meta.pkl maps characters to ids."""
    try:
        with open_regular(path) as file:
            data = read_all(file, LARGEST_PICKLE + 1)
        found = read_pickle(data[:LARGEST_PICKLE])
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except Exception as error:  # pickletools raises errors of many kinds
        raise UserError(f"{path} is damaged ({' '.join(str(error).split())[:100]}); copy it again") from None
    ids = found.get("stoi") if isinstance(found, dict) else None
    if (
        not isinstance(ids, dict)
        or not all(type(token) is str and len(token) == 1 and type(i) is int for token, i in ids.items())
        or any("\ud800" <= token <= "\udfff" for token in ids)  # half a character
        or sorted(ids.values()) != list(range(len(ids)))
    ):
        raise UserError(f"{path} does not map characters to ids, as nanoGPT's character-level datasets do")
    inner = tokenizers.Tokenizer(models.BPE(vocab=ids, merges=[], unk_token="<unk>"))  # noqa: S106
    inner.decoder = decoders.Fuse()
    return Tokenizer(inner, {"tokenizer_class": "PreTrainedTokenizerFast"})
