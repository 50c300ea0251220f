"""Converts Python values to JSON values: exactly, or with an error. Nothing is approximated silently."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import math
import uuid
from collections.abc import Callable, ItemsView, Iterable, KeysView, Mapping, Sequence, ValuesView
from fractions import Fraction
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd

from sluice.errors import ResultError
from sluice.json_key import clean_text, distinct_columns, distinct_keys, frame_columns, is_plain_range
from sluice.json_path import Path, advice, exact_path, general_path, type_name

MAX_DEPTH = 200
MAX_NOTED_PATHS = 100
MAX_INTEGER_BITS = 14_000  # stays below the number of digits that Python converts to text


class JsonValues:
    """Converts one value. Afterwards `notes` reports what became null and the frames in it."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._non_finite: dict[str, int] = {}
        self._frames: dict[str, Any] = {}
        self._open: list[int] = []

    def convert(self, value: object, path: Path = ()) -> Any:
        """The JSON value for `value`, which is located at `path`. Raises ResultError."""
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is str:
            return clean_text(value)  # type: ignore[arg-type]
        if kind is int:
            return _exact_integer(value, path)  # type: ignore[arg-type]
        if kind is float or kind is np.float64:
            return float(value) if math.isfinite(value) else self._null(path)  # type: ignore[arg-type]
        for types, convert in _CONVERTERS:
            if isinstance(value, types):
                return convert(self, value, path)
        return self._convert_by_name(value, path)

    def notes(self) -> dict[str, Any]:
        """The diagnostics about the converted value."""
        paths = list(self._non_finite.items())
        non_finite = [{"path": path, "count": count} for path, count in paths[:MAX_NOTED_PATHS]]
        rest = sum(count for _, count in paths[MAX_NOTED_PATHS:])
        if rest:
            non_finite.append({"path": f"({len(paths) - MAX_NOTED_PATHS} more paths)", "count": rest})
        return {"nonFinite": non_finite, "frames": self._frames}

    def _null(self, path: Path, count: int = 1) -> Any:
        if count:
            key = general_path(path)
            self._non_finite[key] = self._non_finite.get(key, 0) + count
        return None

    def _inside(self, value: object, path: Path, convert: Callable[[], Any]) -> Any:
        """Convert the parts of a container. Raises ResultError for cycles and for nesting that is too deep."""
        if id(value) in self._open:
            raise ResultError(f"{exact_path(path)} contains itself (a cycle of {type_name(value)}); build a plain tree")
        if len(self._open) >= MAX_DEPTH:
            raise ResultError(f"{exact_path(path)[:80]}… is nested more than {MAX_DEPTH} levels deep; flatten it")
        self._open.append(id(value))
        try:
            return convert()
        finally:
            self._open.pop()

    # containers

    def _mapping(self, value: Mapping[Any, Any], path: Path) -> Any:
        def convert() -> dict[str, Any]:
            keys = distinct_keys(value, path)
            return {name: self.convert(value[key], (*path, name)) for name, key in keys.items()}

        return self._inside(value, path, convert)

    def _sequence(self, value: Iterable[Any], path: Path) -> Any:
        return self._inside(value, path, lambda: [self.convert(item, (*path, i)) for i, item in enumerate(value)])

    def _set(self, value: Iterable[Any], path: Path) -> Any:
        """Sorts the set, so that the same set always gives the same JSON."""
        return self._sequence(sorted(value, key=lambda item: (type(item).__name__, _sortable(item))), path)

    def _dataclass(self, value: Any, path: Path) -> Any:
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return self._inside(value, path, lambda: self._mapping(fields, path))

    # numpy

    def _numpy_scalar(self, value: np.generic, path: Path) -> Any:
        if isinstance(value, np.datetime64):
            return self.convert(pd.Timestamp(value), path)
        if isinstance(value, np.timedelta64):
            exact = np.datetime_data(value.dtype)[0] not in ("Y", "M", "generic")
            return self.convert(pd.Timedelta(value), path) if exact or np.isnat(value) else self._refuse(value, path)
        if isinstance(value, np.void) and value.dtype.names:
            return self._mapping({name: value[name] for name in value.dtype.names}, path)
        if isinstance(value, np.floating):
            return self.convert(float(value), path)
        item = value.item()
        if isinstance(item, np.generic):
            return self._refuse(value, path)
        return self.convert(item, path)

    def _array(self, value: np.ndarray[Any, Any], path: Path) -> Any:
        if value.ndim == 0:
            return self.convert(value.dtype.type(value[()]) if value.dtype.kind != "O" else value[()], path)
        if isinstance(value, np.ma.MaskedArray):
            masked = np.ma.getmaskarray(value)
            self._null((*path, 0), int(masked.sum()) if value.ndim == 1 else 0)
            rows = [None if value.ndim == 1 and masked[i] else value[i] for i in range(len(value))]
            return self._sequence(rows, path)
        plain = np.asarray(value)  # indexing a np.matrix gives a matrix again, never a row
        if plain.ndim == 1:
            return self._items(value, plain, path)
        return self._inside(value, path, lambda: [self._array(row, (*path, i)) for i, row in enumerate(plain)])

    def _masked(self, _value: object, path: Path) -> None:
        self._null(path)

    def _items(self, owner: object, values: Any, path: Path) -> Any:
        """The values of a one-dimensional container."""
        return self._inside(owner, path, lambda: self._column(values, (*path, 0), lambda i: (*path, i)))

    def _column(self, values: Any, general: Path, path_of: Callable[[int], Path]) -> list[Any]:
        """The JSON values of one column or one-dimensional array, with a fast path for plain numbers."""
        dtype = values.dtype
        if isinstance(dtype, np.dtype):
            array = np.asarray(values)
            if dtype.kind in "iub":
                listed: list[Any] = array.tolist()
                return listed
            if dtype.kind == "f" and dtype.itemsize <= 8:
                return self._floats(array, general)
        if isinstance(dtype, pd.CategoricalDtype | pd.SparseDtype):
            return self._column(np.asarray(values), general, path_of)
        return [self.convert(item, path_of(i)) for i, item in enumerate(values)]

    def _floats(self, array: np.ndarray[Any, Any], general: Path) -> list[Any]:
        finite = np.isfinite(array)
        listed: list[Any] = array.tolist()
        missing = int(array.size - finite.sum())
        if missing:
            self._null(general, missing)
            for i in np.flatnonzero(~finite).tolist():
                listed[i] = None
        return listed

    # pandas

    def _frame(self, value: pd.DataFrame, path: Path) -> Any:
        columns = frame_columns(value, path)
        self._refuse_too_large(len(value), columns)
        self._note_frame(value.shape[0], {name: column.dtype for name, column in columns.items()}, path)
        return self._inside(value, path, lambda: self._records(columns, len(value), path))

    def _series(self, value: pd.Series[Any], path: Path) -> Any:
        if is_plain_range(value.index):
            return self._items(value, value.array, path)
        name = "value" if value.name is None else value.name
        columns = frame_columns(pd.DataFrame({name: value}), path)
        self._refuse_too_large(len(value), columns)
        return self._inside(value, path, lambda: self._records(columns, len(value), path))

    def _index(self, value: pd.Index[Any], path: Path) -> Any:
        if isinstance(value, pd.MultiIndex):
            return self._sequence(list(value), path)
        return self._items(value, value.array, path)

    def _extension_array(self, value: Any, path: Path) -> Any:
        return self._items(value, value, path)

    def _records(self, columns: dict[str, Any], rows: int, path: Path) -> list[dict[str, Any]]:
        def column_path(name: str) -> Callable[[int], Path]:
            return lambda i: (*path, i, name)

        lists = [self._column(values, (*path, 0, name), column_path(name)) for name, values in columns.items()]
        if not lists:
            return [{} for _ in range(rows)]
        names = list(columns)
        return [dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True)]

    def _refuse_too_large(self, rows: int, columns: dict[str, Any]) -> None:
        """Refuse a frame that is too large before converting it. Each cell takes at least its key and five more bytes."""
        least = rows * sum(len(name) + 5 for name in columns)
        if least > self._max_bytes:
            from sluice.result import result_too_large

            raise result_too_large(self._max_bytes, least)

    def _note_frame(self, rows: int, dtypes: Mapping[str, object], path: Path) -> None:
        if len(self._frames) < MAX_NOTED_PATHS:
            described = [{"name": name, "dtype": str(dtype)} for name, dtype in dtypes.items()]
            self._frames[exact_path(path)] = {"columns": described, "rows": rows}

    # pyarrow, which may not be installed

    def _convert_by_name(self, value: object, path: Path) -> Any:
        module = type(value).__module__.partition(".")[0]
        if module == "pyarrow":
            return self._arrow(value, path)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._dataclass(value, path)
        return self._refuse(value, path)

    def _arrow(self, value: Any, path: Path) -> Any:
        if hasattr(value, "column_names"):
            distinct_columns(list(value.column_names), path)
            columns = dict(zip(value.column_names, value.columns, strict=True))
            self._refuse_too_large(value.num_rows, columns)
            self._note_frame(value.num_rows, {name: column.type for name, column in columns.items()}, path)
            return self._sequence(value.to_pylist(), path)
        if hasattr(value, "to_pylist"):
            return self._sequence(value.to_pylist(), path)
        if hasattr(value, "as_py"):
            return self.convert(value.as_py(), path)
        return self._refuse(value, path)

    def _refuse(self, value: object, path: Path) -> Any:
        raise ResultError(f"{exact_path(path)} is a {type_name(value)}, which has no JSON form; {advice(value)}")

    def _timestamp(self, value: Any, path: Path) -> Any:
        return self._null(path) if pd.isna(value) else value.isoformat()

    def _timedelta(self, value: dt.timedelta, path: Path) -> float | None:
        return self._null(path) if pd.isna(value) else pd.Timedelta(value).total_seconds()

    def _decimal(self, value: decimal.Decimal, path: Path) -> str | None:
        return str(value) if value.is_finite() else self._null(path)

    def _float(self, value: float, path: Path) -> float | None:
        return float(value) if math.isfinite(value) else self._null(path)


