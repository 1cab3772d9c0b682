"""Export a model for other programs: a folder for transformers, a GGUF file, or an ARPA file."""

from __future__ import annotations

from pathlib import Path

from clearhead.classics.ngram import NGram
from clearhead.errors import UserError, guess
from clearhead.formats import folder
from clearhead.formats.arpa import is_arpa
from clearhead.formats.arpa import write as write_arpa
from clearhead.formats.saved import Saved
from clearhead.model.config import Config
from clearhead.runtime.quantization import need_exact


def export(saved: Saved, path: Path, to: str | None, numbers: str | None) -> None:
    """Export in the format given by `to`, or by the path's suffix; `numbers` is the type of matrices in a GGUF
    file.
    """
    need_exact(saved.network, "exporting")
    if isinstance(saved.network, NGram):
        _export_arpa(saved, path, to, numbers)
        return
    config = saved.network.config
    if not isinstance(config, Config) or not folder.opens_elsewhere(config):
        named = "model" if isinstance(config, Config) else config.kind
        what = f"no other program has an architecture for this {named}"
        raise UserError(f"{what}: its own folder is safetensors and JSON, which ch.load opens")
    if to is None and path.suffix != ".gguf" and (meant := guess(path.suffix.lower(), [".gguf"])):
        raise UserError(
            f"{path}: this would create a folder of that name{meant} Otherwise, add --to huggingface"
        )
    kind = to.lower() if to is not None else "gguf" if path.suffix == ".gguf" else "huggingface"
    if kind == "gguf":
        _refuse_existing(path)
        from clearhead.formats.gguf import model as gguf_model  # import gguf only when needed

        gguf_model.save(path, saved, numbers or "F16")
    elif kind == "huggingface":
        if numbers is not None:
            raise UserError(f"numbers = {numbers!r} applies to gguf only; a folder keeps the original type")
        if path.is_dir() and any(path.iterdir()):
            raise UserError(f"{path} is not empty: choose another folder, or move its contents away")
        folder.check_free(path)
        folder.save(path, saved)
    else:
        raise UserError(f"export to {to!r}: expected huggingface or gguf")


def _export_arpa(saved: Saved, path: Path, to: str | None, numbers: str | None) -> None:
    assert isinstance(saved.network, NGram)
    if numbers is not None or (to or "arpa").lower() != "arpa" or not is_arpa(path):
        raise UserError(f"{path}: an n-gram model is exported as an ARPA file, such as my.arpa or my.arpa.gz")
    _refuse_existing(path)
    write_arpa(path, saved.network, saved.tokenizer.tokens)


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise UserError(f"{path} already exists: choose another name, or move it away")
