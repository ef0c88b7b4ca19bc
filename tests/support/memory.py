"""Settings of the C library's allocator, which keep workers small."""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Names of options in glibc's ``malloc.h``."""


def return_large_blocks() -> None:
    """Return the memory of files, images and bodies to the system as soon as they are freed.

    By default, glibc takes larger and larger blocks from its heap, whose end is seldom free. Each
    of 16 arenas for threads has a heap of its own.
    """
    if sys.platform != "linux" or not hasattr(library := ctypes.CDLL(None), "mallopt"):
        return
    library.mallopt(_MMAP_THRESHOLD, 2**20)
    library.mallopt(_TRIM_THRESHOLD, 2**23)
    library.mallopt(_ARENA_MAX, 2)
