"""Reads any value: picks the reader for its shape, and finds the one table inside nested values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sluice.errors import ShapeError
from sluice.shapes.columns import (
    SCALARS,
    read_by_date,
    read_columns_and_rows,
    read_dict_of_columns,
    read_named_records,
)
from sluice.shapes.describe import describe
from sluice.shapes.integers import keep_integers
from sluice.shapes.rows import read_array, read_list
from sluice.shapes.text import parse_text
from sluice.shapes.tool_result import is_content_block, unwrap_content, unwrap_tool_result

MAX_NESTING = 6


def read_value(value: Any, steps: list[str], depth: int = 0) -> pd.DataFrame | None:
    """The frame of a value, or None when its shape is not recognized. Appends each step taken to `steps`."""
    if isinstance(value, pd.DataFrame):
        steps.append("used the DataFrame unchanged")
        return value.copy(deep=False)
    if isinstance(value, pd.Series):
        steps.append("turned the Series into a column and kept its index")
        return value.to_frame(name="value" if value.name is None else value.name)
    if isinstance(value, str | bytes | bytearray):
        return _read_text(value if isinstance(value, str) else bytes(value).decode("utf-8", "replace"), steps, depth)
    if isinstance(value, np.ndarray) and value.ndim:
        return read_array(value, steps)
    if type(value).__module__.partition(".")[0] == "pyarrow" and hasattr(value, "to_pandas"):
        return _read_arrow(value, steps)
    if isinstance(value, Mapping):
        return _read_mapping(value, steps, depth)
    if isinstance(value, Sequence) and len(value):
        return _read_sequence(list(value), steps, depth)
    return None


def _read_text(text: str, steps: list[str], depth: int) -> pd.DataFrame | None:
    parsed = parse_text(text, steps)
    return parsed if parsed is None or isinstance(parsed, pd.DataFrame) else read_value(parsed, steps, depth)


def _read_arrow(value: Any, steps: list[str]) -> pd.DataFrame:
    steps.append("converted the pyarrow table")
    converted = value.to_pandas()
    if isinstance(converted, pd.DataFrame):
        return keep_integers(converted, lambda position: value.column(position).to_pylist())
    return keep_integers(pd.DataFrame({"value": pd.Series(converted)}), lambda _: value.to_pylist())


def _read_sequence(rows: list[Any], steps: list[str], depth: int) -> pd.DataFrame | None:
    if all(is_content_block(row) for row in rows):
        return read_value(unwrap_content(rows, steps), steps, depth)
    return read_list(rows, steps)


def _read_mapping(value: Mapping[Any, Any], steps: list[str], depth: int) -> pd.DataFrame | None:
    if not value or depth > MAX_NESTING:
        return None
    readers: tuple[Callable[[Mapping[Any, Any], list[str]], pd.DataFrame | None], ...] = (
        lambda mapping, taken: read_value(unwrap_tool_result(mapping, taken), taken, depth),
        read_columns_and_rows,
        read_by_date,
        lambda mapping, taken: _read_nested(mapping, taken, depth),
        read_dict_of_columns,
        read_named_records,
    )
    for reader in readers:
        taken: list[str] = []  # the steps of a reader that finds nothing are dropped
        frame = reader(value, taken)
        if frame is not None:
            steps.extend(taken)
            return frame
    if depth == 0 and all(isinstance(item, SCALARS) for item in value.values()):
        steps.append("took one record")
        return pd.DataFrame([dict(value)])
    return None


def _read_nested(value: Mapping[Any, Any], steps: list[str], depth: int) -> pd.DataFrame | None:
    """The table under one key. The steps name the keys that were left out."""
    found: dict[Any, tuple[pd.DataFrame, list[str]]] = {}
    for key, item in value.items():
        inner: list[str] = []
        frame = _read_table(item, inner, depth + 1)
        if frame is not None:
            found[key] = (frame, inner)
    if len(found) == 1:
        key, (frame, inner) = next(iter(found.items()))
        left = [str(other) for other in value if other != key]
        steps.append(f"took the table under {key!r}" + (f", left out {', '.join(left[:10])}" if left else ""))
        steps.extend(inner)
        return frame
    return _join_pairs(value, found, steps) if found else None


def _read_table(item: Any, steps: list[str], depth: int) -> pd.DataFrame | None:
    if isinstance(item, list | tuple) and item and all(isinstance(row, Mapping | list | tuple) for row in item):
        return _read_sequence(list(item), steps, depth)
    if isinstance(item, Mapping) and not all(isinstance(cell, SCALARS) for cell in item.values()):
        return _read_mapping(item, steps, depth)
    if isinstance(item, Mapping) and len(item) > 1:
        return read_by_date(item, steps)
    return read_value(item, steps, depth) if isinstance(item, pd.DataFrame) else None


def _join_pairs(
    value: Mapping[Any, Any], found: dict[Any, tuple[pd.DataFrame, list[str]]], steps: list[str]
) -> pd.DataFrame | None:
    """Join lists of pairs that have the same times. Raises ShapeError for other tables, because the caller has to choose."""
    if all(isinstance(item, Mapping) for item in value.values()):
        return None
    frames = {key: frame for key, (frame, _) in found.items()}
    first = next(iter(frames.values()))
    if all(
        list(frame.columns) == ["time", "value"] and frame["time"].equals(first["time"]) for frame in frames.values()
    ):
        steps.append(f"joined the pairs under {', '.join(map(repr, frames))} on their times")
        return pd.DataFrame({"time": first["time"], **{key: frame["value"] for key, frame in frames.items()}})
    names = ", ".join(f"value[{key!r}]" for key in frames)
    raise ShapeError(f"there are {len(frames)} tables in this value; pass one of {names}: {describe(value)}")
