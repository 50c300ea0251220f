"""Tests of `render_chart` beyond the corpus."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Cell

import sluice

LINE = {"type": "line", "xKey": "t", "series": [{"key": "v"}]}


def emitted(cell: Cell) -> dict[str, Any]:
    chart: dict[str, Any] = json.loads(cell.artifacts[-1][2])
    return chart


def refused(spec: Any, data: Any) -> str:
    with pytest.raises(sluice.ChartError) as caught:
        sluice.render_chart(spec, data)
    return str(caught.value)


def test_times_become_iso_text_on_a_time_axis(cell: Cell) -> None:
    times = pd.date_range("2024-01-01", periods=2, tz="UTC")
    sluice.render_chart(LINE, pd.DataFrame({"t": times, "v": [1.5, np.nan]}), title="T")
    kind, header, _, _ = cell.artifacts[0]
    assert (kind, header) == ("chart", {"title": "T"})
    assert emitted(cell) == {
        "spec": {**LINE, "xAxis": {"type": "time"}},
        "data": [{"t": "2024-01-01T00:00:00+00:00", "v": 1.5}, {"t": "2024-01-02T00:00:00+00:00", "v": None}],
    }


def test_the_index_is_a_column(cell: Cell) -> None:
    frame = pd.DataFrame({"v": [1, 2]}, index=pd.period_range("2024-01", periods=2, freq="M", name="t"))
    sluice.render_chart(LINE, frame)
    assert emitted(cell)["data"][0] == {"t": "2024-01-01T00:00:00", "v": 1}
    sluice.render_chart({**LINE, "xKey": "index"}, pd.DataFrame({"v": [1, 2]}, index=["a", "b"]))
    assert emitted(cell)["data"][1] == {"index": "b", "v": 2}


def test_only_named_columns_are_sent_and_the_callers_spec_is_not_changed(cell: Cell) -> None:
    spec = json.loads(json.dumps(LINE))
    sluice.render_chart(spec, [{"t": dt.date(2024, 1, 1), "v": decimal.Decimal("1.5"), "secret": "x"}])
    assert emitted(cell)["data"] == [{"t": "2024-01-01", "v": 1.5}]
    assert spec == LINE


def test_other_shapes_of_data_are_accepted(cell: Cell) -> None:
    sluice.render_chart({**LINE, "xKey": "time", "series": [{"key": "value"}]}, [[1704067200000, 5]])
    assert emitted(cell)["data"] == [{"time": "2024-01-01T00:00:00+00:00", "value": 5}]
    sluice.render_chart(LINE, "t,v\na,1\nb,2")
    assert len(emitted(cell)["data"]) == 2


def test_a_heatmap_and_a_candlestick_need_no_series(cell: Cell) -> None:
    sluice.render_chart({"type": "heatmap", "xKey": "d", "yKey": "h", "valueKey": "v"}, [{"d": "mon", "h": 1, "v": 2}])
    assert emitted(cell)["spec"]["series"] == []
    keys = {"openKey": "o", "highKey": "h", "lowKey": "l", "closeKey": "c"}
    sluice.render_chart(
        {"type": "candlestick", "xKey": "t", "ohlc": keys}, [{"t": "2024-01-01", "o": 1, "h": 3, "l": 0, "c": 2}]
    )
    assert emitted(cell)["spec"]["series"] == []


def test_the_spec_may_contain_pandas_and_numpy_values(cell: Cell) -> None:
    lines = ({"axis": "y", "value": np.int64(3)}, {"axis": "x", "value": pd.Timestamp("2024-01-01")})
    areas = [{"x1": dt.date(2024, 1, 1), "x2": dt.date(2024, 1, 2)}]
    spec = {**LINE, "legend": np.True_, "referenceLines": lines, "referenceAreas": areas}
    sluice.render_chart(spec, [{"t": "2024-01-01", "v": 1}])
    assert emitted(cell)["spec"] == {
        **LINE,
        "legend": True,
        "referenceLines": [{"axis": "y", "value": 3}, {"axis": "x", "value": "2024-01-01T00:00:00"}],
        "referenceAreas": [{"x1": "2024-01-01", "x2": "2024-01-02"}],
    }
    assert refused({**LINE, "xKey": len}, []).startswith("the chart is not valid: in the spec $.xKey is a builtin")
    assert "data $.t[0] is a bytes" in refused(LINE, [{"t": b"x", "v": 1}])


def test_errors_name_the_path_and_the_allowed_values(cell: Cell) -> None:
    assert refused({**LINE, "type": "pie"}, [{"t": 1, "v": 1}]) == (
        "the chart is not valid: type must be one of line, bar, area, scatter, composed, histogram, heatmap, "
        "candlestick, got 'pie'"
    )
    assert "series[0].yAxis must be one of left, right, got 'top'" in refused(
        {**LINE, "series": [{"key": "v", "yAxis": "top"}]}, [{"t": 1, "v": 1}]
    )
    assert "xAxis.type must be one of time, category, number" in refused({**LINE, "xAxis": {"type": "date"}}, [])
    assert "series[0].key w is not in the data; the columns are t, v" in refused(
        {**LINE, "series": [{"key": "w"}]}, [{"t": 1, "v": 1}]
    )
    assert "series[0].key v is null in every row" in refused(LINE, pd.DataFrame({"t": [1], "v": [np.nan]}))
    assert "data[1].v must be a number or null, got 'x'" in refused(LINE, [{"t": 1, "v": 1}, {"t": 2, "v": "x"}])
    assert "data[0].v must be a string, number or null, got dict" in refused(LINE, [{"t": 1, "v": {"a": 1}}])
    assert cell.artifacts == []


def test_more_than_5000_rows_are_refused_with_advice_to_aggregate(cell: Cell) -> None:
    times = pd.date_range("2024-01-01", periods=5001, freq="h")
    frame = pd.DataFrame({"t": times, "v": np.arange(5001)})
    message = refused(LINE, frame)
    assert "data has 5,001 rows, at most 5,000" in message
    assert "df.resample(\"1D\", on='t').last()" in message
    assert "df.groupby('t')" in refused(LINE, pd.DataFrame({"t": np.arange(5001), "v": 1}))
    sluice.render_chart(LINE, frame.head(5000))
    assert len(emitted(cell)["data"]) == 5000


def test_a_chart_that_is_too_large_is_refused() -> None:
    Cell(artifact_data_bytes=50)
    with pytest.raises(sluice.OutputLimitError, match="aggregate them, show fewer series") as caught:
        sluice.render_chart(LINE, [{"t": "a" * 50, "v": 1}])
    assert caught.value.name == "artifactDataBytes"


def test_duplicate_columns_are_refused(cell: Cell) -> None:
    assert "the column 'v' more than once" in refused(LINE, pd.DataFrame([[1, 2, 3]], columns=["t", "v", "v"]))


DAYS = pd.date_range("2024-01-01", periods=90)
SPARSE = np.where(np.isin(np.arange(90), [3, 4, 20, 41, 42, 77]), 1.0, np.nan)


def test_a_sparse_series_of_a_chart_is_reported_like_one_of_a_figure(cell: Cell) -> None:
    frame = pd.DataFrame(
        {"t": DAYS, "price": np.arange(90.0), "v": SPARSE, "monthly": np.where(DAYS.day == 1, 1.0, np.nan)}
    )
    spec = {"type": "composed", "xKey": "t", "series": [{"key": "price"}, {"key": "v", "label": "V", "type": "bar"}]}
    sluice.render_chart(spec, frame)
    assert cell.diagnostics["lowCoverage"] == [
        {
            "axes": 0, "label": "V", "observed": 6, "expected": 75, "coverage": 0.08, "against": "its own index",
            "largestGap": "35D", "gapStart": "2024-02-12T00:00:00", "gapEnd": "2024-03-18T00:00:00",
        }
    ]  # fmt: skip
    spec["series"] = [{"key": "price"}, {"key": "monthly"}, {"key": "v", "type": "scatter"}]
    sluice.render_chart(spec, frame)
    assert len(cell.diagnostics["lowCoverage"]) == 1


def test_two_of_90_points_of_a_chart_are_reported(cell: Cell) -> None:
    sluice.render_chart(LINE, pd.DataFrame({"t": DAYS, "v": np.where(np.arange(90) < 2, 1.0, np.nan)}))
    assert (cell.diagnostics["lowCoverage"][0]["observed"], cell.diagnostics["lowCoverage"][0]["expected"]) == (2, 90)


def test_a_chart_that_is_sparse_by_design_is_accepted_with_a_cadence(cell: Cell) -> None:
    frame = pd.DataFrame({"t": DAYS, "v": SPARSE})
    sluice.render_chart(LINE, frame, cadence={"v": None})
    assert "lowCoverage" not in cell.diagnostics
    with pytest.raises(sluice.ChartError, match="cadence names 'w', but the series are 'v'"):
        sluice.render_chart(LINE, frame, cadence={"w": "7D"})


def test_charts_without_times_are_not_judged(cell: Cell) -> None:
    sluice.render_chart(LINE, pd.DataFrame({"t": np.arange(90), "v": SPARSE}))
    sluice.render_chart(LINE, pd.DataFrame({"t": [f"shop {number}" for number in range(90)], "v": SPARSE}))
    sluice.render_chart(
        {**LINE, "type": "scatter"}, pd.DataFrame({"t": DAYS[:5].strftime("2024-02-3%w"), "v": range(5)})
    )
    assert cell.diagnostics == {}


def test_irregular_rows_of_a_chart_are_unknown(cell: Cell) -> None:
    sluice.render_chart(LINE, pd.DataFrame({"t": DAYS[[0, 1, 2, 9, 11, 30, 31, 60]], "v": range(8)}))
    assert cell.diagnostics == {"coverageUnknown": [{"axes": 0, "label": "v", "observed": 8}]}
