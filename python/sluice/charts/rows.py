"""Turns the data of a chart into rows of strings, numbers and nulls."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pandas as pd

from sluice.charts.schema import Issue
from sluice.errors import ChartError, ResultError
from sluice.frame import to_frame
from sluice.json_key import key_text
from sluice.json_value import JsonValues

Rows = list[dict[str, Any]]


def chart_frame(data: Any) -> pd.DataFrame:
    """The data as a frame with text column names. An index that is not just 0, 1, 2, … becomes a column."""
    if isinstance(data, list) and not data:
        return pd.DataFrame()
    frame = to_frame(data)
    if not (isinstance(frame.index, pd.RangeIndex) and frame.index.name is None):
        frame = (
            frame.reset_index(names=frame.index.name or "index") if frame.index.nlevels == 1 else frame.reset_index()
        )
    names = [key_text(column) for column in frame.columns]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise ChartError(
            f"the data has the column {duplicate!r} more than once (the index counts as a column); rename one of them"
        )
    return frame.set_axis(names, axis=1)


def chart_rows(frame: pd.DataFrame, keys: list[str]) -> tuple[Rows, list[Issue]]:
    """The named columns as rows of strings, numbers and nulls, with times as ISO text. Also returns what is wrong with them."""
    present = [key for key in keys if key in frame.columns]
    try:
        columns = {key: _cells(frame[key], key) for key in present}
    except ResultError as error:
        return [], [Issue("data", str(error))]
    issues = [
        Issue(f"data[{place}].{key}", f"must be a string, number or null, got {type(cell).__name__}")
        for key, cells in columns.items()
        for place, cell in enumerate(cells)
        if isinstance(cell, dict | list)
    ]
    if not columns:
        return [{} for _ in range(len(frame))], issues
    return [dict(zip(present, row, strict=True)) for row in zip(*columns.values(), strict=True)], issues[:1]


def _cells(series: pd.Series[Any], key: str) -> list[Any]:
    if isinstance(series.dtype, pd.PeriodDtype):
        series = series.dt.to_timestamp()
    values = [_cell(value) for value in series] if series.dtype == object else series.array
    column = values if isinstance(values, list) else pd.Series(values)
    cells = JsonValues(max_bytes=1 << 40).convert({key: column})[key]
    return [("true" if cell else "false") if isinstance(cell, bool) else cell for cell in cells]


def _cell(value: Any) -> Any:
    """Decimals become numbers and a period its start, because exact text cannot be drawn."""
    if isinstance(value, decimal.Decimal):
        return float(value)
    return value.start_time if isinstance(value, pd.Period) else value


def is_time(series: pd.Series[Any]) -> bool:
    """Whether a column holds times."""
    if series.dtype.kind == "M" or isinstance(series.dtype, pd.PeriodDtype):
        return True
    return (
        series.dtype == object and len(series) > 0 and all(isinstance(value, dt.date | pd.Period) for value in series)
    )