def _exact_integer(value: int, path: Path) -> int:
    if value.bit_length() > MAX_INTEGER_BITS:
        raise ResultError(
            f"{exact_path(path)} is an integer of {value.bit_length():,} bits; pass it as a string or a float"
        )
    return int(value)


def _sortable(item: object) -> Any:
    return item if isinstance(item, str | int | float) and item == item else repr(item)


_CONVERTERS: tuple[tuple[Any, Callable[[JsonValues, Any, Path], Any]], ...] = (
    (enum.Enum, lambda self, value, path: self.convert(value.value, path)),
    (bytes | bytearray | memoryview | complex, JsonValues._refuse),
    (type(np.ma.masked), JsonValues._masked),
    (pd.DataFrame, JsonValues._frame),
    (pd.Series, JsonValues._series),
    (pd.Index, JsonValues._index),
    (np.ndarray, JsonValues._array),
    (np.generic, JsonValues._numpy_scalar),
    (str, lambda self, value, path: clean_text(value)),
    (int, lambda self, value, path: _exact_integer(value, path)),
    (float, JsonValues._float),
    ((type(pd.NaT), type(pd.NA)), JsonValues._masked),
    ((dt.datetime, dt.date, dt.time), JsonValues._timestamp),
    (dt.timedelta, JsonValues._timedelta),
    (decimal.Decimal, JsonValues._decimal),
    ((pd.Period, pd.Interval, uuid.UUID, Fraction, PurePath), lambda self, value, path: str(value)),
    (pd.api.extensions.ExtensionArray, JsonValues._extension_array),
    (Mapping, JsonValues._mapping),
    ((set, frozenset), JsonValues._set),
    ((Sequence, KeysView, ValuesView, ItemsView), JsonValues._sequence),
)
