"""Tests of tables: schema, pages, filters and downloads."""

from __future__ import annotations

import base64
import csv
import io
import itertools
import json
import os
from typing import Any

import pandas as pd
import pytest
from corpus import read
from hypothesis import given
from hypothesis import strategies as st

from sluice.delimited.reading import Reading
from sluice_tables import files
from sluice_tables.files import csv_of_frame, csv_of_lines, csv_of_source
from sluice_tables.table import Table
from sluice_worker.inputs import Inputs


def table(value: Any, kind: str = "json", path: list[str] | None = None, **reader: str) -> Table:
    raw = value if isinstance(value, bytes) else (value if isinstance(value, str) else json.dumps(value)).encode()
    inputs = Inputs()
    fd = os.memfd_create("data")
    os.write(fd, raw)
    inputs.add("data", kind, fd, len(raw), {"reader": reader})
    return Table(inputs, "data", path or [])


def ask(asked: Table, **question: Any) -> Any:
    return json.loads(asked.answer(question))


def page(asked: Table, **question: Any) -> Any:
    bounds = {"offset": 0, "limit": 100, "maxBytes": 100_000, "maxCellCharacters": 100, "records": False}
    return ask(asked, ask="page", **{**bounds, **question})


def download(asked: Table, ending: str, max_bytes: int = 1 << 20) -> bytes:
    pieces, more = [], True
    while more:
        answer = ask(asked, ask="download", **{"as": ending}, maxBytes=max_bytes)
        pieces.append(base64.b64decode(answer["base64"]))
        more = answer["more"]
    return b"".join(pieces)


def to_csv(value: Any, kind: str = "json", path: list[str] | None = None) -> str:
    return download(table(value, kind, path), "csv").decode()


def test_csv_has_all_columns_in_order_and_the_digits_that_were_sent() -> None:
    text = '[{"id":12345678901234567890,"x":1.10},{"x":null,"y":true,"n":{"a":1.0}}]'
    assert to_csv(text) == 'id,x,y,n\n12345678901234567890,1.10,,\n,,true,"{""a"":1.0}"\n'


def test_text_that_looks_like_a_formula_is_prefixed_and_numbers_are_not() -> None:
    cells = ["=1+1", "+x", "-x", "@x", "\tx", "\rx", "-5", "-1.5e3", "plain"]
    written = ["'=1+1", "'+x", "'-x", "'@x", "'\tx", '"\'\rx"', "-5", "-1.5e3", "plain"]
    expected = "'=cell,n\n" + "".join(f"{cell},-5\n" for cell in written)
    rows = [{"=cell": cell, "n": -5} for cell in cells]
    assert to_csv(rows) == expected
    assert "".join(csv_of_frame(pd.DataFrame(rows))) == expected


def test_the_formulas_of_the_corpus_are_prefixed_in_every_format() -> None:
    cases = read("csv-formulas.json")
    cells = cases["guarded"] + cases["kept"]
    safe = ["'" + cell for cell in cases["guarded"]] + cases["kept"]
    rows = [{"text": cell, "n": -5} for cell in cells]
    sent = io.StringIO()
    csv.writer(sent).writerows([["text", "n"], *([cell, -5] for cell in cells)])
    for written in (
        to_csv(rows),
        "".join(csv_of_frame(pd.DataFrame(rows))),
        "".join(csv_of_lines(sent.getvalue().encode(), Reading({}))),
    ):
        assert [row[0] for row in csv.reader(io.StringIO(written, newline=""))] == ["text", *safe]
    # Each cell alone in its block, so that no other cell makes the block special.
    for cell, expected in zip(cells, safe, strict=True):
        written = "".join(csv_of_lines(f"n,text\n5,{cell}\n".encode(), Reading({})))
        if not {"\r", "\n"} & set(cell):
            assert next(itertools.islice(csv.reader(io.StringIO(written, newline="")), 1, None))[1] == expected


def test_rows_are_found_inside_values_lists_and_maps() -> None:
    assert to_csv({"data": {"items": [1, "a"]}}, path=["data", "items"]) == "value\n1\na\n"
    assert to_csv([[1, 2]]) == "0,1\n1,2\n"
    assert to_csv({"A": {"x": 1}, "B": {"x": 2}}) == "key,x\nA,1\nB,2\n"
    assert to_csv('{"a":1}\n{"a":2}\n', "jsonl") == "a\n1\n2\n"
    assert to_csv('[{"x": NaN}]') == "x\n\n"


def test_sent_csv_is_made_safe_and_is_otherwise_unchanged() -> None:
    assert to_csv('a,b\r\n"=1,2",x\r\n"say ""hi""",-3\r\n', "csv") == 'a,b\n"\'=1,2",x\n"say ""hi""",-3\n'
    assert to_csv("a\tb\n1\t@x\n", "tsv") == "a,b\n1,'@x\n"
    assert to_csv("\ufeffid,when\n007,NA\n", "csv") == "id,when\n007,NA\n"


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8"))), min_size=1))
def test_a_csv_can_be_read_back(rows: list[tuple[str, str]]) -> None:
    source = json.dumps([{"a": a, "b": b} for a, b in rows]).encode()
    read = list(csv.reader(io.StringIO("".join(csv_of_source("json", source, [])), newline="")))
    assert [[cell.removeprefix("'") for cell in row] for row in read[1:]] == [
        [cell.removeprefix("'") for cell in row] for row in rows
    ]


@given(st.text(st.sampled_from("a1=+-@＝－.,,\t\r\n\n \u00a0\u200b\0\x01\"'"), max_size=80))
def test_csv_written_in_blocks_equals_csv_written_cell_by_cell(source: str) -> None:
    read = csv.reader(io.StringIO(source, newline=""))
    expected = "".join(",".join(map(files._cell, row)) + "\n" for row in read)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_BLOCK_BYTES", 20)
        patch.setattr(files, "_FEW_ROWS", 2)
        assert "".join(csv_of_lines(source.encode(), Reading({}))) == expected


def test_a_file_is_downloaded_in_pieces() -> None:
    rows = [{"id": number} for number in range(5000)]
    assert download(table(rows), "csv", 1000).decode() == "id\n" + "".join(f"{number}\n" for number in range(5000))


def test_parquet_stores_mixed_and_nested_values_as_json_text() -> None:
    rows = [{"day": "mon", "price": 1.5, "more": {"a": 1}}, {"day": "tue", "price": None, "more": "x"}]
    made = pd.read_parquet(io.BytesIO(download(table(rows), "parquet")))
    assert json.loads(made.to_json(orient="records")) == [
        {"day": "mon", "price": 1.5, "more": '{"a": 1}'},
        {"day": "tue", "price": None, "more": "x"},
    ]


def test_more_columns_than_a_spreadsheet_has_are_refused() -> None:
    wide = [{f"k{number}": 1 for number in range(16_385)}]
    answer = ask(table(wide), ask="download", **{"as": "csv"}, maxBytes=1)
    assert answer == {"refused": {"code": "wide", "columns": 16_385, "most": 16_384}}


def test_unreadable_data_is_refused_for_every_question() -> None:
    broken = table("{", "json")
    for _ in range(2):
        assert ask(broken, ask="schema")["refused"]["code"] == "unreadable"
    assert ask(table("{", "json"), ask="download", **{"as": "csv"}, maxBytes=1)["refused"]["code"] == "unreadable"
    assert ask(table(b"\x00", "bytes"), ask="schema") == {"refused": {"code": "bytes"}}


def test_a_schema_has_types_nulls_and_ranges() -> None:
    found = ask(table([{"n": 2**60, "t": "b"}, {"n": 1, "t": None}]), ask="schema")
    assert (found["rows"], found["columnCount"]) == (2, 2)
    number, text = found["columns"]
    assert (number["type"], number["min"], number["max"]) == ("integer", 1, 2**60)
    assert (text["type"], text["nulls"], text["nullShare"], text["distinct"]) == ("text", 1, 0.5, 1)


ROWS = [
    {"id": 1, "name": "Ann", "on": True},
    {"id": 2, "name": "bob", "on": False},
    {"id": 3, "name": None, "on": None},
]


@pytest.mark.parametrize(
    ("test", "ids"),
    [
        ({"column": "id", "op": "ge", "value": "2"}, [2, 3]),
        ({"column": "id", "op": "in", "value": [1, 3]}, [1, 3]),
        ({"column": "name", "op": "contains", "value": "B"}, [2]),
        ({"column": "name", "op": "startsWith", "value": "a"}, [1]),
        ({"column": "name", "op": "isNull"}, [3]),
        ({"column": "name", "op": "notNull"}, [1, 2]),
        ({"column": "on", "op": "eq", "value": "true"}, [1]),
        ({"column": "name", "op": "ne", "value": "bob"}, [1]),
    ],
)
def test_a_filter_selects_its_rows(test: dict[str, Any], ids: list[int]) -> None:
    found = page(table(ROWS), filter=[test], columns=["id"])
    assert ([row[0] for row in found["rows"]], found["matched"], found["total"]) == (ids, len(ids), 3)


def test_a_page_is_searched_sorted_and_cut_and_has_the_next_offset() -> None:
    asked = table(ROWS)
    assert page(asked, search="B")["rows"] == [[2, "bob", False]]
    falling = page(asked, sort=[{"column": "name", "descending": True}], columns=["id"], limit=2)
    assert (falling["rows"], falling["nextOffset"]) == ([[2], [1]], 2)
    assert page(asked, sort=[{"column": "name", "descending": True}], columns=["id"], offset=2)["rows"] == [[3]]
    long = page(table([{"t": "x" * 20}]), maxCellCharacters=5)
    assert (long["rows"], long["cutCells"]) == ([["xxxxx… [+15 characters]"]], 1)
    small = page(asked, maxBytes=20, records=True)
    assert (small["rows"], small["returned"], small["nextOffset"]) == ([ROWS[0]], 1, 1)


def test_a_question_that_does_not_fit_the_table_is_refused_with_what_exists() -> None:
    columns = ["id", "name", "on"]
    asked = table(ROWS)
    assert page(asked, columns=["nam"]) == {"refused": {"code": "column", "column": "nam", "columns": columns}}
    wrong = page(asked, filter=[{"column": "id", "op": "eq", "value": "x"}])
    assert wrong == {"refused": {"code": "value", "column": "id", "type": "integer", "value": "x"}}
