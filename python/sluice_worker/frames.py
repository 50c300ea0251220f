"""Frames: a 12-byte prefix, a JSON header, a binary body. The host reads and writes the same layout (src/sandbox/frame-channel.ts)."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from typing import Any

MAGIC = 0x534C5501  # "SLU" and the version of the frame layout
PREFIX = struct.Struct(">III")
#: Of a frame from the sandbox, as the host enforces it. Larger contents travel in chunks (Connection.send_content).
MAX_FRAME_BYTES = 1 << 20
MAX_HEADER_BYTES = 256 << 10
MAX_BODY_BYTES = MAX_FRAME_BYTES - MAX_HEADER_BYTES - PREFIX.size
MAX_READ_BYTES = 1 << 20
READ_AHEAD_BYTES = 64 << 10
Header = dict[str, Any]


class ChannelClosed(Exception):
    """The other side closed the channel."""


def encode(header: Header, body_bytes: int) -> bytes:
    """The bytes of a frame up to its body."""
    head = json.dumps(header, separators=(",", ":")).encode()
    return PREFIX.pack(MAGIC, len(head), body_bytes) + head


def write_frame(fd: int, header: Header, body: bytes | memoryview = b"") -> None:
    """Write one frame to a blocking descriptor. Raises ChannelClosed."""
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
        parts.append(read_some(fd, min(size, MAX_READ_BYTES)))
        size -= len(parts[-1])
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read_some(fd: int, max_bytes: int) -> bytes:
    try:
        part = os.read(fd, max_bytes)
    except ConnectionResetError:
        raise ChannelClosed from None
    if not part:
        raise ChannelClosed
    return part


def read_frame(fd: int) -> tuple[Header, bytes]:
    """Read the next frame and nothing beyond it."""
    header, body_bytes = _read_head(lambda size: read_exact(fd, size))
    return header, read_exact(fd, body_bytes)


def _read_head(read: Callable[[int], bytes]) -> tuple[Header, int]:
    magic, head_bytes, body_bytes = PREFIX.unpack(read(PREFIX.size))
    if magic != MAGIC:
        raise ChannelClosed
    return json.loads(read(head_bytes)), body_bytes


class FrameReader:
    """Reads frames from a descriptor that nothing else reads.

    It reads ahead, so that a small frame takes one system call instead of three.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.ahead = bytearray()

    def read_head(self) -> tuple[Header, int]:
        """The header of the next frame, and the size of its body, which the caller has to read."""
        return _read_head(self.read)

    def read(self, size: int) -> bytes:
        while len(self.ahead) < size:
            self.ahead += read_some(self.fd, READ_AHEAD_BYTES)
        taken = bytes(self.ahead[:size])
        del self.ahead[:size]
        return taken

    def read_into(self, buffer: memoryview) -> None:
        """Fill the buffer. Only what was read ahead is copied."""
        at = min(len(self.ahead), len(buffer))
        buffer[:at] = self.read(at)
        while at < len(buffer):
            got = os.readv(self.fd, [buffer[at : at + MAX_READ_BYTES]])
            if not got:
                raise ChannelClosed
            at += got
