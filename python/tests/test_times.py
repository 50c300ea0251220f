"""Tests of parsing times and of buckets."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice import TimeError
from sluice.buckets import read_bucket
from sluice.times import read_times

moments = st.integers(10**9, 4 * 10**9)
zones = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Havana"]
)


@given(
    st.lists(st.tuples(moments, st.sampled_from(["s", "ms", "us", "ns", "text", "iso", "offset", "aware"])), min_size=1)
)
def test_one_column_may_mix_every_notation_of_an_instant(written: list[tuple[int, str]]) -> None:
    def write(seconds: int, how: str) -> Any:
        stamp = pd.Timestamp(seconds, unit="s", tz="UTC")
        return {
            "s": seconds,
            "ms": seconds * 10**3,
            "us": seconds * 10**6,
            "ns": seconds * 10**9,
            "text": str(seconds * 1000),
            "iso": stamp.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "offset": stamp.tz_convert("Asia/Kolkata").isoformat(),
            "aware": stamp.to_pydatetime(),
        }[how]

    read = read_times([write(*one) for one in written])
    assert (read.instants.asi8 // 10**9).tolist() == [seconds for seconds, _ in written]
    assert read.naive == 0


@given(st.lists(moments, min_size=1), zones)
def test_a_naive_time_is_read_in_the_given_zone(seconds: list[int], tz: str) -> None:
    walls = [pd.Timestamp(second, unit="s", tz="UTC").tz_convert(tz).tz_localize(None) for second in seconds]
    read = read_times([wall.isoformat() for wall in walls], tz)
    assert read.naive == len(seconds)
    back = read.instants.tz_convert(tz).tz_localize(None)
    assert (back == pd.DatetimeIndex(walls)).all()


def test_nanoseconds_are_not_lost() -> None:
    assert read_times([1700000000000000123]).instants[0].nanosecond == 123
    assert read_times(["2024-01-01T00:00:00.123456789Z"]).instants[0].nanosecond == 789


def test_missing_times_stay_missing() -> None:
    for column in ([1700000000, None], ["2024-01-01", ""], [pd.NaT, dt.date(2024, 1, 1)], [float("nan"), 1.7e9]):
        assert list(read_times(column).instants.isna()).count(True) == 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2023, 2024], "2023-01-01"),
        ([20240131], "2024-01-31"),
        (["2024-05"], "2024-05-01"),
        (["2024-Q2"], "2024-04-01"),
        (["5 Jan 2024"], "2024-01-05"),
        (["31/12/2024", "01/02/2024"], "2024-12-31"),
        (["12/31/2024", "01/02/2024"], "2024-12-31"),
        ([dt.date(2024, 1, 1)], "2024-01-01"),
        (pd.period_range("2024-03", periods=1, freq="M"), "2024-03-01"),
        ([np.datetime64("2024-01-01")], "2024-01-01"),
    ],
)
def test_dates_are_parsed(values: Any, expected: str) -> None:
    read = read_times(values)
    assert read.instants[0] == pd.Timestamp(expected, tz="UTC")
    assert read.naive == len(values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["01/02/2024"], "day first or month first"),
        (["soon"], "cannot parse 'soon' as a time"),
        ([True, False], "not times"),
        ([{}], "is not a time"),
        ([1e30], "too large"),
    ],
)
def test_values_that_are_not_times_are_refused(values: list[Any], message: str) -> None:
    with pytest.raises(TimeError, match=message):
        read_times(values)


@st.composite
def instants_in_a_zone(draw: st.DrawFn) -> tuple[pd.DatetimeIndex, str]:
    """Instants, most of them within half a day of a clock change of the zone."""
    tz = draw(zones)
    seconds = st.tuples(st.sampled_from(CHANGES[tz]), st.integers(-43_200, 43_200)).map(sum) if CHANGES[tz] else moments
    drawn = draw(st.lists(seconds | moments, min_size=1, max_size=40))
    instants = pd.DatetimeIndex(np.array(sorted(drawn)).astype("datetime64[s]")).as_unit("ns").tz_localize("UTC")
    return instants, tz


def changes_of(tz: str) -> list[int]:
    hours = pd.date_range("2015-01-01", "2025-01-01", freq="30min", tz="UTC").as_unit("ns")
    walls = hours.tz_convert(tz).tz_localize(None).as_unit("ns").asi8
    changed = np.flatnonzero(np.diff(walls) != 30 * 60 * 10**9) + 1
    return [int(hour) // 10**9 for hour in hours.asi8[changed]]


CHANGES = {
    tz: changes_of(tz)
    for tz in ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Havana"]
}
SIZES = ["15min", "30min", "1h", "2h", "3h", "4h", "6h", "12h", "1D", "3D", "1W", "W-SUN", "1M", "1Q", "1Y"]


@given(instants_in_a_zone(), st.sampled_from([*SIZES, "7min", "45min", "100min"]))
def test_a_bucket_starts_before_its_instants_and_buckets_keep_their_order(
    drawn: tuple[pd.DatetimeIndex, str], freq: str
) -> None:
    (instants, tz), bucket = drawn, read_bucket(freq)
    assert bucket is not None
    floored = bucket.floor(instants, tz)
    assert (floored <= instants).all()
    assert floored.is_monotonic_increasing
    assert (bucket.floor(floored, tz) == floored).all()
    if freq not in ("7min", "15min"):
        near = floored[floored <= floored[0] + pd.Timedelta("400D")]
        every = bucket.between(near[0], near[-1], tz)
        assert every.is_unique
        assert every.is_monotonic_increasing
        assert near.isin(every).all()


@given(instants_in_a_zone(), st.sampled_from(["4h", "6h", "12h", "1D"]))
def test_buckets_follow_the_wall_clock_when_clocks_change(drawn: tuple[pd.DatetimeIndex, str], freq: str) -> None:
    (instants, tz), bucket = drawn, read_bucket(freq)
    assert bucket is not None
    wall = instants.tz_convert(tz).tz_localize(None).floor(freq)
    buckets = bucket.floor(instants, tz)
    by_wall = pd.Series(buckets).groupby(wall.asi8).nunique()
    if tz != "America/Havana":  # where the repeated hour is the first of the day
        assert (by_wall == 1).all(), "one wall bucket is one bucket"
        assert buckets.nunique() == wall.nunique()
        assert (buckets.tz_localize(None) == wall).all()


def test_a_bucket_of_hours_in_which_clocks_change_stays_one_bucket() -> None:
    bucket = read_bucket("6h")
    assert bucket is not None
    autumn = pd.date_range("2024-10-26T22:00Z", periods=7, freq="h")  # 00:00 to 06:00, with 02:00 twice
    assert bucket.floor(autumn, "Europe/Berlin").unique().tolist() == [pd.Timestamp("2024-10-27", tz="Europe/Berlin")]
    spring = pd.date_range("2024-03-30T23:00Z", periods=5, freq="h")  # 00:00 to 06:00, without 02:00
    assert bucket.floor(spring, "Europe/Berlin").unique().tolist() == [pd.Timestamp("2024-03-31", tz="Europe/Berlin")]


def test_a_skipped_wall_time_is_the_moment_of_the_jump() -> None:
    berlin = read_times(["2024-03-31T02:30:00"], "Europe/Berlin").instants
    assert berlin.tolist() == [pd.Timestamp("2024-03-31T01:00Z")]
    half_an_hour = read_times(["2023-10-01T02:10:00"], "Australia/Lord_Howe").instants
    assert half_an_hour.tolist() == [pd.Timestamp("2023-09-30T15:30Z")]


def test_days_start_at_local_midnight_when_clocks_change() -> None:
    bucket = read_bucket("1D")
    assert bucket is not None
    hours = pd.date_range("2024-10-26T22:00Z", periods=25, freq="h")
    assert bucket.floor(hours, "Europe/Berlin").unique().tolist() == [pd.Timestamp("2024-10-27", tz="Europe/Berlin")]
    spring = pd.date_range("2024-03-30T23:00Z", periods=23, freq="h")
    assert bucket.floor(spring, "Europe/Berlin").unique().tolist() == [pd.Timestamp("2024-03-31", tz="Europe/Berlin")]


def test_the_repeated_hour_stays_two_hours() -> None:
    bucket = read_bucket("1h")
    assert bucket is not None
    times = pd.DatetimeIndex(["2024-10-27T00:30Z", "2024-10-27T01:30Z"])
    assert bucket.floor(times, "Europe/Berlin").nunique() == 2


@pytest.mark.parametrize("freq", ["", "x", "0D", "5 bananas", "-1h", pd.Timedelta(0), 5])
def test_invalid_bucket_sizes_are_refused(freq: Any) -> None:
    with pytest.raises(TimeError, match="is not a bucket size; use a count and a unit"):
        read_bucket(freq)


WORDS: list[tuple[Any, str]] = [
    ("1D", "D"), ("daily", "D"), ("H", "h"), ("15T", "15min"), ("W", "W"), ("W-SUN", "W-SUN"), ("MS", "M"),
    ("ME", "M"), ("QS", "Q"), ("YE", "Y"), (pd.Timedelta("90min"), "90min"), (pd.offsets.Hour(2), "2h"),
    (dt.timedelta(days=2), "2D"),
]  # fmt: skip


@pytest.mark.parametrize(("freq", "text"), WORDS)
def test_bucket_sizes_are_parsed(freq: Any, text: str) -> None:
    bucket = read_bucket(freq)
    assert bucket is not None
    assert bucket.text == text
