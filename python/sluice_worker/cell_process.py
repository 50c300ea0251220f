"""The cell process: holds the variables of a cell session and runs cells.

The monitor forks the first one. Every other one is forked by a cell process, which then waits as the state to roll back to.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import ctypes
import errno
import os
import random
import sys
import threading
import time
import types
from typing import Any, NoReturn

from . import stack, stdio, traceback_text
from .connection import LOST_CHANNEL, Connection, close_all_but, socketpair
from .frames import ChannelClosed, Header
from .inherited_randomness import renew_inherited_randomness
from .inputs import InputError, Inputs
from .inputs_file import line_that_names_it, write_inputs_file
from .processes import describe_status, reap_children
from .rlimits import DescriptorLimit, prefer_for_oom_kill, set_rlimits

PR_SET_DUMPABLE = 4


class ArtifactsNotAsDeclared(Exception):
    """The cell emitted other kinds of artifacts than its call declared, so none of its output counts."""

    def __init__(self, declared: set[str], emitted: set[str]) -> None:
        def words(kinds: set[str]) -> str:
            return " and ".join(sorted(kinds)) or "no artifact"

        how = {"image": "save_figure(alt)", "chart": "render_chart(spec, data)"}
        missing = [how.get(kind, kind) for kind in sorted(declared - emitted)]
        advice = f" Call {' and '.join(missing)}." if missing else " Declare what is emitted, or do not emit it."
        super().__init__(f"the call declared {words(declared)} and emitted {words(emitted)}.{advice}")


def main(connection_fd: int, stdout_fd: int, stderr_fd: int, announce: bool = False) -> NoReturn:
    """Serve the monitor until the connection closes. With `announce`, first tell it that everything is imported."""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    os.environ.pop("PWD", None)  # set by bwrap; the environment is exactly what the host lists
    random.seed(stack.SEED)
    prefer_for_oom_kill()
    close_all_but({connection_fd, stdout_fd, stderr_fd})
    process = CellProcess(_open_connection(connection_fd, stdout_fd, stderr_fd))
    try:
        if announce:
            process.connection.send({"type": "imported"})
        process.serve()
    except ChannelClosed:
        pass
    os._exit(LOST_CHANNEL)


def _open_connection(connection_fd: int, stdout_fd: int, stderr_fd: int) -> Connection:
    """Connect this process to the monitor: its standard output and error, then its frames."""
    stdio.take_over(stdout_fd, stderr_fd)
    os.set_inheritable(connection_fd, False)
    return Connection(connection_fd, takes_fds=True)


class CellProcess:
    """The variables and inputs of a cell session, and the connection to the monitor."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.pid = os.getpid()
        self.inputs = Inputs()
        self.descriptors = DescriptorLimit()
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

        builtins.input = stdio.refuse_input
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
                    self.inputs.add(item["alias"], item["format"], fd, item["bytes"], item)
            elif kind == "rlimits":
                set_rlimits(header["rlimits"])
                self.descriptors.release()
                renew_inherited_randomness()
            elif kind == "warm":
                stack.warm()
                self.connection.send({"type": "warmed"})
            elif kind == "cell":
                reap_children()  # of the cell before, if it ran in this process
                if self.run(header, body.decode()):
                    self.connection.send({"type": "back"})
                self.descriptors.release()
            elif kind == "script":
                self.run_script(header, body.decode())

    def spawn(self, rehearse: bool) -> None:
        """Fork the process that will run the next cell, and wait until it ends. The child returns to `serve`."""
        connection_fd, stdout_fd, stderr_fd = map(stdio.move_above_standard, self.connection.take_fds())
        reap_children()  # of the cell that ran here, which the monitor has killed
        random_state = random.getstate()
        pid = _fork()
        if pid == 0:
            self.pid = os.getpid()
            random.setstate(random_state)  # `random` reseeds itself in a fork, which would make cells irreproducible
            self.connection.close()  # files that earlier cells opened stay open: they are part of the state
            self.connection = _open_connection(connection_fd, stdout_fd, stderr_fd)
            if rehearse:
                with contextlib.suppress(
                    Exception
                ):  # user code may have patched anything; the cell itself will report it
                    self._rehearse()
            return
        for fd in (connection_fd, stdout_fd, stderr_fd):
            os.close(fd)
        self.connection.send({"type": "spawned", "pid": pid})
        _, status, _ = os.wait4(pid, 0)
        self.connection.send({"type": "exited", "pid": pid, **describe_status(status)})

    def _rehearse(self) -> None:
        """Write to the pages that every cell writes to, before a cell is waiting.

        Under gVisor the first write to a page after a fork copies up to 2 MB.
        """
        import sluice._cell

        list(self.namespace.values())  # touches the reference count of every variable, as the next cell will
        host, worker = map(Connection, socketpair())
        host.send({"type": "cell", "cell": 0, "limits": {"artifacts": 0}, "names": {}}, b"len(inputs) + 1")
        _, code = worker.receive()
        report = sluice._cell.begin(lambda *_: None, sluice._cell.Limits(result_bytes=1024, artifacts=0))
        finished = report.finish(*self._execute(code.decode(), "<rehearsal>"))
        worker.send({"type": "done", "diagnostics": finished.diagnostics}, finished.result_json or b"")
        for connection in (host, worker):
            connection.close()
        threading.enumerate()
        stdio.flush()

    def run(self, header: Header, code: str) -> bool:
        """Run one cell and answer with `done`. Returns whether it succeeded."""
        import sluice._cell

        number, limits = header["cell"], header["limits"]
        kinds: set[str] = set()

        def emit(kind: str, details: dict[str, Any], data: bytes, image: bytes) -> None:
            kinds.add(kind)
            frame = {"type": "artifact", "cell": number, "kind": kind, **details}
            self.connection.send_content(frame, data, "data", ahead={"image": image})

        threads_before = set(threading.enumerate())
        report = sluice._cell.begin(emit, sluice._cell.Limits.from_host(limits))
        result: bytes | None = None
        answer: Header = {"type": "done", "cell": number, "status": "ok"}
        try:
            self.inputs.name(header.get("names", {}))
            self.descriptors.hold_back()
            value, has_value = self._execute(code, f"<cell {number}>", limits["inputBytes"])
            sys.stdout.flush()
            finished = report.finish(value, has_value)
            if header.get("expect") is not None and kinds != set(header["expect"]):
                raise ArtifactsNotAsDeclared(declared=set(header["expect"]), emitted=kinds)
            result, answer["diagnostics"] = finished.result_json, finished.diagnostics
        except BaseException as error:
            if os.getpid() != self.pid:
                os._exit(1)
            self.descriptors.release()
            answer |= _describe_failure(error, f"<cell {number}>")
            answer["diagnostics"] = _diagnostics_of(report)
        if os.getpid() != self.pid:  # a child that user code forked returned from the cell
            os._exit(0)
        answer["threads"] = len([thread for thread in threading.enumerate() if thread not in threads_before])
        stdio.flush()
        try:
            self.connection.send_content(answer, result or b"", "result")
        except ChannelClosed:
            os._exit(LOST_CHANNEL)
        if answer["status"] != "ok" and header["rollback"] == "fork":
            os._exit(0)
        return bool(answer["status"] == "ok")

    def run_script(self, header: Header, code: str) -> None:
        """Run a script with `call_tool` in scope. It is the only code that this process ever runs."""
        from . import script  # imported here because the monitor imports this module too and needs no event loop

        set_rlimits({"memory": header["limits"]["memoryBytes"]})
        self.descriptors.hold_back()
        script.run(self.connection, header, code)

    def _execute(self, code: str, filename: str, input_bytes: int = 0) -> tuple[Any, bool]:
        """Run the code. Returns the value of a final expression, and whether there is one."""
        traceback_text.remember_source(filename, code)
        tree = ast.parse(code, filename)
        self._bind_inputs(tree)
        self._write_inputs_file(tree, input_bytes)
        last: ast.expr | None = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = tree.body.pop().value  # type: ignore[attr-defined]
        if tree.body:
            exec(compile(tree, filename, "exec", dont_inherit=True), self.namespace)
        if last is None:
            return None, False
        return eval(compile(ast.Expression(last), filename, "eval", dont_inherit=True), self.namespace), True

    def _bind_inputs(self, tree: ast.Module) -> None:
        """Bind the aliases that the code reads by name, and no others, so that unused inputs are never parsed."""
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

    def _write_inputs_file(self, tree: ast.Module, max_bytes: int) -> None:
        """Write `inputs.json` if the code names it."""
        line = line_that_names_it(tree)
        if line is None:
            return
        try:
            write_inputs_file(self.inputs, max_bytes)
        except InputError as error:
            error.line = line
            raise


def _fork() -> int:
    """Fork. What was just killed can count towards the limit of processes for another moment, so try again for a second."""
    for _ in range(200):
        try:
            return os.fork()
        except BlockingIOError:
            time.sleep(0.005)
    return os.fork()


def _describe_failure(error: BaseException, filename: str) -> Header:
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
        diagnostics: dict[str, Any] = report.diagnostics()
        return diagnostics
    except BaseException:  # a failure here must not hide the error that ended the cell
        return {}
