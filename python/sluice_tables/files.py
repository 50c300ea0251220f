"""Writes a table as a file: CSV that is safe to open in a spreadsheet, or Parquet."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from sluice.delimited.numbers import with_point
from sluice.delimited.reading import Reading
from sluice_tables.values import Refusal, to_plain

MAX_COLUMNS = 16_384
"""The limit of spreadsheets. Every row gets a cell per column, so rows with many different keys would make a huge file."""

_BLOCK_ROWS = 2000
_FEW_ROWS = 50
_BLOCK_BYTES = 1 << 16
_DIGITS = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NUMBER = re.compile(rf"\s*[+-]?{_DIGITS}\s*")
_IGNORED = r"\s\x01-\x1f\u200b-\u200f\u2060\ufeff"
"""White space, control and invisible characters: a spreadsheet may drop them at the start of a cell."""
_SIGNS = "＝＋－＠﹦﹢﹣﹫"
"""The full-width and small forms of `=+-@`: some spreadsheets read them like the ASCII ones."""
_FORMULA = re.compile(rf"[\t\r]|[{_IGNORED}\0]*[=+\-@{_SIGNS}]")
_QUOTED = re.compile(r'[",\n\r]|^\s|\s$')


def _special_at(end: str, ends: str) -> re.Pattern[str]:
    """A pattern for cells that need quoting or a prefix, found at the boundary `end`.

    It starts with a literal, which makes the search several times as fast.
    """
    return re.compile(rf"{end}(?:(?<=[^\S\n]{end})|[=@{_SIGNS}]|(?!\n)[{_IGNORED}]|[+-](?!{_DIGITS}{ends}))")


_SPECIAL_AT_COMMA, _SPECIAL_AT_LINE, _SPECIAL_AT_CELL = (
    _special_at(",", r"[,\n]"),
    _special_at(r"\n", r"[,\n]"),
    _special_at(r"\0", r"\0"),
)


def csv_of_source(kind: str, raw: Any, path: list[str]) -> Iterator[str]:
    """CSV in blocks, from the bytes of JSON or JSON lines. Numbers keep the digits that were sent."""
    rows = [_row(row) for row in _rows_of_json(kind, raw, path)]
    names = dict.fromkeys(name for keys in dict.fromkeys(map(tuple, rows)) for name in keys)
    if len(names) > MAX_COLUMNS:
        raise Refusal("wide", columns=len(names), most=MAX_COLUMNS)
    yield _write([list(names)])
    for block in itertools.batched(rows, _BLOCK_ROWS, strict=False):
        yield _write([[_to_text(cell) for cell in map(row.get, names)] for row in block])


def csv_of_lines(raw: Any, reading: Reading) -> Iterator[str]:
    """CSV in blocks, from the bytes of a CSV-like file. Lines that need no change are passed through.

    Numbers keep their digits, and are written with a decimal point and without thousands separators.
    """
    csv.field_size_limit(sys.maxsize)
    source = io.BytesIO(raw)
    source.seek(reading.mark_bytes)
    text = io.TextIOWrapper(source, encoding=reading.codec, errors="replace", newline="")
    for _ in range(reading.skipped_lines):
        text.readline()
    is_plain = reading.separator == "," and not reading.rewritten and not reading.skips_spaces
    is_header = True
    while lines := text.readlines(_BLOCK_BYTES):
        block = "".join(lines).replace("\r\n", "\n").removesuffix("\n") + "\n"
        is_special = (
            any(sign in block for sign in '"\r\0')
            or _SPECIAL_AT_COMMA.search(block)
            or _SPECIAL_AT_LINE.search("\n" + block)
        )
        if is_plain and not is_special:
            yield block
            continue
        options: dict[str, Any] = {"delimiter": reading.separator, "skipinitialspace": reading.skips_spaces}
        reader = csv.reader(itertools.chain(lines, text), **options)
        rows = []
        while reader.line_num < len(lines):  # a quoted cell may continue after the block
            rows.append(next(reader))
        start = next((at + 1 for at, row in enumerate(rows) if row), len(rows)) if is_header else 0
        is_header = is_header and start == len(rows)
        for row in rows[start:] if reading.rewritten else []:
            for at in reading.rewritten:
                if at < len(row):
                    row[at] = with_point(row[at], reading.decimal)
        yield _write(rows)


def csv_of_frame(frame: pd.DataFrame) -> Iterator[str]:
    """CSV in blocks, from a frame: times in ISO 8601, nulls as empty cells, nested values as JSON."""
    yield _write([list(frame.columns)])
    for at in range(0, len(frame), _BLOCK_ROWS):
        block = frame.iloc[at : at + _BLOCK_ROWS]
        columns = [[_value_cell(cell) for cell in to_plain(block[name].tolist())] for name in frame.columns]
        yield _write(list(zip(*columns, strict=True)))


def parquet_of_frame(frame: pd.DataFrame) -> bytes:
    """The bytes of a Parquet file. Columns of mixed values, which Parquet has no type for, become JSON text."""
    buffer = io.BytesIO()
    typed = frame.apply(_typed) if len(frame.columns) else frame
    typed.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _typed(column: Any) -> Any:
    try:
        pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return column.map(lambda cell: cell if cell is None or isinstance(cell, str) else json.dumps(cell, default=str))
    return column


def _rows_of_json(kind: str, raw: Any, path: list[str]) -> list[Any]:
    """The rows of JSON text. Numbers are bytes: their digits as sent."""

    def parse(text: str) -> Any:
        return json.loads(text, parse_float=str.encode, parse_int=str.encode, parse_constant=lambda _: None)

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


def _write(rows: Sequence[Sequence[str]]) -> str:
    """CSV lines. Text that a spreadsheet would read as a formula is prefixed with `'`; numbers never are."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for few in itertools.batched(rows, _FEW_ROWS, strict=False):
        is_special = _SPECIAL_AT_CELL.search("\0".join(("", *itertools.chain.from_iterable(few), "")))
        if is_special or 1 in map(len, few):  # the csv writer would quote a single empty cell
            buffer.writelines(",".join(map(_cell, row)) + "\n" for row in few)
        else:
            writer.writerows(few)
    return buffer.getvalue()


def _cell(text: str) -> str:
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        text = "'" + text
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else _to_json(value)


def _to_json(value: Any) -> str:
    """Compact JSON in which every number has the digits that were sent."""
    if isinstance(value, bytes):
        return value.decode()
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
    return cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False)
