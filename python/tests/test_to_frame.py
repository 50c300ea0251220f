"""Tests of `to_frame` with the shapes that tools return."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sluice import ShapeError, to_frame

RECORDS = [{"day": "mon", "sold": 5}, {"day": "tue", "sold": 7}]
EXPECTED = pd.DataFrame(RECORDS)

SHAPES: dict[str, Any] = {
    "a DataFrame": EXPECTED,
    "a list of records": RECORDS,
    "a tuple of records": tuple(RECORDS),
    "a dict of columns": {"day": ["mon", "tue"], "sold": [5, 7]},
    "a dict of arrays": {"day": np.array(["mon", "tue"]), "sold": np.array([5, 7])},
    "columns and rows": {"columns": ["day", "sold"], "rows": [["mon", 5], ["tue", 7]]},
    "columns and data": {"columns": ["day", "sold"], "data": [["mon", 5], ["tue", 7]]},
    "columns with names, and records": {"columns": [{"name": "day"}, {"name": "sold"}], "rows": RECORDS},
    "records under a nested key": {"status": "ok", "data": {"total": 2, "items": RECORDS}},
    "JSON text": json.dumps(RECORDS),
    "JSON text with records under a key": json.dumps({"result": RECORDS}),
    "JSON lines": "\n".join(map(json.dumps, RECORDS)),
    "CSV text": "day,sold\nmon,5\ntue,7\n",
    "tab separated text": "day\tsold\nmon\t5\ntue\t7\n",
    "bytes of CSV": b"day;sold\nmon;5\ntue;7\n",
    "an MCP content block": {"type": "text", "text": json.dumps(RECORDS)},
    "a list of MCP content blocks": [{"type": "text", "text": json.dumps(RECORDS)}],
    "a block for each record": [{"type": "text", "text": json.dumps(record)} for record in RECORDS],
    "an embedded resource": {"type": "resource", "resource": {"uri": "x:y", "text": "day,sold\nmon,5\ntue,7\n"}},
    "an MCP tool result": {"content": [{"type": "text", "text": json.dumps(RECORDS)}], "isError": False},
    "structured content": {"content": [{"type": "text", "text": "see there"}], "structuredContent": {"rows": RECORDS}},
    "a dict of columns with facts about them": {"status": "ok", "day": ["mon", "tue"], "sold": [5, 7], "page": 1},
    "a table among blocks of prose": [
        {"type": "text", "text": "Sales, as you asked for:"},
        {"type": "text", "text": "day,sold\nmon,5\ntue,7"},
    ],
    "CSV text with a separator at the end of each row": "day,sold\nmon,5,\ntue,7,",
    "a frame under a key": {"frame": EXPECTED},
    "rows under their header": [["day", "sold"], ["mon", 5], ["tue", 7]],
}


@pytest.mark.parametrize("value", SHAPES.values(), ids=SHAPES.keys())
def test_every_supported_shape_gives_the_same_frame(value: Any) -> None:
    frame = to_frame(value)
    pd.testing.assert_frame_equal(frame, EXPECTED, check_dtype=False)
    assert frame.attrs["to_frame"], "it says what it did"


def test_series_and_arrow_tables_become_frames() -> None:
    assert to_frame(pd.Series([1, 2])).columns.tolist() == ["value"]
    assert to_frame(pd.Series([1, 2], name="n", index=["a", "b"])).index.tolist() == ["a", "b"]
    pa = pytest.importorskip("pyarrow")
    pd.testing.assert_frame_equal(to_frame(pa.table({"day": ["mon", "tue"], "sold": [5, 7]})), EXPECTED)


def test_a_dict_keyed_by_date_gets_a_date_column() -> None:
    frame = to_frame({"2024-01-02": 5, "2024-01-01": 7})
    assert frame["date"].tolist() == [pd.Timestamp("2024-01-02"), pd.Timestamp("2024-01-01")]
    assert frame["value"].tolist() == [5, 7]
    nested = to_frame(
        {"Meta": {"a": "b", "c": "d"}, "Daily": {"2024-01-01": {"open": "1"}, "2024-01-02": {"open": "2"}}}
    )
    assert nested.columns.tolist() == ["date", "open"]
    assert "left out Meta" in nested.attrs["to_frame"][0]


def test_pairs_of_time_and_value_get_a_time_column() -> None:
    frame = to_frame({"prices": [[1704067200000, 1.5], [1704153600000, None]], "id": "btc"})
    assert frame["time"].tolist() == [pd.Timestamp("2024-01-01", tz="UTC"), pd.Timestamp("2024-01-02", tz="UTC")]
    assert frame["value"].isna().tolist() == [False, True]
    several = to_frame({"prices": [[1704067200, 1.5]], "volumes": [[1704067200, 9]]})
    assert several.columns.tolist() == ["time", "prices", "volumes"]
    candles = to_frame([["2024-01-01", 1, 3, 0, 2]])
    assert candles.columns.tolist() == ["time", "value_1", "value_2", "value_3", "value_4"]


def test_the_steps_name_the_key_that_was_used_and_those_left_out() -> None:
    assert to_frame({"status": "ok", "page": 1, "items": RECORDS}).attrs["to_frame"] == [
        "took the table under 'items', left out status, page",
        "took a list of 2 records",
    ]


def test_one_record_is_one_row_in_every_notation() -> None:
    for value in ({"a": 1}, '{"a": 1}', {"type": "text", "text": '{"a": 1}'}):
        assert to_frame(value).to_dict("records") == [{"a": 1}]


def test_the_steps_contain_only_what_was_done() -> None:
    frame = to_frame({"content": [{"type": "buy", "amount": 1}, {"type": "sell", "amount": 2}]})
    assert frame.attrs["to_frame"] == ["took the table under 'content'", "took a list of 2 records"]


BIG = 2**60 + 1
WITH_A_GAP: dict[str, Any] = {
    "records": [{"n": BIG}, {"n": None}],
    "records without the key": [{"n": BIG}, {}],
    "columns": {"n": [BIG, None]},
    "columns and rows": {"columns": ["n"], "rows": [[BIG], [None]]},
    "CSV text": f"n,m\n{BIG},1\n,2",
    "a dict keyed by date": {"2024-01-01": {"n": BIG}, "2024-01-02": {"n": None}},
}


@pytest.mark.parametrize("value", WITH_A_GAP.values(), ids=WITH_A_GAP.keys())
def test_integers_next_to_a_gap_stay_exact(value: Any) -> None:
    column = to_frame(value)["n"]
    assert (column.iloc[0], column.isna().tolist()) == (BIG, [False, True])


def test_integers_of_an_arrow_table_stay_exact() -> None:
    pa = pytest.importorskip("pyarrow")
    assert to_frame(pa.table({"s": ["x", "y"], "n": [BIG, None]}))["n"].iloc[0] == BIG
    assert to_frame(pa.chunked_array([[BIG], [None]]))["value"].iloc[0] == BIG


def test_text_of_digits_keeps_its_leading_zeros() -> None:
    frame = to_frame("id,n\n007,0.5\n010,3")
    assert frame["id"].tolist() == ["007", "010"]
    assert frame["n"].tolist() == [0.5, 3.0]


def test_epochs_as_keys_are_dates() -> None:
    for keys in ((1704067200, 1704153600), ("1704067200", "1704153600")):
        frame = to_frame({keys[0]: 5, keys[1]: 7})
        assert frame["date"].tolist() == [pd.Timestamp("2024-01-01", tz="UTC"), pd.Timestamp("2024-01-02", tz="UTC")]


def test_a_picture_is_not_a_table() -> None:
    with pytest.raises(ShapeError, match="there is no text to read a table from; the MCP content blocks are: image"):
        to_frame({"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]})


def test_numbers_in_csv_are_exact() -> None:
    assert to_frame("a,b\n0.1,1e-300\n123456789.123456789,5e-324")["a"].tolist() == [0.1, 123456789.123456789]


def test_columns_without_rows_give_an_empty_frame() -> None:
    assert to_frame({"columns": ["a"], "rows": []}).shape == (0, 1)


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ("hello, world", "text of 12 characters 'hello, world'"),
        ("Prices rose.\nThen they fell.", "text of"),
        ([], "list of 0 (empty)"),
        ({}, "dict of 0 keys"),
        (None, "NoneType"),
        (3.5, "float"),
        ([1, "a", {}], "list of 3 (dict, int, str"),
        ([["a", "b"], ["c", "d"]], "list of 2 (list"),
        ([[1, 2], [3]], "list of 2 (list"),
        ({"a": {"b": {"c": 1}}}, "dict of 1 keys {'a': dict of 1 keys"),
        ({"data": []}, "dict of 1 keys {'data': list of 0 (empty)}"),
        ({"tags": ["a", "b"], "price": 5}, "dict of 2 keys"),
        ("Hello, world.\nThis is prose, really.", "text of 36 characters"),
        ("a,b\n1,2,3", "text of 9 characters"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "text of 29 characters"),
    ],
)
def test_an_unknown_shape_is_refused_with_its_description_and_the_supported_shapes(value: Any, seen: str) -> None:
    with pytest.raises(ShapeError) as caught:
        to_frame(value)
    assert seen in str(caught.value)
    assert "a list of records" in str(caught.value)
    assert "CSV text" in str(caught.value)


def test_two_tables_are_refused_so_that_the_caller_chooses() -> None:
    with pytest.raises(ShapeError, match=r"2 tables in this value; pass one of value\['bids'\], value\['asks'\]"):
        to_frame({"bids": RECORDS, "asks": RECORDS})


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"do not have the same length: \{'a': 2, 'b': 1\}"):
        to_frame({"a": [1, 2], "b": [1]})
    with pytest.raises(ShapeError, match="2 columns, but the rows under 'rows' have"):
        to_frame({"columns": ["a", "b"], "rows": [[1]]})


def test_an_error_of_a_tool_is_not_data() -> None:
    with pytest.raises(ShapeError, match="an error of a tool, not data: rate limit exceeded"):
        to_frame({"content": [{"type": "text", "text": "rate limit exceeded"}], "isError": True})


def test_the_callers_frame_is_not_changed() -> None:
    frame = pd.DataFrame({"a": [1]})
    for taken in (to_frame(frame), to_frame({"nested": frame})):
        taken["b"] = 1
        assert frame.columns.tolist() == ["a"]
        assert frame.attrs == {}
