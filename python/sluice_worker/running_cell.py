"""The cell or script that is running now, as the monitor tracks it."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from .connection import Connection
from .frames import Header, encode
from .state_processes import CellHandle


@dataclass
class RunningCell:
    """One running cell. `send` sends a frame to the host."""

    number: int
    rollback: str
    runner: CellHandle
    #: Scratch files changed since this time count as changed by the cell. It may be a little before the cell's start.
    changes_since: float
    send: Callable[[Header, bytes], None]
    #: The `done` frame of a cell that succeeded. It counts once the process reports that it is back from user code.
    answer: tuple[Header, bytes] | None = None
    #: Replies to the tool calls of a script; None for a cell.
    replies: ReplyQueue | None = None

    def forward_output(self, ready: set[int]) -> None:
        """Send what the cell printed to the streams that are ready to be read."""
        for stream in self.runner.streams:
            if stream.fd in ready:
                stream.forward(self._send_output)

    def finish_output(self) -> None:
        """Send the rest of the output."""
        for stream in self.runner.streams:
            stream.finish(self._send_output)

    def _send_output(self, header: Header, body: bytes) -> None:
        self.send({"type": "output", "cell": self.number, **header}, body)


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
