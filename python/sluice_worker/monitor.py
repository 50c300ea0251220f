"""The monitor: process 1 of a sandbox. It never runs user code.

It holds the channel to the host, keeps inputs, pumps the output of the running cell, relays whole frames, and ends cells.
The variables live in cell processes (cell.py): the *head* holds the committed state; a *spare*, forked from the head, runs the next
cell. When the spare succeeds it becomes the head and the old head is ended; when it fails, the head forks another one.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from . import cell, stack
from .connection import MAX_FDS, Connection, NotAFrame, socketpair
from .frames import ChannelClosed, FrameReader, Header, write_frame
from .outbox import Outbox
from .output import Stream
from .processes import StillThere, count_threads, kill_others
from .scratch import IMAGES, changed_since

PR_SET_DUMPABLE = 4
DRAIN_BYTES = 16 << 20
SPAWN_TIMEOUT_S = 20.0


class HeadLost(Exception):
    """The process that holds the variables is gone, or cannot be trusted with them any more; so is the sandbox."""


def serve(channel_in: int, channel_out: int, import_stack: Callable[[], None] | None = None) -> NoReturn:
    """Serve the host until it goes away. Never returns.

    With `import_stack` the first cell process imports the stack by itself, and the host is told when it has. The monitor then stays small and shares no memory
    with it, which matters under gVisor: it copies up to 2 MB around every page that is written after a fork.
    """
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.makedirs(IMAGES, exist_ok=True)
    status = 0
    try:
        if os.getpid() != 1:
            raise RuntimeError("it ends every process that it sees, so it must be process 1 of a namespace of its own")
        if import_stack is not None:
            stack.keep_freed_memory()
        monitor = Monitor(channel_in, channel_out, import_stack)
        if import_stack is not None:
            monitor.await_import()
        monitor.loop()
    except ChannelClosed:
        pass
    except StillThere:
        status = 3
        _tell_last(channel_out, {"type": "lost", "detail": "processes that the cell left behind could not be ended"})
    except HeadLost as error:
        status = 3
        _tell_last(channel_out, {"type": "lost", "detail": str(error)})
    except BaseException as error:
        status = 4
        _tell_last(channel_out, {"type": "lost", "detail": f"the worker failed: {type(error).__name__}: {error}"})
    os._exit(status)


def _tell_last(channel_out: int, header: Header) -> None:
    try:
        write_frame(channel_out, header)
    except (ChannelClosed, OSError):
        pass


@dataclass
class Cell:
    """A cell process as the monitor sees it."""

    pid: int
    connection: Connection
    streams: list[Stream]
    known: set[str]
    silent: bool = False

    def close(self) -> None:
        self.connection.close()
        for stream in self.streams:
            os.close(stream.fd)


@dataclass
class Running:
    """The cell that is being run now."""

    number: int
    rollback: str
    runner: Cell
    started: float  # no later than that
    answer: tuple[Header, bytes] | None = None  # that it succeeded; counts once the process is back from user code
    replies: Outbox | None = None  # of a script, and of nothing else: what its tool calls came to


class Monitor:
    def __init__(self, channel_in: int, channel_out: int, import_stack: Callable[[], None] | None = None) -> None:
        self.host = FrameReader(channel_in)
        self.channel_out = channel_out
        self.inputs: dict[str, tuple[str, int, int]] = {}
        self.idle_since = 0.0
        self.keep_spare = False
        self.rehearse = False
        self.running: Running | None = None
        self.spare: Cell | None = None
        self.retired: Cell | None = None  # a spare whose cell failed, until the head says that it ended
        self.undecided: bool | None = (
            None  # a spare's cell succeeded, the host has not said yet whether it counts; whether it left threads
        )
        self.head_waits = False  # the head is blocked until its spare ends
        self.ready: set[int] = set()  # descriptors that had something to read in this round
        self.previous: Cell | None = None  # what the head forked from: the state before the last cell that counted
        self.doomed: set[int] = (
            set()
        )  # old heads that were ended by us and are not reaped yet; no cell left them behind
        self.head = self._first(import_stack)

    def _first(self, import_stack: Callable[[], None] | None) -> Cell:
        ends, streams, ours = _endpoints()
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if import_stack is not None:
                import_stack()
            cell.main(*ends, announce=import_stack is not None)
        for fd in ends:
            os.close(fd)
        return Cell(pid, Connection(ours), streams, set())

    def await_import(self) -> None:
        try:
            self.head.connection.receive()
        except ChannelClosed:
            raise HeadLost("the stack could not be imported") from None
        self._tell({"type": "imported"})

    # The loop

    def loop(self) -> NoReturn:
        child_ended, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        while True:
            poll = select.poll()
            poll.register(self.host.fd, select.POLLIN)
            poll.register(child_ended, select.POLLIN)
            for process in (self.head, self.spare):
                if process is not None and not process.silent:
                    poll.register(process.connection.fileno(), select.POLLIN)
            if self.running is not None:
                for stream in self.running.runner.streams:
                    if not stream.closed:
                        poll.register(stream.fd, select.POLLIN)
                if self.running.replies:
                    poll.register(self.running.replies.fileno(), select.POLLOUT)
            self.ready = ready = {fd for fd, _ in poll.poll(0 if self.host.ahead else None)}
            if child_ended in ready:
                os.read(child_ended, 4096)
                self._reap()
            self._pump(ready)
            if self.running is not None and self.running.replies:
                self.running.replies.flush()
            for process in (self.spare, self.head):
                if process is not None and process.connection.fileno() in ready:
                    self._hear(process)
            if self.host.ahead or self.host.fd in ready:
                self._obey()
            if self.running is None and self.keep_spare and self.spare is None and not self.head_waits:
                self._spawn()

    def _reap(self) -> None:
        """Collect what ended. As process 1 we are the parent of every orphan, and of the head once its own parent was ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.doomed.discard(pid)
            if (
                self.previous is not None and pid == self.previous.pid
            ):  # user code ended it; its number may be another's soon
                self.previous.close()
                self.previous = None
            if pid == self.head.pid:
                self._head_ended(status)

    def _head_ended(self, status: int) -> None:
        self._drain_frames(self.head)
        running = self.running
        if running is not None and running.runner is self.head:
            self._ended(cell.describe_status(status))
        raise HeadLost(f"the process that held the variables ended ({_words(status)})")

    def _drain_frames(self, process: Cell) -> None:
        """A process that ended may have sent its last frames just before."""
        process.connection.sock.setblocking(False)
        while process.connection.fill() and len(process.connection.buffer) and self._hear_buffered(process):
            pass

    # From the host

    def _obey(self) -> None:
        header, body_bytes = self.host.read_head()
        kind = header["type"]
        if kind == "input":
            self._keep_input(header, body_bytes)
            return
        body = self.host.read(body_bytes)
        if kind == "hello":
            self.idle_since = time.time()
            self.keep_spare = header["spare"]
            if "rlimits" in header:
                self.head.connection.send({"type": "rlimits", "rlimits": header["rlimits"]})
            if self.keep_spare and self.spare is None:
                self._spawn()
            self._tell({"type": "ready", "nonce": header["nonce"], "python": ".".join(map(str, sys.version_info[:3]))})
        elif kind in ("cell", "script"):
            self._start(header, body)
        elif kind == "reply":
            if self.running is not None and self.running.replies is not None:
                self.running.replies.put(header, body)
        elif kind in ("commit", "rollback"):
            self._decide(keep=kind == "commit")
        elif kind == "undo":
            self._undo()
        elif kind == "interrupt":
            if self.running is not None and self.running.number == header["cell"]:
                self._interrupt(self.running)
        elif kind == "spare":
            self.keep_spare = self.rehearse = True
        elif kind == "warm":
            self.head.connection.send({"type": "warm"})
        else:
            raise RuntimeError(f"the host sent a frame of unknown type {kind!r}")

    def _keep_input(self, header: Header, body_bytes: int) -> None:
        """Inputs stay with the monitor, so they outlive failed cells and are shipped once."""
        alias = header["alias"]
        fd = os.memfd_create(f"input-{alias}", os.MFD_CLOEXEC)
        if body_bytes:
            os.ftruncate(fd, body_bytes)
            with mmap.mmap(fd, body_bytes) as store, memoryview(store) as view:
                self.host.read_into(view)
        if alias in self.inputs:
            os.close(self.inputs[alias][1])
            for process in (self.head, self.spare, self.previous):
                if process is not None:
                    process.known.discard(alias)
        self.inputs[alias] = (header["format"], fd, body_bytes)
        self._tell({"type": "input-ok", "alias": alias})

    def _start(self, header: Header, code: bytes) -> None:
        fork = header["rollback"] == "fork"
        if fork and self.spare is None:
            self._spawn()
        runner = self.spare or self.head
        limits = header["limits"]
        for stream, budget in zip(runner.streams, (limits["stdoutBytes"], limits["stderrBytes"]), strict=True):
            stream.begin(budget)
        self._give_inputs(runner)
        replies = Outbox(runner.connection) if header["type"] == "script" else None
        self.running = Running(header["cell"], header["rollback"], runner, self.idle_since, replies=replies)
        runner.connection.send(header, code)

    def _give_inputs(self, runner: Cell) -> None:
        fresh = [alias for alias in self.inputs if alias not in runner.known]
        for start in range(0, len(fresh), MAX_FDS):
            group = fresh[start : start + MAX_FDS]
            described = [
                {"alias": alias, "format": self.inputs[alias][0], "bytes": self.inputs[alias][2]} for alias in group
            ]
            runner.connection.send(
                {"type": "inputs", "inputs": described}, fds=[self.inputs[alias][1] for alias in group]
            )
        runner.known.update(fresh)

    def _interrupt(self, running: Running) -> None:
        """End the running cell and all it started. Its end is reported by who waits for it."""
        kill_others(self._keepers() - {running.runner.pid})

    # From cell processes

    def _hear(self, process: Cell) -> None:
        if not process.connection.fill():
            self._kill(process)  # it ended, or user code took the descriptor away: either way it is over
            process.silent = True
            return
        self._hear_buffered(process)

    def _hear_buffered(self, process: Cell) -> bool:
        heard = False
        while (frame := self._next_frame(process)) is not None:
            heard = True
            self._on_frame(process, *frame)
        return heard

    def _next_frame(self, process: Cell) -> tuple[Header, bytes] | None:
        try:
            return process.connection.next_frame()
        except NotAFrame as error:
            raise HeadLost(f"user code wrote to the worker's own descriptor ({error})") from None

    def _on_frame(self, process: Cell, header: Header, body: bytes) -> None:
        kind = header["type"]
        if process is self.head and self.head_waits and kind == "exited":
            self._spare_ended(header)
        elif kind == "warmed" and process is self.head and self.running is None:
            self._tell({"type": "warmed"})
        elif self._runs(process) and kind == "done":
            self._answered(process, header, body)
        elif self._runs(process) and kind == "artifact":
            self._tell(header, body)  # the host judges what is in it
        elif self._runs_script(process) and kind == "call":
            self._tell(header, body)
        elif kind == "back" and (answer := self._answer_of(process)) is not None:
            self._done(*answer)
        else:  # made up by user code: what else it says cannot be believed, nor what it did meanwhile
            raise HeadLost(f"user code sent a frame of type {kind[:60]!r} out of its place")

    def _runs(self, process: Cell) -> bool:
        return self.running is not None and process is self.running.runner and self.running.answer is None

    def _runs_script(self, process: Cell) -> bool:
        return self._runs(process) and self.running is not None and self.running.replies is not None

    def _answer_of(self, process: Cell) -> tuple[Header, bytes] | None:
        return self.running.answer if self.running is not None and process is self.running.runner else None

    def _answered(self, process: Cell, header: Header, body: bytes) -> None:
        """User code can say `done` for itself and run on. Until the process says that it is back the cell runs, and its time with it."""
        running = self.running
        assert running is not None
        header["processes"] = kill_others(self._keepers() | {process.pid})  # while the process is on its way back
        if header.get("status") == "ok" and running.replies is None:  # after a script nothing runs here any more
            running.answer = header, body
        else:
            self._done(header, body)

    def _done(self, header: Header, body: bytes) -> None:
        running = self.running
        assert running is not None
        self._finish_output(running)
        header["leftBehind"] = {"threads": header.pop("threads", 0), "processes": header.pop("processes", 0)}
        if header.get("status") != "ok":
            header["scratchChanged"] = changed_since(running.started)
        self.running = None
        if running.runner is self.spare and header.get("status") == "ok":
            self.undecided = header["leftBehind"]["threads"] > 0
        elif running.runner is self.spare:
            self.retired, self.spare = self.spare, None
        self._tell(header, body)
        if running.answer is not None:
            kill_others(self._keepers() | {running.runner.pid})  # of user code that said `done` and ran on for a while
        self.idle_since = time.time()
        if running.runner is self.head and header["leftBehind"]["threads"]:
            self._shed_threads()
        elif running.rollback == "none":
            self._decide(keep=True)  # the host will not say: what it cannot undo it gives up with the sandbox

    def _decide(self, keep: bool) -> None:
        """The host has looked at what the cell gave out: its state is kept, or nothing of it is left."""
        threads, self.undecided = self.undecided, None
        if threads is None or self.spare is None:
            return
        if keep:
            self._commit(self.spare)
            if threads or (self.keep_spare and count_threads(self.head.pid) > 1):
                self._shed_threads()
        else:
            self._kill(self.spare)
            self.retired, self.spare = self.spare, None

    def _commit(self, spare: Cell) -> None:
        """The spare's state is the state now. What it forked from waits for it, as the state to go back to; the one before that is not needed."""
        self._drop_previous()
        self.previous, self.head, self.spare = self.head, spare, None
        self.head_waits = False

    def _drop_previous(self) -> None:
        if self.previous is not None:
            self._end(self.previous)
            self.previous = None

    def _end(self, process: Cell) -> None:
        self._kill(process)
        self.doomed.add(process.pid)
        process.close()

    def _shed_threads(self) -> None:
        """Threads of a finished cell must not run on: a fork has only the thread that forked. There is no way back before it then."""
        self._spawn()
        assert self.spare is not None
        self._commit(self.spare)
        self._drop_previous()

    def _undo(self) -> None:
        """Back to before the last cell that counted, if what it was forked from is still there."""
        if self.previous is None or self.running is not None or self.undecided is not None:
            self._tell({"type": "undone", "ok": False})
            return
        if self.spare is not None:
            self._end(self.spare)
            self.spare = None
        self._kill(self.head)
        self.retired, self.head, self.previous = self.head, self.previous, None
        self.head_waits = True
        self._tell({"type": "undone", "ok": True})

    def _keepers(self) -> set[int]:
        """Processes that no cell left behind: ours, and those that are ended already."""
        return {1, self.head.pid} | self.doomed | ({self.previous.pid} if self.previous else set())

    def _spare_ended(self, header: Header) -> None:
        self.head_waits = False
        if self.retired is not None:
            self.retired.close()
            self.retired = None
            return
        spare = self.spare
        if spare is None:
            return
        if self.undecided is not None:  # the host has heard that the cell succeeded
            raise HeadLost("the process that held the variables ended right after its cell")
        if self.running is not None and self.running.runner is spare:
            self._drain_frames(spare)
        if self.running is not None and self.running.runner is spare:
            self._ended({key: header[key] for key in ("signal", "exitCode") if key in header})
        spare.close()
        self.spare = None

    def _ended(self, how: Header) -> None:
        running = self.running
        assert running is not None
        kill_others(self._keepers() - {running.runner.pid})
        self._finish_output(running)
        self.running = None
        self._tell({"type": "ended", "cell": running.number, **how, "scratchChanged": changed_since(running.started)})
        self.idle_since = time.time()

    def _spawn(self) -> None:
        """Have the head fork a spare, and wait until it is there."""
        deadline = time.monotonic() + SPAWN_TIMEOUT_S
        while self.head_waits:
            self._await_head(deadline)
        ends, streams, ours = _endpoints()
        self.head.connection.send({"type": "spawn", "rehearse": self.rehearse}, fds=list(ends))
        for fd in ends:
            os.close(fd)
        while True:
            frame = self._next_frame(self.head)
            if (
                frame is not None
                and frame[0]["type"] == "spawned"
                and type(frame[0].get("pid")) is int
                and frame[0]["pid"] > 1
            ):
                break
            if frame is not None:
                self._on_frame(self.head, *frame)
            else:
                self._await_head(deadline)
        self.spare = Cell(frame[0]["pid"], Connection(ours), streams, set(self.head.known))
        self.head_waits = True

    def _await_head(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        poll = select.poll()
        poll.register(self.head.connection.fileno(), select.POLLIN)
        if left <= 0 or not poll.poll(left * 1000):
            raise HeadLost(f"the process that holds the variables did not answer within {SPAWN_TIMEOUT_S:g} s")
        if not self.head.connection.fill():
            raise HeadLost("the process that held the variables ended")
        if self.head_waits:
            self._hear_buffered(self.head)

    # Output

    def _pump(self, ready: set[int]) -> None:
        if self.running is not None:
            for stream in self.running.runner.streams:
                if stream.fd in ready:
                    self._pump_once(stream, self.running.number)

    def _pump_once(self, stream: Stream, number: int) -> int:
        try:
            data = os.read(stream.fd, 1 << 18)
        except BlockingIOError:
            return 0
        if not data:  # the process ended or closed its end; polling it again would spin
            stream.closed = True
            return 0
        now = stream.take(data)
        if now:
            self._tell({"type": "output", "cell": number, "stream": stream.name}, now)
        return len(data)

    def _finish_output(self, running: Running) -> None:
        for stream in running.runner.streams:
            # What was written before `done` was there to be read when that came: a stream that was silent then is empty.
            drained = DRAIN_BYTES if running.answer is not None and stream.fd not in self.ready else 0
            while drained < DRAIN_BYTES and (got := self._pump_once(stream, running.number)):
                drained += got
            rest = stream.finish()
            if rest or stream.omitted:
                self._tell(
                    {"type": "output", "cell": running.number, "stream": stream.name, "omittedBytes": stream.omitted},
                    rest,
                )

    def _tell(self, header: Header, body: bytes = b"") -> None:
        write_frame(self.channel_out, header, body)

    def _kill(self, process: Cell) -> None:
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def _endpoints() -> tuple[tuple[int, int, int], list[Stream], int]:
    """Descriptors for a new cell process: its three, our two streams, our end of the connection."""
    ours, theirs = socketpair()
    out_read, out_write = os.pipe2(os.O_CLOEXEC)
    err_read, err_write = os.pipe2(os.O_CLOEXEC)
    for fd in (out_read, err_read):
        os.set_blocking(fd, False)
    return (theirs, out_write, err_write), [Stream("stdout", out_read), Stream("stderr", err_read)], ours


def _words(status: int) -> str:
    how: dict[str, Any] = cell.describe_status(status)
    return f"signal {how['signal']}" if "signal" in how else f"exit status {how['exitCode']}"
