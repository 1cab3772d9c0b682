"""A complete model as one GGUF file: load and save."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.files import disk_errors, make_folder, write_whole
from clearhead.formats.gguf.architectures import (
    ARCHITECTURES,
    FREQUENCIES,
    TRANSPOSED,
    file_names,
    find_architecture,
    read_frequencies,
    read_settings,
    write_frequencies,
    write_settings,
)
from clearhead.formats.gguf.file import GGUFFile
from clearhead.formats.gguf.tokenizer import read_tokenizer, write_tokenizer
from clearhead.formats.network import TensorSource, check_tensors, outline, own_tensors, read_network
from clearhead.formats.recognition import describe_type
from clearhead.formats.saved import Saved
from clearhead.model.config import Config
from clearhead.networks import Learner, need_transformer

KINDS = {
    "F32": (gguf.GGMLQuantizationType.F32, gguf.LlamaFileType.ALL_F32),
    "F16": (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16),
    "Q8_0": (gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
}
BYTES = {"F32": 4, "F16": 2, "Q8_0": 1.1}  # bytes per weight
QUANTIZED_BLOCK = 32  # Q8_0 block size: consecutive weights that share a scale
FIRST_CONTEXT = 8192  # Llama 3's, for files that do not specify it


class _Tensors:
    """A file's tensors in the layout of the family's folders."""

    def __init__(self, file: GGUFFile, kind: str, network: Learner) -> None:
        self.file, self.described = file, str(file.path)
        self.config = need_transformer(network.config, "a GGUF file")
        self.turn = ARCHITECTURES[kind].read
        self.odd: dict[str, str] = {}
        theirs = ARCHITECTURES[kind].family.write_tensors(own_tensors(network), self.config)
        self.names = file_names(kind, list(theirs), self.config.n_block)

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        shapes = {}
        for theirs, name in self.names.items():
            if name in self.file.tensors:
                shape = self.file.tensors[name].shape
                shapes[theirs] = shape[::-1] if theirs.endswith(TRANSPOSED) else shape
        return shapes

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        return self.turn(name, self.file.read(self.names[name], dtype), self.config)


def read_config(file: GGUFFile) -> tuple[str, Config]:
    """The architecture's name, and the model's config."""
    kind = file.metadata.get("general.architecture")
    if not isinstance(kind, str) or kind not in ARCHITECTURES:
        what = describe_type(kind)
        called = f"{str(kind)[:40]!r}" if what is None else f"{str(kind)[:40]!r}, {what}"
        raise UserError(
            f"{file.path} has the architecture {called}: expected one of {', '.join(ARCHITECTURES)}"
        )
    values = {
        key.removeprefix(f"{kind}."): value
        for key, value in file.metadata.items()
        if key.startswith(f"{kind}.")
    }
    shapes = {name: info.shape for name, info in file.tensors.items()}
    try:
        config = ARCHITECTURES[kind].family.read_config(read_settings(kind, values, shapes))
        assert isinstance(config, Config)
        if FREQUENCIES in file.tensors:
            context = values.get("rope.scaling.original_context_length", FIRST_CONTEXT)
            if shapes[FREQUENCIES] != (config.rotary_dim // 2,):
                raise UserError(f"its {FREQUENCIES} does not fit its heads")
            scaling = read_frequencies(file.read(FREQUENCIES), config, context)
            config = replace(config, rope_scaling=scaling)
    except UserError as error:
        raise UserError(f"{file.path}: {error}") from None
    return kind, config


def load(
    path: Path,
    dtype: torch.dtype = torch.float32,
    adapt: Callable[[TensorSource], TensorSource] | None = None,
) -> Saved:
    """Load the model in a GGUF file, with its own tokenizer; `adapt` changes its tensors as they are read.

    Raises UserError if the file is invalid.
    """
    with GGUFFile.open(path) as file:
        kind, config = read_config(file)
        numbers = sum(_count(info.shape) for info in file.tensors.values())
        if numbers < config.n_parameter:
            raise UserError(
                f"{path} has {numbers} numbers, too few for the {config.n_parameter} "
                "parameters in its settings; copy it again from its source"
            )
        check_tensors(str(path), len(file.tensors), config, dtype)
        try:
            tokenizer = read_tokenizer(file.metadata)
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
        if tokenizer.n_vocab > config.n_vocab:
            raise UserError(f"{path} has {tokenizer.n_vocab} tokens, but its model has only {config.n_vocab}")
        network = outline(config)
        source: TensorSource = _Tensors(file, kind, network)
        source = source if adapt is None else adapt(source)
        read_network(source, network, ARCHITECTURES[kind].family, dtype)
    return Saved(network, tokenizer, None)


def _count(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=object))


def save(path: Path, saved: Saved, numbers: str = "F16", name: str = "") -> None:
    """Write the model as one file for llama.cpp, with matrices as F32, F16 or Q8_0."""
    numbers = numbers.upper()
    if numbers not in KINDS:
        raise UserError(f"numbers = {numbers!r}: choose one of {', '.join(KINDS)}")
    config = need_transformer(saved.network.config, "a GGUF file")
    kind = find_architecture(config)
    metadata = write_tokenizer(saved.tokenizer, config.n_vocab)
    with disk_errors(path.parent, "the model was not saved"):
        make_folder(path.parent)
        needed = config.n_parameter * BYTES[numbers] * 1.1 + 2**18
        if shutil.disk_usage(path.parent).free < needed:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_whole(
            path, lambda temporary: _write(temporary, kind, saved, metadata, numbers, name or path.stem)
        )


def _write(path: Path, kind: str, saved: Saved, tokenizer: dict[str, Any], numbers: str, name: str) -> None:
    network, config = saved.network, need_transformer(saved.network.config, "a GGUF file")
    architecture = ARCHITECTURES[kind]
    writer = MetadataWriter(path, kind)
    writer.add_name(name)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_file_type(KINDS[numbers][1])
    settings = {f"{kind}.{key}": value for key, value in write_settings(kind, config).items()}
    for key, value in (settings | tokenizer).items():
        writer.add(key, value)
    theirs = architecture.family.write_tensors(own_tensors(network), config)
    names = file_names(kind, list(theirs), config.n_block)
    if (factors := write_frequencies(config)) is not None:
        writer.add_tensor(FREQUENCIES, factors.numpy())
    for their, tensor in theirs.items():
        converted = architecture.write(their, tensor.detach().float().cpu(), config)
        _add_tensor(writer, names[their], converted.contiguous().numpy(), numbers)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class MetadataWriter(gguf.GGUFWriter):
    """Writes each value by its type, including empty arrays, which llama.cpp requires if there are no merges."""

    def add(self, key: str, value: Any) -> None:
        if isinstance(value, bool):
            self.add_bool(key, value)
        elif isinstance(value, int):
            self.add_uint32(key, value)
        elif isinstance(value, float):
            self.add_float32(key, value)
        elif isinstance(value, str):
            self.add_string(key, value)
        else:
            self.add_key_value(key, list(value), gguf.GGUFValueType.ARRAY)

    def _pack_val(
        self,
        val: Any,
        vtype: gguf.GGUFValueType,
        add_vtype: bool,
        sub_type: gguf.GGUFValueType | None = None,
    ) -> bytes:
        if vtype is gguf.GGUFValueType.ARRAY and not val:
            kinds = [vtype, gguf.GGUFValueType.STRING] if add_vtype else [gguf.GGUFValueType.STRING]
            return b"".join(self._pack("I", each) for each in kinds) + self._pack("Q", 0)
        return super()._pack_val(val, vtype, add_vtype, sub_type)


def _add_tensor(writer: gguf.GGUFWriter, name: str, values: Any, numbers: str) -> None:
    """Vectors and position tables stay F32; a matrix whose rows do not fill whole blocks becomes F16."""
    if values.ndim == 1 or name == "position_embd.weight":
        writer.add_tensor(name, values)
        return
    if numbers == "Q8_0" and values.shape[1] % QUANTIZED_BLOCK:
        numbers = "F16"
    kind = KINDS[numbers][0]
    if numbers == "F16" and np.abs(values).max() > np.finfo(np.float16).max:
        raise UserError(f"{name} has numbers that F16 cannot represent; choose F32")
    writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
