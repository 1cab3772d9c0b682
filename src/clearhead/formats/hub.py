"""Models on the Hugging Face Hub by name: only the files we read, in the hub's own cache.

A name is org/model or, for one of several GGUF files, org/model/file.gguf.
"""

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
    "vocab.json",
    "merges.txt",
    "generation_config.json",
    "adapter_config.json",
    "chat_template.jinja",
)
UNWANTED = ("*/*", "consolidated*")  # other formats in subfolders; duplicates of the same weights
SECONDS = 4  # timeout for the hub's first responses
LONGEST_NAME = 96  # characters, the hub's limit

_PART = r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?"
_NAME = re.compile(f"({_PART}/{_PART})(?:/({_PART}\\.gguf))?")
SEVERAL = re.compile(r"-\d{5}-of-\d{5}\.gguf$")  # a part of a file
_INSTEAD = "name a folder or file on this disk, or try: clearhead pull smollm2"


def is_name(name: str) -> bool:
    """Whether this can be the name of a model on the hub: org/model, or org/model/file.gguf."""
    return _split(name) is not None


def _split(name: str) -> tuple[str, str | None] | None:
    """The names of a repository and of a file in it, if there is one."""
    found = _NAME.fullmatch(name) if len(name) <= 2 * LONGEST_NAME else None
    repository, file = (found[1], found[4]) if found else ("", None)
    odd = ".." in name or "--" in repository or repository.endswith(".git")
    return None if found is None or odd or len(repository) > LONGEST_NAME else (repository, file)


def fetch(name: str) -> Path:
    """The folder or GGUF file of a model on the hub, downloaded if necessary."""
    if (parts := _split(name)) is None:
        raise UserError(f"{name!r} is not the name of a model on the hub: expected org/model; {_INSTEAD}")
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class Silence(tqdm):  # only the command line shows progress bars
        def __init__(self, *arguments: Any, **settings: Any) -> None:
            super().__init__(*arguments, **{**settings, "disable": True})  # type: ignore[no-untyped-call]

    repository, chosen = parts
    wanted = list(WANTED) if chosen is None else [chosen]
    patterns: dict[str, Any] = {"allow_patterns": wanted, "ignore_patterns": list(UNWANTED)}
    try:
        info = HfApi().model_info(repository, timeout=SECONDS)
        chosen = _choose_file(name, chosen, [file.rfilename for file in info.siblings or []])
        if chosen is not None:
            patterns["allow_patterns"] = [chosen]
        folder = Path(snapshot_download(repository, etag_timeout=SECONDS, tqdm_class=Silence, **patterns))
        return folder if chosen is None else folder / chosen
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
            folder = Path(snapshot_download(repository, local_files_only=True, **patterns))
            if (found := folder if chosen is None else folder / chosen).exists():
                return found
            raise LocalEntryNotFoundError(f"{name} is not in the cache")
        except LocalEntryNotFoundError:
            raise UserError(
                f"{name} could not be fetched from the hub ({_reason(error)}); {_INSTEAD}"
            ) from None


def _choose_file(name: str, chosen: str | None, files: list[str]) -> str | None:
    """The GGUF file to download, or None for a folder. Raises an error for a model that we cannot read."""
    ggufs = sorted(file for file in files if file.endswith(".gguf") and "/" not in file)
    if chosen is not None:
        if chosen not in ggufs:
            raise UserError(f"{name} does not exist: that model has {_list(ggufs)}; {_INSTEAD}")
        return chosen
    if "config.json" not in files and "adapter_config.json" not in files:
        whole = [file for file in ggufs if not SEVERAL.search(file)]
        if len(whole) == 1:
            return whole[0]
        if whole:
            raise UserError(f"{name} has {_list(whole)}: name one, such as {name}/{whole[0]}, or {_INSTEAD}")
        split = " (GGUF files in several parts are not supported)" if ggufs else ""
        raise UserError(f"{name} has no config.json, so it cannot be read here{split}; {_INSTEAD}")
    if not any(file.endswith(".safetensors") and "/" not in file for file in files):
        raise UserError(f"{name} has no .safetensors weights, and pickles are never opened; {_INSTEAD}")
    return None


def _list(files: list[str]) -> str:
    named = ", ".join(files[:20])
    return f"the GGUF files {named}" if files else "no GGUF files"


def _reason(error: Exception) -> str:
    """Format an error on one line, such as "ConnectError: Name or service not known"."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
