"""Parses text that contains a table: JSON, JSON lines, CSV."""

from __future__ import annotations

import json
import re
from typing import Any

import pandas as pd

from sluice.delimited.read import read_delimited
from sluice.delimited.reading import DELIMITERS, UnreadableFile
from sluice.errors import ShapeError

PROSE = re.compile(r".*\s.*[.!?:…]")


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
    if not _looks_like_csv(text.split("\n", 2)[:2]):
        return None
    try:
        frame, reading = read_delimited(text.encode(), "csv", skips_spaces=True)
    except UnreadableFile as error:
        if not error.options:
            return None
        how = "Read it with pd.read_csv(io.StringIO(text), sep=..., decimal=...)."
        raise ShapeError(f"to_frame cannot decide how to read this CSV text. {error.why} {how}") from None
    steps.append(f"read CSV text separated by {reading.delimiter!r}")
    steps.extend(note["message"] for note in reading.notes if note["code"] != "delimiter")
    return frame


def _looks_like_csv(lines: list[str]) -> bool:
    """Whether both lines contain the same delimiter. False for a single line, for sentences, and for Markdown tables."""
    if len(lines) < 2 or PROSE.fullmatch(lines[0].strip()) or lines[0].startswith("|"):
        return False
    return any(all(delimiter in line for line in lines) for delimiter in DELIMITERS)
