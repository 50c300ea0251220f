"""Parses columns in which a tool sent numbers as text."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

#: Text like 007 is a name, not a number.
LEADING_ZERO = re.compile(r"\s*[+-]?0\d")


def parse_numeric_text(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with every column of numeric text converted to numbers. A column with any other text in it is unchanged."""
    parsed = frame.copy(deep=False)
    for column in frame.columns:
        numbers = _numbers(frame[column])
        if numbers is not None:
            parsed[column] = numbers
    return parsed


def _numbers(series: pd.Series[Any]) -> pd.Series[Any] | None:
    if pd.api.types.is_numeric_dtype(series.dtype) or not (
        series.dtype == object or pd.api.types.is_string_dtype(series.dtype)
    ):
        return None
    first = next((value for value in series if value is not None and value == value), None)
    if first is None:
        return pd.to_numeric(series, errors="coerce") if series.dtype == object else None
    if isinstance(first, str) and not first.strip()[:1].lstrip("+-.").isdigit() and not first.strip()[1:2].isdigit():
        return None
    if isinstance(first, bool) or any(isinstance(value, str) and LEADING_ZERO.match(value) for value in series):
        return None
    numbers = pd.to_numeric(series, errors="coerce")
    return numbers if bool((numbers.isna() == series.isna()).all()) else None
