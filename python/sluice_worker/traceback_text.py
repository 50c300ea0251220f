"""Errors of user code as its author sees them: own line numbers, own source, none of the worker's frames."""

from __future__ import annotations

import errno
import linecache
import traceback
from typing import Any

from .inputs import InputError
from .module_hint import NETWORK_MODULES, NO_NETWORK, module_hint

MAX_TEXT = 64 * 1024
_WORKER_DIRECTORY = __file__.rsplit("/", 1)[0]
_LIBRARY_DIRECTORY = f"{__file__.rsplit('/', 2)[0]}/sluice"  # not by importing it: the monitor is to stay small


def remember_source(filename: str, code: str) -> None:
    """Lets tracebacks, inspect and warnings show the lines of a cell."""
    linecache.cache[filename] = (len(code), None, code.splitlines(keepends=True), filename)


def describe(error: BaseException, filename: str) -> dict[str, Any]:
    """`{type, message, line?, column?, traceback}` of an exception that left a cell."""
    try:
        return _describe(error, filename)
    except BaseException as problem:  # an exception whose own __str__ raises, SystemExit even
        return {"type": type(error).__name__, "message": f"(its message could not be made: {type(problem).__name__})"}


def _describe(error: BaseException, filename: str) -> dict[str, Any]:
    told = traceback.TracebackException.from_exception(error, limit=None, max_group_width=15, max_group_depth=10)
    _drop_worker_frames(told, set())
    if isinstance(error, InputError) and error.line is not None and not told.stack:
        told.stack = traceback.StackSummary.from_list([traceback.FrameSummary(filename, error.line, "<module>")])
    text = "".join(told.format())
    found: dict[str, Any] = {"type": type(error).__qualname__, "message": _message(error), "traceback": _cut(text)}
    if isinstance(error, SyntaxError) and error.filename == filename and error.lineno:
        found |= {"line": error.lineno, "column": error.offset or 1}
        return found
    if isinstance(error, InputError) and error.line is not None:
        found["line"] = error.line
    own = [frame for frame in told.stack if frame.filename.startswith(("<cell ", "<script>"))]
    if own:
        found["line"] = own[-1].lineno
        if own[-1].colno is not None:
            found["column"] = own[-1].colno + 1
        if own[-1].filename != filename:
            found["message"] += f" (in code of {own[-1].filename.strip('<>')})"
    return found


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the code called exit({error.code!r}); a cell ends by reaching its end"
    text = error.msg if isinstance(error, SyntaxError) and error.msg else str(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        text += module_hint(error.name.partition(".")[0])
    if isinstance(error, OSError) and _is_of_network(error):
        text += NO_NETWORK
    return _cut(text)


def _is_of_network(error: OSError) -> bool:
    frames = [frame.f_globals.get("__name__") for frame, _ in traceback.walk_tb(error.__traceback__)]
    modules = {str(name).partition(".")[0] for name in [*frames, type(error).__module__]}
    return error.errno == errno.ENETUNREACH or not modules.isdisjoint(NETWORK_MODULES)


def _drop_worker_frames(told: traceback.TracebackException, seen: set[int]) -> None:
    if id(told) in seen:
        return
    seen.add(id(told))
    kind = told.exc_type_str or ""
    refused = kind.startswith("sluice.")  # a helper said no, and says why
    ours = (_WORKER_DIRECTORY, _LIBRARY_DIRECTORY + "/") if refused else (_WORKER_DIRECTORY,)
    kept = [frame for frame in told.stack if not frame.filename.startswith(ours)]
    if kind in {"SyntaxError", "IndentationError", "TabError"}:
        kept = [frame for frame in kept if not frame.filename.endswith("/ast.py")]
    told.stack = traceback.StackSummary.from_list(kept)
    for other in (told.__cause__, told.__context__, *(told.exceptions or ())):
        if other is not None:
            _drop_worker_frames(other, seen)


def _cut(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    half = MAX_TEXT // 2
    return f"{text[:half]}\n… [{len(text) - MAX_TEXT} characters omitted] …\n{text[-half:]}"
