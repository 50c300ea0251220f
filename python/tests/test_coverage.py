"""Tests of the coverage check for plotted time series."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from conftest import Cell

import sluice

DAYS = pd.date_range("2024-01-01", periods=100, freq="D")


def low(cell: Cell, **more: Any) -> dict[str, dict[str, Any]]:
    sluice.save_figure("Lines over a hundred days", **more)
    return {entry["label"]: entry for entry in cell.diagnostics.get("lowCoverage", [])}


def test_a_line_with_a_gap_is_reported_with_its_numbers(cell: Cell) -> None:
    values = np.arange(100.0)
    values[10:60] = np.nan
    plt.plot(DAYS, values, label="holes")
    found = low(cell)["holes"]
    assert {key: found[key] for key in ("axes", "observed", "expected", "coverage", "largestGap")} == {
        "axes": 0, "observed": 50, "expected": 100, "coverage": 0.5, "largestGap": "51D",
    }  # fmt: skip
    assert (found["gapStart"], found["gapEnd"]) == ("2024-01-10T00:00:00", "2024-03-01T00:00:00")


@pytest.mark.parametrize(("missing", "reported"), [(40, False), (41, True)])
def test_the_threshold_is_60_percent(cell: Cell, missing: int, reported: bool) -> None:
    values = np.arange(100.0)
    values[30 : 30 + missing] = np.nan
    plt.plot(DAYS, values, label="a")
    assert bool(low(cell)) == reported


def test_missing_rows_count_like_nulls(cell: Cell) -> None:
    keep = np.r_[0:15, 80:100]
    plt.plot(DAYS[keep], np.arange(35), label="a")
    assert low(cell)["a"]["coverage"] == pytest.approx(0.35)


def sparse_days(seed: int = 1, count: int = 20) -> pd.DatetimeIndex:
    return DAYS[np.sort(np.random.default_rng(seed).choice(100, count, replace=False))]


@pytest.mark.parametrize("draw", ["plot", "step", "bar", "fill_between", "errorbar", "stackplot"])
def test_lines_steps_bars_areas_and_stacks_are_judged_alike(cell: Cell, draw: str) -> None:
    plt.plot(DAYS, np.arange(100), label="whole")
    getattr(plt, draw)(
        sparse_days(), np.arange(20.0), **({"labels": ["sparse"]} if draw == "stackplot" else {"label": "sparse"})
    )
    found = low(cell)
    assert list(found) == ["sparse"]
    assert (found["sparse"]["observed"], found["sparse"]["against"]) == (20, "whole")


def test_nulls_of_bars_and_areas_are_places_without_a_point(cell: Cell) -> None:
    holes = np.where(np.isin(DAYS, sparse_days()), 1.0, np.nan)
    plt.bar(DAYS, holes, label="bars")
    assert low(cell)["bars"]["against"] == "its own index"
    plt.fill_between(DAYS, holes, label="area")
    assert list(low(cell)) == ["bars", "area"]
    plt.barh(DAYS, holes, label="horizontal")
    assert list(low(cell)) == ["bars", "area", "horizontal"]


def test_grouped_bars_are_on_the_same_grid(cell: Cell) -> None:
    width = pd.Timedelta(hours=9)
    plt.bar(DAYS - width / 2, np.ones(100), width=9 / 24, label="left")
    plt.bar(sparse_days() + width / 2, np.ones(20), width=9 / 24, label="right")
    assert list(low(cell)) == ["right"]


def test_a_frame_drawn_by_pandas_is_judged_by_its_index(cell: Cell) -> None:
    holes = np.where(np.isin(DAYS, sparse_days()), 1.0, np.nan)
    pd.DataFrame({"whole": np.arange(100.0), "sparse": holes}, index=DAYS).plot()
    assert list(low(cell)) == ["sparse"]


def test_a_line_that_starts_later_or_ends_earlier_is_complete(cell: Cell) -> None:
    plt.plot(DAYS, np.arange(100), label="whole")
    plt.plot(DAYS[:20], np.arange(20), label="first part")
    plt.plot(DAYS[90:], np.arange(10), label="last part")
    assert low(cell) == {}


def test_monthly_bars_beside_a_daily_line_are_complete(cell: Cell) -> None:
    days = pd.date_range("2024-01-01", periods=90)
    plt.plot(days, np.arange(90), label="daily")
    plt.bar(days[days.is_month_start], np.arange(3), width=20, label="monthly")
    assert low(cell) == {}


def test_only_the_part_that_the_limits_show_is_judged(cell: Cell) -> None:
    values = np.where((np.arange(100) < 40) & ~np.isin(DAYS, sparse_days()), np.nan, 1.0)
    plt.plot(DAYS, values, label="a")
    plt.gca().set_xlim(DAYS[40], DAYS[60])  # type: ignore[arg-type]
    assert low(cell) == {}
    plt.plot(DAYS, values, label="b")
    plt.gca().set_xlim(DAYS[0], DAYS[40])  # type: ignore[arg-type]
    assert list(low(cell)) == ["b"]


def test_twin_axes_and_axes_that_share_x_are_judged_together(cell: Cell) -> None:
    _, axes = plt.subplots()
    axes.plot(DAYS, np.arange(100), label="whole")
    axes.twinx().plot(sparse_days(), np.arange(20), label="twin")
    found = low(cell)
    assert (found["twin"]["axes"], found["twin"]["against"]) == (1, "whole")
    _, (above, below) = plt.subplots(2, sharex=True)
    above.plot(DAYS, np.arange(100), label="whole")
    below.plot(sparse_days(), np.arange(20), label="below")
    assert list(low(cell)) == ["twin", "below"]
    _, (left, right) = plt.subplots(1, 2)
    left.plot(DAYS, np.arange(100), label="whole")
    right.plot(sparse_days(), np.arange(20), label="right")
    assert list(low(cell)) == ["twin", "below"]
    assert [entry["label"] for entry in cell.diagnostics["coverageUnknown"]] == ["right"]


@pytest.mark.parametrize("freq", ["D", "h", "15min", "7D", "MS", "ME", "QS", "YS", "B", "W-MON"])
def test_each_line_is_measured_by_its_own_cadence(cell: Cell, freq: str) -> None:
    times = pd.date_range("2020-01-01", periods=60, freq=freq)
    plt.plot(times, np.arange(60), label="whole")
    assert low(cell) == {}
    there = np.isin(np.arange(60), np.r_[0:10, 30:40, 50:60])
    plt.plot(times, np.where(there, 1.0, np.nan), label="half")
    assert low(cell)["half"]["coverage"] == pytest.approx(0.5)
    plt.plot(times[there], np.ones(30), label="rows")
    assert low(cell)["rows"]["coverage"] == pytest.approx(0.5, abs=0.02)


def test_a_weekly_line_next_to_a_daily_one_is_complete(cell: Cell) -> None:
    plt.plot(DAYS, np.arange(100), label="daily")
    plt.plot(DAYS[::7], np.arange(15), label="weekly")
    assert low(cell) == {}


def test_irregular_events_are_not_reported(cell: Cell) -> None:
    rng = np.random.default_rng(3)
    events = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 100 * 86400, 40)), unit="s")
    plt.plot(DAYS, np.arange(100), label="daily")
    plt.plot(events, np.arange(40), label="events")
    assert low(cell) == {}
    assert cell.diagnostics["coverageUnknown"] == [{"axes": 0, "label": "events", "observed": 40}]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
def test_times_with_a_zone_are_judged_on_its_clock(cell: Cell, zone: str) -> None:
    days = pd.date_range("2024-01-01", periods=366, tz=zone)
    plt.plot(days, np.arange(366), label="whole")
    plt.plot(days[days.is_month_start], np.arange(12), label="months")
    plt.plot(days[np.sort(np.random.default_rng(2).choice(366, 30, replace=False))], np.arange(30), label="sparse")
    assert list(low(cell)) == ["sparse"]


def test_bars_of_pandas_are_judged_by_the_dates_below_them(cell: Cell) -> None:
    pd.Series(np.ones(20), index=sparse_days().date).plot.bar()
    assert low(cell) == {}
    assert len(cell.diagnostics["coverageUnknown"]) == 1


def test_a_single_step_is_not_a_cadence(cell: Cell) -> None:
    plt.plot(pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-09"]), [1, 2, 3], label="three")
    assert low(cell) == {}


@pytest.mark.parametrize("freq", ["M", "Q", "W", "Y", "D", "h"])
def test_periods_drawn_by_pandas_are_checked(cell: Cell, freq: str) -> None:
    periods = pd.period_range("2020-01", periods=60, freq=freq)
    pd.Series(np.arange(60.0), index=periods).plot(label="whole")
    assert low(cell) == {}
    half = np.where(np.isin(np.arange(60), np.r_[0:10, 30:40, 50:60]), 1.0, np.nan)
    pd.Series(half, index=periods).plot(label="half")
    assert low(cell)["half"]["coverage"] == pytest.approx(0.5, abs=0.02)


def test_markers_without_a_line_are_not_reported(cell: Cell) -> None:
    plt.plot(DAYS, np.arange(100), label="daily")
    plt.plot(DAYS[:10], np.arange(10), "o", label="markers")
    plt.plot(DAYS[:10], np.arange(10), linestyle="", marker="x", label="crosses")
    plt.scatter(sparse_days(), np.arange(20), label="scatter")
    plt.plot(sparse_days(2), np.arange(20), "o", label="signals")
    plt.errorbar(sparse_days(3), np.arange(20), yerr=1, fmt="o", label="measured")
    assert low(cell) == {}
    plt.plot(DAYS, np.where(np.isin(DAYS, sparse_days()), 1.0, np.nan), "o", label="alone")
    assert list(low(cell)) == ["alone"]


def test_a_line_that_is_sparse_by_design_is_accepted_with_a_cadence(cell: Cell) -> None:
    def draw() -> None:
        plt.plot(DAYS, np.arange(100), label="daily")
        plt.plot(DAYS[[0, 40, 51, 95]], np.arange(4), label="meetings")

    draw()
    assert low(cell, cadence={"meetings": "30D"}) == {}
    draw()
    assert low(cell, cadence={"meetings": None}) == {}
    draw()
    assert list(low(cell)) == ["meetings"]


def test_a_cadence_for_an_unknown_line_is_refused(cell: Cell) -> None:
    plt.plot(DAYS, np.arange(100), label="a")
    with pytest.raises(sluice.FigureError, match="cadence names 'b', but the series are 'a'"):
        low(cell, cadence={"b": "7D"})


def test_a_line_is_checked_against_a_given_cadence(cell: Cell) -> None:
    keep = [0, 7, 14, 98]
    plt.plot(DAYS[keep], np.arange(4), label="weekly")
    assert low(cell, cadence={"weekly": "7D"})["weekly"]["coverage"] == pytest.approx(4 / 15)


def test_a_line_within_market_hours_is_complete(cell: Cell) -> None:
    minutes = pd.date_range("2024-01-01", "2024-01-31", freq="5min")
    session = minutes[(minutes.day_of_week < 5) & (minutes.hour >= 10) & (minutes.hour < 16)]
    plt.plot(session, np.arange(len(session)), label="stock")
    assert low(cell) == {}


def test_a_daily_line_without_weekends_is_complete(cell: Cell) -> None:
    days = pd.bdate_range("2024-01-01", periods=60)
    plt.plot(days, np.arange(60), label="stock")
    assert low(cell) == {}


def test_steps_are_checked_and_a_late_start_drawn_by_pandas_is_complete(cell: Cell) -> None:
    values = pd.Series(np.where(np.arange(100) < 70, np.nan, 1.0), index=DAYS, name="p")
    values.plot(label="pandas")
    assert low(cell) == {}
    plt.step(DAYS, values.fillna({DAYS[0]: 1.0}), label="steps")
    assert low(cell)["steps"]["observed"] == 31


def test_lines_over_numbers_and_categories_are_not_checked(cell: Cell) -> None:
    holes = np.where(np.isin(DAYS, sparse_days()), 1.0, np.nan)
    plt.plot(np.arange(100), holes, label="a")
    assert low(cell) == {}
    plt.bar([f"shop {number}" for number in range(100)], holes, label="b")
    assert low(cell) == {}


def test_categories_that_are_dates_are_checked_as_times(cell: Cell) -> None:
    plt.plot([day.date().isoformat() for day in DAYS], np.arange(100), label="whole")
    plt.plot([day.date().isoformat() for day in sparse_days()], np.arange(20), label="sparse")
    assert list(low(cell)) == ["sparse"]


def test_a_series_without_a_label_is_named_by_its_kind_and_position(cell: Cell) -> None:
    plt.plot(DAYS, np.where(np.arange(100) % 70 < 5, 1.0, np.nan))
    plt.bar(DAYS, np.where(np.arange(100) % 70 < 5, 1.0, np.nan))
    assert list(low(cell)) == ["bar 1", "line 1"]


def test_points_outside_the_shown_span_are_not_expected(cell: Cell) -> None:
    plt.plot(DAYS, np.where(np.arange(100) < 70, np.nan, 1.0), label="late")
    assert low(cell) == {}


@pytest.mark.parametrize("kind", ["area", "bar"])
@pytest.mark.parametrize("more", [{"stacked": False}, {"stacked": True}, {"subplots": True}, {"figsize": (3, 2)}])
def test_nulls_that_pandas_draws_as_zeros_are_missing(cell: Cell, kind: str, more: dict[str, Any]) -> None:
    index = pd.date_range("2024-01-01", periods=90)
    own = np.where(np.random.default_rng(3).random(90) < 0.2, 2.0, np.nan)
    plot: Any = pd.DataFrame({"full": 1.0, "own": own}, index=index).plot
    plot(kind=kind, **more)
    sluice.save_figure("Two series over ninety days, one of them sparse")
    assert [entry["label"] for entry in cell.diagnostics["lowCoverage"]] == ["own"]


def test_zeros_that_were_given_to_pandas_are_values(cell: Cell) -> None:
    index = pd.date_range("2024-01-01", periods=90)
    own = np.where(np.random.default_rng(3).random(90) < 0.2, 2.0, 0.0)
    pd.DataFrame({"full": 1.0, "own": own}, index=index).plot.area()
    sluice.save_figure("Two series over ninety days, one of them mostly zero")
    assert "lowCoverage" not in cell.diagnostics


def test_stems_beside_a_line_are_events_and_alone_they_are_judged(cell: Cell) -> None:
    index = pd.date_range("2024-01-01", periods=90)
    own = pd.Series(np.where(np.random.default_rng(3).random(90) < 0.2, 2.0, np.nan), index)
    plt.plot(index, np.ones(90), label="price")
    plt.stem(own.dropna().index, own.dropna(), label="events")
    sluice.save_figure("A price with some events over ninety days")
    assert "lowCoverage" not in cell.diagnostics
    plt.stem(index, own, label="events")
    sluice.save_figure("Some events of ninety days, without a price")
    assert [entry["label"] for entry in cell.diagnostics["lowCoverage"]] == ["events"]
