"""Recognizes what separates the cells, from the first records of a file."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sluice.delimited.encoding import Bytes, decoded
from sluice.delimited.reading import DELIMITERS, NAMES, ONE_COLUMN, Reading, UnreadableFile

SAMPLE_CHARACTERS = 1 << 18
SAMPLE_ROWS = 1000
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?(?:\n|$)', re.IGNORECASE)
_SPACED_QUOTE = re.compile(' +"')
_NUMBER_WITH_COMMAS = re.compile(r"\s*[+-]?\d[\d.]*(?:,\d+)+(?:\.\d+)?\s*")


_OTHER_SEPARATORS = {
    "colons": re.compile(":"),
    "carets": re.compile(r"\^"),
    "tildes": re.compile("~"),
    "spaces": re.compile(" +"),
}


@dataclass
class Split:
    """The records of the sample, split at one delimiter. Malformed quotes give no records."""

    rows: list[list[str]]

    @property
    def width(self) -> int:
        """The number of cells of the header."""
        return len(self.rows[0]) if self.rows else 0

    @property
    def is_possible(self) -> bool:
        """Whether there are several columns, and no row has more cells than the header."""
        lengths = [cells_of(row, self.width) for row in self.rows]
        return self.width > 1 and max(lengths) == self.width and lengths.count(self.width) * 2 >= len(lengths)

    def explains(self, other: str) -> bool:
        """Whether another delimiter occurs inside cells only as a part of numbers."""
        cells = [(number, cell) for number, row in enumerate(self.rows) for cell in row if other in cell]
        return all(other == "," and number > 0 and _NUMBER_WITH_COMMAS.fullmatch(cell) for number, cell in cells)


def decide_delimiter(raw: Bytes, kind: str, reading: Reading) -> list[list[str]]:
    """Set the delimiter of a reading. Returns the first records, the header first. Raises UnreadableFile."""
    text, is_whole = _sample(raw, reading)
    line = _SEPARATOR_LINE.match(text)
    if line is not None:
        text, reading.skipped_lines = text[line.end() :], 1
    splits = {delimiter: Split(_records(text, delimiter, is_whole)) for delimiter in DELIMITERS}
    if not text.strip():
        raise UnreadableFile("It is empty: there is no header line.")
    given = reading.given.get("delimiter")
    named = line.group(1) if line is not None else None
    if given is None and named is not None and named not in DELIMITERS:
        why = f"Its first line, sep={named}, says that cells are separated by {named!r}, which is not supported."
        options = [*(one for one in DELIMITERS if splits[one].is_possible), ONE_COLUMN]
        raise UnreadableFile(why, [{"delimiter": one} for one in options])
    reading.delimiter = given or (named if named in DELIMITERS else None) or _recognize(splits, kind)
    if given is None and named in DELIMITERS:
        reading.note(
            "delimiter", f"The first line, sep={named}, says that cells are separated by {NAMES[reading.delimiter]}."
        )
    elif given is None and reading.delimiter not in (ONE_COLUMN, "\t" if kind == "tsv" else ","):
        reading.note("delimiter", f"Cells are separated by {NAMES[reading.delimiter]}.")
    if reading.delimiter == ONE_COLUMN:
        rows = _records(text, reading.separator, is_whole)
        if given is None:
            _note_other_separator(rows, reading)
        return rows
    rows = splits[reading.delimiter].rows
    if not reading.skips_spaces and any(_SPACED_QUOTE.match(cell) for row in rows for cell in row):
        reading.skips_spaces = True
        reading.note("spaces", "Spaces after the delimiter were skipped, because quoted cells follow them.")
    if reading.skips_spaces:
        rows = _records(text, reading.delimiter, is_whole, skips_spaces=True)
    if not rows:
        raise UnreadableFile("The quotes of its first lines are malformed: text follows a closing quote.")
    return rows


@contextmanager
def long_fields() -> Iterator[None]:
    """Lets the csv module read cells of any length. The limit is global, so it is restored."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def cells_of(row: list[str], width: int) -> int:
    """The number of cells of a row, without empty ones after the last column, as some programs end each row with a delimiter."""
    return width if len(row) > width and not any(row[width:]) else len(row)


def is_blank(row: list[str]) -> bool:
    """Whether a record is an empty line, or one with only white space, which pandas skips too."""
    return not row or (len(row) == 1 and not row[0].strip(" \t"))


def _sample(raw: Bytes, reading: Reading) -> tuple[str, bool]:
    text = next(decoded(raw, reading), "")
    is_whole = len(raw) <= 1 << 22 and len(text) <= SAMPLE_CHARACTERS
    return text[:SAMPLE_CHARACTERS], is_whole


def _records(text: str, delimiter: str, is_whole: bool, *, skips_spaces: bool = False) -> list[list[str]]:
    """The first records that are not blank. The last one is left out if the sample may have cut it."""
    rows: list[list[str]] = []
    with long_fields():
        lines = io.StringIO(text, newline="")
        reader = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=skips_spaces)
        try:
            for row in reader:
                if is_blank(row):
                    continue
                rows.append(row)
                if len(rows) > SAMPLE_ROWS:
                    return rows
        except csv.Error as error:
            is_cut = not is_whole and "unexpected end" in str(error)
            return rows if is_cut else []
    return rows if is_whole or len(rows) < 2 else rows[:-1]


def _note_other_separator(rows: list[list[str]], reading: Reading) -> None:
    """Note that another character occurs equally often in each line, so that the file may have several columns."""
    lines = [row[0] for row in rows]
    for what, parts in _OTHER_SEPARATORS.items():
        counts = {len(parts.split(line.strip())) for line in lines}
        if len(lines) > 1 and len(counts) == 1 and counts != {1}:
            message = f"It was read as one column, although each line has {counts.pop()} parts between {what}."
            reading.note("oneColumn", message)
            return


def _recognize(splits: dict[str, Split], kind: str) -> str:
    if kind == "tsv" and splits["\t"].width > 1:
        return "\t"
    possible = [delimiter for delimiter, split in splits.items() if split.is_possible]
    if len(possible) > 1:
        possible = [
            one for one in possible if all(splits[one].explains(other) for other in possible if other != one)
        ] or possible
    if len(possible) == 1:
        return possible[0]
    headers = possible or [delimiter for delimiter, split in splits.items() if split.width > 1]
    if len(headers) == 1:
        return headers[0]  # some rows have more cells; reading the whole file says which
    if headers:
        listed = " or ".join(NAMES[delimiter] for delimiter in headers)
        raise UnreadableFile(f"Its cells can be separated by {listed}.", [{"delimiter": one} for one in headers])
    if not all(split.rows for split in splits.values()):
        raise UnreadableFile(
            "The quotes of its first lines are malformed: a quoted cell is not closed, or text follows its closing quote."
        )
    inside = [delimiter for delimiter, split in splits.items() if any(len(row) > 1 for row in split.rows)]
    if inside and kind != "tsv":
        raise one_name_only(inside)
    return ONE_COLUMN


def one_name_only(inside: list[str]) -> UnreadableFile:
    """The refusal of a file whose header has one name, while its rows contain delimiters."""
    why = (
        f"Its first line has one name, but later lines contain {' and '.join(NAMES[one] for one in inside)}: it has one "
        "column, or a title above the header, or a header that lacks names."
    )
    return UnreadableFile(why, [{"delimiter": ONE_COLUMN}])
