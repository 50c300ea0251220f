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


def test_the_span_is_that_of_the_figure(cell: Cell) -> None:
    plt.plot(DAYS, np.arange(100), label="whole")
    plt.plot(DAYS[:20], np.arange(20), label="part")
    found = low(cell)
    assert list(found) == ["part"]
    assert (found["part"]["observed"], found["part"]["expected"], found["part"]["largestGap"]) == (20, 100, "80D")


def test_limits_that_were_set_define_the_span(cell: Cell) -> None:
    plt.plot(DAYS[:50], np.arange(50), label="a")
    plt.gca().set_xlim(DAYS[0], DAYS[-1])  # type: ignore[arg-type]
    assert low(cell)["a"]["expected"] == 100
    plt.plot(DAYS, np.where(np.arange(100) < 20, np.nan, 1.0), label="b")
    plt.gca().set_xlim(DAYS[40], DAYS[60])  # type: ignore[arg-type]
    sluice.save_figure("Only the good part is shown")
    assert len(cell.diagnostics["lowCoverage"]) == 1


def test_twin_axes_share_their_span(cell: Cell) -> None:
    _, axes = plt.subplots()
    axes.plot(DAYS, np.arange(100), label="whole")
    axes.twinx().plot(DAYS[:20], np.arange(20), label="part")
    found = low(cell)
    assert found["part"]["axes"] == 1
    assert found["part"]["expected"] == 100


@pytest.mark.parametrize("freq", ["D", "h", "15min", "7D", "MS", "ME", "QS", "YS", "B", "W-MON"])
def test_each_line_is_measured_by_its_own_cadence(cell: Cell, freq: str) -> None:
    times = pd.date_range("2020-01-01", periods=60, freq=freq)
    plt.plot(times, np.arange(60), label="whole")
    assert low(cell) == {}
    there = np.isin(np.arange(60), np.r_[0:10, 30:40, 50:60])
    plt.plot(times, np.where(there, 1.0, np.nan), label="half")
    assert low(cell)["half"]["coverage"] == pytest.approx(0.5, abs=0.02)


def test_a_weekly_line_next_to_a_daily_one_is_complete(cell: Cell) -> None:
    plt.plot(DAYS, np.arange(100), label="daily")
    plt.plot(DAYS[::7], np.arange(15), label="weekly")
    assert low(cell) == {}


def test_a_daily_line_on_an_hourly_index_is_sparse(cell: Cell) -> None:
    hours = pd.date_range("2024-01-01", periods=240, freq="h")
    plt.plot(hours, np.where(hours.hour == 0, 1.0, np.nan), label="a")
    assert low(cell)["a"]["coverage"] == pytest.approx(10 / 217)


def test_irregular_events_are_not_reported(cell: Cell) -> None:
    rng = np.random.default_rng(3)
    events = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 100 * 86400, 40)), unit="s")
    plt.plot(DAYS, np.arange(100), label="daily")
    plt.plot(events, np.arange(40), label="events")
    assert low(cell) == {}


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
    plt.scatter(DAYS[:10], np.arange(10), label="scatter")
    assert low(cell) == {}


def test_a_line_that_is_sparse_by_design_is_accepted_with_a_cadence(cell: Cell) -> None:
    values = np.where(np.arange(100) % 7 == 0, 1.0, np.nan)
    plt.plot(DAYS, values, label="label", marker="o")
    assert low(cell, cadence={"label": "7D"}) == {}
    plt.plot(DAYS, values, label="label")
    assert low(cell, cadence={"label": None}) == {}
    plt.plot(DAYS, values, label="label")
    assert list(low(cell)) == ["label"]


def test_a_cadence_for_an_unknown_line_is_refused(cell: Cell) -> None:
    plt.plot(DAYS, np.arange(100), label="a")
    with pytest.raises(sluice.FigureError, match="cadence names 'b', but the lines are 'a'"):
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


def test_steps_and_lines_drawn_by_pandas_are_checked(cell: Cell) -> None:
    values = pd.Series(np.where(np.arange(100) < 70, np.nan, 1.0), index=DAYS, name="p")
    values.plot(label="pandas")
    assert low(cell)["pandas"]["observed"] == 30
    plt.step(DAYS, values.fillna({DAYS[0]: 1.0}), label="steps")
    assert low(cell)["steps"]["observed"] == 31


def test_lines_over_numbers_are_not_checked(cell: Cell) -> None:
    plt.plot(np.arange(100), np.where(np.arange(100) < 80, np.nan, 1.0), label="a")
    assert low(cell) == {}


def test_a_line_without_a_label_is_named_by_its_position(cell: Cell) -> None:
    plt.plot(DAYS, np.where(np.arange(100) % 70 < 5, 1.0, np.nan))
    assert list(low(cell)) == ["line 1"]


def test_points_outside_the_shown_span_are_not_expected(cell: Cell) -> None:
    plt.plot(DAYS, np.where(np.arange(100) < 70, np.nan, 1.0), label="late")
    assert low(cell) == {}
