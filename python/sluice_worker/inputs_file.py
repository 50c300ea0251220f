"""`inputs.json`: the inputs of a cell as one JSON file, for code that opens it instead of using variables."""

from __future__ import annotations

import ast
import base64
import contextlib
import json
import os
import re
from typing import Any, BinaryIO

from .inputs import InputError, Inputs
from .scratch import INPUTS_FILE, SCRATCH

PATH = f"{SCRATCH}/{INPUTS_FILE}"
WRITE_REFUSED = f". {INPUTS_FILE} is written before each cell that names it, and holds the inputs: use another name."
_NAMED = re.compile(rf"(?<![\w.-]){re.escape(INPUTS_FILE)}\b")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def is_inputs_file(path: object) -> bool:
    """Whether a path that an error names is that of the file."""
    return isinstance(path, str) and os.path.realpath(path) == PATH


def line_that_names_it(tree: ast.Module) -> int | None:
    """The line of the first text in the code that names the file, or None."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if _NAMED.search(text):
                return node.lineno
    return None


def write_inputs_file(inputs: Inputs, max_bytes: int, path: str = PATH) -> None:
    """Write an object with every input under its alias and its local names, read-only. Writes nothing when there are no inputs.

    Raises InputError for an input that cannot be read, and when the file does not fit. There is no file then.
    """
    if not inputs:
        return
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444), "wb") as file:
            _write(_Bounded(file, max_bytes), inputs, max_bytes)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(path)
        if isinstance(error, OSError):
            raise InputError(f"{INPUTS_FILE} cannot be written: {error.strerror}. {_INSTEAD}") from None
        raise


_INSTEAD = "Use inputs['alias'], which needs no copy."


class _Bounded:
    """A file of limited size."""

    def __init__(self, file: BinaryIO, max_bytes: int) -> None:
        self._file = file
        self._max_bytes = max_bytes
        self._bytes = 0

    def write(self, content: Any) -> None:
        self._bytes += len(content)
        if self._bytes > self._max_bytes:
            raise _too_large(self._max_bytes)
        self._file.write(content)


def _too_large(max_bytes: int) -> InputError:
    return InputError(
        f"{INPUTS_FILE} would have more than {max_bytes:,} bytes, the limit inputBytes, with all inputs as JSON. {_INSTEAD}"
    )


def _write(file: _Bounded, inputs: Inputs, max_bytes: int) -> None:
    separator = b"{"
    for name in inputs.all_names():
        file.write(separator + json.dumps(name, ensure_ascii=False).encode() + b":")
        for part in _json_parts(inputs, name, max_bytes):
            file.write(part)
        separator = b",\n"
    file.write(b"}\n")


def _json_parts(inputs: Inputs, name: str, max_bytes: int) -> list[Any]:
    """The JSON of one input. That of a JSON input is exactly what was sent, so every digit is kept."""
    kind, raw = inputs.raw(name)
    value = inputs.parse(name)  # anew: a cell may have changed the value that its variables hold
    if kind == "json":
        return [raw[len(_BYTE_ORDER_MARK) :] if raw[: len(_BYTE_ORDER_MARK)] == _BYTE_ORDER_MARK else raw]
    if kind in ("jsonl", "text"):
        return [json.dumps(value, ensure_ascii=False).encode()]
    if kind == "bytes":
        return [b'"', base64.b64encode(raw), b'"']
    from sluice.errors import OutputLimitError, ResultError
    from sluice.json_value import JsonValues

    try:
        rows = JsonValues(max_bytes).convert(value, (name,))
    except OutputLimitError:
        raise _too_large(max_bytes) from None
    except ResultError as error:
        raise InputError(f"input {name!r} has no form for {INPUTS_FILE}: {error}. {_INSTEAD}") from None
    return [json.dumps(rows, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()]
