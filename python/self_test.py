"""The self-test of a driver, run as a cell.

The system must refuse each attempt immediately. An attempt that times out or fails in another way counts as not refused.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import stat
import threading
from collections.abc import Callable, Mapping
from typing import Any

type Check = dict[str, Any]

_TRACE_ATTACH = 16
_NEW_USER_NAMESPACE = 0x10000000


def self_test(*, tcp_port: int, udp_port: int, file: str, command_line: str, processes: int) -> dict[str, Check]:
    """Try to reach ports, a file and a process of the host, and to exceed the limit of processes. Returns the checks by name."""
    return {
        "network": _refused(
            {
                "TCP to this machine": lambda: _connect(socket.AF_INET, ("127.0.0.1", tcp_port)),
                "TCP outside": lambda: _connect(socket.AF_INET, ("192.0.2.1", 80)),
                "IPv6": lambda: _connect(socket.AF_INET6, ("::1", tcp_port)),
                "UDP to this machine": lambda: _send_udp(("127.0.0.1", udp_port)),
                "UDP outside": lambda: _send_udp(("192.0.2.1", 53)),
            }
        ),
        "dns": _refused({"DNS lookup": lambda: socket.getaddrinfo("example.com", 80)}),
        "file system": _refused(
            {
                "writing to /": lambda: _write("/x"),
                "writing to /usr": lambda: _write("/usr/x"),
                "writing to /etc": lambda: _write("/etc/x"),
                "reading a file of the host": lambda: _read(file),
                "reading the shadow file": lambda: _read("/etc/shadow"),
                "raw disks": _find_raw_disk,
            }
        ),
        "syscalls": _refused(
            {
                "mount": lambda: _in_child(lambda: _call("mount", b"none", b"/tmp", b"tmpfs", 0, None)),
                "a user namespace": lambda: _in_child(lambda: _call("unshare", _NEW_USER_NAMESPACE)),
                "ptrace": lambda: _in_child(_trace_another),
                "chroot": lambda: _in_child(lambda: os.chroot("/tmp")),
            }
        ),
        "processes": _check_processes(command_line, processes),
        "capabilities": _check_capabilities(),
    }


def take_memory() -> None:
    """Allocate 1 GB and write to all of it."""
    blocks = []
    for _ in range(64):
        blocks.append(b"x" * (16 * 1024 * 1024))


def _refused(attempts: Mapping[str, Callable[[], object]]) -> Check:
    got_through = []
    for name, attempt in attempts.items():
        try:
            attempt()
            got_through.append(name)
        except TimeoutError:
            got_through.append(name + " (timed out)")
        except OSError:
            pass
        except Exception as error:
            got_through.append(f"{name} (could not run: {error!r})")
    detail = "got through: " + ", ".join(got_through) if got_through else "refused: " + ", ".join(attempts)
    return {"ok": not got_through, "detail": detail}


def _connect(family: socket.AddressFamily, address: tuple[str, int]) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(1)
        connection.connect(address)


def _send_udp(address: tuple[str, int]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.sendto(b"x", address)


def _write(path: str) -> None:
    with open(path, "w") as file:
        file.write("x")


def _read(path: str) -> str:
    with open(path) as file:
        return file.read(1)


def _find_raw_disk() -> None:
    if not any(stat.S_ISBLK(entry.stat(follow_symlinks=False).st_mode) for entry in os.scandir("/dev")):
        raise FileNotFoundError("/dev has no block device")


def _call(name: str, *args: object) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*args) == -1:
        raise OSError(ctypes.get_errno(), name)


def _in_child(attempt: Callable[[], object]) -> None:
    """Run the attempt in a child process, so that an attempt that works does not affect the rest of the test."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            attempt()
            status = 0
        except OSError:
            status = 1
        finally:
            os._exit(status)
    exit_code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if exit_code == 1:
        raise PermissionError
    if exit_code != 0:
        raise RuntimeError(f"exit status {exit_code}")


def _trace_another() -> None:
    other = os.fork()
    if other == 0:
        signal.pause()
    try:
        _call("ptrace", _TRACE_ATTACH, other, 0, 0)
    finally:
        os.kill(other, signal.SIGKILL)
        os.waitpid(other, 0)


def _check_processes(command_line: str, processes: int) -> Check:
    visible = [pid for pid in os.listdir("/proc") if pid.isdigit()]
    sees_host = command_line in [_command_line(pid) for pid in visible]
    threads = _start_threads(processes + 100)
    bounded = threads < processes
    limit = f"no more than {processes} at once" if bounded else f"{threads} threads at once, {processes} are allowed"
    host = ", one of them of the host" if sees_host else ""
    return {
        "ok": not sees_host and os.getuid() != 0 and bounded,
        "detail": f"uid {os.getuid()}, sees {len(visible)} processes{host}, {limit}",
    }


def _command_line(pid: str) -> str | None:
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def _start_threads(max_threads: int) -> int:
    """Start threads until the system refuses one. Returns how many were started."""
    started: list[threading.Thread] = []
    end = threading.Event()
    try:
        while len(started) < max_threads:
            thread = threading.Thread(target=end.wait)
            thread.start()
            started.append(thread)
    except RuntimeError:
        pass
    end.set()
    for thread in started:
        thread.join()
    return len(started)


def _check_capabilities() -> Check:
    with open("/proc/self/status") as file:
        status = dict(line.split(":", 1) for line in file if ":" in line)
    held = int(status["CapEff"].strip(), 16)
    return {"ok": held == 0, "detail": f"effective capabilities {held:#x}"}
