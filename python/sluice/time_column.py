"""Finds the column of a source that holds its times."""

from __future__ import annotations

from typing import Any

import pandas as pd

from sluice.errors import TimeError

NAMES = (
    "time", "timestamp", "date", "datetime", "ts", "t", "day", "period", "month", "week", "hour", "quarter", "year",
    "open_time", "opentime", "close_time", "time_period_start", "block_time", "created_at", "updated_at",
    "asof", "as_of",
)  # fmt: skip


def split_time(frame: pd.DataFrame, time_col: str | None, name: str) -> tuple[Any, pd.DataFrame, str]:
    """The times of a source, its other columns, and what the time column is called.

    Raises
    ------
    TimeError
        When `time_col` does not exist, or when it is not given and no time column can be found.
    """
    if time_col is not None:
        return _given(frame, time_col, name)
    if isinstance(frame.index, pd.DatetimeIndex | pd.PeriodIndex):
        return frame.index, frame, str(frame.index.name or "index")
    column = _by_dtype(frame) or _by_name(frame)
    if column is not None:
        return frame[column], frame.drop(columns=[column]), str(column)
    if (frame.index.name is not None and str(frame.index.name).lower() in NAMES) or _is_text_of_dates(frame.index):
        return frame.index, frame, str(frame.index.name or "index")
    column = next((candidate for candidate in frame.columns if _is_text_of_dates(frame[candidate])), None)
    if column is None:
        raise TimeError(f"no time column found in {name} with columns {_listed(frame)}; pass time_col=")
    return frame[column], frame.drop(columns=[column]), str(column)


def _given(frame: pd.DataFrame, time_col: str, name: str) -> tuple[Any, pd.DataFrame, str]:
    if time_col in frame.columns:
        return frame[time_col], frame.drop(columns=[time_col]), str(time_col)
    if frame.index.name == time_col:
        return frame.index, frame, str(time_col)
    raise TimeError(f"time_col={time_col!r} is not in {name}, which has the columns {_listed(frame)}")


def _by_dtype(frame: pd.DataFrame) -> Any:
    dated = [
        column
        for column in frame.columns
        if frame[column].ndim == 1
        and (frame[column].dtype.kind == "M" or isinstance(frame[column].dtype, pd.PeriodDtype))
    ]
    if len(dated) > 1:
        named = [column for wanted in NAMES for column in dated if str(column).lower() == wanted]
        if not named:
            raise TimeError(f"several columns hold times ({', '.join(map(str, dated))}); pass time_col=")
        return named[0]
    return dated[0] if dated else None


def _by_name(frame: pd.DataFrame) -> Any:
    lower = {str(column).lower(): column for column in reversed(list(frame.columns))}
    for wanted in NAMES:
        if wanted in lower:
            return lower[wanted]
    endings = [
        column for text, column in lower.items() if text.endswith(("_time", "_date", "_at", "timestamp", "_ts", "_day"))
    ]
    return endings[0] if len(endings) == 1 else None


def _is_text_of_dates(values: Any) -> bool:
    sample = [value for value in values[:5] if value is not None]
    return bool(sample) and all(
        isinstance(value, str) and len(value) >= 8 and value[:4].isdigit() and value[4] in "-/" for value in sample
    )


def _listed(frame: pd.DataFrame) -> str:
    return ", ".join(map(repr, frame.columns[:20])) + (", …" if len(frame.columns) > 20 else "")
