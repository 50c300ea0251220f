"""Text that holds a table: JSON, JSON lines, CSV."""

from __future__ import annotations

import io
import json
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd

from sluice.shapes.integers import INEXACT

SEPARATORS = ",\t;|"
#: From pandas 3 on floats in text are read exactly by default, and the option is deprecated.
EXACT_FLOATS: dict[str, Any] = {} if int(pd.__version__.partition(".")[0]) >= 3 else {"float_precision": "round_trip"}
PROSE = re.compile(r".*\s.*[.!?:…]")
ZEROS_IN_FRONT = re.compile(r"\s*[+-]?0\d+")
INTEGER = re.compile(r"\s*[+-]?\d+\s*")


def parse_text(text: str, steps: list[str]) -> Any:
    """The value of JSON text or JSON lines, the frame of CSV text, or None when it is neither."""
    stripped = text.strip().lstrip("\ufeff")
    if stripped[:1] not in ("{", "["):
        return _parse_csv(stripped, steps)
    try:
        parsed = json.loads(stripped)
    except ValueError:
        return _parse_json_lines(stripped, steps)
    steps.append("parsed JSON text")
    return parsed


def _parse_json_lines(text: str, steps: list[str]) -> list[Any] | None:
    try:
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        return None
    steps.append(f"parsed {len(rows)} JSON lines")
    return rows


def _parse_csv(text: str, steps: list[str]) -> pd.DataFrame | None:
    separator = _separator(text.split("\n", 2)[:2])
    if separator is None:
        return None
    options: dict[str, Any] = {"sep": separator, "skipinitialspace": True, "index_col": False}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # rows with more cells than there are names
            frame = _keep_digits(pd.read_csv(io.StringIO(text), **options, **EXACT_FLOATS), text, options)
    except (ValueError, pd.errors.ParserWarning):
        return None
    steps.append(f"read CSV text separated by {separator!r}")
    return frame


def _separator(lines: list[str]) -> str | None:
    """What separates the cells of both lines; None for one line, for sentences, and for tables drawn with bars."""
    if len(lines) < 2 or PROSE.fullmatch(lines[0].strip()) or lines[0].startswith("|"):
        return None
    counts = {separator: min(line.count(separator) for line in lines) for separator in SEPARATORS}
    best = max(SEPARATORS, key=lambda separator: counts[separator])
    return best if counts[best] else None


def _keep_digits(frame: pd.DataFrame, text: str, options: dict[str, Any]) -> pd.DataFrame:
    """Columns whose digits got lost are read again: names like 007 stay text, long integers next to gaps exact."""
    numeric = {
        column: frame[column] for column in frame.columns if pd.api.types.is_any_real_numeric_dtype(frame[column])
    }
    long = [column for column, cells in numeric.items() if cells.dtype.kind == "f" and (cells.abs() >= INEXACT).any()]
    zeros = re.search(r"(?:^|[,\t;|\n\"])\s*[+-]?0\d", text) is not None
    suspects = list(numeric) if zeros else long
    if not suspects:
        return frame
    written = pd.read_csv(io.StringIO(text), usecols=suspects, dtype=dict.fromkeys(suspects, object), **options)
    for column in suspects:
        cells = written[column]
        there = cells.dropna().astype(str)
        if there.map(lambda cell: ZEROS_IN_FRONT.fullmatch(cell) is not None).any():
            frame[column] = cells
        elif column in long and there.map(lambda cell: INTEGER.fullmatch(cell) is not None).all():
            frame[column] = pd.array([pd.NA if cell is np.nan else int(cell) for cell in cells], dtype="Int64")
    return frame
