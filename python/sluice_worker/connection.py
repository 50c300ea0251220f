"""The connection between the monitor and a cell process: frames, with descriptors, over a socketpair."""

from __future__ import annotations

import array
import json
import os
import socket
import threading

from .frames import MAGIC, MAX_BODY_BYTES, MAX_FRAME_BYTES, PREFIX, ChannelClosed, Header, encode

MAX_FRAME_BYTES_FROM_MONITOR = 64 << 20
MAX_FDS = 200  # the kernel allows 253 in one message
LOST_CHANNEL = 70  # exit status of a cell process when user code closed the worker's own descriptors


class NotAFrame(Exception):
    """The bytes received are not a frame, so user code and not the worker wrote them."""


class Connection:
    """One end of the socketpair.

    Only a cell process accepts descriptors. In the monitor, descriptors that user code sends would pile up.
    """

    def __init__(self, fd: int, *, takes_fds: bool = False) -> None:
        self.ancillary_bytes = socket.CMSG_SPACE(4 * MAX_FDS) if takes_fds else 0
        self.max_frame_bytes = MAX_FRAME_BYTES_FROM_MONITOR if takes_fds else MAX_FRAME_BYTES
        self.sock = socket.socket(fileno=fd)
        self.buffer = bytearray()
        self.fds: list[int] = []
        self.sending = threading.Lock()  # threads of a cell may emit artifacts or call tools at the same time

    def fileno(self) -> int:
        return self.sock.fileno()

    def close(self) -> None:
        self.sock.close()

    def send(self, header: Header, body: bytes | memoryview = b"", fds: list[int] | None = None) -> None:
        """Send one frame. Blocks until the socket has taken all of it."""
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        with self.sending:
            self._write([encode(header, len(body)), body], ancillary)

    def send_content(self, header: Header, body: bytes, kind: str, ahead: dict[str, bytes] | None = None) -> None:
        """Send a frame whose body may be larger than a frame, and other contents ahead of it.

        Contents travel in `chunk` frames before the frame that they belong to. The last part of the body is in the frame itself.
        """
        last = max(0, len(body) - 1) // MAX_BODY_BYTES * MAX_BODY_BYTES
        chunks = [*(ahead or {}).items(), (kind, body[:last])] if last else list((ahead or {}).items())
        parts: list[bytes | memoryview] = []
        for name, content in chunks:
            view = memoryview(content)
            for at in range(0, len(view), MAX_BODY_BYTES):
                part = view[at : at + MAX_BODY_BYTES]
                parts += [encode({"type": "chunk", "of": name}, len(part)), part]
        rest = memoryview(body)[last:]
        with self.sending:
            self._write([*parts, encode(header, len(rest)), rest], [])

    def _write(self, parts: list[bytes | memoryview], ancillary: list[tuple[int, int, array.array[int]]]) -> None:
        try:
            sent = self.sock.sendmsg(parts, ancillary)
            if sent < sum(map(len, parts)):
                self.sock.sendall(memoryview(b"".join(parts))[sent:])
        except OSError:
            raise ChannelClosed from None

    def fill(self) -> bool:
        """Read what has arrived into the buffer. Returns False when the other side is closed."""
        try:
            data, ancillary, _, _ = self.sock.recvmsg(1 << 18, self.ancillary_bytes)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
                self.fds.extend(numbers)
        self.buffer += data
        return bool(data)

    def drain(self) -> None:
        """Read everything that has arrived, without waiting. From now on the connection does not block.

        A single read may return less: it ends at every message with descriptors.
        """
        self.sock.setblocking(False)
        drained = 0
        while drained < MAX_FRAME_BYTES_FROM_MONITOR:
            before = len(self.buffer)
            if not self.fill() or len(self.buffer) == before:
                return
            drained += len(self.buffer) - before

    def next_frame(self) -> tuple[Header, bytes] | None:
        """Take one complete frame out of the buffer, or return None when more has to be read first.

        Raises NotAFrame.
        """
        if len(self.buffer) < PREFIX.size:
            return None
        magic, head_bytes, body_bytes = PREFIX.unpack_from(self.buffer)
        size = PREFIX.size + head_bytes + body_bytes
        if magic != MAGIC:
            raise NotAFrame("it does not start with the magic number of a frame")
        if size > self.max_frame_bytes:
            raise NotAFrame(f"a frame of {size:,} bytes, at most {self.max_frame_bytes:,} are allowed")
        if len(self.buffer) < size:
            return None
        try:
            header = json.loads(bytes(self.buffer[PREFIX.size : PREFIX.size + head_bytes]))
        except (ValueError, RecursionError):
            raise NotAFrame("its header is not JSON") from None
        body = bytes(self.buffer[PREFIX.size + head_bytes : size])
        del self.buffer[:size]
        if not isinstance(header, dict) or not isinstance(header.get("type"), str):
            raise NotAFrame("its header has no type")
        return header, body

    def receive(self) -> tuple[Header, bytes]:
        """Wait for the next frame. Raises ChannelClosed."""
        while True:
            frame = self.next_frame()
            if frame is not None:
                return frame
            if not self.fill():
                raise ChannelClosed

    def take_fds(self) -> list[int]:
        fds, self.fds = self.fds, []
        return fds


def socketpair() -> tuple[int, int]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return ours.detach(), theirs.detach()


def close_all_but(keep: set[int]) -> None:
    """Close every descriptor of this process except 0, 1, 2 and `keep`."""
    lowest = 3
    for fd in sorted(keep):
        if fd >= lowest:
            os.closerange(lowest, fd)
            lowest = fd + 1
    os.closerange(lowest, os.sysconf("SC_OPEN_MAX"))
