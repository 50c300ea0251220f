"""Tests of `set_result` beyond the corpus."""

from __future__ import annotations

import array
import collections
import decimal
import fractions
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Cell
from hypothesis import given
from hypothesis import strategies as st

import sluice
from sluice.result import serialise


def refused(value: object) -> str:
    with pytest.raises(sluice.ResultError) as caught:
        sluice.set_result(value)
    return str(caught.value)


def test_pyarrow_tables_become_records(cell: Cell) -> None:
    pa = pytest.importorskip("pyarrow")
    times = pa.array([0, None], type=pa.timestamp("ms", tz="UTC"))
    table = pa.table({"b": [1, None], "a": ["x", "y"], "t": times, "d": pa.array([decimal.Decimal("1.50"), None])})
    sluice.set_result({"table": table, "array": pa.array([1, None]), "scalar": pa.scalar(3)})
    assert cell.result["table"][0] == {"b": 1, "a": "x", "t": "1970-01-01T00:00:00+00:00", "d": "1.50"}
    assert cell.result["table"][1] == {"b": None, "a": "y", "t": None, "d": None}
    assert (cell.result["array"], cell.result["scalar"]) == ([1, None], 3)
    assert list(cell.result["table"][0]) == ["b", "a", "t", "d"]


def test_arrow_backed_frames_become_records(cell: Cell) -> None:
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"n": [2**60, None], "s": ["a", None]}).convert_dtypes(dtype_backend="pyarrow")
    frame["n"] = pd.array([2**60, None], dtype="int64[pyarrow]")
    sluice.set_result(frame)
    assert cell.result == [{"n": 2**60, "s": "a"}, {"n": None, "s": None}]


def test_colliding_keys_are_an_error_that_names_both(cell: Cell) -> None:
    assert refused({"a": {1: "x", "1": "y"}}) == (
        "$.a has two keys that are both '1' in JSON: 1 and '1'; rename one of them"
    )
    assert "'2024-01-01T00:00:00'" in refused({pd.Timestamp("2024-01-01"): 1, "2024-01-01T00:00:00": 2})


