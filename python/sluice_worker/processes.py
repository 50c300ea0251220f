"""Processes of a sandbox, as its process 1 sees and kills them."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import time
from typing import Any

from .frames import Header


class StillRunning(Exception):
    """Some processes did not end although they were killed."""


def kill_others(keep: set[int]) -> int:
    """Kill every process of the sandbox except `keep`. Returns how many there were.

    Several processes are stopped before they are killed, so that a fork bomb cannot outrun the kills. Raises StillRunning.
    """
    killed: set[int] = set()
    for attempt in range(200):
        others = [pid for pid in _list_processes() if pid not in keep and not _is_zombie(pid)]
        if not others:
            return len(killed)
        if attempt == 0 and len(others) > 1:
            for pid in others:
                _signal(pid, signal.SIGSTOP)
        for pid in others:
            killed.add(pid)
            _signal(pid, signal.SIGKILL)
        if attempt > 3:
            time.sleep(0.002)
    raise StillRunning("processes that the cell left behind could not be killed")


def reap_children() -> None:
    """Wait for the children of this process that have ended: until then they count towards the limit of processes.

    Objects that stand for them learn the exit status first, so that user code can still ask for it.
    """
    if not _has_ended_child():
        return
    modules = [sys.modules.get(name) for name in ("subprocess", "multiprocessing.popen_fork")]
    kinds = tuple(module.Popen for module in modules if module is not None)
    objects: list[Any] = gc.get_objects()
    for one in objects:
        if isinstance(one, kinds):
            with contextlib.suppress(Exception):  # user code may have changed anything
                one.poll()
    while _has_ended_child():
        os.waitpid(-1, os.WNOHANG)


def _has_ended_child() -> bool:
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False


def count_threads(pid: int) -> int:
    """The kernel's count. Python only knows the threads that it started itself."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def describe_status(status: int) -> Header:
    """A wait status as the host reads it: `{signal}` or `{exitCode}`."""
    if os.WIFSIGNALED(status):
        return {"signal": os.WTERMSIG(status)}
    return {"exitCode": os.WEXITSTATUS(status)}


def status_in_words(status: int) -> str:
    """A wait status for messages: `signal 9` or `exit status 1`."""
    how = describe_status(status)
    return f"signal {how['signal']}" if "signal" in how else f"exit status {how['exitCode']}"


def _list_processes() -> list[int]:
    """Opens /proc every time: if a cell used up the monitor's descriptors, this fails at that cell's end and not later."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _is_zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass
