"""How files that people have are read, refused and described."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from sluice import to_frame
from sluice.delimited.read import read_delimited
from sluice.delimited.reading import UnreadableFile
from sluice.errors import ShapeError

AMBIGUOUS = b'name,x\na,"1,234"\nb,567\n'

READ: dict[str, tuple[bytes, tuple[str, str, str], list[list[Any]], list[str]]] = {
    "plain": (b"a,b\n1,x\n", ("utf-8", ",", "."), [[1, "x"]], []),
    "a byte order mark": ("\ufeffa,b\n1,ä\n".encode(), ("utf-8", ",", "."), [[1, "ä"]], []),
    "semicolons and decimal commas": (
        b"a;b\n1,5;-2,5\n3,25;4,5\n",
        ("utf-8", ";", ","),
        [[1.5, -2.5], [3.25, 4.5]],
        ["delimiter", "decimal"],
    ),
    "semicolons and integers": (b"a;b\n1;2\n", ("utf-8", ";", "."), [[1, 2]], ["delimiter"]),
    "points between thousands": (
        b"a;b\n1.234,56;x\n1.234;y\n",
        ("utf-8", ";", ","),
        [[1234.56, "x"], [1234.0, "y"]],
        ["delimiter", "decimal", "thousands"],
    ),
    "commas between thousands": (
        b'a,b\n"1,234.50",1.5\n567,2.5\n',
        ("utf-8", ",", "."),
        [[1234.5, 1.5], [567.0, 2.5]],
        ["thousands"],
    ),
    "quoted decimal commas": (b'a,b\nx,"1,5"\ny,"2,75"\n', ("utf-8", ",", ","), [["x", 1.5], ["y", 2.75]], ["decimal"]),
    "points before three digits": (b"a,b\n1.234,x\n", ("utf-8", ",", "."), [[1.234, "x"]], ["decimalPoints"]),
    "tabs": (b"a\tb\n1\tx, y\n", ("utf-8", "\t", "."), [[1, "x, y"]], ["delimiter"]),
    "vertical bars": (b"a|b\n1|x\n", ("utf-8", "|", "."), [[1, "x"]], ["delimiter"]),
    "a separator line": (b"sep=;\r\na;b\r\n1;2\r\n", ("utf-8", ";", "."), [[1, 2]], ["delimiter"]),
    "quoted delimiters and line breaks": (
        b'a;b\n"x;1\ny";2\n"z, z";3\n',
        ("utf-8", ";", "."),
        [["x;1\ny", 2], ["z, z", 3]],
        ["delimiter"],
    ),
    "carriage returns": (b"a,b\r1,2\r3,4\r", ("utf-8", ",", "."), [[1, 2], [3, 4]], []),
    "one column": (b"value\n1\n2\n", ("utf-8", "none", "."), [[1], [2]], []),
    "one column with blank lines": (b"value\n1\n\n2\n\n", ("utf-8", "none", "."), [[1], [2]], ["blankLines"]),
    "only a header": (b"a;b\n", ("utf-8", ";", "."), [], ["delimiter"]),
    "short rows": (b"a,b\n1,2\n3\n", ("utf-8", ",", "."), [[1, 2.0], [3, None]], ["shortRows"]),
    "a delimiter at the end of each row": (b"a,b\n1,2,\n3,4,\n", ("utf-8", ",", "."), [[1, 2], [3, 4]], ["ending"]),
    "codes": (
        b"zip,e,n\n01234,12E5,1\n99999,34E2,2\n",
        ("utf-8", ",", "."),
        [["01234", "12E5", 1], ["99999", "34E2", 2]],
        ["codes", "codes"],
    ),
    "words for missing values": (
        b"c,n\nNA,1\nDE,n/a\n",
        ("utf-8", ",", "."),
        [[None, 1.0], ["DE", None]],
        ["missing", "missing"],
    ),
    "flags": (b"f,n\nTrue,1\nNA,2\n", ("utf-8", ",", "."), [[True, 1], [None, 2]], ["missing"]),
    "nearly numbers": (
        b"a,b\n1,x\n2,y\n3*,z\n",
        ("utf-8", ",", "."),
        [["1", "x"], ["2", "y"], ["3*", "z"]],
        ["notNumbers"],
    ),
    "long integers next to gaps": (
        b"id,n\n12345678901234567,1\n,2\n",
        ("utf-8", ",", "."),
        [[12345678901234567, 1], [None, 2]],
        [],
    ),
    "repeated and missing names": (b"a,a,\n1,2,3\n", ("utf-8", ",", "."), [[1, 2, 3]], ["repeatedNames", "unnamed"]),
    "dates without a year": (
        b"d;v\n01.02;1\n15.03;2\n",
        ("utf-8", ";", "."),
        [["01.02", 1], ["15.03", 2]],
        ["delimiter", "codes"],
    ),
    "dates with points": (b"d,v\n01.02.2024,1\n", ("utf-8", ",", "."), [["01.02.2024", 1]], []),
    "percent": (b"k,p\na,12.5%\nb,3%\n", ("utf-8", ",", "."), [["a", "12.5%"], ["b", "3%"]], ["notNumbers"]),
    "currencies": (
        "k;p\na;1.234,50 €\nb;3,00 €\n".encode(),
        ("utf-8", ";", "."),
        [["a", "1.234,50 €"], ["b", "3,00 €"]],
        ["delimiter", "notNumbers"],
    ),
    "apostrophes between thousands": (b"v,k\n1'234.50,x\n", ("utf-8", ",", "."), [["1'234.50", "x"]], ["notNumbers"]),
    "spaces between thousands": (
        "v;k\n1\u202f234,50;x\n".encode(),
        ("utf-8", ";", "."),
        [["1\u202f234,50", "x"]],
        ["delimiter", "notNumbers"],
    ),
    "colons between cells": (b"a:b\n1:2\n", ("utf-8", "none", "."), [["1:2"]], ["oneColumn"]),
    "columns of a fixed width": (
        b"a    b\n1    2\n",
        ("utf-8", "none", "."),
        [["1    2"]],
        ["oneColumn", "notNumbers"],
    ),
    "one column of sentences": (b"text\nhello you\nbye\n", ("utf-8", "none", "."), [["hello you"], ["bye"]], []),
    "a comment as the header": (b"# a,b\n1,2\n", ("utf-8", ",", "."), [[1, 2]], ["comment"]),
    "no header": (b"1,2\n3,4\n", ("utf-8", ",", "."), [[3, 4]], ["headerIsData"]),
    "spaces before quotes": (b'a, b\n1, "x, y"\n', ("utf-8", ",", "."), [[1, "x, y"]], ["spaces"]),
    "inches": (b'a,b\n1,5" pipe\n', ("utf-8", ",", "."), [[1, '5" pipe']], []),
    "Windows-1252": ("a,b\nMüller,1\n".encode("cp1252"), ("windows-1252", ",", "."), [["Müller", 1]], ["encoding"]),
    "UTF-16": ("a,b\nä,1\n".encode("utf-16"), ("utf-16le", ",", "."), [["ä", 1]], ["encoding"]),
    "UTF-16 BE without a mark": ("a,b\nä,1\n".encode("utf-16-be"), ("utf-16be", ",", "."), [["ä", 1]], ["encoding"]),
}

REFUSED: dict[str, tuple[bytes, str, list[dict[str, str]]]] = {
    "nothing": (b"", "It is empty: there is no header line.", []),
    "blank lines only": (b"\n\n", "It is empty: there is no header line.", []),
    "thousands or decimals": (
        AMBIGUOUS,
        "'1,234' in 'x' can mean 1234 or 1.234.",
        [{"decimal": ","}, {"decimal": "."}],
    ),
    "thousands or decimals after semicolons": (
        b"a;b\n1.234;x\n",
        "'1.234' in 'a' can mean 1234 or 1.234.",
        [{"decimal": ","}, {"decimal": "."}],
    ),
    "both decimal marks": (
        b"a;b\n1,5;2.5\n",
        "Its numbers are written in two ways: '1,5' in 'a' and '2.5' in 'b'.",
        [{"decimal": ","}, {"decimal": "."}],
    ),
    "two delimiters": (
        b"a,b;c\n",
        "Its cells can be separated by commas or semicolons.",
        [{"delimiter": ","}, {"delimiter": ";"}],
    ),
    "more cells in the first row": (b"a,b\n1,2,3\n", "Line 2 has 3 cells, but the header has 2.", []),
    "more cells in a later row": (b"a,b\n1,2\n3,4,5\n", "Line 3 has 3 cells, but the header has 2.", []),
    "a title above the header": (
        b"Report\na,b\n1,2\n",
        "Its first line has one name, but later lines contain commas",
        [{"delimiter": "none"}],
    ),
    "commas late in one column": (
        b"a\n" + b"x\n" * 5000 + b"y,z\n",
        "Its first line has one name",
        [{"delimiter": "none"}],
    ),
    "a stray quote": (b'id,name,n\n1,"foo,2\n2,bar,3\n3,"baz,4\n4,qux,5\n', "The quotes ", []),
    "zero bytes": (b"a,b\nx\0y,2\n", "It contains zero bytes, the first at byte 6", [{"encoding": "utf-16le"}]),
    "another separator line": (
        b"sep=:\na:b\n1:2\n",
        "Its first line, sep=:, says that cells are separated by ':', which is not supported.",
        [{"delimiter": "none"}],
    ),
    "one zero byte in a short file": (
        b"a,b\n1,\0\n",
        "It contains zero bytes, the first at byte 7",
        [{"encoding": "utf-16be"}],
    ),
    "a Mac's letters": (
        "Stadt;Größe\nMünchen;1,5\n".encode("mac-roman"),
        "It is not UTF-8, and its bytes do not look like Windows-1252",
        [{"encoding": "windows-1252"}],
    ),
    "Cyrillic": (
        "имя,x\nпривет,1\n".encode("cp1251"),
        "It is not UTF-8, and its bytes do not look like Windows-1252",
        [{"encoding": "windows-1252"}],
    ),
    "Polish": (
        "a,x\nWrocław,1\n".encode("cp1250"),
        "It is not UTF-8, and its bytes do not look like Windows-1252",
        [{"encoding": "windows-1252"}],
    ),
    "two encodings": (
        "a\né\n".encode() + b"\xfc\n",
        "It has characters in UTF-8 and also bytes that are not UTF-8, the first in line 3.",
        [{"encoding": "windows-1252"}],
    ),
    "control characters": (
        b"a,b\n\xfc\x01,2\n",
        "It is not text: it is not UTF-8 and has the control byte 0x01 in line 2.",
        [],
    ),
}


@pytest.mark.parametrize("case", READ)
def test_a_file_is_read_with_the_options_and_notes_that_it_needs(case: str) -> None:
    raw, options, rows, codes = READ[case]
    frame, reading = read_delimited(raw, "csv")
    assert (reading.encoding, reading.delimiter, reading.decimal) == options
    assert [note["code"] for note in reading.notes] == codes
    read = [[None if pd.isna(cell) else cell for cell in row] for row in frame.astype(object).to_numpy().tolist()]
    assert read == rows


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_can_be_read_in_several_ways_is_refused_with_the_options(case: str) -> None:
    raw, why, options = REFUSED[case]
    with pytest.raises(UnreadableFile) as caught:
        read_delimited(raw, "csv")
    assert caught.value.why.startswith(why)
    assert caught.value.options == options


@pytest.mark.parametrize(("raw", "given"), [(raw, given) for raw, _, options in REFUSED.values() for given in options])
def test_the_options_of_a_refusal_read_the_file(raw: bytes, given: dict[str, str]) -> None:
    if b"\0" not in raw:  # with a zero byte, the options only show what could be meant
        assert len(read_delimited(raw, "csv", given)[0].columns) > 0


def test_a_byte_that_decides_is_found_anywhere_in_the_file() -> None:
    many = b"a,b\n" + b"x,y\n" * 400_000
    _, late = read_delimited(many + b"M\xfcller,1\n", "csv")
    assert late.encoding == "windows-1252"
    assert "'Müller' in line 400002" in late.notes[0]["message"]
    numbers = b"a;b\n" + b"1;2\n" * 100_000
    assert read_delimited(numbers + b"1,5;3\n", "csv")[0]["a"].iloc[-1] == 1.5
    with pytest.raises(UnreadableFile, match="Line 100002 has 3 cells"):
        read_delimited(numbers + b"1;2;3\n", "csv")


def test_a_given_encoding_is_not_replaced() -> None:
    with pytest.raises(UnreadableFile, match="It is not UTF-8 text: byte 0xfc in line 2"):
        read_delimited(b"a\nM\xfcller\n", "csv", {"encoding": "utf-8"})
    with pytest.raises(UnreadableFile, match="It starts with the byte order mark of UTF-16 LE, so it is not UTF-8"):
        read_delimited("a\n1\n".encode("utf-16"), "csv", {"encoding": "utf-8"})


def test_tabs_need_no_note_in_a_tsv_file_and_commas_are_text_there() -> None:
    assert read_delimited(b"a\tb\n1\t2\n", "tsv")[1].notes == []
    frame, reading = read_delimited(b"text\nhello, world\n", "tsv")
    assert (reading.delimiter, frame.to_dict("list")) == ("none", {"text": ["hello, world"]})


def test_text_of_a_tool_is_read_by_the_same_rules() -> None:
    frame = to_frame("a;b\n1,5;x\n2,5;y")
    assert frame["a"].tolist() == [1.5, 2.5]
    assert frame.attrs["to_frame"] == [
        "read CSV text separated by ';'",
        "Numbers have decimal commas, for example '1,5' in 'a'.",
    ]
    with pytest.raises(ShapeError, match=r"'1\.234' in 'a' can mean 1234 or 1\.234\."):
        to_frame("a;b\n1.234;x\n")
