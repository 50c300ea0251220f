"""The monitor: process 1 of a sandbox. It never runs user code.

It serves the host over the channel: keeps inputs, starts and ends cells, forwards their output and frames, and commits or
undoes what they did. The variables live in the cell processes (state_processes.py).
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from . import stack
from .frames import ChannelClosed, FrameReader, Header, write_frame
from .input_store import InputStore
from .processes import StillRunning, count_threads, describe_status, kill_others, status_in_words
from .running_cell import ReplyQueue, RunningCell
from .scratch import IMAGES, changed_since
from .state_processes import CellHandle, StateLost, StateProcesses

PR_SET_DUMPABLE = 4


def serve(channel_in: int, channel_out: int, import_stack: Callable[[], None] | None = None) -> NoReturn:
    """Serve the host until it closes the channel.

    With `import_stack`, the first cell process imports the stack itself, and the monitor tells the host when it is done. The
    monitor then stays small and shares no memory with that process. This matters under gVisor, which copies up to 2 MB
    around every page that is written after a fork.
    """
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.makedirs(IMAGES, exist_ok=True)
    # gVisor takes over the flags of the host's socket, which it has made non-blocking itself by then.
    for channel in (channel_in, channel_out):
        os.set_blocking(channel, True)
    status = 0
    try:
        if os.getpid() != 1:
            raise RuntimeError(
                "it kills every other process that it sees, so it must be process 1 of its own pid namespace"
            )
        if import_stack is not None:
            stack.keep_freed_memory()
        monitor = Monitor(channel_in, channel_out, import_stack)
        if import_stack is not None:
            monitor.await_import()
        monitor.loop()
    except ChannelClosed:
        pass
    except (StateLost, StillRunning) as error:
        status = 3
        _send_last(channel_out, {"type": "lost", "detail": str(error)})
    except BaseException as error:
        status = 4
        _send_last(channel_out, {"type": "lost", "detail": f"the worker failed: {type(error).__name__}: {error}"})
    os._exit(status)


def _send_last(channel_out: int, header: Header) -> None:
    try:
        write_frame(channel_out, header)
    except (ChannelClosed, OSError):
        pass


class Monitor:
    """One loop over the channel to the host, the cell processes and the output of the running cell."""

    def __init__(self, channel_in: int, channel_out: int, import_stack: Callable[[], None] | None = None) -> None:
        self.host = FrameReader(channel_in)
        self.channel_out = channel_out
        self.inputs = InputStore()
        self.idle_since = 0.0
        self.keep_spare = False
        self.running: RunningCell | None = None
        self.awaits_decision = False  # the spare's cell succeeded, and the host has yet to commit it or roll it back
        self.left_threads = False  # whether that cell left threads behind
        self.processes = StateProcesses(import_stack, self._on_frame)

    def await_import(self) -> None:
        self.processes.await_import()
        self._send({"type": "imported"})

    def loop(self) -> NoReturn:
        child_ended, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        while True:
            # The host's next frame may have been read ahead, and then its descriptor does not become readable for it.
            ready = {fd for fd, _ in self._poll(child_ended).poll(0 if self.host.ahead else None)}
            if child_ended in ready:
                os.read(child_ended, 4096)
                self._reap()
            if self.running is not None:
                self.running.forward_output(ready)
                if self.running.replies:
                    self.running.replies.flush()
            for process in (self.processes.spare, self.processes.head):
                if process is not None and process.connection.fileno() in ready:
                    self.processes.read_frames(process)
            if self.host.ahead or self.host.fd in ready:
                self._serve_host()
            if self.keep_spare and self.running is None and self.processes.can_spawn():
                self._spawn_spare()

    def _poll(self, child_ended: int) -> select.poll:
        poll = select.poll()
        poll.register(self.host.fd, select.POLLIN)
        poll.register(child_ended, select.POLLIN)
        for process in (self.processes.head, self.processes.spare):
            if process is not None and not process.disconnected:
                poll.register(process.connection.fileno(), select.POLLIN)
        if self.running is not None:
            for stream in self.running.runner.streams:
                if not stream.closed:
                    poll.register(stream.fd, select.POLLIN)
            if self.running.replies:
                poll.register(self.running.replies.fileno(), select.POLLOUT)
        return poll

    def _reap(self) -> None:
        """Wait for ended processes. Process 1 is the parent of every orphan, and of the head once the head's parent ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.processes.reaped(pid)
            if pid == self.processes.head.pid:
                self._head_ended(status)

    def _spawn_spare(self) -> None:
        self.processes.await_retired()
        self._reap()  # what has ended counts towards the limit of processes until then
        self.processes.spawn_spare()

    def _stop_threads(self) -> None:
        self._reap()
        self.processes.stop_threads()

    def _head_ended(self, status: int) -> NoReturn:
        head = self.processes.head
        self.processes.drain_frames(head)
        if self.running is not None and self.running.runner is head:
            self._report_end(describe_status(status))
        raise StateLost(f"the process that held the variables ended ({status_in_words(status)})")

    # Frames from the host

    def _serve_host(self) -> None:
        header, body_bytes = self.host.read_head()
        kind = header["type"]
        if kind == "input":
            alias = self.inputs.receive(header, body_bytes, self.host)
            self.processes.forget_input(alias)
            self._send({"type": "input-ok", "alias": alias})
            return
        body = self.host.read(body_bytes)
        if kind == "hello":
            self._on_hello(header)
        elif kind in ("cell", "script"):
            self._start(header, body)
        elif kind == "reply":
            if self.running is not None and self.running.replies is not None:
                self.running.replies.put(header, body)
        elif kind in ("commit", "rollback"):
            self._decide(commit=kind == "commit")
        elif kind == "undo":
            idle = self.running is None and not self.awaits_decision
            self._send({"type": "undone", "ok": idle and self.processes.undo()})
        elif kind == "interrupt":
            if self.running is not None and self.running.number == header["cell"]:
                self._kill_cell(self.running)  # its end is reported when its process is found to have ended
        elif kind == "spare":
            self.keep_spare = self.processes.rehearse = True
        elif kind == "warm":
            self.processes.head.connection.send({"type": "warm"})
        else:
            raise RuntimeError(f"the host sent a frame of unknown type {kind!r}")

    def _on_hello(self, header: Header) -> None:
        self.idle_since = time.time()
        self.keep_spare = header["spare"]
        if "rlimits" in header:
            self.processes.head.connection.send({"type": "rlimits", "rlimits": header["rlimits"]})
        if self.keep_spare and self.processes.spare is None:
            self._spawn_spare()
        self._send({"type": "ready", "nonce": header["nonce"], "python": ".".join(map(str, sys.version_info[:3]))})

    def _start(self, header: Header, code: bytes) -> None:
        if header["rollback"] == "fork" and self.processes.spare is None:
            self._spawn_spare()
        runner = self.processes.spare or self.processes.head
        limits = header["limits"]
        for stream, budget in zip(runner.streams, (limits["stdoutBytes"], limits["stderrBytes"]), strict=True):
            stream.begin(budget)
        self.inputs.send_missing(runner)
        replies = ReplyQueue(runner.connection) if header["type"] == "script" else None
        self.running = RunningCell(
            header["cell"], header["rollback"], runner, self.idle_since, self._send, replies=replies
        )
        runner.connection.send(header, code)

    def _decide(self, commit: bool) -> None:
        """Commit the state of the cell that succeeded, or discard it, as the host decided after checking its artifacts."""
        decided, self.awaits_decision = self.awaits_decision, False
        if not decided or self.processes.spare is None:
            return
        if not commit:
            self.processes.spare.kill()
            self.processes.retire_spare()
            return
        self.processes.commit_spare()
        if self.left_threads or (self.keep_spare and count_threads(self.processes.head.pid) > 1):
            self._stop_threads()

    # Frames from cell processes

    def _on_frame(self, process: CellHandle, header: Header, body: bytes) -> None:
        kind = header["type"]
        running = self.running if self.running is not None and self.running.runner is process else None
        if process is self.processes.head and self.processes.head_waits and kind == "exited":
            self._spare_ended(header)
        elif process is self.processes.head and self.running is None and kind == "warmed":
            self._send({"type": "warmed"})
        elif running is not None and running.answer is None and kind == "done":
            self._on_done(running, header, body)
        elif running is not None and running.answer is None and kind in ("artifact", "chunk"):
            self._send(header, body)  # the host checks what is in it
        elif running is not None and running.answer is None and running.replies is not None and kind == "call":
            self._send(header, body)
        elif running is not None and running.answer is not None and kind == "back":
            self._finish(running, *running.answer)
        else:  # only user code can have sent it, so nothing that this process says or did can be trusted
            raise StateLost(f"user code sent an unexpected frame of type {kind[:60]!r}")

    def _on_done(self, running: RunningCell, header: Header, body: bytes) -> None:
        """Take the cell's answer. A cell that succeeded still counts as running until its process says `back`.

        User code could send `done` itself and continue; its time limit has to apply until it really returned.
        """
        # Kill what the cell left behind while its process is on its way back.
        header["processes"] = kill_others(self.processes.protected_pids() | {running.runner.pid})
        if header.get("status") == "ok" and running.replies is None:
            running.answer = header, body
        else:  # after a script nothing else runs in this process
            self._finish(running, header, body)

    def _finish(self, running: RunningCell, header: Header, body: bytes) -> None:
        """Send the answer to the host."""
        running.finish_output()
        succeeded = header.get("status") == "ok"
        threads = header.pop("threads", 0)
        header["leftBehind"] = {"threads": threads, "processes": header.pop("processes", 0)}
        if not succeeded:
            header["scratchChanged"] = changed_since(running.changes_since)
        self.running = None
        if running.runner is self.processes.spare and succeeded:
            self.awaits_decision, self.left_threads = True, threads > 0
        elif running.runner is self.processes.spare:
            self.processes.retire_spare()
        self._send(header, body)
        if running.answer is not None:
            # User code that sent `done` itself may have started processes after the first kill.
            kill_others(self.processes.protected_pids() | {running.runner.pid})
        self.idle_since = time.time()
        if running.runner is self.processes.head and threads:
            self._stop_threads()
        elif running.rollback == "none":
            self._decide(commit=True)  # without rollback the host sends no decision; it discards the sandbox instead

    def _spare_ended(self, header: Header) -> None:
        processes = self.processes
        processes.head_waits = False
        if processes.retired is not None:
            processes.retired.close()
            processes.retired = None
            return
        spare = processes.spare
        if spare is None:
            return
        if self.awaits_decision:  # the host already knows that the cell succeeded
            raise StateLost("the process that held the variables ended right after its cell")
        if self.running is not None and self.running.runner is spare:
            processes.drain_frames(spare)
        if self.running is not None and self.running.runner is spare:
            self._report_end({key: header[key] for key in ("signal", "exitCode") if key in header})
        spare.close()
        processes.spare = None

    def _report_end(self, how: Header) -> None:
        """Tell the host that the process of the running cell ended before it answered."""
        running = self.running
        assert running is not None
        self._kill_cell(running)
        running.finish_output()
        self.running = None
        changed = changed_since(running.changes_since)
        self._send({"type": "ended", "cell": running.number, **how, "scratchChanged": changed})
        self.idle_since = time.time()

    def _kill_cell(self, running: RunningCell) -> None:
        """Kill the process of the running cell and everything that it started."""
        kill_others(self.processes.protected_pids() - {running.runner.pid})

    def _send(self, header: Header, body: bytes = b"") -> None:
        write_frame(self.channel_out, header, body)
