"""A table as a file: CSV that is safe to open in a spreadsheet, and Parquet."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa

from sluice_tables.values import Refusal, to_plain

MAX_COLUMNS = 16_384
"""As many as a spreadsheet has. Every row has a cell for each column: rows with keys of their own would never end."""

_BLOCK_ROWS = 2000
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FORMULA = re.compile(r"[=+\-@\t\r]")
_QUOTED = re.compile(r'[",\n\r]|^\s|\s$')


class _Digits(str):
    """A number as it was written."""

    __slots__ = ()


def csv_of_source(kind: str, raw: Any, path: list[str]) -> Iterator[str]:
    """Lines of CSV from the bytes of CSV, TSV, JSON or JSON lines. Numbers keep the digits that were sent."""
    if kind in ("csv", "tsv"):
        csv.field_size_limit(sys.maxsize)
        text = io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8-sig", errors="replace", newline="")
        for cells in csv.reader(text, delimiter="," if kind == "csv" else "\t"):
            yield _line(_cell(cell, is_text=True) for cell in cells)
        return
    rows = [_row(row) for row in _rows_of_json(kind, raw, path)]
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    if len(names) > MAX_COLUMNS:
        raise Refusal("wide", columns=len(names), most=MAX_COLUMNS)
    yield _line(_cell(name, is_text=True) for name in names)
    for row in rows:
        yield _line(_json_cell(row.get(name)) for name in names)


def csv_of_frame(frame: pd.DataFrame) -> Iterator[str]:
    """Lines of CSV from a frame: times in ISO 8601, nulls as nothing, nested values as JSON."""
    yield _line(_cell(name, is_text=True) for name in frame.columns)
    for at in range(0, len(frame), _BLOCK_ROWS):
        block = frame.iloc[at : at + _BLOCK_ROWS]
        columns = [[_value_cell(cell) for cell in to_plain(block[name].tolist())] for name in frame.columns]
        yield from (_line(row) for row in zip(*columns, strict=True))


def parquet_of_frame(frame: pd.DataFrame) -> bytes:
    """The bytes of a Parquet file. Columns of mixed or nested values, which Parquet has no type for, become JSON text."""
    made = io.BytesIO()
    typed = frame.apply(_typed) if len(frame.columns) else frame
    typed.to_parquet(made, index=False)
    return made.getvalue()


def _typed(column: Any) -> Any:
    try:
        pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return column.map(lambda cell: cell if cell is None or isinstance(cell, str) else json.dumps(cell, default=str))
    return column


def _rows_of_json(kind: str, raw: Any, path: list[str]) -> list[Any]:
    def parse(text: str) -> Any:
        return json.loads(text, parse_float=_Digits, parse_int=_Digits, parse_constant=lambda _: None)

    text = str(raw, "utf-8-sig")
    if kind == "jsonl":
        return [parse(line) for line in text.split("\n") if line.strip()]
    value = parse(text)
    for key in path:
        value = value[key]
    if isinstance(value, dict):
        return [{"key": key, **_row(row)} for key, row in value.items()]
    return value if isinstance(value, list) else [value]


def _row(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {str(at): cell for at, cell in enumerate(value)}
    return {"value": value}


def _line(cells: Iterable[str]) -> str:
    return ",".join(cells) + "\n"


def _cell(text: str, *, is_text: bool) -> str:
    """Text that a spreadsheet would take for a formula is prefixed with `'`; a number never is."""
    if is_text and _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        text = "'" + text
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def _json_cell(value: Any) -> str:
    is_text = isinstance(value, str | dict | list) and not isinstance(value, _Digits)
    return _cell("" if value is None else value if isinstance(value, str) else _to_json(value), is_text=is_text)


def _to_json(value: Any) -> str:
    """Compact JSON in which every number has the digits that were sent."""
    if isinstance(value, _Digits):
        return value
    if isinstance(value, list):
        return f"[{','.join(map(_to_json, value))}]"
    if isinstance(value, dict):
        members = (f"{json.dumps(key, ensure_ascii=False)}:{_to_json(cell)}" for key, cell in value.items())
        return f"{{{','.join(members)}}}"
    return json.dumps(value, ensure_ascii=False)


def _value_cell(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, int | float):
        return repr(cell)
    return _cell(cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False), is_text=True)
