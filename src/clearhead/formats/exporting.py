"""Export a model for other programs: a folder for transformers, a GGUF file, or an ARPA file."""

from __future__ import annotations

import re
from pathlib import Path

from clearhead.classics.ngram import NGram
from clearhead.errors import UserError
from clearhead.formats import folder
from clearhead.formats.arpa import is_arpa
from clearhead.formats.arpa import write as write_arpa
from clearhead.formats.saved import Saved
from clearhead.model.config import Config
from clearhead.runtime.quantization import need_exact

FILE_SUFFIX = re.compile(r"\.[a-z]\w*", re.IGNORECASE)  # not the end of a version or size, such as qwen3-0.6b


def export(saved: Saved, path: Path, to: str | None, numbers: str | None) -> None:
    """Export in the format given by `to`, or by the path's suffix.

    `numbers` is the data type of the matrices in a GGUF file.
    """
    need_exact(saved.network, "exporting")
    if isinstance(saved.network, NGram):
        _export_arpa(saved, path, to, numbers)
        return
    config = saved.network.config
    if not isinstance(config, Config) or not folder.opens_elsewhere(config):
        named = "model" if isinstance(config, Config) else config.kind
        what = f"this {named} cannot be exported: no architecture outside Clearhead matches it"
        raise UserError(f"{what}; its own folder holds safetensors and JSON, and ch.load opens it")
    kind = to.lower() if to is not None else "gguf" if path.suffix == ".gguf" else "huggingface"
    if kind == "gguf":
        _refuse_existing(path)
        from clearhead.formats.gguf import model as gguf_model  # import gguf only when needed

        gguf_model.save(path, saved, numbers or "F16")
    elif kind == "huggingface":
        if numbers is not None:
            raise UserError(f"numbers = {numbers!r}: applies to gguf only; a folder keeps the original type")
        if not path.is_dir() and FILE_SUFFIX.fullmatch(path.suffix):
            raise UserError(
                f"{path} is named like a file, but the huggingface format is a folder: omit {path.suffix}, or choose "
                "gguf with `to`"
            )
        if path.is_dir() and any(path.iterdir()):
            raise UserError(f"{path} is not empty: choose another folder, or move its contents elsewhere")
        folder.check_free(path)
        folder.save(path, saved)
    else:
        raise UserError(f"to = {to!r}: expected huggingface or gguf")


def _export_arpa(saved: Saved, path: Path, to: str | None, numbers: str | None) -> None:
    assert isinstance(saved.network, NGram)
    if numbers is not None or (to or "arpa").lower() != "arpa" or not is_arpa(path):
        raise UserError(f"{path}: an n-gram model is exported as an ARPA file, such as my.arpa or my.arpa.gz")
    _refuse_existing(path)
    write_arpa(path, saved.network, saved.tokenizer.tokens)


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise UserError(f"{path} already exists: choose another name, or move it elsewhere")
