"""The kinds of columns; cells as JSON values and as text; values to compare cells with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from sluice.json_value import JsonValues

_INFERRED = {
    "string": "text",
    "boolean": "boolean",
    "integer": "integer",
    "floating": "number",
    "mixed-integer-float": "number",
    "datetime": "time",
    "date": "time",
    "datetime64": "time",
    "decimal": "number",
}


_NUMBER = re.compile(r"\s*[+-]?[\d.,]*\d[\d.,]*(?:[eE][+-]?\d+)?\s*")


class Refusal(Exception):  # noqa: N818
    """A question that cannot be answered, because of the data or the question. The host turns the facts into a sentence."""

    def __init__(self, code: str, **facts: Any) -> None:
        super().__init__(code)
        self.facts = {"code": code, **facts}


def kind_of(column: Any) -> str:
    """The kind of a column's values: integer, number, boolean, time, text or other."""
    types = pd.api.types
    if types.is_timedelta64_dtype(column.dtype):
        return "number"
    if types.is_bool_dtype(column.dtype):
        return "boolean"
    if types.is_integer_dtype(column.dtype):
        return "integer"
    if types.is_numeric_dtype(column.dtype):
        return "number"
    if types.is_datetime64_any_dtype(column.dtype):
        return "time"
    if isinstance(column.dtype, pd.StringDtype):
        return "text"
    if column.dtype == object:
        return _INFERRED.get(types.infer_dtype(column, skipna=True), "other")
    return "other"


def to_plain(value: Any) -> Any:
    """A JSON value for any value. A value without a JSON form becomes text."""
    try:
        return JsonValues(1 << 30).convert(value)
    except Exception:
        if isinstance(value, list):
            return [to_plain(cell) for cell in value]
        return f"<{len(value)} bytes>" if isinstance(value, bytes | bytearray | memoryview) else str(value)


def to_short(value: Any, max_characters: int = 80) -> Any:
    """A JSON value, with long text cut."""
    value = to_plain(value)
    return value[:max_characters] + "…" if isinstance(value, str) and len(value) > max_characters else value


def to_seconds(column: Any) -> Any:
    """Convert a column of durations to seconds. Any other column is returned unchanged."""
    return column.dt.total_seconds() if pd.api.types.is_timedelta64_dtype(column.dtype) else column


def to_texts(column: Any) -> Any:
    """A column as an Arrow array of texts."""
    if column.dtype != object and kind_of(column) in ("text", "integer", "number", "boolean"):
        return pa.array(column, from_pandas=True).cast(pa.large_string())

    def to_text(cell: Any) -> str | None:
        cell = to_plain(cell)
        return cell if cell is None or isinstance(cell, str) else json.dumps(cell, ensure_ascii=False)

    return pa.array([to_text(cell) for cell in column], type=pa.large_string())


def matches(column: Any, words: str, *, at_start: bool = False) -> Any:
    """Which cells contain a text, ignoring case."""
    test = pc.starts_with if at_start else pc.match_substring
    found = test(to_texts(column), words, ignore_case=True)
    return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False), dtype=bool)


def to_comparable(name: str, column: Any, value: Any, op: str) -> Any:
    """Convert a value so that it can be compared with the values of a column. Raises Refusal.

    Text is never compared with a number, also not with one in a text for an order: "9" comes after "4,000".
    """
    kind = kind_of(column)
    wrong = Refusal("value", column=name, type=kind, value=str(value)[:200])
    try:
        if kind in ("integer", "number"):
            return _comparable_number(column, value)
        if kind == "boolean":
            return {"true": True, "false": False}[str(value).lower()]
        if kind == "time":
            return _comparable_time(column, value)
    except (KeyError, TypeError, ValueError, InvalidOperation):
        raise wrong from None
    is_order = op in ("lt", "le", "gt", "ge")
    if not isinstance(value, str | bool) or (is_order and _NUMBER.fullmatch(str(value))):
        example = next((str(cell) for cell in column if isinstance(cell, str)), "")
        raise Refusal("text", column=name, value=str(value)[:200], example=example[:80])
    return value if isinstance(value, str) else json.dumps(value)


def unique_names(names: Iterable[Any]) -> list[str]:
    """Column names as text, with a number appended to repeated names."""
    taken: set[str] = set()
    unique: list[str] = []
    for name in (to_plain(str(name)) for name in names):
        other, number = name, 1
        while other in taken:
            other, number = f"{name}.{number}", number + 1
        taken.add(other)
        unique.append(other)
    return unique


def _comparable_number(column: Any, value: Any) -> Any:
    if isinstance(value, bool):
        raise TypeError
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "decimal":
        return Decimal(str(value))
    if isinstance(value, int | float):
        return value
    return int(value) if str(value).strip().lstrip("+-").isdigit() else float(value)


def _comparable_time(column: Any, value: Any) -> Any:
    moment: Any = pd.Timestamp(value)
    if column.dtype == object:
        return moment.date()
    zone = getattr(column.dtype, "tz", None)
    if zone is None:
        return moment if moment.tzinfo is None else moment.tz_convert("UTC").tz_localize(None)
    return moment.tz_localize(zone) if moment.tzinfo is None else moment.tz_convert(zone)
