"""The cell process: holds the variables of a turn and runs cells.

It is forked by the monitor (the first one) or by another cell process that stays behind as the rollback point.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import ctypes
import errno
import fcntl
import io
import os
import random
import resource
import sys
import threading
import types
from dataclasses import dataclass
from typing import Any, NoReturn

from . import stack, traceback_text
from .connection import Connection, close_all_but, socketpair
from .frames import ChannelClosed, Header
from .inputs import InputError, Inputs

PR_SET_DUMPABLE = 4
RESERVED_DESCRIPTORS = 16
LOST_CHANNEL = 70  # exit status of a cell process whose own descriptors were taken away by user code


@dataclass(frozen=True)
class CellLimits:
    """What a cell may give back, as the host said; the host checks again."""

    result_bytes: int
    artifacts: int
    artifact_bytes: int


class ArtifactsNotAsDeclared(Exception):
    """What the cell gave out is not what the call declared; nothing of it counts."""

    def __init__(self, declared: set[str], emitted: set[str]) -> None:
        def words(kinds: set[str]) -> str:
            return " and ".join(sorted(kinds)) or "no artifact"

        how = {"image": "save_figure(alt)", "chart": "render_chart(spec, data)"}
        missing = [how.get(kind, kind) for kind in sorted(declared - emitted)]
        todo = f" Call {' and '.join(missing)}." if missing else " Declare what is emitted, or do not emit it."
        super().__init__(f"the call declared {words(declared)} and emitted {words(emitted)}.{todo}")


def main(connection_fd: int, stdout_fd: int, stderr_fd: int, announce: bool = False) -> NoReturn:
    """Serve the monitor until it goes away. `announce`: tell it once when everything is there."""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    os.environ.pop("PWD", None)  # bwrap's own; the environment is exactly what the host lists
    random.seed(stack.SEED)
    _prefer_for_memory_kill()
    close_all_but({connection_fd, stdout_fd, stderr_fd})
    process = CellProcess(_own_descriptors(connection_fd, stdout_fd, stderr_fd))
    try:
        if announce:
            process.connection.send({"type": "imported"})
        process.serve()
    except ChannelClosed:
        pass
    os._exit(LOST_CHANNEL)


def _own_descriptors(connection_fd: int, stdout_fd: int, stderr_fd: int) -> Connection:
    """The connection, the two pipes as 1 and 2, and /dev/null as 0."""
    null = os.open("/dev/null", os.O_RDONLY)
    for fd, number in ((null, 0), (stdout_fd, 1), (stderr_fd, 2)):
        if fd != number:
            os.dup2(fd, number)
            os.close(fd)
    os.set_inheritable(connection_fd, False)
    sys.stdin = NoStdin()
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = _text_stream(number)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    return Connection(connection_fd, takes_fds=True)


def _above_standard(fd: int) -> int:
    """User code that closed 0, 1 or 2 makes new descriptors land there, where they would be written over."""
    if fd > 2:
        return fd
    higher = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return higher


def _text_stream(fd: int) -> io.TextIOWrapper:
    raw = open(fd, "wb", buffering=0, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(
        io.BufferedWriter(raw, 1 << 16), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )


def _prefer_for_memory_kill() -> None:
    """When memory runs out the kernel should end a cell, not the monitor."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass


def _set_rlimits(rlimits: dict[str, int]) -> None:
    """Limits that a memory image cannot carry. `memory` bounds address space beyond what the stack has mapped, so that one
    giant allocation is a MemoryError with a line number instead of the end of the sandbox."""
    for name, value in rlimits.items():
        if name == "memory":
            with open("/proc/self/statm") as file:
                mapped = int(file.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (mapped + value, mapped + value))
        else:
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))