def test_duplicate_columns_are_an_error(cell: Cell) -> None:
    assert "two columns that are both 'a'" in refused(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    assert "two columns that are both '1'" in refused(pd.DataFrame([[1, 2]], columns=[1, "1"]))
    frame = pd.DataFrame({"k": [1]}, index=pd.Index(["x"], name="k"))
    assert "the index counts as a column" in refused(frame)


def test_a_value_without_a_json_form_is_refused_with_its_path(cell: Cell) -> None:
    assert refused({"a": [1, len]}).startswith("$.a[1] is a builtin_function_or_method, which has no JSON form")
    assert refused({"a": b"x"}).startswith("$.a is a bytes, which has no JSON form; decode it")
    assert refused([1 + 2j]).startswith("$[0] is a complex")
    assert refused(np.array([1j])).startswith("$[0] is a numpy.complex128")
    assert refused(pd.DataFrame({"a": [1, 2], "b": ["x", lambda: 1]})).startswith("$[1].b is a function")
    assert refused({"o": object()}).startswith("$.o is a object")
    assert "save_figure" in refused(__import__("matplotlib.figure").figure.Figure())
    assert "convert it to a list" in refused(iter([1]))
    assert refused({"a": {frozenset(): 1}}).startswith("$.a has the key frozenset()")


def test_cycles_are_refused_with_their_path(cell: Cell) -> None:
    loop: list[Any] = [1]
    loop.append({"again": loop})
    assert refused(loop).startswith("$[1].again contains itself")
    shared = [1]
    sluice.set_result([shared, shared])
    assert cell.result == [[1], [1]]


def test_cycles_through_frames_series_and_arrays_are_refused(cell: Cell) -> None:
    series = pd.Series([None], dtype=object)
    series[0] = series
    assert refused({"s": series}).startswith("$.s[0] contains itself (a cycle of pandas")
    frame = pd.DataFrame({"a": [None]}, dtype=object)
    again: Any = {"again": frame}
    frame.at[0, "a"] = again
    assert refused(frame).startswith("$[0].a.again contains itself (a cycle of pandas")
    square = np.empty((1, 1), dtype=object)
    square[0, 0] = square
    assert refused(square) == "$[0][0] contains itself (a cycle of numpy.ndarray); build a plain tree"


def test_a_duration_without_a_fixed_length_is_refused(cell: Cell) -> None:
    assert refused({"t": np.timedelta64(3, "M")}) == (
        "$.t is a numpy.timedelta64, which has no JSON form; use a duration in days, seconds or a smaller unit"
    )


def test_nesting_that_is_too_deep_is_refused(cell: Cell) -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    assert "nested more than 200 levels" in refused(deep)


def test_an_error_keeps_the_earlier_result(cell: Cell) -> None:
    sluice.set_result(1)
    refused(len)
    assert cell.result == 1


def test_changing_a_value_after_set_result_has_no_effect(cell: Cell) -> None:
    value = [1]
    sluice.set_result(value)
    value.append(2)
    assert cell.result == [1]


def test_nonfinite_values_are_counted_by_path(cell: Cell) -> None:
    frame = pd.DataFrame({"p": [1.0, math.nan, math.inf], "q": [1, 2, 3]})
    sluice.set_result({"frame": frame, "x": {"y": pd.NaT}, "l": [[math.nan], [1.0]]})
    assert cell.diagnostics["nonFinite"] == [
        {"path": "$.frame[*].p", "count": 2},
        {"path": "$.x.y", "count": 1},
        {"path": "$.l[*][*]", "count": 1},
    ]


def test_many_paths_are_summarised(cell: Cell) -> None:
    sluice.set_result({str(i): math.nan for i in range(150)})
    noted = cell.diagnostics["nonFinite"]
    assert len(noted) == 101
    assert noted[-1] == {"path": "(50 more paths)", "count": 50}


def test_large_frames_keep_precision_and_order(cell: Cell) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        rng.normal(size=(20_000, 3)) * 10.0 ** rng.integers(-300, 300, (20_000, 3)), columns=["z", "a", "m"]
    )
    frame["id"] = np.arange(20_000) + 2**60
    sluice.set_result(frame)
    assert list(cell.result[0]) == ["z", "a", "m", "id"]
    assert pd.DataFrame(cell.result).equals(frame)
    assert cell.diagnostics["frames"]["$"]["rows"] == 20_000


def test_a_frame_that_is_too_large_is_refused_before_it_is_converted() -> None:
    Cell(result_bytes=1000)
    with pytest.raises(sluice.OutputLimitError) as caught:
        sluice.set_result(pd.DataFrame({"a": np.zeros(5_000_000, dtype="int8")}))
    assert caught.value.name == "resultBytes"
    assert caught.value.allowed == 1000
    assert caught.value.seen > 5_000_000
    with pytest.raises(sluice.OutputLimitError, match="aggregate, round or select rows"):
        sluice.set_result(["ü" * 600])


def test_a_lone_surrogate_still_gives_valid_json(cell: Cell) -> None:
    sluice.set_result({"\ud800": "a\udc00b"})
    assert cell.result == {"\ufffd": "a\ufffdb"}


def test_integers_too_long_to_print_are_refused(cell: Cell) -> None:
    assert "$.n is an integer of" in refused({"n": 10**5000})


def test_every_sequence_becomes_an_array(cell: Cell) -> None:
    sluice.set_result([collections.deque([1, math.nan]), collections.UserList(["x"]), array.array("d", [0.1])])
    assert cell.result == [[1, None], ["x"], [0.1]]


def test_structured_arrays_become_records_and_fractions_text(cell: Cell) -> None:
    sluice.set_result([np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]), fractions.Fraction(1, 3), range(3)])
    assert cell.result == [[{"a": 1, "b": 2.5}], "1/3", [0, 1, 2]]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.datetimes() | st.decimals() | st.uuids(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(values)
def test_the_json_is_always_valid(value: object) -> None:
    text, _ = serialise(value, 10**9)
    json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_floats_are_written_exactly(numbers: list[float]) -> None:
    text, _ = serialise(np.array(numbers), 10**9)
    assert np.array(json.loads(text), dtype=float).tobytes() == np.array(numbers, dtype=float).tobytes()
