"""Tests of `align_timeseries` and `safe_merge_timeseries`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Cell
from hypothesis import given
from hypothesis import strategies as st

import sluice
from sluice import TimeError, align_timeseries, safe_merge_timeseries

DAY = pd.Timestamp("2024-01-01", tz="UTC")


def test_all_sources_are_returned_on_one_index(cell: Cell) -> None:
    first, second = align_timeseries({"2024-01-01": 1, "2024-01-02": 2}, [["2024-01-02", 3], ["2024-01-03", 4]])
    assert first.index.equals(second.index)
    assert first.index.tolist() == [DAY, DAY + pd.Timedelta("1D"), DAY + pd.Timedelta("2D")]
    assert first.iloc[:, 0].tolist()[:2] == [1, 2]
    assert second.iloc[1:, 0].tolist() == [3, 4]


def test_a_null_placeholder_followed_by_a_sample_gives_the_sample(cell: Cell) -> None:
    rows = [{"t": "2024-01-01T00:00Z", "v": None}, {"t": "2024-01-01T07:00Z", "v": 5.0}]
    for order in (rows, rows[::-1]):
        assert safe_merge_timeseries(order, freq="1D")["v"].tolist() == [5.0]
    late = [{"t": "2024-01-01T00:00Z", "v": 5.0}, {"t": "2024-01-01T07:00Z", "v": None}]
    assert safe_merge_timeseries(late, freq="1D")["v"].tolist() == [5.0]


def test_rules_for_duplicates(cell: Cell) -> None:
    rows = pd.DataFrame(
        {
            "time": pd.to_datetime(["2024-01-01 01:00", "2024-01-01 02:00", "2024-01-02 01:00", "2024-01-02 02:00"]),
            "price": [1.0, 2.0, 3.0, None],
            "volume": [10.0, 20.0, None, None],
            "name": ["a", "b", "c", None],
        }
    )
    level = safe_merge_timeseries(rows, freq="D")
    assert level["price"].tolist() == [2.0, 3.0]
    assert level["name"].tolist() == ["b", "c"]
    flow = safe_merge_timeseries(rows, freq="D", agg={"volume": "flow", "price": "mean", "name": "count"})
    assert flow["volume"].iloc[0] == 30.0
    assert np.isnan(flow["volume"].iloc[1]), "a sum of nothing but nulls is null"
    assert flow["price"].tolist() == [1.5, 3.0]
    assert flow["name"].tolist() == [2, 1]
    spread = safe_merge_timeseries(rows[["time", "price"]], freq="D", agg=lambda values: values.max() - values.min())
    assert spread["price"].tolist() == [1.0, 0.0]


def test_unknown_and_unsuitable_rules_are_refused(cell: Cell) -> None:
    rows = [{"t": "2024-01-01", "v": 1, "s": "x"}] * 2
    with pytest.raises(TimeError, match="agg='avg' is not a rule; use one of level, last, flow"):
        safe_merge_timeseries(rows, agg="avg")
    with pytest.raises(TimeError, match="agg names 'w', but the columns are 'v', 's'"):
        safe_merge_timeseries(rows, agg={"w": "sum"})
    with pytest.raises(TimeError, match="the column 's' has the dtype"):
        safe_merge_timeseries(rows, agg="flow")


def test_names_prefix_columns_and_unique_columns_are_also_unprefixed(cell: Cell) -> None:
    left = [{"date": "2024-01-01", "price": 1, "net_flow": 2}]
    right = [{"date": "2024-01-01", "price": 3, "fee": 4}]
    merged = safe_merge_timeseries(left, right, names=["cg", "ex"])
    assert merged.columns.tolist() == ["cg_price", "cg_net_flow", "net_flow", "ex_price", "ex_fee", "fee"]
    assert merged.iloc[0].tolist() == [1, 2, 2, 3, 4, 4]
    with_rules = safe_merge_timeseries(left * 2, right, names=["cg", "ex"], agg={"cg_price": "flow", "fee": "max"})
    assert with_rules["cg_price"].tolist() == [2]
    parts = align_timeseries(left, right, names=["cg", "ex"])
    assert [part.columns.tolist() for part in parts] == [
        ["cg_price", "cg_net_flow", "net_flow"],
        ["ex_price", "ex_fee", "fee"],
    ]


def test_without_names_shared_columns_are_prefixed_by_source(cell: Cell) -> None:
    merged = safe_merge_timeseries({"2024-01-01": 1}, {"2024-01-01": 2})
    assert merged.columns.tolist() == ["source1_value", "source2_value"]


def test_how_selects_which_buckets_are_kept(cell: Cell) -> None:
    left, right = {"2024-01-01": 1, "2024-01-02": 2}, {"2024-01-02": 3, "2024-01-03": 4}
    lengths = {how: len(safe_merge_timeseries(left, right, how=how)) for how in ("outer", "inner", "left", "right")}
    assert lengths == {"outer": 3, "inner": 1, "left": 2, "right": 2}
    assert safe_merge_timeseries(left, right, how="right").index[0] == DAY + pd.Timedelta("1D")
    with pytest.raises(TimeError, match="how='cross' is not known; use one of outer, inner, left, right"):
        safe_merge_timeseries(left, right, how="cross")


def test_data_quality_is_attached_and_reported(cell: Cell) -> None:
    hourly = pd.DataFrame({"time": pd.date_range("2024-01-01", periods=72, freq="h", tz="UTC"), "v": 1.0})
    hourly.loc[0:23, "v"] = None
    sparse = {"2024-01-01": 1, "2024-01-05": 2}
    merged = safe_merge_timeseries(hourly, sparse, freq="1D", names=["a", "b"])
    quality = merged.attrs["data_quality"]
    first, second = quality["sources"]
    assert (first["rowsIn"], first["rowsOut"], first["duplicatesMerged"], first["nulls"]) == (72, 3, 69, {"v": 1})
    assert (first["start"], first["end"]) == ("2024-01-01T00:00:00+00:00", "2024-01-03T00:00:00+00:00")
    assert (first["cadence"], first["gaps"], first["assumedZone"]) == ("1D", 0, 0)
    assert (second["gaps"], second["largestGap"], second["assumedZone"]) == (3, "4D", 2)
    assert (quality["buckets"], quality["completeBuckets"], quality["overlap"]) == (4, 1, 0.25)
    assert "b: 2 times have no zone and were read as UTC" in quality["warnings"]
    assert "only 1 of 4 buckets (25%) have every source" in quality["warnings"]
    assert cell.diagnostics["dataQuality"] == [quality]
    assert merged.head(1).attrs["data_quality"] == quality


def test_small_buckets_over_a_long_time_are_cheap(cell: Cell) -> None:
    merged = safe_merge_timeseries({"2000-01-01": 1, "2024-01-01": 2}, freq="1s")
    assert merged.attrs["data_quality"]["sources"][0]["gaps"] == 24 * 365 * 86400 + 6 * 86400 - 1


def test_an_overlap_of_half_the_buckets_gives_no_warning(cell: Cell) -> None:
    quality = safe_merge_timeseries({"2024-01-01": 1, "2024-01-02": 1}, {"2024-01-02": 1}).attrs["data_quality"]
    assert not [warning for warning in quality["warnings"] if "have every source" in warning]


def test_times_that_never_coincide_give_a_warning_with_advice(cell: Cell) -> None:
    left = pd.DataFrame({"time": pd.date_range("2024-01-01T00:00:01Z", periods=5, freq="D"), "v": 1})
    right = pd.DataFrame({"time": pd.date_range("2024-01-01T00:00:02Z", periods=5, freq="D"), "w": 1})
    assert "pass freq=" in safe_merge_timeseries(left, right).attrs["data_quality"]["warnings"][-1]
    assert len(safe_merge_timeseries(left, right, freq="1D")) == 5


def test_an_empty_result_is_an_error_that_explains_why(cell: Cell) -> None:
    with pytest.raises(TimeError) as caught:
        safe_merge_timeseries({"2024-01-01": 1}, {"2025-01-01": 1}, how="inner", names=["old", "new"])
    assert "no bucket exists in every source (how='inner')" in str(caught.value)
    assert "old has 1 buckets from 2024-01-01 00:00:00+00:00" in str(caught.value)
    with pytest.raises(TimeError, match="no row has a time"):
        safe_merge_timeseries({"columns": ["time", "v"], "rows": []})
    empty = safe_merge_timeseries({"columns": ["time", "w"], "rows": []}, {"2024-01-01": 1})
    assert empty["w"].isna().all()
    assert "source1 has no rows with a time" in empty.attrs["data_quality"]["warnings"][0]


def test_rows_of_several_entities_at_one_time_give_a_warning(cell: Cell) -> None:
    rows = [{"t": f"2024-01-0{day}", "symbol": symbol, "p": 1} for day in (1, 2, 3) for symbol in ("btc", "eth")]
    warnings = safe_merge_timeseries(rows).attrs["data_quality"]["warnings"]
    assert any("differ in symbol; pivot or filter by it first" in warning for warning in warnings)


def test_rows_without_a_time_are_counted(cell: Cell) -> None:
    merged = safe_merge_timeseries([{"t": "2024-01-01", "v": 1}, {"t": None, "v": 2}])
    assert len(merged) == 1
    assert merged.attrs["data_quality"]["sources"][0]["rowsWithoutTime"] == 1


@pytest.mark.parametrize(
    "source",
    [
        pd.DataFrame({"v": [1]}, index=pd.DatetimeIndex(["2024-01-01"])),
        pd.Series([1], index=pd.DatetimeIndex(["2024-01-01"]), name="v"),
        pd.DataFrame({"v": [1]}, index=pd.PeriodIndex(["2024-01-01"], freq="D")),
        pd.DataFrame({"Timestamp": [1704067200], "v": [1]}),
        pd.DataFrame({"when": ["2024-01-01"], "v": [1]}),
        pd.DataFrame({"block_time": ["2024-01-01"], "v": ["1"]}),
        pd.DataFrame({"settled_at": ["2024-01-01T00:00:00Z"], "v": [1]}),
        {"data": [{"date": "2024-01-01", "v": 1}]},
    ],
)
def test_the_time_column_is_found(source: Any, cell: Cell) -> None:
    merged = safe_merge_timeseries(source)
    assert merged.index.tolist() == [DAY]
    assert merged["v"].tolist() == [1]


def test_the_time_column_can_be_set_per_source(cell: Cell) -> None:
    left, right = [{"a": 1704067200, "x": 1}], [{"b": "2024-01-01", "y": 2}]
    assert len(safe_merge_timeseries(left, right, time_col=["a", "b"])) == 1
    with pytest.raises(TimeError, match="time_col='c' is not in source1, which has the columns 'a', 'x'"):
        safe_merge_timeseries(left, time_col="c")
    with pytest.raises(TimeError, match="no time column found in source1 with columns 'a', 'x'; pass time_col="):
        safe_merge_timeseries(left)
    two = pd.DataFrame({"start": [DAY], "stop": [DAY]})
    with pytest.raises(TimeError, match=r"several columns hold times \(start, stop\); pass time_col="):
        safe_merge_timeseries(two)


def test_integers_stay_exact_where_a_source_has_gaps(cell: Cell) -> None:
    merged = safe_merge_timeseries([{"t": "2024-01-01", "wei": 2**60 + 1}], {"2024-01-02": 1})
    assert merged["wei"].iloc[0] == 2**60 + 1
    assert merged["wei"].isna().tolist() == [False, True]


def test_gaps_are_counted_over_days_of_23_and_25_hours(cell: Cell) -> None:
    hours = pd.date_range("2024-03-29T23:00Z", "2024-04-01T21:00Z", freq="h")
    whole = pd.DataFrame({"time": hours, "v": 1.0})
    missing = whole[~whole["time"].between("2024-03-31T04:00Z", "2024-03-31T09:59Z")]  # 06:00 to 12:00 in Berlin
    for frame, gaps in ((whole, 0), (missing, 1)):
        quality = safe_merge_timeseries(frame, freq="6h", tz="Europe/Berlin").attrs["data_quality"]
        assert quality["sources"][0]["gaps"] == gaps


def test_booleans_are_not_numbers(cell: Cell) -> None:
    merged = safe_merge_timeseries(
        [{"t": "2024-01-01T00", "open": True}, {"t": "2024-01-01T01", "open": None}], freq="1D"
    )
    assert merged["open"].tolist() == [True]


def test_tz_applies_to_times_without_a_zone_and_to_the_index(cell: Cell) -> None:
    berlin = safe_merge_timeseries({"2024-07-01T00:30:00": 1}, freq="1D", tz="Europe/Berlin")
    assert berlin.index.tolist() == [pd.Timestamp("2024-07-01", tz="Europe/Berlin")]
    utc = safe_merge_timeseries({"2024-07-01T00:30:00+02:00": 1}, freq="1D")
    assert utc.index.tolist() == [pd.Timestamp("2024-06-30", tz="UTC")]
    with pytest.raises(TimeError, match="tz='Mars' is not a time zone"):
        safe_merge_timeseries({"2024-07-01": 1}, tz="Mars")


def test_wrong_names_and_sources_are_refused(cell: Cell) -> None:
    with pytest.raises(TimeError, match="names must be 2 different names"):
        safe_merge_timeseries({"2024-01-01": 1}, {"2024-01-01": 1}, names=["a"])
    with pytest.raises(TimeError, match="no source to align"):
        safe_merge_timeseries()
    frame = pd.DataFrame({"time": [DAY], "v": [1]})
    assert len(align_timeseries([frame, frame])) == 2
    assert safe_merge_timeseries({"a": frame, "b": frame}).columns.tolist() == ["a_v", "b_v"]


# laws

hours = st.integers(0, 24 * 20)
zones = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])
sources = st.lists(st.tuples(hours, st.none() | st.integers(-1000, 1000)), min_size=1, max_size=40)


def frame_of(rows: list[tuple[int, int | None]], start: str = "2024-10-20T00:00Z") -> pd.DataFrame:
    return pd.DataFrame(
        {
            "time": pd.Timestamp(start) + pd.to_timedelta([hour for hour, _ in rows], unit="h"),
            "v": pd.array([value for _, value in rows], dtype="Float64").to_numpy("float64", na_value=np.nan),
        }
    )


@given(sources, st.randoms(use_true_random=False), zones)
def test_the_order_of_rows_does_not_matter(rows: list[tuple[int, int | None]], random: Any, tz: str) -> None:
    distinct = list({hour: (hour, value) for hour, value in rows}.values())
    shuffled = list(distinct)
    random.shuffle(shuffled)
    for agg in ("level", "flow", "mean"):
        one = safe_merge_timeseries(frame_of(distinct), freq="1D", agg=agg, tz=tz)
        two = safe_merge_timeseries(frame_of(shuffled), freq="1D", agg=agg, tz=tz)
        pd.testing.assert_frame_equal(one, two)


@given(sources, sources, zones, st.sampled_from(["1h", "6h", "1D", "1W"]))
def test_there_is_one_row_per_bucket_and_duplicates_never_multiply(
    left: list[tuple[int, int | None]], right: list[tuple[int, int | None]], tz: str, freq: str
) -> None:
    merged = safe_merge_timeseries(frame_of(left), frame_of(right), freq=freq, tz=tz, names=["l", "r"])
    assert merged.index.is_unique
    assert merged.index.is_monotonic_increasing
    assert len(merged) <= len({hour for hour, _ in left} | {hour for hour, _ in right})
    quality = merged.attrs["data_quality"]
    assert quality["rows"] == len(merged)
    for source, rows in zip(quality["sources"], (left, right), strict=True):
        assert source["rowsIn"] == len(rows)
        assert source["rowsOut"] + source["duplicatesMerged"] == len(rows)


@given(sources, zones)
def test_flow_keeps_the_total_and_level_keeps_the_last_value(rows: list[tuple[int, int | None]], tz: str) -> None:
    frame = frame_of(rows)
    flow = safe_merge_timeseries(frame, freq="1D", agg="flow", tz=tz)["v"]
    assert flow.sum() == frame["v"].sum()
    level = safe_merge_timeseries(frame, freq="1D", tz=tz)["v"]
    local = frame.assign(day=frame["time"].dt.tz_convert(tz).dt.date).sort_values("time", kind="stable")
    for day, group in local.groupby("day"):
        there = group["v"].dropna()
        got = level[pd.DatetimeIndex(level.index).date == day].iloc[0]
        assert np.isnan(got) if there.empty else got == there.iloc[-1]


@given(sources, st.randoms(use_true_random=False), zones)
def test_duplicates_are_summed_in_any_order(rows: list[tuple[int, int | None]], random: Any, tz: str) -> None:
    shuffled = rows + rows
    random.shuffle(shuffled)
    once = safe_merge_timeseries(frame_of(rows), freq="1D", agg="flow", tz=tz)["v"]
    twice = safe_merge_timeseries(frame_of(shuffled), freq="1D", agg="flow", tz=tz)["v"]
    pd.testing.assert_series_equal(twice, 2 * once)


@given(sources, zones)
def test_naive_times_and_the_same_instants_give_the_same_result(rows: list[tuple[int, int | None]], tz: str) -> None:
    frame = frame_of(rows, "2024-07-01T00:00Z")
    naive = frame.assign(time=frame["time"].dt.tz_convert(tz).dt.tz_localize(None))
    one = safe_merge_timeseries(frame, freq="1D", tz=tz)
    two = safe_merge_timeseries(naive, freq="1D", tz=tz)
    pd.testing.assert_frame_equal(one, two)
    assert two.attrs["data_quality"]["sources"][0]["assumedZone"] == len(rows)


def test_the_helper_is_exported() -> None:
    assert sluice.safe_merge_timeseries is safe_merge_timeseries
