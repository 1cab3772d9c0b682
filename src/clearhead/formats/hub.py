"""Models on the Hugging Face Hub by name: only the files we read, in the hub's own cache."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from clearhead.errors import UserError

# Weights, JSON and the chat template. Pickles and other code are never fetched, and so can never be run.
WANTED = (
    "config.json",
    "*.safetensors",
    "*.safetensors.index.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "generation_config.json",
    "chat_template.jinja",
)
UNWANTED = ("*/*", "consolidated*")  # other formats in subfolders; duplicates of the same weights
SECONDS = 4  # timeout for the hub's first responses
LONGEST_NAME = 96  # characters, the hub's limit

_PART = r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?"
_NAME = re.compile(f"{_PART}/{_PART}")
_INSTEAD = "name a folder or file on this disk, or try: clearhead pull smollm2"


def is_name(name: str) -> bool:
    """Whether this can be the name of a model on the hub: org/model."""
    if len(name) > LONGEST_NAME or ".." in name or "--" in name or name.endswith(".git"):
        return False
    return _NAME.fullmatch(name) is not None


def fetch(name: str) -> Path:
    """The folder of a model on the hub, downloaded if necessary."""
    if not is_name(name):
        raise UserError(f"{name!r} is not the name of a model on the hub: expected org/model; {_INSTEAD}")
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class Silence(tqdm):  # only the command line shows progress bars
        def __init__(self, *arguments: Any, **settings: Any) -> None:
            super().__init__(*arguments, **{**settings, "disable": True})  # type: ignore[no-untyped-call]

    patterns: dict[str, Any] = {"allow_patterns": list(WANTED), "ignore_patterns": list(UNWANTED)}
    try:
        info = HfApi().model_info(name, timeout=SECONDS)
        _check_files(name, [file.rfilename for file in info.siblings or []])
        return Path(snapshot_download(name, etag_timeout=SECONDS, tqdm_class=Silence, **patterns))
    except GatedRepoError:
        raise UserError(
            f"{name} requires accepting its license: do so on huggingface.co/{name}, then run "
            f"`hf auth login`; or {_INSTEAD}"
        ) from None
    except RepositoryNotFoundError:
        raise UserError(
            f"the hub has no model {name}, or it is private (`hf auth login`); {_INSTEAD}"
        ) from None
    except UserError:
        raise
    except Exception as error:
        # The library raises many types of exceptions if the connection, the hub or the disk fails.
        # The model may be cached.
        try:
            return Path(snapshot_download(name, local_files_only=True, **patterns))
        except LocalEntryNotFoundError:
            raise UserError(
                f"{name} could not be fetched from the hub ({_reason(error)}); {_INSTEAD}"
            ) from None


def _check_files(name: str, found: list[str]) -> None:
    """Raise an error before downloading a model that we cannot read."""
    if "config.json" not in found:
        raise UserError(f"{name} has no config.json, so it cannot be read here; {_INSTEAD}")
    if not any(file.endswith(".safetensors") and "/" not in file for file in found):
        raise UserError(f"{name} has no .safetensors weights, and pickles are never opened; {_INSTEAD}")


def _reason(error: Exception) -> str:
    """Format an error on one line, such as "ConnectError: Name or service not known"."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
