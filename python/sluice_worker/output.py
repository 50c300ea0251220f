"""The output of the running cell: what goes out live, what is kept for the end, what is missing in between."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Stream:
    """One of stdout and stderr of the running cell: the first half of its budget goes out live, of the rest the last half is kept."""

    name: str
    fd: int
    closed: bool = False
    live: int = 0
    tail_bytes: int = 0
    tail: bytearray = field(default_factory=bytearray)
    omitted: int = 0

    def begin(self, budget: int) -> None:
        self.live = budget // 2
        self.tail_bytes = budget - self.live
        self.tail = bytearray()
        self.omitted = 0

    def take(self, data: bytes) -> bytes:
        """What of `data` goes out now."""
        now, rest = data[: self.live], data[self.live :]
        self.live -= len(now)
        if rest:
            self.tail += rest
            if len(self.tail) > 2 * self.tail_bytes + 65536:
                self._trim()
        return now

    def _trim(self) -> None:
        excess = len(self.tail) - self.tail_bytes
        if excess > 0:
            del self.tail[:excess]
            self.omitted += excess

    def finish(self) -> bytes:
        self._trim()
        return bytes(self.tail)
