"""The inputs of a sandbox, as the monitor keeps them: they outlive failed cells, and the host sends each one once."""

from __future__ import annotations

import mmap
import os
from typing import Any, NamedTuple

from .connection import MAX_FDS
from .frames import FrameReader, Header
from .state_processes import CellHandle


class StoredInput(NamedTuple):
    """The bytes of one input, in a memory file."""

    format: str
    fd: int
    size: int
    options: dict[str, Any]
    """How to read it, if the caller said so."""


class InputStore:
    """Inputs by alias."""

    def __init__(self) -> None:
        self._inputs: dict[str, StoredInput] = {}

    def receive(self, header: Header, size: int, host: FrameReader) -> str:
        """Read the body of an `input` frame and keep it, replacing an earlier input of that alias. Returns the alias."""
        alias: str = header["alias"]
        fd = os.memfd_create(f"input-{alias}", os.MFD_CLOEXEC)
        if size:
            os.ftruncate(fd, size)
            with mmap.mmap(fd, size) as file, memoryview(file) as view:
                host.read_into(view)
        if alias in self._inputs:
            os.close(self._inputs[alias].fd)
        options: dict[str, Any] = {name: header[name] for name in ("reader", "readerExample") if name in header}
        self._inputs[alias] = StoredInput(header["format"], fd, size, options)
        return alias

    def send_missing(self, process: CellHandle) -> None:
        """Send a cell process the descriptors of all inputs that it does not have yet."""
        missing = [alias for alias in self._inputs if alias not in process.known_inputs]
        for start in range(0, len(missing), MAX_FDS):
            group = [(alias, self._inputs[alias]) for alias in missing[start : start + MAX_FDS]]
            described = [
                {"alias": alias, "format": stored.format, "bytes": stored.size, **stored.options}
                for alias, stored in group
            ]
            process.connection.send({"type": "inputs", "inputs": described}, fds=[stored.fd for _, stored in group])
        process.known_inputs.update(missing)
