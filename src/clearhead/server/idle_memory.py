"""Memory that requests have freed, returned to the system.

After a burst of requests, the C library keeps the memory they have freed, in fragments between blocks that are still
in use. Objects kept alive only by reference cycles, such as the frames of an exception, are not freed for a long time,
because Python collects old objects only when their number has grown by a quarter.
"""

from __future__ import annotations

import ctypes
import gc
import sys


def return_memory() -> None:
    """Collect garbage and, with glibc, return free memory to the system; other C libraries cannot do this."""
    gc.collect()
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
