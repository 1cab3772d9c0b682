"""The checks of `clearhead doctor`: this machine and the installation."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from clearhead import files
from clearhead.extras import EXTRAS, is_installed
from clearhead.formats.builtin import NAMES
from clearhead.formats.places import RUNS, name_models
from clearhead.page.assets import has_bundles, has_site
from clearhead.summary_table import plural

if TYPE_CHECKING:
    import torch

Health = Literal["fine", "missing", "broken"]  # optional parts may be missing

LITTLE_ROOM = 2**30  # bytes of free disk space below which a run may not fit
OLDEST = (3, 11)

# Linux's names for CPU features, and their common names.
FEATURES = {
    "asimd": "NEON",
    "sve": "SVE",
    "i8mm": "int8 products",
    "bf16": "bfloat16",
    "avx2": "AVX2",
    "avx512f": "AVX-512",
    "avx512_bf16": "AVX-512 bfloat16",
    "amx_tile": "AMX",
}


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    group: Literal["machine", "software", "extras", "places"]
    name: str
    message: str
    state: Health = "fine"
    do: str | None = None  # how to fix it


def look() -> Iterator[Finding]:
    """Run all checks. Imports torch, which takes a second or two, but opens no model and writes nothing."""
    yield from _look_at_machine()
    yield from _look_at_software()
    for name in EXTRAS:
        yield _look_for(name)
    yield from _look_at_places()


def _look_at_machine() -> Iterator[Finding]:
    system = f"{platform.system()} {platform.release()} on {platform.machine()}"
    new = sys.version_info >= OLDEST
    yield Finding(
        "machine",
        "python",
        f"{platform.python_version()}, {system}",
        "fine" if new else "broken",
        None if new else f"install Python {'.'.join(map(str, OLDEST))} or newer",
    )
    able = ", ".join(_features()) or platform.processor() or "features unknown"
    yield Finding("machine", "processor", f"{_cores()} cores; {able}")
    yield Finding("machine", "memory", _memory())


def _cores() -> int:
    """The number of cores that this process can use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _features(path: Path = Path("/proc/cpuinfo")) -> list[str]:
    try:
        flags = set(path.read_text(encoding="utf-8", errors="replace").split())
    except OSError:
        return ["NEON"] if platform.machine() == "arm64" else []
    return [name for flag, name in FEATURES.items() if flag in flags]


def _memory(path: Path = Path("/proc/meminfo")) -> str:
    try:
        found = dict(re.findall(r"^(\w+):\s+(\d+) kB$", path.read_text(encoding="utf-8"), re.MULTILINE))
        return f"{int(found['MemTotal']) / 1e6:.1f} GB, {int(found['MemAvailable']) / 1e6:.1f} GB free"
    except (OSError, KeyError):
        pass
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.1f} GB"
    except (AttributeError, ValueError, OSError):
        return "unknown"


def _look_at_software() -> Iterator[Finding]:
    missing = [name for name in _needed() if _version(name) is None]
    if missing:
        yield Finding(
            "software", "packages", f"missing: {', '.join(missing)}", "broken", "pip install clearhead"
        )
    try:
        import torch
    except Exception as error:  # loading a broken library can raise anything
        why = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        yield Finding("software", "torch", why, "broken", "pip install --force-reinstall torch")
    else:
        yield Finding("software", "torch", torch.__version__)
        yield from _look_at_devices()
    if has_site() and has_bundles():
        yield Finding("software", "page", "built")
    else:
        yield Finding(
            "software",
            "page",
            "not built: explore, publish and ch.show do not work",
            "missing",
            "reinstall with npm (Node.js 20.19 or newer) available and without CLEARHEAD_WITHOUT_PAGE",
        )


