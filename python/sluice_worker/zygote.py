"""The zygote: imports the stack once and forks a sandbox for every lease. It never runs user code.

It is process 1 inside one bwrap that the driver started, so the kernel kills every sandbox when it ends. The control channel
is descriptor 0 (in) and 1 (out).

From the host: `setup {uid?, gid?}`, once, with the seccomp program as body; `open {lease, token, join, limits, id}`, where `id` is the outer user of the
sandbox, or null for the zygote's own; `kill {lease}`.
To the host: `ready {importMs}`; `forked {lease, pid}`; `refused {lease, detail}` when the fork failed;
`exited {lease, exitCode | signal}`.

Each fork opens its own connection to the host and sends `lease {lease, token}`. If it cannot confine itself, it sends
`failed {detail}` there and exits.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from . import confine
from .frames import ChannelClosed, Header, read_frame, write_frame

HOST_SOCKET = "/run/sluice/leases.sock"
FAILED = 71  # exit status of a fork that could not become a sandbox


def main() -> NoReturn:
    """Import the stack and serve the host until it closes the channel."""
    control_in, control_out = _take_control()
    setup, program = read_frame(control_in)
    if "uid" in setup:
        confine.become_unprivileged(setup["uid"], setup["gid"])
    confine.settle_zygote()
    started = time.monotonic()
    from . import monitor, stack

    stack.import_stack()
    _exit_if_threaded()
    zygote = Zygote(control_in, control_out, program, serve=monitor.serve)
    write_frame(control_out, {"type": "ready", "importMs": round((time.monotonic() - started) * 1000)})
    try:
        zygote.loop()
    except ChannelClosed:
        os._exit(0)


def _take_control() -> tuple[int, int]:
    """Move the channel away from 0 and 1, so that what libraries print during import goes to stderr."""
    control = os.dup(0), os.dup(1)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return control


def _exit_if_threaded() -> None:
    """Exit if there are other threads: a fork does not have them, and a lock that one of them held would stay locked."""
    names = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    if len(names) != 1:
        sys.exit(f"Importing the stack left threads running, so forking is not safe: {', '.join(names)}")


class Zygote:
    """Forks, kills and reaps sandboxes.

    It holds plain descriptor numbers: an object that closes itself when a fork discards it could close a reused number.
    """

    def __init__(
        self, control_in: int, control_out: int, program: bytes, serve: Callable[[int, int], NoReturn]
    ) -> None:
        self.control_in = control_in
        self.control_out = control_out
        self.program = program
        self.serve = serve
        self.leases: dict[int, str] = {}
        self.uid, self.gid = os.getuid(), os.getgid()
        self.baseline_bytes = _mapped_data_bytes()
        self.fork = confine.create_fork()

    def loop(self) -> NoReturn:
        """Serve the host's requests and report which sandboxes ended."""
        child_ended, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(self.control_in, select.POLLIN)
        poll.register(child_ended, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poll.poll()]
            if child_ended in ready:
                os.read(child_ended, 4096)
                self._reap()
            if self.control_in in ready:
                self._serve_host()

    def _serve_host(self) -> None:
        header, _ = read_frame(self.control_in)
        if header["type"] == "open":
            self._open(header)
        elif header["type"] == "kill":
            self._kill(header["lease"])
        else:
            sys.exit(f"The host sent a frame of unknown type {header['type']!r}.")

    def _open(self, header: Header) -> None:
        is_mapped, mapped = os.pipe()
        try:
            pid = self.fork()
            if pid == 0:
                os.close(mapped)
                self._become_sandbox(header, is_mapped)
            self.leases[pid] = header["lease"]
            self._map_user(pid, header["id"], mapped)
        except OSError as error:
            write_frame(self.control_out, {"type": "refused", "lease": header["lease"], "detail": str(error)})
            return
        finally:
            os.close(is_mapped)
            os.close(mapped)
        write_frame(self.control_out, {"type": "forked", "lease": header["lease"], "pid": pid})

    def _map_user(self, pid: int, outer_id: int | None, mapped: int) -> None:
        """Map the user of the fork to `outer_id`, and let it go on. If that fails, it exits: its pipe is closed."""
        uid, gid = (self.uid, self.gid) if outer_id is None else (outer_id, outer_id)
        try:
            confine.map_user(pid, uid, gid)
        except OSError as error:
            print(f"The user of a sandbox could not be mapped to {uid}: {error}", file=sys.stderr, flush=True)
        else:
            os.write(mapped, b"1")

    def _kill(self, lease: str) -> None:
        for pid, owner in self.leases.items():
            if owner == lease:
                os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            lease = self.leases.pop(pid, None)
            if lease is not None:
                write_frame(self.control_out, {"type": "exited", "lease": lease, **_describe_status(status)})

    def _become_sandbox(self, header: Header, is_mapped: int) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            confine.join_cgroups(header["join"])
            connection = _connect()
            if not os.read(is_mapped, 1):
                os._exit(FAILED)  # the zygote has said why
            confine.keep_only_channel(connection)
            write_frame(confine.CHANNEL, {"type": "lease", "lease": header["lease"], "token": header["token"]})
        except BaseException as error:
            print(f"A sandbox could not connect to the host: {error}", file=sys.stderr, flush=True)
            os._exit(FAILED)
        try:
            self._confine(confine.Limits(baseline_bytes=self.baseline_bytes, **header["limits"]))
        except BaseException as error:
            _send_failure(error)
            os._exit(FAILED)
        self.serve(confine.CHANNEL, confine.CHANNEL)

    def _confine(self, limits: confine.Limits) -> None:
        confine.enter_namespaces()
        confine.arrange_mounts(limits.scratch_bytes)
        confine.set_limits(limits)
        confine.drop_privileges()
        confine.install_filter(self.program)


def _connect() -> int:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(HOST_SOCKET)
    return connection.detach()


def _send_failure(error: BaseException) -> None:
    with contextlib.suppress(ChannelClosed, OSError):
        write_frame(confine.CHANNEL, {"type": "failed", "detail": f"{type(error).__name__}: {error}"})


def _mapped_data_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmData:")[2].split()[0]) * 1024


def _describe_status(status: int) -> Header:
    if os.WIFSIGNALED(status):
        return {"signal": signal.Signals(os.WTERMSIG(status)).name}
    return {"exitCode": os.WEXITSTATUS(status)}


if __name__ == "__main__":
    main()