class Descriptors:
    """How many may be open. A cell that opens all it may leaves the worker enough to go on with."""

    def __init__(self) -> None:
        self.give_all()

    def give_all(self) -> None:
        _, self.hard = resource.getrlimit(resource.RLIMIT_NOFILE)  # user code may have lowered it
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.hard, self.hard))

    def hold_back_some(self) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(self.hard - RESERVED_DESCRIPTORS, self.hard // 2), self.hard))


class NoStdin(io.TextIOBase):
    """A cell has no standard input; whoever reads gets told so at once."""

    def _refuse(self, *_: object) -> NoReturn:
        raise RuntimeError(
            "a cell has no standard input: nobody can answer. Use the bound inputs, or assign the value in code."
        )

    read = readline = readlines = __next__ = _refuse

    def readable(self) -> bool:
        return True


def _no_input(prompt: object = "") -> NoReturn:
    raise RuntimeError(
        f"input({str(prompt)!r}) cannot be answered: a cell has no standard input. Use the bound inputs, or assign the value in code."
    )


class CellProcess:
    """The state of a turn: the namespace, the inputs, and the connection to the monitor."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.pid = os.getpid()
        self.inputs = Inputs()
        self.descriptors = Descriptors()
        self.main = types.ModuleType("__main__")
        sys.modules["__main__"] = self.main
        self.namespace: dict[str, Any] = self.main.__dict__
        self._preload()

    def _preload(self) -> None:
        import matplotlib.pyplot as plt
        import numpy as np
        import pandas as pd
        import statsmodels.api as sm

        import sluice

        builtins.input = _no_input
        self.namespace |= {"__builtins__": builtins, "pd": pd, "np": np, "plt": plt, "sm": sm, "inputs": self.inputs}
        self.namespace |= {name: getattr(sluice, name) for name in sluice.__all__}

    def serve(self) -> NoReturn:
        while True:
            header, body = self.connection.receive()
            kind = header["type"]
            if kind == "spawn":
                self.spawn(rehearse=header["rehearse"])
            elif kind == "inputs":
                for item, fd in zip(header["inputs"], self.connection.take_fds(), strict=True):
                    self.inputs.forget(item["alias"], self.namespace)
                    self.inputs.add(item["alias"], item["format"], fd, item["bytes"])
            elif kind == "rlimits":
                _set_rlimits(header["rlimits"])
                self.descriptors.give_all()
            elif kind == "warm":
                stack.warm()
                self.connection.send({"type": "warmed"})
            elif kind == "cell":
                if self.run(header, body.decode()):
                    self.connection.send({"type": "back"})
                self.descriptors.give_all()
            elif kind == "script":
                self.run_script(header, body.decode())

    def spawn(self, rehearse: bool) -> None:
        """Fork the process that will run the next cell; wait for it as the rollback point."""
        connection_fd, stdout_fd, stderr_fd = map(_above_standard, self.connection.take_fds())
        dice = random.getstate()
        pid = os.fork()
        if pid == 0:
            self.pid = os.getpid()
            random.setstate(dice)  # the module seeds itself anew in a fork, which would make cells depend on chance
            self.connection.close()  # files that earlier cells opened stay open: they are part of the state
            self.connection = _own_descriptors(connection_fd, stdout_fd, stderr_fd)
            if rehearse:
                with contextlib.suppress(Exception):  # user code may have patched anything; the cell itself will tell
                    self._rehearse()
            return
        for fd in (connection_fd, stdout_fd, stderr_fd):
            os.close(fd)
        self.connection.send({"type": "spawned", "pid": pid})
        _, status, _ = os.wait4(pid, 0)
        self.connection.send({"type": "exited", "pid": pid, **describe_status(status)})

    def _rehearse(self) -> None:
        """Write to the pages that every cell writes to, while nobody waits: under gVisor each first write after a fork copies up to 2 MB."""
        import sluice._cell

        list(self.namespace.values())  # every variable is counted up and down: the next cell will use some of them
        host, worker = map(Connection, socketpair())
        host.send({"type": "cell", "cell": 0, "limits": {"artifacts": 0}, "names": {}}, b"len(inputs) + 1")
        _, code = worker.receive()
        report = sluice._cell.begin(lambda *_: None, CellLimits(1024, 0, 0))
        finished = report.finish(*self._execute(code.decode(), "<rehearsal>"))
        worker.send({"type": "done", "diagnostics": finished.diagnostics}, finished.result_json or b"")
        for one in (host, worker):
            one.close()
        threading.enumerate()
        self._flush()

    def run(self, header: Header, code: str) -> bool:
        """Run one cell and answer with `done`; whether it succeeded."""
        import sluice
        import sluice._cell

        number = header["cell"]
        said = header["limits"]
        limits = CellLimits(said["resultBytes"], said["artifacts"], said["artifactBytes"])

        kinds: set[str] = set()

        def emit(kind: str, details: dict[str, Any], body: bytes) -> None:
            kinds.add(kind)
            self.connection.send({"type": "artifact", "cell": number, "kind": kind, **details}, body)

        threads_before = set(threading.enumerate())
        report = sluice._cell.begin(emit, limits)
        result: bytes | None = None
        answer: Header = {"type": "done", "cell": number, "status": "ok"}
        try:
            self.inputs.name(header.get("names", {}))
            self.descriptors.hold_back_some()
            value, has_value = self._execute(code, f"<cell {number}>")
            sys.stdout.flush()
            finished = report.finish(value, has_value)
            if header.get("expect") is not None and kinds != set(header["expect"]):
                raise ArtifactsNotAsDeclared(declared=set(header["expect"]), emitted=kinds)
            result, answer["diagnostics"] = finished.result_json, finished.diagnostics
        except BaseException as error:
            if os.getpid() != self.pid:
                os._exit(1)
            self.descriptors.give_all()
            answer |= _failure(error, f"<cell {number}>")
            answer["diagnostics"] = _diagnostics_of(report)
        if os.getpid() != self.pid:  # a child that user code forked came back out of the cell
            os._exit(0)
        left = [thread for thread in threading.enumerate() if thread not in threads_before]
        answer["threads"] = len(left)
        self._flush()
        try:
            self.connection.send(answer, result or b"")
        except ChannelClosed:
            os._exit(LOST_CHANNEL)
        if answer["status"] != "ok" and header["rollback"] == "fork":
            os._exit(0)
        return bool(answer["status"] == "ok")

    def run_script(self, header: Header, code: str) -> None:
        """Run a script with `call_tool` in scope; nothing else is run here before or after it."""
        from . import script  # not at the top: the monitor imports this module too, and needs no event loop

        _set_rlimits({"memory": header["limits"]["memoryBytes"]})
        self.descriptors.hold_back_some()
        script.run(self.connection, header, code)

    def _execute(self, code: str, filename: str) -> tuple[Any, bool]:
        """Run the code; the value of a final expression is what comes back."""
        traceback_text.remember_source(filename, code)
        tree = ast.parse(code, filename)
        self._bind_inputs(tree)
        last: ast.expr | None = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = tree.body.pop().value  # type: ignore[attr-defined]
        if tree.body:
            exec(compile(tree, filename, "exec", dont_inherit=True), self.namespace)
        if last is None:
            return None, False
        return eval(compile(ast.Expression(last), filename, "eval", dont_inherit=True), self.namespace), True

    def _bind_inputs(self, tree: ast.Module) -> None:
        """Bind the aliases that the code reads by name, and only those; `inputs[...]` binds by itself."""
        for node in ast.walk(tree):
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or node.id in self.namespace:
                continue
            if self.inputs.resolve(node.id) is None:
                continue
            try:
                self.namespace[node.id] = self.inputs[node.id]
            except InputError as error:
                error.line = node.lineno
                raise

    def _flush(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):  # user code closed or replaced it
                pass


def _failure(error: BaseException, filename: str) -> Header:
    import sluice

    if isinstance(error, sluice.OutputLimitError):
        limit = {"name": error.name, "allowed": error.allowed, "seen": error.seen}
        return {"status": "output_limit", "error": {**traceback_text.describe(error, filename), "limit": limit}}
    if isinstance(error, ArtifactsNotAsDeclared):
        return {"status": "contract_violation", "error": {"type": "ArtifactsNotAsDeclared", "message": str(error)}}
    no_memory = isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
    status = "memory_error" if no_memory else "python_error"
    return {"status": status, "error": traceback_text.describe(error, filename)}


def _diagnostics_of(report: Any) -> dict[str, Any]:
    try:
        found: dict[str, Any] = report.diagnostics()
        return found
    except BaseException:  # diagnostics never hide the error that ended the cell
        return {}


def describe_status(status: int) -> Header:
    """A wait status as the host reads it."""
    if os.WIFSIGNALED(status):
        return {"signal": os.WTERMSIG(status)}
    return {"exitCode": os.WEXITSTATUS(status)}
