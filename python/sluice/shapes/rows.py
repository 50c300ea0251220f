"""Reads lists and arrays: records, rows with a header, rows that start with a time, plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from sluice.errors import TimeError
from sluice.shapes.integers import keep_integers
from sluice.times import read_times


def read_array(value: Any, steps: list[str]) -> pd.DataFrame | None:
    """A numpy array: structured, one-dimensional numbers, or rows."""
    if value.dtype.names:
        steps.append("took the fields of a structured array as columns")
        return pd.DataFrame(value)
    if value.ndim == 1 and value.dtype.kind in "iuf":
        steps.append("turned the array into one column named 'value'")
        return pd.DataFrame({"value": value})
    return read_list(value.tolist(), steps) if value.ndim == 2 and len(value) else None


def read_list(rows: list[Any], steps: list[str]) -> pd.DataFrame | None:
    """A list that is not empty."""
    if all(isinstance(row, Mapping) for row in rows):
        steps.append(f"took a list of {len(rows)} records")
        return frame_of_records(rows)
    if all(isinstance(row, list | tuple) for row in rows):
        return _read_rows(rows, steps)
    if all(isinstance(row, int | float | None) and not isinstance(row, bool) for row in rows):
        steps.append("turned the list into one column named 'value'")
        return keep_integers(pd.DataFrame({"value": rows}), lambda _: rows)
    return None


def frame_of_records(records: list[Any]) -> pd.DataFrame:
    """A frame with one row per record. Integers stay exact."""
    frame = pd.DataFrame.from_records(records)
    return keep_integers(frame, lambda position: [record.get(frame.columns[position]) for record in records])


def frame_of_rows(rows: list[Any], columns: list[Any]) -> pd.DataFrame:
    """A frame of rows that have one cell per column. Integers stay exact."""
    return keep_integers(pd.DataFrame(rows, columns=columns), lambda position: [row[position] for row in rows])


def times_or_none(values: Any) -> Any:
    """The parsed times, or None when the values are not times. Times without a zone stay without one."""
    try:
        times = read_times(list(values))
    except (TimeError, ValueError, OverflowError):
        return None
    if times.instants.isna().all() or (
        any(kind == "epoch s" for kind in times.kinds) and times.instants.min() < pd.Timestamp("1975", tz="UTC")
    ):
        return None
    return times.instants.tz_localize(None) if times.naive == len(times.instants) else times.instants


def _read_rows(rows: list[Any], steps: list[str]) -> pd.DataFrame | None:
    width = len(rows[0])
    if width < 2 or any(len(row) != width for row in rows):
        return None
    if (
        len(rows) > 1
        and all(isinstance(name, str) for name in rows[0])
        and not all(isinstance(cell, str) for cell in rows[1])
    ):
        steps.append("took the first row as column names")
        return frame_of_rows(rows[1:], list(rows[0]))
    times = times_or_none([row[0] for row in rows])
    if times is None:
        return None
    names = ["value"] if width == 2 else [f"value_{position}" for position in range(1, width)]
    steps.append(f"took a list of [time, {', '.join(names)}] rows")
    frame = frame_of_rows([row[1:] for row in rows], names)
    frame.insert(0, "time", times)
    return frame
