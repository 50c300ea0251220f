"""A table in any dialect is read back with the same values, or refused, or the difference is noted."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.delimited.read import read_delimited
from sluice.delimited.reading import UnreadableFile

CODECS = {
    ("utf-8", False): "utf-8",
    ("utf-8", True): "utf-8-sig",
    ("utf-16le", False): "utf-16-le",
    ("utf-16le", True): "utf-16-le",
    ("utf-16be", False): "utf-16-be",
    ("utf-16be", True): "utf-16-be",
    ("windows-1252", False): "cp1252",
}
MARKS = {"utf-16le": b"\xff\xfe", "utf-16be": b"\xfe\xff"}


@dataclass
class Dialect:
    """How a file is written."""

    encoding: str
    has_mark: bool
    delimiter: str
    decimal: str
    groups: bool
    newline: str
    quotes_all: bool

    def options(self) -> dict[str, str]:
        return {"encoding": self.encoding, "delimiter": self.delimiter, "decimal": self.decimal}

    def number(self, value: float, places: int) -> str:
        text = f"{value:,.{places}f}" if self.groups else f"{value:.{places}f}"
        return text.translate(str.maketrans(",.", ".,")) if self.decimal == "," else text

    def write(self, header: list[str], rows: list[list[str]]) -> bytes:
        text = io.StringIO()
        writer = csv.writer(
            text,
            delimiter=self.delimiter,
            lineterminator=self.newline,
            quoting=csv.QUOTE_ALL if self.quotes_all else csv.QUOTE_MINIMAL,
        )
        writer.writerows([header, *rows])
        mark = MARKS.get(self.encoding, b"") if self.has_mark else b""
        return mark + text.getvalue().encode(CODECS[self.encoding, self.has_mark])


@st.composite
def dialects(draw: st.DrawFn) -> Dialect:
    encoding, has_mark = draw(st.sampled_from(sorted(CODECS)))
    return Dialect(
        encoding=encoding,
        has_mark=has_mark,
        delimiter=draw(st.sampled_from(",;\t|")),
        decimal=draw(st.sampled_from(".,")),
        groups=draw(st.booleans()),
        newline=draw(st.sampled_from(["\n", "\r\n", "\r"])),
        quotes_all=draw(st.booleans()),
    )


WORDS = st.text(st.sampled_from("xyzäöüßé€ ,;|\t\"'\n.-"), max_size=6).map(lambda text: f"w{text}q")


def _divided_by(places: int) -> Callable[[int], Any]:
    return lambda number: (round(number / 10**places, places), places)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[Any]]]:
    """Columns of words, of integers or of decimals, with gaps. Decimals have a fixed number of places, as in real files."""
    width, height = draw(st.integers(1, 4)), draw(st.integers(0, 6))
    columns: list[list[Any]] = []
    for _ in range(width):
        kind = draw(st.sampled_from(["word", "integer", "decimal"]))
        places = draw(st.integers(1, 4))
        numbers = st.integers(-(10**9), 10**9)
        cells = WORDS if kind == "word" else numbers.map(_divided_by(0 if kind == "integer" else places))
        columns.append(draw(st.lists(cells | st.none() if width > 1 else cells, min_size=height, max_size=height)))
    return [f"c{at}" for at in range(width)], [list(row) for row in zip(*columns, strict=True)]


def written(dialect: Dialect, rows: list[list[Any]]) -> list[list[str]]:
    def text(cell: Any) -> str:
        return "" if cell is None else cell if isinstance(cell, str) else dialect.number(*cell)

    return [[text(cell) for cell in row] for row in rows]


def is_same(read: Any, cell: Any) -> bool:
    if cell is None:
        return bool(pd.isna(read))
    if isinstance(cell, str):
        return bool(read == cell)
    return not isinstance(read, str) and not pd.isna(read) and float(read) == cell[0]


def differences(frame: pd.DataFrame, header: list[str], rows: list[list[Any]]) -> set[str]:
    assert list(frame.columns) == header
    assert len(frame) == len(rows)
    return {
        name
        for at, name in enumerate(header)
        if not all(is_same(frame.iloc[number, at], row[at]) for number, row in enumerate(rows))
    }


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dialects(), tables())
def test_nothing_is_read_wrong_in_silence(dialect: Dialect, table: tuple[list[str], list[list[Any]]]) -> None:
    header, rows = table
    raw = dialect.write(header, written(dialect, rows))
    try:
        frame, reading = read_delimited(raw, "csv")
    except UnreadableFile as refused:
        assert refused.why
        return
    if any(note["code"] == "decimalPoints" for note in reading.notes):
        return
    noted = {word for note in reading.notes for word in (note.get("column"), *note["message"].split("'"))}
    assert differences(frame, header, rows) <= noted


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dialects(), tables())
def test_with_the_right_options_every_value_is_read(dialect: Dialect, table: tuple[list[str], list[list[Any]]]) -> None:
    header, rows = table
    frame, reading = read_delimited(dialect.write(header, written(dialect, rows)), "csv", dialect.options())
    assert differences(frame, header, rows) == set()
    assert {reading.facts()[name]["from"] for name in dialect.options()} == {"given"}


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dialects(), tables())
def test_the_reading_of_a_file_is_what_reading_it_with_those_options_gives(
    dialect: Dialect, table: tuple[list[str], list[list[Any]]]
) -> None:
    raw = dialect.write(table[0], written(dialect, table[1]))
    try:
        frame, reading = read_delimited(raw, "csv")
    except UnreadableFile as refused:
        for options in refused.options:
            read_delimited(raw, "csv", {**dialect.options(), **options})
        return
    options = {name: reading.facts()[name]["value"] for name in ("encoding", "delimiter", "decimal")}
    again, _ = read_delimited(raw, "csv", options)
    pd.testing.assert_frame_equal(frame, again)


CELLS = st.sampled_from(
    [
        "",
        "NA",
        "null",
        "007",
        "1",
        "-2",
        "1.5",
        "2,5",
        "1,234",
        "1.234",
        "12E5",
        "True",
        "x",
        " y",
        "a,b",
        "c;d",
        'say "e"',
        "f\ng",
        "01.02.2024",
        "12:30",
        "+4",
        ".5",
        "5.",
        "3 kg",
        "n/a",
        "#",
        "é€",
        "\t",
        "|",
        "99999999999999999999",
        "1e400",
        "0x10",
        "1_000",
    ]
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    dialects(),
    st.integers(1, 3).flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=5)),
)
def test_every_value_is_the_text_of_its_cell_or_the_number_in_it(dialect: Dialect, rows: list[list[str]]) -> None:
    header = [f"c{at}" for at in range(len(rows[0]) if rows else 2)]
    options = {"encoding": dialect.encoding, "delimiter": dialect.delimiter}
    dialect.quotes_all = dialect.quotes_all or len(header) == 1  # an empty line is not a row
    try:
        frame, reading = read_delimited(dialect.write(header, rows), "csv", options)
    except UnreadableFile:
        return
    assert list(frame.columns) == header
    assert len(frame) == len(rows)
    missing = {note["column"] for note in reading.notes if note["code"] == "missing"}
    for name, cells in zip(header, zip(*rows, strict=True), strict=False):
        for read, cell in zip(frame[name].tolist(), cells, strict=True):
            if isinstance(read, str):
                assert read == cell
            elif isinstance(read, bool):
                assert str(read) == cell
            elif pd.isna(read):
                assert cell == "" or name in missing
            elif isinstance(read, int):
                assert read == int(cell.replace(",", "").replace(".", ""))
            else:
                other = "," if reading.decimal == "." else "."
                assert read == float(cell.replace(other, "").replace(",", "."))
