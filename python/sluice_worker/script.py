"""Script mode: runs one async script with `call_tool` in scope. The sandbox runs nothing else and is discarded afterwards.

The host starts it with a `script` frame, which user code cannot send. A tool call goes out as `call` {id, name} with the params
as JSON. The answer is `reply` {id, ok} with the result as JSON, or with the text of a RuntimeError. The host enforces the time
limit, the number of calls and their concurrency.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import json
import os
import select
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from . import traceback_text
from .connection import LOST_CHANNEL, Connection
from .frames import ChannelClosed, Header
from .script_code import FILENAME, compile_script

MAX_NAME_CHARACTERS = 1000
MAX_REPORTED_CALLS = 1000
NON_FINITE_WARNING = "nan and inf have no JSON form; they are null in the result."


def run(connection: Connection, header: Header, code: str) -> None:
    """Run the script and answer with `done`."""
    owner = os.getpid()
    answer: Header = {"type": "done", "cell": header["cell"], "diagnostics": {}}
    calls = Calls(connection, header["limits"]["paramsBytes"])
    result = b""
    try:
        function = compile_script(code)
    except BaseException as error:
        answer |= {"status": "syntax_error", "error": traceback_text.describe(error, FILENAME)}
    else:
        failed, value = _execute(function, calls)
        if failed is None:
            failed, result, answer["warnings"] = _serialise(value, header["limits"]["resultBytes"])
        answer |= {"status": "ok"} if failed is None else _describe_failure(failed)
    if os.getpid() != owner:  # a child that user code forked returned from the script
        os._exit(0)
    answer["unawaited"] = calls.unawaited(finished=answer["status"] == "ok")[:MAX_REPORTED_CALLS]
    for stream in (sys.stdout, sys.__stdout__):
        with contextlib.suppress(Exception):  # user code may have closed or replaced it
            stream.flush()  # type: ignore[union-attr]
    try:
        connection.send_content(answer, result, "result")
    except ChannelClosed:
        os._exit(LOST_CHANNEL)


def _execute(function: types.FunctionType, calls: Calls) -> tuple[BaseException | None, Any]:
    """Run the script. Returns what it raised, or None and what it returned."""
    function.__globals__["call_tool"] = calls.call_tool
    del asyncio.sleep
    asyncio.run = _run_anywhere(asyncio.run)
    sys.stderr = sys.stdout
    warnings.filterwarnings("ignore", message="coroutine 'call_tool' was never awaited", category=RuntimeWarning)

    async def run_function() -> tuple[BaseException | None, Any]:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        try:
            return None, await function()
        except BaseException as error:
            return error, None
        finally:
            calls.note_open()

    try:
        if not inspect.iscoroutinefunction(function):
            return None, function()
        with asyncio.Runner() as runner:
            return runner.run(run_function())
    except BaseException as error:
        return error, None


def _run_anywhere(run: Callable[..., Any]) -> Callable[..., Any]:
    """An `asyncio.run` that also works inside a running event loop, as it does in Monty: it runs in a thread and waits for it."""

    @functools.wraps(run)
    def run_anywhere(main: Any, **options: Any) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return run(main, **options)
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(run, main, **options).result()

    return run_anywhere


def _serialise(value: object, limit: int) -> tuple[BaseException | None, bytes, list[str]]:
    from sluice.errors import ResultError
    from sluice.result import serialise

    try:
        if inspect.iscoroutine(value):
            raise ResultError("the result is a coroutine that was never awaited; write `await` before the call")
        result, notes = serialise(value, limit)
        return None, result, [NON_FINITE_WARNING] if notes["nonFinite"] else []
    except BaseException as error:
        return error, b"", []


def _describe_failure(error: BaseException) -> Header:
    from sluice.errors import OutputLimitError

    described = traceback_text.describe(error, FILENAME)
    if isinstance(error, OutputLimitError):
        limit = {"name": error.name, "allowed": error.allowed, "seen": error.seen}
        return {"status": "output_limit", "error": {**described, "limit": limit}}
    return {"status": "memory_error" if isinstance(error, MemoryError) else "python_error", "error": described}


@dataclass(eq=False)
class Call:
    """One call of `call_tool`."""

    reply: tuple[bool, bytes] | None = None
    waiter: asyncio.Future[None] | None = None
    awaited: bool = False
    over: bool = False
    """Whether the script received the result or stopped waiting for it."""


class Calls:
    """The tool calls of one script. `call_tool` sends the call right away; awaiting it waits for the reply."""

    def __init__(self, connection: Connection, params_bytes: int) -> None:
        self._connection = connection
        self._params_bytes = params_bytes
        self._calls: list[Call] = []
        self._lock = threading.RLock()
        self._listening: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()
        self._open_at_end: list[int] | None = None
        self.call_tool = self._make_call_tool()

    def _make_call_tool(self) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def result_of(call: Call) -> Any:
            return await self._result(call)

        def call_tool(name: str, params: dict[str, Any] | None = None) -> Coroutine[Any, Any, Any]:
            """Call a backend tool: `await call_tool(name, params)`. A failure raises RuntimeError."""
            return result_of(self._send(name, params))

        result_of.__name__ = result_of.__qualname__ = call_tool.__qualname__ = "call_tool"
        return call_tool

    def note_open(self) -> None:
        """Remember which calls are open at the end of the script, before the event loop cancels the remaining tasks."""
        self._open_at_end = self._open()

    def unawaited(self, finished: bool) -> list[int]:
        """The calls whose result the script never received; for a script that failed, those that it never awaited."""
        if finished:
            return self._open() if self._open_at_end is None else self._open_at_end
        return [number for number, call in enumerate(self._calls) if not call.awaited]

    def _open(self) -> list[int]:
        return [number for number, call in enumerate(self._calls) if not call.over]

    def _send(self, name: object, params: object) -> Call:
        if not isinstance(name, str):
            raise TypeError(f"call_tool(name, params): name must be a str, not {type(name).__name__}")
        if len(name) > MAX_NAME_CHARACTERS:
            raise ValueError(f"call_tool(name, params): name has more than {MAX_NAME_CHARACTERS} characters")
        body = _to_json({} if params is None else params, self._params_bytes)
        call = Call()
        with self._lock:
            try:
                self._connection.send_content({"type": "call", "id": len(self._calls), "name": name}, body, "params")
            except ChannelClosed:
                os._exit(LOST_CHANNEL)
            self._calls.append(call)
        return call

    async def _result(self, call: Call) -> Any:
        call.awaited = True
        try:
            if call.reply is None:
                loop = asyncio.get_running_loop()
                self._listen(loop)
                call.waiter = loop.create_future()
                await call.waiter
        finally:
            call.over = True
        assert call.reply is not None
        (ok, body), call.reply = call.reply, None
        if not ok:
            raise RuntimeError(body.decode())
        return json.loads(body)

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop not in self._listening:
            self._listening.add(loop)
            loop.add_reader(self._connection.fileno(), self._read_replies)

    def _read_replies(self) -> None:
        with self._lock:
            poll = select.poll()
            poll.register(self._connection.fileno(), select.POLLIN)
            if not poll.poll(0):  # the event loop of another thread read it first
                return
            if not self._connection.fill():
                os._exit(LOST_CHANNEL)
            while (frame := self._connection.next_frame()) is not None:
                header, body = frame
                self._resolve(self._calls[header["id"]], (header["ok"], body))

    def _resolve(self, call: Call, reply: tuple[bool, bytes]) -> None:
        call.reply = reply
        waiter = call.waiter
        if waiter is None:
            return
        try:
            waiter.get_loop().call_soon_threadsafe(_wake, waiter)
        except RuntimeError:  # that loop is closed, so nothing waits for the reply
            pass


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


#: Sent instead of params that contain nan or inf. It is not JSON, so the host refuses the call with the same message as in Monty.
NOT_FINITE = b"NaN"


def _to_json(params: object, limit: int) -> bytes:
    from sluice.errors import OutputLimitError
    from sluice.result import serialise

    try:
        body, notes = serialise(params, limit)
        return NOT_FINITE if notes["nonFinite"] else body
    except OutputLimitError as error:
        message = f"call_tool(name, params): params has {error.seen} bytes of JSON or more, {limit} are allowed"
        raise ValueError(message) from None
