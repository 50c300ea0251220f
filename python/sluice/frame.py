"""`to_frame`: one call from the shapes that tools return to a DataFrame."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sluice.errors import ShapeError, TimeError
from sluice.times import read_times

MAX_NESTING = 6
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
#: From pandas 3 on floats in text are read exactly by default, and the option is deprecated.
EXACT_FLOATS: dict[str, Any] = {} if int(pd.__version__.partition(".")[0]) >= 3 else {"float_precision": "round_trip"}
SCALARS = (str, int, float, bool, type(None), np.generic, pd.Timestamp)


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
    frame = _read(value, steps, 0)
    if frame is None:
        raise ShapeError(f"to_frame cannot tell what this is: {describe(value)}. It knows: {'; '.join(KNOWN_SHAPES)}")
    frame.attrs["to_frame"] = steps
    return frame


def describe(value: Any, depth: int = 0) -> str:
    """The shape of a value in a few words."""
    if isinstance(value, Mapping):
        inner = (
            ", ".join(f"{key!r}: {describe(item, depth + 1)}" for key, item in list(value.items())[:6])
            if depth < 2
            else "…"
        )
        more = ", …" if len(value) > 6 else ""
        return f"dict of {len(value)} keys {{{inner}{more}}}"
    if isinstance(value, str):
        return f"text of {len(value)} characters" + (f" {value[:60]!r}" if depth == 0 else "")
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        kinds = sorted({type(item).__name__ for item in value[:1000]})
        inner = f", the first is {describe(value[0], depth + 1)}" if len(value) and depth < 2 else ""
        return f"{type(value).__name__} of {len(value)} ({', '.join(kinds) or 'empty'}{inner})"
    return type(value).__name__


def _read(value: Any, steps: list[str], depth: int) -> pd.DataFrame | None:
    if depth > MAX_NESTING:
        return None
    if isinstance(value, pd.DataFrame):
        steps.append("took the DataFrame as it is")
        return value.copy(deep=False)
    if isinstance(value, pd.Series):
        steps.append("made the Series a column; its index is kept")
        return value.to_frame(name="value" if value.name is None else value.name)
    if isinstance(value, bytes | bytearray):
        return _read_text(bytes(value).decode("utf-8", "replace"), steps, depth)
    if isinstance(value, str):
        return _read_text(value, steps, depth)
    if isinstance(value, np.ndarray) and value.ndim:
        return _read_array(value, steps)
    if type(value).__module__.partition(".")[0] == "pyarrow" and hasattr(value, "to_pandas"):
        steps.append("converted the pyarrow table")
        converted = value.to_pandas()
        return converted if isinstance(converted, pd.DataFrame) else pd.Series(converted, name="value").to_frame()
    if isinstance(value, Mapping):
        return _read_mapping(value, steps, depth)
    if isinstance(value, Sequence) and len(value):
        return _read_list(list(value), steps, depth)
    return None


# text


def _read_text(text: str, steps: list[str], depth: int) -> pd.DataFrame | None:
    stripped = text.strip().lstrip("\ufeff")
    if stripped[:1] in ("{", "["):
        try:
            parsed = json.loads(stripped)
        except ValueError:
            return _read_json_lines(stripped, steps, depth)
        steps.append("parsed JSON text")
        return _read(parsed, steps, depth + 1)
    return _read_csv(stripped, steps)


def _read_json_lines(text: str, steps: list[str], depth: int) -> pd.DataFrame | None:
    try:
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        return None
    steps.append(f"parsed {len(rows)} JSON lines")
    return _read(rows, steps, depth + 1)


def _read_csv(text: str, steps: list[str]) -> pd.DataFrame | None:
    lines = text.splitlines()
    if len(lines) < 2:
        return None
    separator = max(",\t;|", key=lambda candidate: min(lines[0].count(candidate), lines[1].count(candidate)))
    if not min(lines[0].count(separator), lines[1].count(separator)):
        return None
    frame: pd.DataFrame
    try:
        frame = pd.read_csv(io.StringIO(text), sep=separator, skipinitialspace=True, **EXACT_FLOATS)
    except ValueError:
        return None
    steps.append(f"read CSV text separated by {separator!r}")
    return frame


# lists


def _read_array(value: Any, steps: list[str]) -> pd.DataFrame | None:
    if value.dtype.names:
        steps.append("took the fields of a structured array as columns")
        return pd.DataFrame(value)
    if value.ndim == 1 and value.dtype.kind in "iuf":
        steps.append("made the array one column named 'value'")
        return pd.DataFrame({"value": value})
    return _read_list(value.tolist(), steps, 0) if value.ndim == 2 and len(value) else None


def _read_list(rows: list[Any], steps: list[str], depth: int) -> pd.DataFrame | None:
    if all(isinstance(row, Mapping) for row in rows):
        if all(_is_content_block(row) for row in rows):
            return _read_content(rows, steps, depth)
        steps.append(f"took a list of {len(rows)} records")
        return pd.DataFrame.from_records(rows)
    if all(isinstance(row, list | tuple) for row in rows):
        return _read_rows(rows, steps)
    if all(isinstance(row, int | float | None) and not isinstance(row, bool) for row in rows):
        steps.append("made the list one column named 'value'")
        return pd.DataFrame({"value": rows})
    return None


def _read_rows(rows: list[Any], steps: list[str]) -> pd.DataFrame | None:
    width = len(rows[0])
    if width < 2 or any(len(row) != width for row in rows):
        return None
    if (
        len(rows) > 1
        and all(isinstance(name, str) for name in rows[0])
        and not all(isinstance(cell, str) for cell in rows[1])
    ):
        steps.append("took the first of the rows as column names")
        return pd.DataFrame(rows[1:], columns=list(rows[0]))
    times = _times_or_none([row[0] for row in rows])
    if times is None:
        return None
    names = ["value"] if width == 2 else [f"value_{position}" for position in range(1, width)]
    steps.append(f"took a list of [time, {', '.join(names)}] rows")
    frame = pd.DataFrame([row[1:] for row in rows], columns=names)
    frame.insert(0, "time", times)
    return frame


def _times_or_none(values: Any) -> Any:
    """Parsed times; None when these are no times. Zone-less ones stay without a zone."""
    try:
        times = read_times(list(values))
    except (TimeError, ValueError, OverflowError):
        return None
    if times.instants.isna().all() or (
        any(kind == "epoch s" for kind in times.kinds) and times.instants.min() < pd.Timestamp("1975", tz="UTC")
    ):
        return None
    return times.instants.tz_localize(None) if times.naive == len(times.instants) else times.instants


# dicts


def _read_mapping(value: Mapping[Any, Any], steps: list[str], depth: int) -> pd.DataFrame | None:
    if not value:
        return None
    for reader in (
        _read_tool_result,
        _read_columns_and_rows,
        _read_by_date,
        _read_nested,
        _read_columns,
        _read_named_records,
    ):
        frame = reader(value, steps, depth)
        if frame is not None:
            return frame
    if depth == 0 and all(isinstance(item, SCALARS) for item in value.values()):
        steps.append("took one record")
        return pd.DataFrame([dict(value)])
    return None


def _is_content_block(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return (value.get("type") == "text" and isinstance(value.get("text"), str)) or (
        value.get("type") == "resource" and isinstance(value.get("resource"), Mapping)
    )


def _read_tool_result(value: Mapping[Any, Any], steps: list[str], depth: int) -> pd.DataFrame | None:
    if _is_content_block(value):
        return _read_content([value], steps, depth)
    content: Any = value.get("content")
    is_result = (
        isinstance(content, list)
        and bool(content)
        and all(isinstance(block, Mapping) and "type" in block for block in content)
    )
    if not is_result and "structuredContent" not in value:
        return None
    if value.get("isError") is True:
        texts = " ".join(str(block.get("text", "")) for block in content) if is_result else ""
        raise ShapeError(f"this is a tool's error, not data: {texts[:300]}")
    if isinstance(value.get("structuredContent"), Mapping | list):
        steps.append("took structuredContent of the MCP tool result")
        return _read(value["structuredContent"], steps, depth + 1)
    return _read_content(content, steps, depth)


def _read_content(blocks: list[Any], steps: list[str], depth: int) -> pd.DataFrame | None:
    texts = [
        block["text"] if block.get("type") == "text" else block["resource"].get("text", "")
        for block in blocks
        if _is_content_block(block)
    ]
    if len(texts) == 1:
        steps.append("took the text of the MCP content block")
        return _read(texts[0], steps, depth + 1)
    try:
        parsed = [json.loads(text) for text in texts]
    except ValueError:
        return None
    steps.append(f"took the JSON of {len(texts)} MCP content blocks as a list")
    return _read(parsed, steps, depth + 1)


def _read_columns_and_rows(value: Mapping[Any, Any], steps: list[str], depth: int) -> pd.DataFrame | None:
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
        frame = pd.DataFrame.from_records(rows).reindex(columns=names)
    elif all(isinstance(row, list | tuple) and len(row) == len(names) for row in rows):
        frame = pd.DataFrame(rows, columns=names)
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


def _read_by_date(value: Mapping[Any, Any], steps: list[str], _depth: int) -> pd.DataFrame | None:
    keys = list(value)
    if not all(
        (isinstance(key, str) and len(key) >= 6 and key[:2].isdigit()) or hasattr(key, "isoformat") for key in keys
    ):
        return None
    cells = list(value.values())
    times = _times_or_none(keys)
    if times is None:
        return None
    if all(isinstance(cell, Mapping) for cell in cells):
        frame = pd.DataFrame.from_records(cells)
    elif all(isinstance(cell, SCALARS) for cell in cells):
        frame = pd.DataFrame({"value": cells})
    else:
        return None
    frame.insert(0, "date" if "date" not in frame.columns else "time", times)
    steps.append(f"took a dict keyed by {len(keys)} dates")
    return frame


def _read_nested(value: Mapping[Any, Any], steps: list[str], depth: int) -> pd.DataFrame | None:
    """Records under one key; the other keys are named as left out."""
    found: dict[Any, tuple[pd.DataFrame, list[str]]] = {}
    for key, item in value.items():
        inner: list[str] = []
        frame = _read_table(item, inner, depth + 1)
        if frame is not None:
            found[key] = (frame, inner)
    if len(found) == 1:
        key, (frame, inner) = next(iter(found.items()))
        left = [str(other) for other in value if other != key]
        steps.append(f"took the table under {key!r}" + (f", left out {', '.join(left[:10])}" if left else ""))
        steps.extend(inner)
        return frame
    return _join_pairs(value, found, steps) if found else None


def _read_table(item: Any, steps: list[str], depth: int) -> pd.DataFrame | None:
    if isinstance(item, list | tuple) and item and all(isinstance(row, Mapping | list | tuple) for row in item):
        return _read_list(list(item), steps, depth)
    if (
        isinstance(item, Mapping)
        and depth <= MAX_NESTING
        and not all(isinstance(cell, SCALARS) for cell in item.values())
    ):
        return _read_mapping(item, steps, depth)
    if isinstance(item, Mapping) and len(item) > 1:
        return _read_by_date(item, steps, depth)
    if isinstance(item, pd.DataFrame):
        return item
    return None


def _join_pairs(
    value: Mapping[Any, Any], found: dict[Any, tuple[pd.DataFrame, list[str]]], steps: list[str]
) -> pd.DataFrame | None:
    """Lists of pairs with the same times are columns of one table; among other tables the caller has to choose."""
    if all(isinstance(item, Mapping) for item in value.values()):
        return None
    frames = {key: frame for key, (frame, _) in found.items()}
    first = next(iter(frames.values()))
    if all(
        list(frame.columns) == ["time", "value"] and frame["time"].equals(first["time"]) for frame in frames.values()
    ):
        steps.append(f"joined the pairs under {', '.join(map(repr, frames))} on their times")
        return pd.DataFrame({"time": first["time"], **{key: frame["value"] for key, frame in frames.items()}})
    names = ", ".join(f"value[{key!r}]" for key in frames)
    raise ShapeError(f"there are {len(frames)} tables in this value; pass one of {names}: {describe(value)}")


def _read_columns(value: Mapping[Any, Any], steps: list[str], _depth: int) -> pd.DataFrame | None:
    cells = list(value.values())
    if not all(isinstance(column, list | tuple | np.ndarray | pd.Series | pd.Index) for column in cells):
        return None
    if any(isinstance(cell, Mapping | list | tuple) for column in cells for cell in list(column[:1])):
        return None
    lengths = {str(name): len(column) for name, column in value.items()}
    if len(set(lengths.values())) > 1:
        raise ShapeError(f"the columns are not equally long: {lengths}")
    steps.append(f"took a dict of {len(cells)} columns")
    return pd.DataFrame(
        {name: column if isinstance(column, pd.Series) else list(column) for name, column in value.items()}
    )


def _read_named_records(value: Mapping[Any, Any], steps: list[str], _depth: int) -> pd.DataFrame | None:
    records = list(value.values())
    if len(records) < 2 or not all(isinstance(record, Mapping) and record for record in records):
        return None
    if any(set(record) != set(records[0]) for record in records) or not all(
        isinstance(cell, SCALARS) for record in records for cell in record.values()
    ):
        return None
    name = "key" if "key" not in records[0] else "name"
    steps.append(f"took {len(records)} records by name; the names are in the column {name!r}")
    frame = pd.DataFrame.from_records(records)
    frame.insert(0, name, list(value))
    return frame