def _look_at_devices() -> Iterator[Finding]:
    import torch

    from clearhead.runtime.device import can_compile, has_fast_bfloat16, memory_of, pick_device

    best = pick_device()
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    if best.type == "cuda":
        message = f"cuda: {', '.join(names)}; {(memory_of(best) or 0) / 1e9:.0f} GB"
    else:
        message = "mps: Apple GPU" if best.type == "mps" else "cpu: neither CUDA nor MPS is available"
    speed = "fast" if has_fast_bfloat16(best) else "slow, so float32 is used"
    yield Finding("software", "device", f"{message}; bfloat16 is {speed}")
    yield _look_at_generation(best)
    if best.type == "cuda":
        yield from _look_at_models()
    if best.type == "cuda" and not can_compile(best):
        yield Finding(
            "software",
            "compiler",
            "no Triton, or no C compiler: training steps are not compiled for CUDA",
            "missing",
            "install gcc or clang, and pip install triton",
        )


def _look_at_generation(device: torch.device) -> Finding:
    """How a transformer generates text."""
    if device.type != "cuda":
        return Finding("software", "generation", "without CUDA graphs, which need a CUDA GPU")
    from clearhead.generate.cuda_decoder import cannot_run

    reason = cannot_run(device)
    if reason is None:
        return Finding(
            "software",
            "generation",
            "one CUDA graph per token; no graphs for penalties, logit_bias, constraints, log_probabilities, "
            "beams, shift, draft, edits and int8",
        )
    do = {"no C compiler": "install gcc or clang", "Triton is": "pip install triton"}
    remedy = next((what for start, what in do.items() if reason.startswith(start)), None)
    return Finding("software", "generation", f"slow, without CUDA graphs: {reason}", "missing", remedy)


def _look_at_models() -> Iterator[Finding]:
    """The models here that CUDA graphs do not support."""
    from clearhead.formats.listing import list_models
    from clearhead.formats.places import all_places
    from clearhead.generate.cuda_decoder import cannot_decode_config

    reasons = {each.name: cannot_decode_config(each.config) for each in list_models(all_places())}
    slow = [f"{name} ({reason})" for name, reason in reasons.items() if reason is not None]
    if slow:
        yield Finding("software", "no graphs for", "; ".join(slow))


def _needed() -> list[str]:
    """The packages that Clearhead requires; none if it is not installed."""
    try:
        asked = importlib.metadata.requires("clearhead") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [re.split(r"[^\w.-]", each)[0] for each in asked if "extra ==" not in each]


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _look_for(name: str) -> Finding:
    extra = EXTRAS[name]
    version = _version(extra.package) if is_installed(name) else None
    if version is not None:
        return Finding("extras", name, f"{extra.package} {version}, for {extra.purpose}")
    message = f"{extra.package} is not installed; needed for {extra.purpose}"
    return Finding("extras", name, message, "missing", f"pip install 'clearhead[{name}]'")


def _look_at_places() -> Iterator[Finding]:
    models = [name for name in name_models() if name not in NAMES]
    runs = [path for path in sorted(Path(RUNS).glob("*")) if (path / "run.json").is_file()]
    here = [name for name in models if Path(name).parts[0] == RUNS]
    yield _look_at_place("runs/", Path(RUNS), f"{plural(len(runs), 'run')}, {plural(len(here), 'model')}")
    home = files.home()
    yield _look_at_place("home", home, f"{home}; {plural(len(models) - len(here), 'model')}")


def _look_at_place(name: str, path: Path, message: str) -> Finding:
    there = next((each for each in (path.absolute(), *path.absolute().parents) if each.is_dir()), Path("/"))
    free = shutil.disk_usage(there).free
    message = f"{message}; {free / 1e9:.1f} GB of disk space free"
    if not os.access(there, os.W_OK):
        do = (
            "change to a folder that you can write to"
            if path == Path(RUNS)
            else "set CLEARHEAD_HOME to a folder that you can write to"
        )
        return Finding("places", name, f"{message}; {there} is not writable", "missing", do)
    if free < LITTLE_ROOM:
        return Finding("places", name, message, "missing", "free some space: a model may not fit")
    return Finding("places", name, message)
