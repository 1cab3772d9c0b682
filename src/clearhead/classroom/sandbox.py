"""Limits on the process that runs a submission, set by the operating system.

`limit` bounds time, memory, file sizes and processes. `confine` (Linux, with Landlock) blocks access to files and
TCP, except for what Python and the model need. `end_children` kills the processes that a submission left behind.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on all architectures
PATH_BENEATH, VERSION = 1, 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
FILE_RIGHTS = {1: 2**13 - 1, 2: 2**14 - 1, 3: 2**15 - 1, 4: 2**15 - 1}  # by version of Landlock's ABI
NEWEST_FILE_RIGHTS = 2**16 - 1
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | 2**14 | 2**15  # what a rule on a file, not a folder, may grant
TCP, SCOPES = 3, 3  # bind and connect; abstract sockets and signals

SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc", "/proc/self", "/nix/store")
MACHINE = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
MOST_FILE_BYTES = 64 * 2**20
MOST_OPEN_FILES = 256


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


class RulesetAttributes(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class PathRule(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def landlock_version() -> int:
    """The kernel's version of Landlock; 0 if it has none."""
    if sys.platform != "linux":
        return 0
    return max(0, _libc().syscall(CREATE_RULESET, None, 0, VERSION))


def adopt_orphans() -> None:
    """Make this process the parent of all processes that its descendants leave behind (Linux)."""
    if sys.platform == "linux":
        _libc().prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_children() -> None:
    """Kill all children; those of a killed child are adopted, and killed in turn."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while True:
        with suppress(OSError):
            for pid in children.read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def limit(seconds: int, memory: int) -> None:
    """Limit CPU time, memory in bytes, file sizes and open files, and forbid new processes and threads."""
    if sys.platform == "win32":
        return
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing beyond the limit raises an OSError instead
    limits = {
        resource.RLIMIT_CPU: (seconds, seconds + 1),  # SIGXCPU, then SIGKILL
        resource.RLIMIT_AS: (memory, memory),
        resource.RLIMIT_FSIZE: (MOST_FILE_BYTES, MOST_FILE_BYTES),
        resource.RLIMIT_NOFILE: (MOST_OPEN_FILES, MOST_OPEN_FILES),
        resource.RLIMIT_NPROC: (0, 0),
        resource.RLIMIT_CORE: (0, 0),
    }
    for kind, most in limits.items():
        with suppress(ValueError, OSError):  # macOS does not support all of them
            resource.setrlimit(kind, most)


def confine(own: Path, hidden: list[Path]) -> bool:
    """Deny access to all files but the system's and Python's (read-only) and the folder `own`.

    Nothing in `hidden` can be read. Returns whether the kernel supports this.
    """
    version = landlock_version()
    if version == 0:
        return False
    libc, rights = _libc(), FILE_RIGHTS.get(version, NEWEST_FILE_RIGHTS)
    attributes = RulesetAttributes(rights, TCP if version >= 4 else 0, SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = libc.syscall(CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return False

    def allow(path: Path, granted: int) -> None:
        with suppress(OSError):
            handle = os.open(path, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
            usable = granted & rights & (~0 if path.is_dir() else ON_FILES)
            rule = PathRule(usable, handle)
            libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(rule), 0)
            os.close(handle)

    def allow_reading(path: Path) -> None:
        """Allow reading all files in a folder except those in `hidden`, whose names can still be listed."""
        if path in hidden:
            return
        if any(path in each.parents for each in hidden):
            allow(path, READ_DIR)
            for each in path.iterdir():
                allow_reading(each)
        else:
            allow(path, READ_FILE | READ_DIR | EXECUTE)

    for path in _readable():
        allow_reading(path)
    for device in DEVICES:
        allow(Path(device), READ_FILE | WRITE_FILE)
    allow(own, rights & ~EXECUTE)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    restricted = libc.syscall(RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return bool(restricted)


def _readable() -> Iterable[Path]:
    """The system's and Python's own folders, and those that modules are imported from."""
    given = [*SYSTEM, *MACHINE, sys.prefix, sys.base_prefix, *sys.path]
    return {Path(path).resolve() for path in given if path and Path(path).exists()}
