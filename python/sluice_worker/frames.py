"""Frames: a 12-byte prefix, a JSON header, a binary body. The same layout as src/sandbox/frame-channel.ts."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from typing import Any

MAGIC = 0x534C5501  # "SLU" and the version of the frame layout
PREFIX = struct.Struct(">III")
PART = 1 << 20
AHEAD = 64 << 10
Header = dict[str, Any]


class ChannelClosed(Exception):
    """The other side is gone."""


def encode(header: Header, body_bytes: int) -> bytes:
    """The prefix and header of a frame; the body follows as it is."""
    head = json.dumps(header, separators=(",", ":")).encode()
    return PREFIX.pack(MAGIC, len(head), body_bytes) + head


def write_frame(fd: int, header: Header, body: bytes | memoryview = b"") -> None:
    """Write one whole frame to a blocking descriptor."""
    head = encode(header, len(body))
    if len(body) < 65536:
        write_all(fd, head + bytes(body))
    else:
        write_all(fd, head)
        write_all(fd, body)


def write_all(fd: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        try:
            written = os.write(fd, view)
        except (BrokenPipeError, ConnectionResetError):
            raise ChannelClosed from None
        view = view[written:]


def read_exact(fd: int, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        parts.append(read_some(fd, min(size, PART)))
        size -= len(parts[-1])
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read_some(fd: int, most: int) -> bytes:
    try:
        part = os.read(fd, most)
    except ConnectionResetError:
        raise ChannelClosed from None
    if not part:
        raise ChannelClosed
    return part


def read_frame(fd: int) -> tuple[Header, bytes]:
    """The next frame, and not a byte more."""
    header, body_bytes = _read_head(lambda size: read_exact(fd, size))
    return header, read_exact(fd, body_bytes)


def _read_head(read: Callable[[int], bytes]) -> tuple[Header, int]:
    magic, head_bytes, body_bytes = PREFIX.unpack(read(PREFIX.size))
    if magic != MAGIC:
        raise ChannelClosed
    return json.loads(read(head_bytes)), body_bytes


class FrameReader:
    """Frames of a descriptor that nobody else reads. It reads ahead: a small frame is one call to the kernel, not three."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.ahead = bytearray()

    def read_head(self) -> tuple[Header, int]:
        """The header of the next frame and the size of the body that the caller has to read."""
        return _read_head(self.read)

    def read(self, size: int) -> bytes:
        while len(self.ahead) < size:
            self.ahead += read_some(self.fd, AHEAD)
        taken = bytes(self.ahead[:size])
        del self.ahead[:size]
        return taken

    def read_into(self, place: memoryview) -> None:
        """Without a copy of what was not read ahead."""
        at = min(len(self.ahead), len(place))
        place[:at] = self.read(at)
        while at < len(place):
            got = os.readv(self.fd, [place[at : at + PART]])
            if not got:
                raise ChannelClosed
            at += got
