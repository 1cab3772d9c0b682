"""The held-out text of a run in its folder, so that it stays held out when the run is extended with more text."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from clearhead.errors import UserError
from clearhead.files import open_regular
from clearhead.formats.shards import write_tensors
from clearhead.text.held_out import HeldOut
from clearhead.text.tokens import Tokens

HELD_OUT = "held-out.safetensors"


def save_held_out(folder: Path, held_out: HeldOut) -> None:
    """Save the held-out tokens and, if only replies are targets, the targets and where conversations start."""
    validation = held_out.validation
    arrays = {
        "before": held_out.before,
        "validation": validation[:],
        "numbers": np.array([held_out.span, held_out.middle, validation.are_documents]),
    }
    if not validation.all_count:
        arrays["targets"] = validation.targets[:]
        arrays["starts"] = np.array([start for start, _ in validation.documents()])
    tensors = {name: torch.from_numpy(array.astype(np.int32)) for name, array in arrays.items()}
    write_tensors(folder / HELD_OUT, tensors, {"sha256": _hash(tensors)})


def read_held_out(folder: Path, end_id: int | None) -> HeldOut | None:
    """None if it was not saved: the validation text is in separate files, or the run predates this file."""
    path = folder / HELD_OUT
    if not path.exists():
        return None
    open_regular(path).close()
    try:
        with safe_open(path, framework="pt") as file:
            tensors, about = {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
        if about.get("sha256", _hash(tensors)) != _hash(tensors):
            raise ValueError("its content does not match its hash")
        arrays = {name: tensor.numpy().astype(np.int64) for name, tensor in tensors.items()}
        ids, (span, middle, are_documents) = arrays["validation"], arrays["numbers"].tolist()
        if "targets" in arrays:
            validation = Tokens.of(ids, Tokens.of(arrays["targets"]), starts=arrays["starts"].tolist())
        else:
            validation = Tokens.of(ids, separator=end_id if are_documents else None)
        return HeldOut(arrays["before"], validation, span, middle)
    except (SafetensorError, KeyError, ValueError) as error:
        raise UserError(
            f"{path} is damaged ({error}): train with the text that the run was started with"
        ) from None


def _hash(tensors: dict[str, Tensor]) -> str:
    """A hash of the names, types, shapes and contents."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)} ".encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()
