"""Where in a result a value sits, and what is said about a value that cannot be there."""

from __future__ import annotations

from typing import Any

import numpy as np

Path = tuple[str | int, ...]


def exact_path(path: Path) -> str:
    """The path with every position: ``$.rows[3].price``."""
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def general_path(path: Path) -> str:
    """The path for all positions at once: ``$.rows[*].price``."""
    return "$" + "".join("[*]" if isinstance(part, int) else f".{part}" for part in path)


def type_name(value: object) -> str:
    """The type of a value as a reader knows it."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def advice(value: Any) -> str:
    """What to give instead of a value that has no JSON form."""
    if isinstance(value, bytes | bytearray | memoryview | np.bytes_):
        return "decode it to text first"
    if isinstance(value, complex | np.complexfloating):
        return "give its real and imaginary parts"
    if isinstance(value, np.timedelta64):
        return "give a length of time in days, seconds or smaller"
    if type(value).__module__.startswith("matplotlib"):
        return "hand figures over with save_figure(alt)"
    if callable(value):
        return "call it and give what it returns"
    if hasattr(value, "__next__"):
        return "make it a list first"
    return "give its parts as dicts, lists, numbers and text"
