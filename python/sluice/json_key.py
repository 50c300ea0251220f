"""Dict keys and column names as JSON names: always text, and never the same name twice."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from collections.abc import Mapping
from fractions import Fraction
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd

from sluice.errors import ResultError
from sluice.json_path import Path, exact_path, type_name


def clean_text(value: str) -> str:
    """The text, with lone surrogates replaced by U+FFFD."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return str(value)


def key_text(key: Any, path: Path = ()) -> str:
    """A dict key or column name as text. Raises ResultError for a type that cannot be a key."""
    if isinstance(key, str):
        return clean_text(key)
    if isinstance(key, enum.Enum):
        return key_text(key.value, path)
    if key is None:
        return "null"
    if isinstance(key, bool | np.bool_):
        return "true" if key else "false"
    if isinstance(key, int | np.integer):
        return str(int(key))
    if isinstance(key, float | np.floating):
        return repr(float(key))
    if isinstance(key, dt.date | dt.time) and key is not pd.NaT:
        return key.isoformat()
    if isinstance(key, np.datetime64):
        return key_text(pd.Timestamp(key), path)
    if isinstance(key, tuple):
        return "_".join(key_text(part, path) for part in key if part != "")
    if isinstance(
        key, decimal.Decimal | uuid.UUID | pd.Period | pd.Interval | dt.timedelta | Fraction | PurePath
    ) or pd.isna(key):
        return str(key)
    raise ResultError(
        f"{exact_path(path)} has the key {key!r} of type {type_name(key)}; use strings, numbers or dates as keys"
    )


def distinct_keys(mapping: Mapping[Any, Any], path: Path) -> dict[str, Any]:
    """The keys by their JSON name. Raises ResultError when two keys have the same name."""
    names: dict[str, Any] = {}
    for key in mapping:
        name = key_text(key, path)
        if name in names:
            raise ResultError(
                f"{exact_path(path)} has two keys that are both {name!r} in JSON: "
                f"{names[name]!r} and {key!r}; rename one of them"
            )
        names[name] = key
    return names


def distinct_columns(columns: list[Any], path: Path) -> list[str]:
    """The JSON names of columns. Raises ResultError when two columns have the same name."""
    seen: dict[str, Any] = {}
    for column in columns:
        text = key_text(column, path)
        if text in seen:
            raise ResultError(
                f"{exact_path(path)} has two columns that are both {text!r} in JSON: {seen[text]!r} and {column!r} "
                "(the index counts as a column); rename one, or drop the index with reset_index(drop=True)"
            )
        seen[text] = column
    return list(seen)


def frame_columns(frame: pd.DataFrame, path: Path) -> dict[str, Any]:
    """The columns as arrays by JSON name, with the index first."""
    names: list[Any] = []
    arrays: list[Any] = []
    if not is_plain_range(frame.index):
        for level in range(frame.index.nlevels):
            fallback = "index" if frame.index.nlevels == 1 else f"level_{level}"
            name = frame.index.names[level]
            names.append(fallback if name is None else name)
            arrays.append(frame.index.get_level_values(level).array)
    names += list(frame.columns)
    arrays += [frame.iloc[:, position].array for position in range(frame.shape[1])]
    return dict(zip(distinct_columns(names, path), arrays, strict=True))


def is_plain_range(index: pd.Index[Any]) -> bool:
    """Whether an index only counts the rows: 0, 1, 2, … without a name."""
    if index.name is not None or index.nlevels > 1 or index.dtype.kind not in "iu":
        return False
    return bool(np.array_equal(index.to_numpy(), np.arange(len(index))))
