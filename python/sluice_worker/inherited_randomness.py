"""Random values that are drawn once, when a program starts, and that all sandboxes of one zygote or memory image inherit."""

from __future__ import annotations

import ctypes
import multiprocessing
import os

AT_RANDOM, AT_RANDOM_BYTES = 25, 16


def renew_inherited_randomness() -> None:
    """Draw them again: the key of `multiprocessing`, and the bytes that the kernel passes to a program (AT_RANDOM).

    Addresses and the stack canary, which libc took from these bytes at the start, stay as they are: the stack in use has them.
    """
    multiprocessing.current_process().authkey = os.urandom(32)
    libc = ctypes.CDLL(None)
    libc.getauxval.restype = ctypes.c_ulong
    if address := libc.getauxval(AT_RANDOM):
        ctypes.memmove(address, os.urandom(AT_RANDOM_BYTES), AT_RANDOM_BYTES)
