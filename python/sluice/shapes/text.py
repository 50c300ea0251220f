"""Parses text that contains a table: JSON, JSON lines, CSV."""

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
#: Pandas 3 parses floats exactly by default and deprecates the option.
EXACT_FLOATS: dict[str, Any] = {} if int(pd.__version__.partition(".")[0]) >= 3 else {"float_precision": "round_trip"}
PROSE = re.compile(r".*\s.*[.!?:…]")
LEADING_ZERO = re.compile(r"\s*[+-]?0\d+")
INTEGER = re.compile(r"\s*[+-]?\d+\s*")


def parse_text(text: str, steps: list[str]) -> Any:
    """The value of JSON text or JSON lines, the frame of CSV text, or None for any other text."""
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
            warnings.simplefilter("error", pd.errors.ParserWarning)  # raised for rows with more cells than column names
            frame = _keep_digits(pd.read_csv(io.StringIO(text), **options, **EXACT_FLOATS), text, options)
    except (ValueError, pd.errors.ParserWarning):
        return None
    steps.append(f"read CSV text separated by {separator!r}")
    return frame


def _separator(lines: list[str]) -> str | None:
    """The separator of the cells in both lines. None for a single line, for sentences, and for Markdown tables."""
    if len(lines) < 2 or PROSE.fullmatch(lines[0].strip()) or lines[0].startswith("|"):
        return None
    counts = {separator: min(line.count(separator) for line in lines) for separator in SEPARATORS}
    best = max(SEPARATORS, key=lambda separator: counts[separator])
    return best if counts[best] else None


def _keep_digits(frame: pd.DataFrame, text: str, options: dict[str, Any]) -> pd.DataFrame:
    """Read columns again that lost digits: names like 007 stay text, and long integers next to gaps stay exact."""
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
        present = cells.dropna().astype(str)
        if present.map(lambda cell: LEADING_ZERO.fullmatch(cell) is not None).any():
            frame[column] = cells
        elif column in long and present.map(lambda cell: INTEGER.fullmatch(cell) is not None).all():
            frame[column] = pd.array([pd.NA if cell is np.nan else int(cell) for cell in cells], dtype="Int64")
    return frame
