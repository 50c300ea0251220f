"""`to_frame`: turns the shapes that tools return into a DataFrame."""

from __future__ import annotations

from typing import Any

import pandas as pd

from sluice.errors import ShapeError
from sluice.shapes.describe import describe
from sluice.shapes.value import read_value

KNOWN_SHAPES = (
    "a DataFrame, Series or pyarrow table",
    "a list of records [{...}, {...}]",
    "a dict of columns of equal length {name: [...]}",
    "{columns: [...], rows: [[...]]} or {columns, data}",
    "records under one nested key {data: {items: [...]}}",
    "a dict keyed by date {'2024-01-01': ...}",
    "a list of [time, value] pairs",
    "JSON, JSON lines or CSV text",
    "an MCP content block {type: 'text', text: ...}",
)


def to_frame(value: Any) -> pd.DataFrame:
    r"""Turn what a tool returned into a DataFrame.

    Parameters
    ----------
    value : object
        A DataFrame, Series or pyarrow table; a list of records; a dict of columns; ``{columns, rows}`` or
        ``{columns, data}``; records under one nested key; a dict keyed by date; a list of ``[time, value]`` pairs;
        JSON, JSON lines or CSV text; an MCP content block or tool result.

    Returns
    -------
    DataFrame
        ``.attrs["to_frame"]`` is a list of the steps taken, for example which key was used and which keys were left
        out. Cell values are kept as they are. Times are parsed only in shapes that are defined by them (a dict keyed
        by date, pairs), into a column ``date`` or ``time``.

    Raises
    ------
    ShapeError
        When the shape is not recognized. The message has the shape of the value and the supported shapes.

    Examples
    --------
    >>> to_frame({"status": "ok", "data": [{"day": "mon", "sold": 5}, {"day": "tue", "sold": 7}]})
       day  sold
    0  mon     5
    1  tue     7
    >>> to_frame([[1704067200000, 1.5], [1704153600000, 2.5]])
                           time  value
    0 2024-01-01 00:00:00+00:00    1.5
    1 2024-01-02 00:00:00+00:00    2.5
    >>> to_frame("day,sold\nmon,5\ntue,7").attrs["to_frame"]
    ["read CSV text separated by ','"]
    """
    steps: list[str] = []
    frame = read_value(value, steps)
    if frame is None:
        raise ShapeError(
            f"to_frame does not recognize this shape: {describe(value)}. Supported shapes: {'; '.join(KNOWN_SHAPES)}"
        )
    frame.attrs["to_frame"] = steps
    return frame
