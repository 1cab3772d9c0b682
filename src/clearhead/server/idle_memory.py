"""Memory that requests have freed, returned to the system.

After a burst of requests, the C library keeps what they have freed, in pieces between what is still in use. Objects
that only reference cycles keep alive, such as the frames of an error, are not freed for a long time, because Python
collects old objects only when there are a quarter more of them.
"""

from __future__ import annotations

import ctypes
import gc
import sys


def return_memory() -> None:
    """Collect garbage, and return free memory to the system with glibc; other C libraries have no function for it."""
    gc.collect()
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
