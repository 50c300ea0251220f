"""The cell processes of a sandbox and the state that each one holds.

The *head* holds the committed variables. A *spare*, forked from the head, runs the next cell. When that cell is committed,
the spare becomes the head, and the old head stays as *previous* for one undo. When it fails, the head forks another spare.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from . import cell_process
from .connection import Connection, NotAFrame, socketpair
from .frames import ChannelClosed, Header
from .output import OutputStream

SPAWN_TIMEOUT_S = 20.0


class StateLost(Exception):
    """The process that holds the variables ended or can no longer be trusted. The sandbox is lost with it."""


@dataclass
class CellHandle:
    """A cell process as the monitor sees it."""

    pid: int
    connection: Connection
    streams: list[OutputStream]
    known_inputs: set[str]
    disconnected: bool = False

    def kill(self) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def close(self) -> None:
        """Close our ends of its descriptors. Does not end the process."""
        self.connection.close()
        for stream in self.streams:
            os.close(stream.fd)


class StateProcesses:
    """Forks, commits and ends cell processes. `on_frame` is called with every frame that one of them sends."""

    def __init__(
        self, import_stack: Callable[[], None] | None, on_frame: Callable[[CellHandle, Header, bytes], None]
    ) -> None:
        self._on_frame = on_frame
        self.rehearse = False
        self.spare: CellHandle | None = None
        self.retired: CellHandle | None = None  # a discarded spare, until the head reports that it ended
        self.previous: CellHandle | None = None  # the state before the last committed cell
        self.head_waits = False  # the head is blocked until its spare ends
        self._killed: set[int] = set()  # killed by us and not reaped yet
        self.head = self._fork_first(import_stack)

    def _fork_first(self, import_stack: Callable[[], None] | None) -> CellHandle:
        its_fds, streams, ours = _create_endpoints()
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if import_stack is not None:
                import_stack()
            cell_process.main(*its_fds, announce=import_stack is not None)
        for fd in its_fds:
            os.close(fd)
        return CellHandle(pid, Connection(ours), streams, set())

    def await_import(self) -> None:
        """Wait until the first cell process has imported the stack."""
        try:
            self.head.connection.receive()
        except ChannelClosed:
            raise StateLost("the stack could not be imported") from None

    def protected_pids(self) -> set[int]:
        """Processes that a cell did not leave behind: ours, and those that we killed already."""
        return {1, self.head.pid} | self._killed | ({self.previous.pid} if self.previous else set())

    def forget_input(self, alias: str) -> None:
        """Have the input sent again before the next cell, because its bytes were replaced."""
        for process in (self.head, self.spare, self.previous):
            if process is not None:
                process.known_inputs.discard(alias)

    # State

    def can_spawn(self) -> bool:
        """Whether there is no spare, and the head can fork one without being waited for."""
        return self.spare is None and not self.head_waits

    def await_retired(self) -> None:
        """Wait until a discarded spare has ended. Its children are children of process 1 then."""
        deadline = time.monotonic() + SPAWN_TIMEOUT_S
        while self.head_waits:
            self._await_head(deadline)

    def spawn_spare(self) -> None:
        """Have the head fork a spare, and wait for it. Raises StateLost when the head does not answer."""
        self.await_retired()
        deadline = time.monotonic() + SPAWN_TIMEOUT_S
        its_fds, streams, ours = _create_endpoints()
        self.head.connection.send({"type": "spawn", "rehearse": self.rehearse}, fds=list(its_fds))
        for fd in its_fds:
            os.close(fd)
        while (pid := self._next_spawned_pid()) is None:
            self._await_head(deadline)
        self.spare = CellHandle(pid, Connection(ours), streams, set(self.head.known_inputs))
        self.head_waits = True

    def commit_spare(self) -> None:
        """Make the spare's state the committed one. The old head stays as the state to go back to."""
        assert self.spare is not None
        self._drop_previous()
        self.previous, self.head, self.spare = self.head, self.spare, None
        self.head_waits = False

    def retire_spare(self) -> None:
        """Discard the spare. It counts as retired until the head reports that it ended."""
        self.retired, self.spare = self.spare, None

    def stop_threads(self) -> None:
        """Replace the head by a fork of itself. A fork keeps only the thread that forked, so threads of a finished cell stop.

        The earlier state can no longer be restored.
        """
        self.spawn_spare()
        self.commit_spare()
        self._drop_previous()

    def undo(self) -> bool:
        """Go back to the state before the last committed cell. Returns False when that state is not kept any more."""
        if self.previous is None:
            return False
        if self.spare is not None:
            self._end(self.spare)
            self.spare = None
        self.head.kill()
        self.retired, self.head, self.previous = self.head, self.previous, None
        self.head_waits = True
        return True

    def reaped(self, pid: int) -> None:
        """Note that a process was waited for: its number may soon belong to another process."""
        self._killed.discard(pid)
        if self.previous is not None and pid == self.previous.pid:  # user code killed it
            self.previous.close()
            self.previous = None

    def _drop_previous(self) -> None:
        if self.previous is not None:
            self._end(self.previous)
            self.previous = None

    def _end(self, process: CellHandle) -> None:
        process.kill()
        self._killed.add(process.pid)
        process.close()

    # Frames

    def read_frames(self, process: CellHandle) -> None:
        """Read from a process that has sent something, and pass its frames on. Kills it when its connection is closed."""
        if process.connection.fill():
            self._dispatch_buffered(process)
        else:  # it ended, or user code closed the descriptor: either way it can no longer be used
            process.kill()
            process.disconnected = True

    def drain_frames(self, process: CellHandle) -> None:
        """Pass on the frames that a process sent just before it ended."""
        process.connection.drain()
        self._dispatch_buffered(process)

    def _dispatch_buffered(self, process: CellHandle) -> None:
        """Pass on every complete frame."""
        while (frame := _next_frame(process)) is not None:
            self._on_frame(process, *frame)

    def _next_spawned_pid(self) -> int | None:
        while (frame := _next_frame(self.head)) is not None:
            pid = frame[0].get("pid")
            if frame[0]["type"] == "spawned" and type(pid) is int and pid > 1:
                return pid
            self._on_frame(self.head, *frame)
        return None

    def _await_head(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        poll = select.poll()
        poll.register(self.head.connection.fileno(), select.POLLIN)
        if left <= 0 or not poll.poll(left * 1000):
            raise StateLost(f"the process that holds the variables did not answer within {SPAWN_TIMEOUT_S:g} s")
        if not self.head.connection.fill():
            raise StateLost("the process that held the variables ended")
        if self.head_waits:
            self._dispatch_buffered(self.head)


def _next_frame(process: CellHandle) -> tuple[Header, bytes] | None:
    try:
        return process.connection.next_frame()
    except NotAFrame as error:
        raise StateLost(f"user code wrote to the worker's own descriptor ({error})") from None


def _create_endpoints() -> tuple[tuple[int, int, int], list[OutputStream], int]:
    """Descriptors for a new cell process: its connection, stdout and stderr; our two streams; our end of the connection."""
    ours, theirs = socketpair()
    out_read, out_write = os.pipe2(os.O_CLOEXEC)
    err_read, err_write = os.pipe2(os.O_CLOEXEC)
    for fd in (out_read, err_read):
        os.set_blocking(fd, False)
    return (theirs, out_write, err_write), [OutputStream("stdout", out_read), OutputStream("stderr", err_read)], ours
