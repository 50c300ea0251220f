"""Describes the shape of a value in error messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def describe(value: Any, depth: int = 0) -> str:
    """The shape of a value in a few words."""
    if isinstance(value, Mapping):
        inner = (
            ", ".join(f"{key!r}: {describe(item, depth + 1)}" for key, item in list(value.items())[:6])
            if depth < 2
            else "…"
        )
        more = ", …" if len(value) > 6 else ""
        return f"dict of {len(value)} keys {{{inner}{more}}}"
    if isinstance(value, str):
        return f"text of {len(value)} characters" + (f" {value[:60]!r}" if depth == 0 else "")
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        kinds = sorted({type(item).__name__ for item in value[:1000]})
        inner = f", the first is {describe(value[0], depth + 1)}" if len(value) and depth < 2 else ""
        return f"{type(value).__name__} of {len(value)} ({', '.join(kinds) or 'empty'}{inner})"
    return type(value).__name__
