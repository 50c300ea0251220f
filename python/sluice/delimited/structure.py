"""Checks the rows of a whole file against its header."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import replace

from sluice.delimited.delimiter import cells_of, is_blank, long_fields, one_name_only
from sluice.delimited.encoding import Bytes
from sluice.delimited.reading import DELIMITERS, ONE_COLUMN, Reading, UnreadableFile, counted


def check_rows(raw: Bytes, *, kind: str, first: list[list[str]], rows: int, reading: Reading) -> None:
    """Note rows with fewer cells than the header and skipped lines. Raises UnreadableFile for what cannot be read.

    `first` has the header and the first row, which limits the cells of the others in pandas; `rows` is the number of
    rows that were read. Files without quotes whose delimiters have the right number are not
    read a second time.
    """
    if reading.delimiter == ONE_COLUMN:
        _check_one_column(raw, kind, reading)
    elif len(first[-1]) > len(first[0]) or not _is_regular(raw, len(first[0]), rows, reading):
        check_widths(raw, len(first[0]), reading)


def records(raw: Bytes, reading: Reading) -> Iterator[tuple[int, list[str]]]:
    """Every record after the skipped lines, with the number of its last line. Raises UnreadableFile for malformed quotes."""
    binary = io.BytesIO(raw)
    binary.seek(reading.mark_bytes)
    text = io.TextIOWrapper(binary, encoding=reading.codec, newline="")
    with long_fields():
        for _ in range(reading.skipped_lines):
            text.readline()
        spaces = reading.skips_spaces
        reader = csv.reader(text, delimiter=reading.separator, strict=True, skipinitialspace=spaces)
        try:
            for row in reader:
                yield reader.line_num + reading.skipped_lines, row
        except csv.Error:
            line = reader.line_num + reading.skipped_lines
            why = f"The quotes in line {line} are malformed: a quoted cell is not closed, or text follows its closing quote."
            raise UnreadableFile(why) from None


def _is_regular(raw: Bytes, width: int, rows: int, reading: Reading) -> bool:
    if reading.encoding.startswith("utf-16") or raw.find(b'"') != -1:
        return False
    start = 0
    for _ in range(reading.skipped_lines):
        start = raw.find(b"\n", start) + 1
    delimiter = reading.delimiter.encode()
    count = sum(raw[at : at + (1 << 22)].count(delimiter) for at in range(start, len(raw), 1 << 22))
    return count == (rows + 1) * (width - 1)


def check_widths(raw: Bytes, width: int, reading: Reading) -> None:
    """Raise UnreadableFile for the first row with more cells than the header. Note rows with fewer."""
    short, first_short, ended = 0, 0, 0
    for line, row in records(raw, reading):
        if len(row) == width or is_blank(row):
            continue
        if cells_of(row, width) == width:
            ended += 1
            continue
        if len(row) > width:
            raise UnreadableFile(
                f"Line {line} has {len(row)} cells, but the header has {width}. Quote cells that contain the delimiter, or "
                "remove what stands above the header."
            )
        short, first_short = short + 1, first_short or line
    if ended:
        message = f"{counted(ended, 'row')} ending with delimiters: the empty cells after the last column were ignored."
        reading.note("ending", message, count=ended)
    if short:
        message = f"{counted(short, 'row')} with fewer cells than the header, the first in line {first_short}: the rest is missing."
        reading.note("shortRows", message, count=short)


def _check_one_column(raw: Bytes, kind: str, reading: Reading) -> None:
    blank = pending = 0
    for _, row in records(raw, reading):
        if is_blank(row):
            pending += 1
        else:
            blank, pending = blank + pending, 0
    if blank:
        reading.note(
            "blankLines",
            f"Skipped {counted(blank, 'blank line')}, which pandas does not count as missing values.",
            count=blank,
        )
    if "delimiter" in reading.given:
        return
    inside = [one for one in (("\t",) if kind == "tsv" else DELIMITERS) if _splits(raw, one, reading)]
    if inside:
        raise one_name_only(inside)


def _splits(raw: Bytes, delimiter: str, reading: Reading) -> bool:
    """Whether some row has several cells with this delimiter."""
    if raw.find(delimiter.encode()) == -1:
        return False
    other = replace(reading, delimiter=delimiter, notes=[])
    try:
        return any(len(row) > 1 for _, row in records(raw, other))
    except UnreadableFile:
        return True
