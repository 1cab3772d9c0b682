"""The device: which one to use, its memory, and whether bfloat16 and compilation pay off on it."""

from __future__ import annotations

import importlib.util
import math
import os
import platform

import torch

from clearhead.errors import UserError
from clearhead.processes import find_program

# cuBLAS workspace settings for which its reductions are deterministic.
_WORKSPACE, _EXACT_WORKSPACES = "CUBLAS_WORKSPACE_CONFIG", (":4096:8", ":16:8")


def pick_device(name: str | torch.device | None = None) -> torch.device:
    """The named device, or the best one available: CUDA, then Apple's MPS, then the CPU."""
    if name is None:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    name = str(name)
    kind, _, number = name.partition(":")
    counts = {
        "cpu": 1,
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": 1 if torch.backends.mps.is_available() else 0,
    }
    known = [device for device, count in counts.items() if count]
    if kind not in known or (number and (not number.isdecimal() or int(number) >= counts[kind])):
        raise UserError(f"device = {name!r}: not available on this machine; choose from {', '.join(known)}")
    return torch.device(name)


def memory_of(device: torch.device) -> int | None:
    """Total memory in bytes, or None if unknown."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def free_memory(device: torch.device) -> float:
    """Free bytes of a CUDA device; infinite elsewhere."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else math.inf


def can_compile(device: torch.device) -> bool:
    """Whether torch.compile works for the device: CUDA with Triton and a C compiler for its launchers."""
    if device.type != "cuda":
        return False
    return importlib.util.find_spec("triton") is not None and any(map(find_program, ("cc", "gcc", "clang")))


def has_fast_bfloat16(device: torch.device) -> bool:
    """Whether the device has hardware for bfloat16 matrix products; without it they are slower."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    if platform.machine().lower() in ("x86_64", "amd64"):
        return torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    # On ARM, oneDNN's check requires the bf16 instructions; on x86 it accepts less.
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def make_deterministic(device: torch.device) -> None:
    """Make CUDA deterministic, at some cost in speed; the CPU always is.

    In a training step, this concerns the atomic sums in the backward pass of fused attention, and matrix
    products. Operations without a deterministic version raise an error.
    """
    if device.type != "cuda":
        return
    if os.environ.get(_WORKSPACE) not in _EXACT_WORKSPACES:
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # cuBLAS may have read it already
            raise UserError(
                f"deterministic training must be requested before CUDA is initialized: set {_WORKSPACE}="
                f"{_EXACT_WORKSPACES[0]} before Python starts, or train in a fresh process"
            )
        os.environ[_WORKSPACE] = _EXACT_WORKSPACES[0]
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True)
