"""The held-out text of a run in its folder, so that it stays held out when the run is extended with more text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from clearhead.errors import UserError
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
    write_tensors(folder / HELD_OUT, tensors)


def read_held_out(folder: Path, end_id: int) -> HeldOut | None:
    """None if it was not saved: the validation text is in separate files, or the run predates this file."""
    path = folder / HELD_OUT
    if not path.exists():
        return None
    try:
        arrays = {name: tensor.numpy().astype(np.int64) for name, tensor in load_file(path).items()}
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
