"""`to_frame`: one call from the shapes that tools return to a DataFrame."""

from __future__ import annotations

from typing import Any

import pandas as pd

from sluice.errors import ShapeError
from sluice.shapes.describe import describe
from sluice.shapes.value import read_value

KNOWN_SHAPES = (
    "a DataFrame, Series or pyarrow table",
    "a list of records [{...}, {...}]",
    "a dict of equally long columns {name: [...]}",
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
        ``.attrs["to_frame"]`` is a list of sentences that say what was done, for example which key was taken and
        which were left. Cell values are kept as they are. Only where a shape is known by its times (a dict keyed by
        date, pairs) these are parsed, into a column ``date`` or ``time``.

    Raises
    ------
    ShapeError
        When the shape cannot be told. The message has the shape that was seen and the shapes that are known.

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
        raise ShapeError(f"to_frame cannot tell what this is: {describe(value)}. It knows: {'; '.join(KNOWN_SHAPES)}")
    frame.attrs["to_frame"] = steps
    return frame
