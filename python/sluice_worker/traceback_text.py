"""Describes errors of user code for its author: with line numbers and source of the cell, without the worker's frames."""

from __future__ import annotations

import errno
import json
import linecache
import traceback
from typing import Any

from .inputs import InputError
from .inputs_file import WRITE_REFUSED, is_inputs_file
from .module_hint import NETWORK_MODULES, NO_NETWORK, module_hint
from .removed_names import SUGGESTION, removed_name_hint

MAX_TEXT_BYTES = 48 << 10  # as JSON: message and traceback travel in the header of a frame
MAX_TYPE_CHARACTERS = 500
_WORKER_DIRECTORY = __file__.rsplit("/", 1)[0]
_LIBRARY_DIRECTORY = (
    f"{__file__.rsplit('/', 2)[0]}/sluice"  # described without importing it, which would make the monitor large
)


def remember_source(filename: str, code: str) -> None:
    """Let tracebacks, inspect and warnings show the lines of a cell."""
    linecache.cache[filename] = (len(code), None, code.splitlines(keepends=True), filename)


def describe(error: BaseException, filename: str) -> dict[str, Any]:
    """`{type, message, line?, column?, traceback}` of an exception that a cell did not catch. Never raises."""
    try:
        return _describe(error, filename)
    except BaseException as problem:  # its __str__ may raise anything, even SystemExit
        return {
            "type": _cut_name(type(error).__name__),
            "message": f"(reading its message raised {type(problem).__name__})",
        }


def _describe(error: BaseException, filename: str) -> dict[str, Any]:
    summary = traceback.TracebackException.from_exception(error, limit=None, max_group_width=15, max_group_depth=10)
    _drop_worker_frames(summary, set())
    if isinstance(error, InputError) and error.line is not None and not summary.stack:
        summary.stack = traceback.StackSummary.from_list([traceback.FrameSummary(filename, error.line, "<module>")])
    text = "".join(summary.format())
    if removed_name_hint(error):  # Python's own guess would be a wrong one
        text = SUGGESTION.sub("", text)
    described: dict[str, Any] = {
        "type": _cut_name(type(error).__qualname__),
        "message": _message(error),
        "traceback": _cut(text),
    }
    if isinstance(error, SyntaxError) and error.filename == filename and error.lineno:
        described |= {"line": error.lineno, "column": error.offset or 1}
        return described
    if isinstance(error, InputError) and error.line is not None:
        described["line"] = error.line
    own = [frame for frame in summary.stack if frame.filename.startswith(("<cell ", "<script>"))]
    if own:
        described["line"] = own[-1].lineno
        if own[-1].colno is not None:
            described["column"] = own[-1].colno + 1
        if own[-1].filename != filename:
            described["message"] += f" (in code from {own[-1].filename.strip('<>')})"
    return described


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the code called exit({error.code!r}); a cell ends after its last line and needs no exit"
    text = error.msg if isinstance(error, SyntaxError) and error.msg else str(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        text += module_hint(error.name)
    if isinstance(error, OSError) and _is_network_error(error):
        text += NO_NETWORK
    if isinstance(error, PermissionError) and is_inputs_file(error.filename):
        text += WRITE_REFUSED
    if hint := removed_name_hint(error):
        text = SUGGESTION.sub("", text).removesuffix(".") + hint
    return _cut(text)


def _is_network_error(error: OSError) -> bool:
    frames = [frame.f_globals.get("__name__") for frame, _ in traceback.walk_tb(error.__traceback__)]
    modules = {str(name).partition(".")[0] for name in [*frames, type(error).__module__]}
    return error.errno == errno.ENETUNREACH or not modules.isdisjoint(NETWORK_MODULES)


def _drop_worker_frames(summary: traceback.TracebackException, seen: set[int]) -> None:
    if id(summary) in seen:
        return
    seen.add(id(summary))
    kind = summary.exc_type_str or ""
    raised_by_helper = kind.startswith("sluice.")  # its message explains the error without the helper's own frames
    ours = (_WORKER_DIRECTORY, _LIBRARY_DIRECTORY + "/") if raised_by_helper else (_WORKER_DIRECTORY,)
    kept = [frame for frame in summary.stack if not frame.filename.startswith(ours)]
    if kind in {"SyntaxError", "IndentationError", "TabError"}:
        kept = [frame for frame in kept if not frame.filename.endswith("/ast.py")]
    summary.stack = traceback.StackSummary.from_list(kept)
    for other in (summary.__cause__, summary.__context__, *(summary.exceptions or ())):
        if other is not None:
            _drop_worker_frames(other, seen)


def _cut_name(name: str) -> str:
    return name if len(name) <= MAX_TYPE_CHARACTERS else f"{name[: MAX_TYPE_CHARACTERS - 1]}…"


def _cut(text: str) -> str:
    kept, half = text, MAX_TEXT_BYTES // 2
    while len(kept) > MAX_TEXT_BYTES or len(json.dumps(kept)) > MAX_TEXT_BYTES:
        half = half * 7 // 8
        kept = f"{text[:half]}\n… [{len(text) - 2 * half} characters omitted] …\n{text[-half:]}"
    return kept
