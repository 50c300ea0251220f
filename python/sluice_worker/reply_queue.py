"""Replies to the tool calls of a script, queued until the cell process reads them."""

from __future__ import annotations

import socket
from collections import deque

from .connection import Connection
from .frames import Header, encode


class ReplyQueue:
    """Sends replies to a cell process without ever blocking the monitor.

    The cell process reads replies only while it waits for one. In the meantime it may itself be blocked on output that the
    monitor has yet to read, so a blocking send would deadlock.
    """

    def __init__(self, connection: Connection) -> None:
        self._socket = connection.sock.dup()  # a separate descriptor, so that it can be polled for writing only
        self._waiting: deque[memoryview] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def fileno(self) -> int:
        return self._socket.fileno()

    def put(self, header: Header, body: bytes) -> None:
        self._waiting.append(memoryview(encode(header, len(body)) + body))
        self.flush()

    def flush(self) -> None:
        """Send as much as the process takes now."""
        while self._waiting:
            try:
                sent = self._socket.send(self._waiting[0], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return
            except OSError:  # the process ended; the monitor reports that elsewhere
                self._waiting.clear()
                return
            left = self._waiting.popleft()[sent:]
            if left:
                self._waiting.appendleft(left)
