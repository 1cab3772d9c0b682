"""Checkpoints: the complete state of a run in a folder that is either verified complete or skipped.

Write order: tensors and state into a temporary folder, each flushed; a manifest with their sizes and hashes
last; then the folder is renamed and its parent flushed. An older checkpoint is deleted only after the new one
has been read back. Nothing is pickled.

In a sharded run, every rank writes its shard to safetensors files, with PyTorch's distributed checkpointing;
any number of ranks can read them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from clearhead.errors import UserError
from clearhead.files import open_regular, read_json, write_json
from clearhead.formats.shards import write_tensors
from clearhead.runs.staging import begin, drop, put_in_place
from clearhead.runtime.process_group import ProcessGroup

TENSORS, STATE, MANIFEST = "tensors.safetensors", "state.json", "manifest.json"
SHARDS = "shard-*.safetensors"
KEPT = 2  # the newest checkpoint and one fallback; the checkpoints they record as good are kept too


@dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to resume as if it had never stopped."""

    step: int
    tensors: dict[str, Tensor]
    state: dict[str, Any]


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Add a checkpoint to the folder, then delete the oldest. If this fails, the old ones stay.

    `good` in the checkpoint's state is the step to return to if training diverges.
    """
    with _staged(folder / _name(checkpoint.step)) as staged:
        write_tensors(staged / TENSORS, checkpoint.tensors)
        _seal(staged, checkpoint)
    _forget_oldest(folder, checkpoint.step)


def save_shards(folder: Path, checkpoint: Checkpoint, group: ProcessGroup) -> None:
    """Like `save_checkpoint`, for a sharded run; every rank writes its shard."""
    final = folder / _name(checkpoint.step)
    staged = group.run_on_main(lambda: _begin(final))
    _write_shards(staged, checkpoint.tensors, group)

    def finish() -> None:
        with _staged(final, begun=True):
            _seal(staged, checkpoint)
        _forget_oldest(folder, checkpoint.step)

    group.run_on_main(finish)


def drop_all_but_newest(folder: Path) -> None:
    """Delete all checkpoints, except the newest if it is intact and belongs to a finished run."""
    paths = _listed(folder)
    if not paths or not is_whole(paths[0]) or not read_json(paths[0] / STATE).get("finished"):
        drop(folder)
        return
    for path in paths[1:]:
        drop(path)


def newest_checkpoint(folder: Path) -> Path | None:
    """The newest intact checkpoint, or None if there is none."""
    paths = _listed(folder)
    for path in paths:
        if is_whole(path):
            return path
    if paths:
        raise UserError(
            f"no checkpoint in {folder} is intact ({len(paths)} found): delete {folder.parent} to start over"
        )
    return None


def checkpoint_at(folder: Path, step: int) -> Path | None:
    """The checkpoint of a step, if it exists and is intact."""
    path = folder / _name(step)
    return path if is_whole(path) else None


def newest_step(folder: Path) -> int | None:
    """The step of the newest checkpoint, intact or not; None if there is none."""
    return next(iter(list_steps(folder)), None)


def newest_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors in the newest checkpoint, from its header; empty if there is none or it is sharded."""
    for path in _listed(folder)[:1]:
        with suppress(SafetensorError, UserError, OSError):
            open_regular(path / TENSORS).close()
            with safe_open(path / TENSORS, framework="pt") as file:
                return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    return {}


def list_steps(folder: Path) -> list[int]:
    """The steps of all checkpoints, intact or not, newest first."""
    return [int(path.name.removeprefix("step-")) for path in _listed(folder)]


def is_whole(path: Path) -> bool:
    """Whether every file has the size and hash given in the manifest."""
    try:
        manifest = read_json(path / MANIFEST)
        return set(manifest) == set(_contents(path)) and all(
            _describe(path / name) == manifest[name] for name in manifest
        )
    except (UserError, OSError):
        return False


def good_step(path: Path) -> int | None:
    """The step that a checkpoint records as good, or None if the checkpoint cannot be read."""
    try:
        step = read_json(path / STATE).get("good")
    except UserError:
        return None
    return step if isinstance(step, int) else None


def read_checkpoint(path: Path) -> Checkpoint:
    state = read_json(path / STATE)
    try:
        tensors = load_file(path / TENSORS)
    except SafetensorError as error:
        raise UserError(
            f"{path / TENSORS} is damaged ({error}): delete {path} to resume from an older checkpoint"
        ) from None
    return Checkpoint(state.pop("step"), tensors, state)


def read_shards(path: Path, tensors: dict[str, Tensor], group: ProcessGroup) -> Checkpoint:
    """Fill these tensors, sharded or not, from a checkpoint written by any number of ranks."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.state_dict_loader import load

    state = read_json(path / STATE)
    load(tensors, storage_reader=HuggingFaceStorageReader(str(path)), no_dist=group.world_size == 1)
    return Checkpoint(state.pop("step"), tensors, state)


def _begin(final: Path) -> Path:
    staged = begin(final)
    staged.mkdir()
    return staged


@contextmanager
def _staged(final: Path, begun: bool = False) -> Iterator[Path]:
    """A temporary folder that is renamed on success and deleted on failure."""
    staged = final.with_name(f".{final.name}.new")
    try:
        yield staged if begun else _begin(final)
        put_in_place(final)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def _contents(path: Path) -> list[str]:
    """The files of a checkpoint that its manifest must list."""
    shards = sorted(each.name for each in path.glob(SHARDS))
    return [*(shards or [TENSORS]), STATE]


def _seal(staged: Path, checkpoint: Checkpoint) -> None:
    write_json(staged / STATE, {"step": checkpoint.step, **checkpoint.state})
    write_json(staged / MANIFEST, {name: _describe(staged / name) for name in _contents(staged)})


def _forget_oldest(folder: Path, step: int) -> None:
    """Delete old checkpoints once the one at this step has been read back."""
    final = folder / _name(step)
    if is_whole(final):
        listed = _listed(folder)
        at = listed.index(final)
        kept = listed[at : at + KEPT]
        good = {folder / _name(named) for path in kept if (named := good_step(path)) is not None}
        # Checkpoints of later steps are obsolete: the run returned to an earlier step.
        for path in listed[:at] + [each for each in listed[at + KEPT :] if each not in good]:
            drop(path)


def _write_shards(staged: Path, tensors: dict[str, Tensor], group: ProcessGroup) -> None:
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    writer = HuggingFaceStorageWriter(str(staged), save_distributed=True)
    try:
        save(tensors, storage_writer=writer, no_dist=group.world_size == 1)
    except CheckpointException as error:  # built on rank 0 and raised on all ranks
        reasons = "; ".join(sorted({str(failure[0]) for failure in error.failures.values()}))
        raise OSError(None, reasons) from None


def _describe(path: Path) -> dict[str, Any]:
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        return {"bytes": size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _name(step: int) -> str:
    return f"step-{step:09d}"


def _listed(folder: Path) -> list[Path]:
    """The checkpoints in the folder, newest first."""
    names = (path for path in folder.glob("step-*") if re.fullmatch(r"step-\d+", path.name))
    return sorted(names, key=lambda path: int(path.name.removeprefix("step-")), reverse=True)
