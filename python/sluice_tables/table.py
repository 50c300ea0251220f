"""One table and the questions that it answers. It keeps the last few row orders for the next page."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from sluice_tables.files import csv_of_frame, csv_of_lines, csv_of_source, parquet_of_frame
from sluice_tables.frames import read_frame
from sluice_tables.values import Refusal, kind_of, matches, to_comparable, to_plain, to_seconds, to_short, to_texts

_DESCRIBED_COLUMNS = 500
_KEPT_ORDERS = 4
_PIECE_BYTES = 1 << 20


class Table:
    """Answers questions with JSON text. A problem with the data or the question is also an answer: `refused`."""

    def __init__(self, inputs: Any, alias: str, path: list[str]) -> None:
        self._inputs, self._alias, self._path = inputs, alias, path
        self._notes: list[str] = []
        self._read: pd.DataFrame | None = None
        self._unreadable: Refusal | None = None
        self._orders: dict[str, Any] = {}
        self._described: dict[str, Any] | None = None
        self._file: Iterator[bytes] | None = None

    def answer(self, question: dict[str, Any]) -> str:
        """Answer one question. `ask` is its name."""
        ask = {"schema": self._schema, "page": self._page, "download": self._download}[question["ask"]]
        try:
            answer = ask(question)
        except Refusal as refusal:
            answer = {"refused": refusal.facts}
        return answer if isinstance(answer, str) else _json(answer)

    @property
    def _frame(self) -> pd.DataFrame:
        """Read when the first question arrives. If that fails, every question is refused with the same facts."""
        if self._unreadable is not None:
            raise self._unreadable
        if self._read is None:
            try:
                self._read = self._read_input()
            except Refusal as refusal:
                self._unreadable = refusal
                raise
        return self._read

    def _read_input(self) -> pd.DataFrame:
        try:
            self._notes.extend(_sheets_left_out(*self._inputs._raw[self._alias]))
        except Exception:
            self._notes.clear()  # a problem with the file is reported below
        try:
            value = self._inputs[self._alias]
        except ValueError as error:
            raise Refusal("unreadable", why=str(error)) from None
        try:
            frame = read_frame(value, self._path, self._notes)
        except (Refusal, MemoryError):
            raise
        except Exception as error:
            raise Refusal("unreadable", why=f"building a table from it failed: {error}") from None
        self._inputs._values.pop(self._alias, None)
        reading = self._inputs.reading(self._alias)
        if reading is not None:
            self._notes.extend(reading.sentences())
        return frame

    def _schema(self, _question: dict[str, Any]) -> dict[str, Any]:
        if self._described is None:
            frame = self._frame
            reading = self._inputs.reading(self._alias)
            shown = list(frame.columns[:_DESCRIBED_COLUMNS])
            if len(shown) < len(frame.columns):
                left = len(frame.columns) - len(shown)
                self._notes.append(f"{left} columns past the first {_DESCRIBED_COLUMNS} are not described")
            self._described = {
                "rows": len(frame),
                "columnCount": len(frame.columns),
                "columns": [_describe(name, frame[name]) for name in shown],
                "notes": self._notes,
                **({} if reading is None else {"reader": reading.facts()}),
            }
        return self._described

    def _download(self, question: dict[str, Any]) -> dict[str, Any]:
        """The next piece of the file. `more`: whether another one follows."""
        if self._file is None:
            self._file = self._write(question["as"])
        piece, size, more = [], 0, True
        while size < question["maxBytes"] and more:
            block = next(self._file, None)
            more = block is not None
            piece.append(block or b"")
            size += len(piece[-1])
        return {"base64": base64.b64encode(b"".join(piece)).decode(), "more": more}

    def _write(self, ending: str) -> Iterator[bytes]:
        for block in [parquet_of_frame(self._frame)] if ending == "parquet" else self._csv():
            yield from (block[at : at + _PIECE_BYTES] for at in range(0, len(block), _PIECE_BYTES))

    def _csv(self) -> Iterator[bytes]:
        kind, raw = self._inputs._raw[self._alias]
        if kind not in ("csv", "tsv", "json", "jsonl"):
            yield from (block.encode() for block in csv_of_frame(self._frame))
            return
        if kind in ("csv", "tsv"):
            assert self._frame is not None  # reads the file, or refuses it
            blocks = csv_of_lines(raw, self._inputs.reading(self._alias))
            yield from (block.encode("utf-8", "replace") for block in blocks)
            return
        try:
            yield from (block.encode("utf-8", "replace") for block in csv_of_source(kind, raw, self._path))
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise Refusal("unreadable", why=f"input {self._alias!r} is not readable as {kind}: {error}") from None

    def _column(self, name: str) -> Any:
        if name not in self._frame.columns:
            raise Refusal("column", column=name, columns=list(self._frame.columns[:300]))
        return self._frame[name]

    def _matching(self, test: dict[str, Any]) -> Any:
        column, op, value = to_seconds(self._column(test["column"])), test["op"], test.get("value")
        present = column.notna().to_numpy()
        if op == "isNull":
            return ~present
        if op == "notNull":
            return present
        if op in ("contains", "startsWith"):
            return matches(column, str(value), at_start=op == "startsWith")
        if op == "in":
            found = np.zeros(len(column), dtype=bool)
            for one in value or []:
                found |= self._matching({"column": test["column"], "op": "eq", "value": one})
            return found
        other = to_comparable(test["column"], column, value, op)
        if kind_of(column) in ("text", "other") and not isinstance(column.dtype, pd.StringDtype):
            column = to_texts(column).to_pandas()
        matching = np.zeros(len(column), dtype=bool)
        # The other operators (eq, ne, lt, le, gt, ge) are also methods of a column.
        matching[present] = pd.Series(getattr(column[present], op)(other)).fillna(False).to_numpy(dtype=bool)
        return matching

    def _order(self, question: dict[str, Any]) -> Any:
        """The positions of the matching rows, sorted. None for all rows in their original order."""
        tests, words, keys = question.get("filter") or [], question.get("search"), question.get("sort") or []
        if not tests and not words and not keys:
            return None
        order_key = json.dumps([tests, words, keys])
        if order_key in self._orders:
            self._orders[order_key] = self._orders.pop(order_key)
            return self._orders[order_key]
        keep = np.ones(len(self._frame), dtype=bool)
        for test in tests:
            keep &= self._matching(test)
        if words:
            found = np.zeros(len(self._frame), dtype=bool)
            for name in self._frame.columns:
                found |= matches(self._frame[name], words)
            keep &= found
        rows = np.arange(len(self._frame))[keep]
        if keys:
            rows = self._sort(rows, keys)
        while len(self._orders) >= _KEPT_ORDERS:
            self._orders.pop(next(iter(self._orders)))
        self._orders[order_key] = rows
        return rows

    def _sort(self, rows: Any, keys: list[dict[str, Any]]) -> Any:
        columns: dict[int, Any] = {}
        for number, key in enumerate(keys):
            column = self._column(key["column"]).take(rows)
            if column.dtype == object and kind_of(column) in ("text", "other", "boolean"):
                column = to_texts(column).to_pandas()
            columns[number] = column.reset_index(drop=True)
        rising = [not key.get("descending", False) for key in keys]

        def ordered(keyed: Any) -> Any:
            by = keyed.sort_values(list(keyed), ascending=rising, kind="stable", na_position="last")
            return rows[by.index.to_numpy()]

        try:
            return ordered(pd.DataFrame(columns))
        except TypeError:  # values that cannot be compared with each other are sorted by their text
            return ordered(pd.DataFrame({number: to_texts(column).to_pandas() for number, column in columns.items()}))

    def _page(self, question: dict[str, Any]) -> str:
        names = question.get("columns") or list(self._frame.columns)
        for name in names:
            self._column(name)
        order = self._order(question)
        matched = len(self._frame) if order is None else len(order)
        offset = min(question["offset"], matched)
        end = min(offset + question["limit"], matched)
        where = slice(offset, end) if order is None else order[offset:end]
        cells = [to_plain(self._frame[name].iloc[where].tolist()) for name in names]
        max_characters, cut, size = question["maxCellCharacters"], 0, 0
        texts: list[str] = []
        for row in zip(*cells, strict=True) if names else []:
            clipped = [_clip(cell, max_characters) for cell in row]
            cut += sum(was is not now for was, now in zip(row, clipped, strict=True))
            text = _json(dict(zip(names, clipped, strict=True)) if question["records"] else clipped)
            size += len(text.encode()) + 1
            if size > question["maxBytes"] and texts:
                break
            texts.append(text)
        after = offset + len(texts)
        facts = {
            "columns": names,
            "rows": [],
            "offset": offset,
            "returned": len(texts),
            "total": len(self._frame),
            "matched": matched,
            "nextOffset": after if after < matched else None,
            "cutCells": cut,
        }
        return _json(facts).replace('"rows":[]', f'"rows":[{",".join(texts)}]', 1)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _sheets_left_out(kind: str, raw: Any) -> list[str]:
    if kind != "xlsx":
        return []
    import openpyxl

    names = openpyxl.load_workbook(io.BytesIO(raw), read_only=True).sheetnames
    if len(names) < 2:
        return []
    rest = ", ".join(map(repr, names[1:20]))
    return [f"only the first of {len(names)} sheets, {names[0]!r}, is read; not read: {rest}"]


def _describe(name: str, given: Any) -> dict[str, Any]:
    column = to_seconds(given)
    kind = kind_of(column)
    present = column.dropna()
    nulls = len(column) - len(present)
    facts: dict[str, Any] = {
        "name": name,
        "dtype": str(given.dtype),
        "type": kind,
        "nulls": nulls,
        "nullShare": round(nulls / len(column), 6) if len(column) else 0,
    }
    try:
        facts["distinct"] = int(present.nunique())
    except TypeError:
        facts["distinct"] = None
    if len(present) and kind in ("integer", "number", "time", "text"):
        try:
            facts["min"], facts["max"] = to_short(present.min()), to_short(present.max())
        except TypeError:
            pass
    if len(present) and kind in ("integer", "number"):
        facts["mean"] = to_plain(float(present.astype(float).mean()))
    examples = present.head(1000)
    try:
        examples = examples.drop_duplicates()
    except TypeError:
        pass
    facts["examples"] = [to_short(value) for value in examples.head(3).tolist()]
    return facts


def _clip(cell: Any, max_characters: int) -> Any:
    if cell is None or isinstance(cell, int | float):
        return cell
    text = cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False)
    if len(text) <= max_characters:
        return cell
    return f"{text[:max_characters]}… [+{len(text) - max_characters} characters]"
