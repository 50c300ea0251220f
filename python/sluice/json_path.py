"""Paths to values inside a result, and advice for values that have no JSON form."""

from __future__ import annotations

from typing import Any

import numpy as np

Path = tuple[str | int, ...]


def exact_path(path: Path) -> str:
    """The path with every position: ``$.rows[3].price``."""
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def general_path(path: Path) -> str:
    """The path with ``*`` for every position: ``$.rows[*].price``."""
    return "$" + "".join("[*]" if isinstance(part, int) else f".{part}" for part in path)


def type_name(value: object) -> str:
    """The name of the type of a value, without the module for built-in types."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def advice(value: Any) -> str:
    """What to use instead of a value that has no JSON form."""
    if isinstance(value, bytes | bytearray | memoryview | np.bytes_):
        return "decode it to text first"
    if isinstance(value, complex | np.complexfloating):
        return "use its real and imaginary parts"
    if isinstance(value, np.timedelta64):
        return "use a duration in days, seconds or a smaller unit"
    if type(value).__module__.startswith("matplotlib"):
        return "emit figures with save_figure(alt)"
    if callable(value):
        return "call it and use what it returns"
    if hasattr(value, "__next__"):
        return "convert it to a list first"
    return "convert it to dicts, lists, numbers and text"
