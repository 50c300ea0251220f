"""`set_result`: sets the result of a cell, as JSON."""

from __future__ import annotations

import json
from typing import Any

from sluice import _cell
from sluice.errors import OutputLimitError
from sluice.json_value import JsonValues


def set_result(value: object) -> None:
    """Set the result of this cell.

    The value is converted to JSON immediately, so later changes to it have no effect. The last call wins.

    Parameters
    ----------
    value : object
        None, bool, int, float, str, dict, list, tuple, set, dataclass, numpy scalars and arrays, DataFrame, Series,
        Index, Timestamp, datetime, date, time, Timedelta, Period, Interval, Categorical, Decimal, UUID, Enum,
        pyarrow tables, nested in any way. A DataFrame becomes a list of records in column order, with its index as a
        column unless the index is just 0, 1, 2, ….

    Raises
    ------
    ResultError
        For a value without an exact JSON form: functions, bytes, complex numbers, cycles, or dict keys or column names
        that are the same as text. The message has the path.
    OutputLimitError
        When the JSON is larger than the limit (default: 10 MB). Aggregate first.

    Notes
    -----
    NaN, NaT, pd.NA and infinities become null and are counted by path in ``diagnostics.nonFinite``. Times keep their
    zone. Timedeltas become seconds and Decimals become strings. Integers stay exact at any size.

    Examples
    --------
    >>> import pandas as pd
    >>> set_result({"total": 12.5, "by_day": pd.DataFrame({"day": ["mon", "tue"], "sold": [5, 7]})})
    """
    report = _cell.current()
    report.put_result(*serialise(value, report.limits.result_bytes))


def serialise(value: object, max_bytes: int) -> tuple[bytes, dict[str, Any]]:
    """The JSON of a value, and notes for the diagnostics. Raises ResultError and OutputLimitError."""
    values = JsonValues(max_bytes)
    text = json.dumps(values.convert(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    result_json = text.encode("utf-8")
    if len(result_json) > max_bytes:
        raise result_too_large(max_bytes, len(result_json))
    return result_json, values.notes()


def result_too_large(allowed: int, seen: int) -> OutputLimitError:
    """The error for a result that is too large. `seen` may be a lower bound."""
    return OutputLimitError(
        "resultBytes",
        allowed,
        seen,
        f"the result is at least {seen:,} bytes of JSON, at most {allowed:,} are allowed; "
        "aggregate, round or select rows before set_result",
    )
