"""Reads dicts that are one table: columns and rows, a dict of columns, a dict keyed by date or by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from sluice.errors import ShapeError
from sluice.shapes.describe import describe
from sluice.shapes.integers import keep_integers
from sluice.shapes.rows import frame_of_records, frame_of_rows, times_or_none

SCALARS = (str, int, float, bool, type(None), np.generic, pd.Timestamp)
COLUMNS = (list, tuple, np.ndarray, pd.Series, pd.Index)
SMALLEST_EPOCH_KEY = 10**8


def read_columns_and_rows(value: Mapping[Any, Any], steps: list[str]) -> pd.DataFrame | None:
    """``{columns, rows}`` and its variants, including the index of pandas' ``split`` format."""
    columns = next(
        (value[key] for key in ("columns", "fields", "headers") if isinstance(value.get(key), list | tuple)), None
    )
    key = next((key for key in ("rows", "data", "values") if isinstance(value.get(key), list | tuple)), None)
    if columns is None or key is None:
        return None
    names = [column.get("name", column.get("id")) if isinstance(column, Mapping) else column for column in columns]
    rows = value[key]
    if any(isinstance(name, list | dict | None) for name in names):
        return None
    if rows and all(isinstance(row, Mapping) for row in rows):
        frame = frame_of_records(rows).reindex(columns=names)
    elif all(isinstance(row, list | tuple) and len(row) == len(names) for row in rows):
        frame = frame_of_rows(rows, names)
    else:
        widths = sorted({len(row) if isinstance(row, list | tuple) else -1 for row in rows})
        raise ShapeError(
            f"there are {len(names)} columns, but the rows under {key!r} have {widths} cells: {describe(value)}"
        )
    index = value.get("index")
    if isinstance(index, list) and len(index) == len(frame):
        frame.index = pd.Index(index)
    steps.append(f"took {len(names)} columns and the rows under {key!r}")
    return frame


def read_by_date(value: Mapping[Any, Any], steps: list[str]) -> pd.DataFrame | None:
    """A dict whose keys are all times, of records or of single values."""
    keys = list(value)
    if not all(_may_be_time(key) for key in keys):
        return None
    cells = list(value.values())
    times = times_or_none(keys)
    if times is None:
        return None
    if all(isinstance(cell, Mapping) for cell in cells):
        frame = frame_of_records(cells)
    elif all(isinstance(cell, SCALARS) for cell in cells):
        frame = keep_integers(pd.DataFrame({"value": cells}), lambda _: cells)
    else:
        return None
    frame.insert(0, "date" if "date" not in frame.columns else "time", times)
    steps.append(f"took a dict keyed by {len(keys)} dates")
    return frame


def read_dict_of_columns(value: Mapping[Any, Any], steps: list[str]) -> pd.DataFrame | None:
    """Columns of equal length. Single values next to two or more columns are left out."""
    columns = {name: column for name, column in value.items() if isinstance(column, COLUMNS)}
    left = [str(name) for name in value if name not in columns]
    if not columns or any(
        isinstance(cell, Mapping | list | tuple) for column in columns.values() for cell in column[:1]
    ):
        return None
    if left and (
        len(columns) < 2 or not all(isinstance(value[name], SCALARS) for name in value if name not in columns)
    ):
        return None
    lengths = {str(name): len(column) for name, column in columns.items()}
    if len(value) == 1 and not any(lengths.values()):  # in {"data": []} "data" is hardly the name of a column
        return None
    if len(set(lengths.values())) > 1:
        raise ShapeError(f"the columns do not have the same length: {lengths}")
    steps.append(f"took a dict of {len(columns)} columns" + (f", left out {', '.join(left[:10])}" if left else ""))
    listed = {name: column if isinstance(column, pd.Series) else list(column) for name, column in columns.items()}
    return keep_integers(pd.DataFrame(listed), lambda position: list(listed.values())[position])


def read_named_records(value: Mapping[Any, Any], steps: list[str]) -> pd.DataFrame | None:
    """Records with the same keys, by name."""
    records = list(value.values())
    if len(records) < 2 or not all(isinstance(record, Mapping) and record for record in records):
        return None
    if any(set(record) != set(records[0]) for record in records) or not all(
        isinstance(cell, SCALARS) for record in records for cell in record.values()
    ):
        return None
    name = "key" if "key" not in records[0] else "name"
    steps.append(f"took {len(records)} records by name; the names are in the column {name!r}")
    frame = frame_of_records(records)
    frame.insert(0, name, list(value))
    return frame


def _may_be_time(key: Any) -> bool:
    if isinstance(key, str):
        return len(key) >= 6 and key[:2].isdigit()
    return hasattr(key, "isoformat") or (isinstance(key, int) and key >= SMALLEST_EPOCH_KEY)
