"""The standard output and error of a running cell, cut to a budget."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from .frames import MAX_BODY_BYTES, Header

MAX_DRAIN_BYTES = 16 << 20

#: Sends one `output` frame: the fields of its header beyond `type` and `cell`, and its body.
SendOutput = Callable[[Header, bytes], None]


@dataclass
class OutputStream:
    """Either stdout or stderr of a cell process.

    The first half of the budget is sent live. Of the rest, the last half of the budget is kept and sent when the cell ends;
    what lies in between is counted as omitted.
    """

    name: str
    fd: int
    closed: bool = False
    live_bytes_left: int = 0
    tail_bytes: int = 0
    tail: bytearray = field(default_factory=bytearray)
    omitted: int = 0

    def begin(self, budget: int) -> None:
        """Start over for a new cell."""
        self.live_bytes_left = budget // 2
        self.tail_bytes = budget - self.live_bytes_left
        self.tail = bytearray()
        self.omitted = 0

    def forward(self, send: SendOutput) -> int:
        """Read once from the pipe and send the part that goes out live. Returns the number of bytes read."""
        try:
            data = os.read(self.fd, 1 << 18)
        except BlockingIOError:
            return 0
        if not data:  # the process ended or closed its end; polling the pipe again would spin
            self.closed = True
            return 0
        live = self._take_live(data)
        if live:
            send({"stream": self.name}, live)
        return len(data)

    def finish(self, send: SendOutput) -> None:
        """Read what is left in the pipe, then send the kept tail and the number of omitted bytes."""
        drained = 0
        while drained < MAX_DRAIN_BYTES and (got := self.forward(send)):
            drained += got
        self._trim()
        if self.tail or self.omitted:
            send({"stream": self.name, "omittedBytes": self.omitted}, bytes(self.tail[:MAX_BODY_BYTES]))
        for at in range(MAX_BODY_BYTES, len(self.tail), MAX_BODY_BYTES):
            send({"stream": self.name}, bytes(self.tail[at : at + MAX_BODY_BYTES]))

    def _take_live(self, data: bytes) -> bytes:
        live, rest = data[: self.live_bytes_left], data[self.live_bytes_left :]
        self.live_bytes_left -= len(live)
        if rest:
            self.tail += rest
            if len(self.tail) > 2 * self.tail_bytes + 65536:
                self._trim()
        return live

    def _trim(self) -> None:
        excess = len(self.tail) - self.tail_bytes
        if excess > 0:
            del self.tail[:excess]
            self.omitted += excess
