"""What the machine at hand can do: which device to use, and whether bfloat16 is really fast on it."""

from __future__ import annotations

import importlib.util
import math
import os
import platform
import shutil

import torch

from clearhead.errors import UserError

# cuBLAS's workspaces, by number and size; with these it adds up in the same order each time.
_WORKSPACE, _EXACT_WORKSPACES = "CUBLAS_WORKSPACE_CONFIG", (":4096:8", ":16:8")


def pick_device(name: str | torch.device | None = None) -> torch.device:
    """The device asked for, or the best one here: CUDA, then Apple's MPS, then the CPU."""
    if name is None:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    name = str(name)
    kind, _, number = name.partition(":")
    here = {
        "cpu": 1,
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": 1 if torch.backends.mps.is_available() else 0,
    }
    known = [device for device, count in here.items() if count]
    if kind not in known or (number and (not number.isdecimal() or int(number) >= here[kind])):
        raise UserError(f"device {name!r} is not on this machine: choose from {', '.join(known)}")
    return torch.device(name)


def memory_of(device: torch.device) -> int | None:
    """Bytes of memory in all, where that can be known."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def free_memory(device: torch.device) -> float:
    """Bytes of a CUDA device that nothing has taken; elsewhere there is as much as one asks for."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else math.inf


def can_compile(device: torch.device) -> bool:
    """Whether PyTorch can compile for the device: CUDA, with Triton and a C compiler for its launchers."""
    if device.type != "cuda":
        return False
    return importlib.util.find_spec("triton") is not None and any(map(shutil.which, ("cc", "gcc", "clang")))


def has_fast_bfloat16(device: torch.device) -> bool:
    """Whether matrix products in bfloat16 have hardware of their own there; where not, they are slower."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    if platform.machine().lower() in ("x86_64", "amd64"):
        return torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    # On ARM oneDNN's own check asks for the bf16 instructions; on x86 it is content with less.
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def make_deterministic(device: torch.device) -> None:
    """From here on the same inputs give the same bits on CUDA too, more slowly; a processor does so anyway.

    Of a training step that concerns the sums in the backward pass of fused attention, whose threads otherwise
    race, and in matrix products. What cannot be exact raises an error.
    """
    if device.type != "cuda":
        return
    if os.environ.get(_WORKSPACE) not in _EXACT_WORKSPACES:
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # cuBLAS may have looked already
            raise UserError(
                f"deterministic training must be asked for before CUDA is used: set {_WORKSPACE}="
                f"{_EXACT_WORKSPACES[0]} before Python starts, or train in a fresh process"
            )
        os.environ[_WORKSPACE] = _EXACT_WORKSPACES[0]
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True)
