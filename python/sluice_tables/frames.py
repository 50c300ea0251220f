"""Reads a frame of rows from any value that an input can have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sluice import to_frame
from sluice.shapes.integers import keep_integers
from sluice.shapes.rows import frame_of_records
from sluice_tables.values import Refusal, unique_names


def read_frame(value: Any, path: list[str], notes: list[str]) -> pd.DataFrame:
    """The rows at a path inside a value, with distinct column names. Appends what was done to `notes`. Raises Refusal for bytes."""
    for key in path:
        value = value[key]
    frame = _frame(value, notes)
    names = unique_names(frame.columns)
    return frame if list(frame.columns) == names else frame.set_axis(names, axis=1)


def _frame(value: Any, notes: list[str]) -> pd.DataFrame:
    if isinstance(value, pd.DataFrame):
        plain = isinstance(value.index, pd.RangeIndex) and value.index.name is None
        return value if plain else value.reset_index()
    if isinstance(value, str):
        lines = value.splitlines()
        return pd.DataFrame({"line": np.arange(1, len(lines) + 1), "text": pd.array(lines, dtype="str")})
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return frame_of_records(value)
    if isinstance(value, list) and not value:
        return pd.DataFrame()
    if isinstance(value, dict) and value and all(isinstance(row, dict) for row in value.values()):
        frame = frame_of_records(list(value.values()))
        name = next(name for name in ("key", "_key", "__key") if name not in frame.columns)
        frame.insert(0, name, list(value))
        return frame
    if isinstance(value, list | dict):
        try:
            frame = to_frame(value)
            notes.extend(frame.attrs.get("to_frame", []))
            return frame if isinstance(frame.index, pd.RangeIndex) else frame.reset_index()
        except ValueError:
            pass
    if isinstance(value, list):
        frame = pd.DataFrame({"value": pd.Series(value, dtype=object)}).infer_objects()
        return keep_integers(frame, lambda _: value)
    if isinstance(value, dict):
        return pd.DataFrame({"key": list(value), "value": pd.Series(list(value.values()), dtype=object)})
    if isinstance(value, bytes | bytearray):
        raise Refusal("bytes")
    return pd.DataFrame({"value": pd.Series([value], dtype=object)})
