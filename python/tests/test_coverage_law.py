"""Each sentence of the law of coverage, for series of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from calendars import CALENDARS, RHYTHMS, SPANS, calendar, drawn, random_subset
from hypothesis import assume, given
from hypothesis import strategies as st

from sluice.coverage import PlottedSeries, Verdict, judge_coverage

calendars = st.sampled_from(list(CALENDARS))
seeds = st.integers(0, 2**32 - 1)


def judge(*series: PlottedSeries) -> list[str | None]:
    return [verdict and verdict.kind for verdict in judge_coverage(series)]


def share_between_ends(keep: Any) -> float:
    return len(keep) / int(keep[-1] - keep[0] + 1)


@given(calendars, st.integers(60, 400), st.integers(5, 95), seeds, st.booleans())
def test_random_points_of_another_series_or_of_the_own_index_are_reported_below_60_percent_at_every_share(
    name: str, places: int, share: int, seed: int, has_nulls: bool
) -> None:
    index = calendar(name, places)
    keep = random_subset(places, max(round(places * share / 100), 4), seed)
    coverage = share_between_ends(keep)
    own = drawn("own", index, np.isin(np.arange(places), keep)) if has_nulls else drawn("own", index[keep])
    low, expected = coverage < 0.6, keep[-1] - keep[0] + 1
    verdict = judge_coverage([drawn("full", index), own])[1]
    assert verdict is not None
    # Weekdays of a daily grid are a rhythm, and 60 % of them are complete even where 60 % of the days are not.
    assert verdict.kind == ("low" if low else "complete")
    if low:
        assert (verdict.observed, verdict.expected) == (len(keep), expected)


@given(calendars, st.integers(60, 400), st.integers(5, 55), seeds)
def test_random_nulls_of_a_series_alone_are_reported(name: str, places: int, share: int, seed: int) -> None:
    keep = random_subset(places, max(round(places * share / 100), 4), seed)
    assume(share_between_ends(keep) < 0.6)
    verdict = judge_coverage([drawn("own", calendar(name, places), np.isin(np.arange(places), keep))])[0]
    assert verdict is not None
    assert (verdict.kind, verdict.against) == ("low", "its own index")


@given(calendars, st.integers(10, 400), st.data())
def test_a_series_that_only_starts_later_or_ends_earlier_is_complete(name: str, places: int, data: Any) -> None:
    start = data.draw(st.integers(0, places - 1))
    end = data.draw(st.integers(start + 1, places))
    index = calendar(name, places)
    assert judge(drawn("full", index), drawn("part", index[start:end])) == ["complete", "complete"]
    inside = (np.arange(places) >= start) & (np.arange(places) < end)
    assert judge(drawn("full", index), drawn("part", index, inside)) == ["complete", "complete"]
    if end - start >= 3:
        assert judge(drawn("part", index, inside)) == ["complete"]


@pytest.mark.parametrize(("name", "rhythm"), [(name, rhythm) for name in RHYTHMS for rhythm in RHYTHMS[name]])
@pytest.mark.parametrize("has_nulls", [False, True])
@pytest.mark.parametrize("shift", [0, 100])
def test_a_series_with_regular_steps_of_its_own_is_complete(
    name: str, rhythm: str, has_nulls: bool, shift: int
) -> None:
    index = calendar(name, SPANS[name] + shift)[shift:]
    points = np.asarray(RHYTHMS[name][rhythm](index))
    own = drawn("own", index, points) if has_nulls else drawn("own", index[points])
    assert judge(drawn("full", index), own) == ["complete", "complete"]
    assert judge(own) == ["complete"]


@given(st.sampled_from([(name, rhythm) for name in RHYTHMS for rhythm in RHYTHMS[name]]), seeds)
def test_a_regular_series_is_complete_if_it_lacks_a_few_points_and_reported_if_it_lacks_most(
    case: Any, seed: int
) -> None:
    name, rhythm = case
    index = calendar(name, SPANS[name])
    regular = np.flatnonzero(RHYTHMS[name][rhythm](index))
    assume(len(regular) >= 24)
    few = np.delete(regular, random_subset(len(regular), len(regular) // 20, seed))
    assert judge(drawn("full", index), drawn("own", index[few]))[1] == "complete"
    keep = random_subset(len(regular), len(regular) // 3, seed)
    assume(share_between_ends(keep) < 0.5)
    assert judge(drawn("full", index), drawn("own", index[regular[keep]]))[1] == "low"


@pytest.mark.parametrize(
    ("calendar_name", "periods", "keep", "expected"),
    [
        ("daily", 91, [30, 59, 90], "complete"),  # month ends
        ("daily", 91, [0, 31, 60], "complete"),  # month starts
        ("daily", 91, [14, 45, 74], "complete"),  # the 15th
        ("daily", 30, [6, 13, 20, 27], "complete"),  # four weeks
        ("daily", 90, [10, 70], "low"),
        ("daily", 90, [10, 40, 70], "low"),
        ("daily", 90, [3, 17, 80], "low"),
        ("daily", 90, [3, 17, 80, 88], "low"),
        ("daily", 90, [44, 45], "complete"),
        ("daily", 90, [44], "complete"),
        ("monthly", 12, [2, 5, 8, 11], "complete"),  # quarters
        ("monthly", 12, [0, 3, 6, 9], "complete"),
        ("monthly", 12, [0, 3, 7, 11], "low"),
        ("hourly", 72, [16, 40, 64], "complete"),  # three days
    ],
)
def test_few_points_are_regular_only_on_a_calendar(
    calendar_name: str, periods: int, keep: list[int], expected: str
) -> None:
    index = calendar(calendar_name, periods)
    assert judge(drawn("full", index), drawn("own", index[keep])) == ["complete", expected]


@pytest.mark.parametrize(
    ("keep", "expected"), [([0, 1], "low"), ([40], "low"), ([0, 1, 2], "complete"), ([5, 80], "low")]
)
def test_one_or_two_points_of_a_series_alone_are_judged_over_its_whole_index(keep: list[int], expected: str) -> None:
    index = calendar("daily", 90)
    verdict = judge_coverage([drawn("own", index, np.isin(np.arange(90), keep))])[0]
    assert verdict is not None
    assert verdict.kind == expected
    if expected == "low":
        assert (verdict.observed, verdict.expected) == (len(keep), 90)


def test_markers_are_judged_only_when_they_are_alone() -> None:
    index = calendar("daily", 90)
    sparse = np.isin(np.arange(90), random_subset(90, 12, 1))
    assert judge(drawn("line", index), drawn("signals", index[sparse], markers=True)) == ["complete", None]
    assert judge(drawn("a", index, markers=True), drawn("b", index[sparse], markers=True)) == [None, None]
    assert judge(drawn("signals", index, sparse, markers=True)) == ["low"]
    assert judge(drawn("line", index, False), drawn("signals", index, sparse, markers=True)) == [None, "low"]
    # Their places are a grid for others.
    assert judge(drawn("dots", index, markers=True), drawn("line", index[sparse])) == [None, "low"]


@given(st.integers(6, 60), seeds)
def test_irregular_steps_without_a_grid_are_unknown(count: int, seed: int) -> None:
    seconds = np.sort(np.random.default_rng(seed).choice(90 * 86400, count, replace=False))
    events = pd.Timestamp("2024-01-01") + pd.to_timedelta(seconds, unit="s")
    assert judge(drawn("events", events)) == ["unknown"]
    assert judge(drawn("daily", calendar("daily", 90)), drawn("events", events)) == ["complete", "unknown"]


@given(calendars, st.integers(10, 55), seeds)
def test_random_rows_of_a_series_alone_are_unknown(name: str, share: int, seed: int) -> None:
    keep = random_subset(200, 2 * share, seed)
    assert judge(drawn("own", calendar(name, 200)[keep])) == ["unknown"]


@pytest.mark.parametrize("name", CALENDARS)
def test_a_hole_in_the_regular_steps_of_a_series_alone_is_reported(name: str) -> None:
    index = calendar(name, 200)
    assert judge(drawn("own", index)) == ["complete"]
    verdict = judge_coverage([drawn("own", index[np.r_[0:30, 160:200]])])[0]
    assert verdict is not None
    assert (verdict.kind, verdict.observed, verdict.against) == ("low", 70, "its own step")
    assert verdict.expected == pytest.approx(200, rel=0.02)


@given(st.floats(-0.45, 0.45), st.integers(5, 50), seeds)
def test_points_that_are_all_shifted_by_the_same_part_of_a_step_are_on_the_grid(
    shift: float, share: int, seed: int
) -> None:
    index = calendar("daily", 100)
    keep = random_subset(100, max(share, 5), seed)
    assume(share_between_ends(keep) < 0.6)
    own = drawn("own", index[keep] + pd.Timedelta(days=shift))
    assert judge(drawn("full", index), own) == ["complete", "low"]


@given(calendars, st.integers(5, 50), seeds)
def test_one_hour_of_summer_time_or_seconds_of_jitter_change_nothing(name: str, share: int, seed: int) -> None:
    assume(name != "hourly")
    index = calendar(name, 200)
    keep = random_subset(200, 2 * share, seed)
    assume(share_between_ends(keep) < 0.6)
    hour = pd.to_timedelta((index[keep].month % 12 > 5).astype(int), unit="h")
    assert judge(drawn("full", index), drawn("own", index[keep] + hour)) == ["complete", "low"]
    jitter = pd.to_timedelta(np.random.default_rng(seed).integers(0, 600, len(keep)), unit="s")
    assert judge(drawn("full", index), drawn("own", index[keep] + jitter)) == ["complete", "low"]


def test_a_grid_that_covers_only_a_part_of_the_points_judges_that_part() -> None:
    index = calendar("daily", 200)
    keep = random_subset(200, 40, 5)
    assert judge(drawn("full", index[:150]), drawn("own", index[keep])) == ["complete", "low"]
    assert judge(drawn("full", index[:20]), drawn("own", index[keep])) == ["complete", "unknown"]


def test_verdicts_do_not_depend_on_the_order_of_rows() -> None:
    index = calendar("daily", 90)
    keep = random_subset(90, 20, 9)
    shuffled = np.random.default_rng(1).permutation(20)
    expected = Verdict("low", 20, int(keep[-1] - keep[0]) + 1, "full")
    found = judge_coverage([drawn("full", index[::-1]), drawn("own", index[keep][shuffled])])[1]
    assert found is not None
    assert found._replace(gap=(0.0, 0.0)) == expected
