"""The standard streams of a cell process: output goes to the monitor's pipes, and there is no input."""

from __future__ import annotations

import fcntl
import io
import os
import sys
from typing import NoReturn

USE_INPUTS = "Use the bound inputs, or assign the value in code."


def take_over(stdout_fd: int, stderr_fd: int) -> None:
    """Make the two pipes descriptors 1 and 2, with fresh streams over them, and /dev/null descriptor 0."""
    null = os.open("/dev/null", os.O_RDONLY)
    for fd, number in ((null, 0), (stdout_fd, 1), (stderr_fd, 2)):
        if fd != number:
            os.dup2(fd, number)
            os.close(fd)
    sys.stdin = NoStdin()
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = _open_text(number)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def move_above_standard(fd: int) -> int:
    """Return a descriptor above 2 for the same file.

    If user code closed 0, 1 or 2, new descriptors get those numbers and `take_over` would overwrite them.
    """
    if fd > 2:
        return fd
    higher = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return higher


def flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # user code closed or replaced it
            pass


class NoStdin(io.TextIOBase):
    """The standard input of a cell. Reading from it raises instead of blocking."""

    def _refuse(self, *_: object) -> NoReturn:
        raise RuntimeError(f"a cell has no standard input. {USE_INPUTS}")

    read = readline = readlines = __next__ = _refuse

    def readable(self) -> bool:
        return True


def refuse_input(prompt: object = "") -> NoReturn:
    """The builtin `input` of a cell."""
    raise RuntimeError(f"input({str(prompt)!r}) does not work: a cell has no standard input. {USE_INPUTS}")


def _open_text(fd: int) -> io.TextIOWrapper:
    raw = open(fd, "wb", buffering=0, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(
        io.BufferedWriter(raw, 1 << 16), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )
