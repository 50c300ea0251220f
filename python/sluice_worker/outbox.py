"""What the monitor has for a cell process that reads only when it wants to."""

from __future__ import annotations

import socket
from collections import deque

from .connection import Connection
from .frames import Header, encode


class Outbox:
    """Replies on their way to the cell process, which reads them only when it waits for one.

    The monitor must never block on them: the process may at that moment be blocked itself, on output that the monitor has yet to take.
    """

    def __init__(self, connection: Connection) -> None:
        self._socket = connection.sock.dup()  # a number of its own, to be polled for writing
        self._waiting: deque[memoryview] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def fileno(self) -> int:
        return self._socket.fileno()

    def put(self, header: Header, body: bytes) -> None:
        self._waiting.append(memoryview(encode(header, len(body)) + body))
        self.flush()

    def flush(self) -> None:
        """Hand over what the process takes now."""
        while self._waiting:
            try:
                sent = self._socket.send(self._waiting[0], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return
            except OSError:  # it ended; who waits for it says how
                self._waiting.clear()
                return
            left = self._waiting.popleft()[sent:]
            if left:
                self._waiting.appendleft(left)
