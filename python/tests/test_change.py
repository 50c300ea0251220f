"""Tests of `derive_change_series`: worked cases and laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Cell
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice import TimeError, derive_change_series

NAN = float("nan")
COLUMNS = [
    "total_value",
    "total_change",
    "stable_entities_change",
    "coverage_change",
    "entering_entity_count",
    "exiting_entity_count",
    "spans_periods",
]


def days(count: int) -> pd.DatetimeIndex:
    return pd.date_range("2024-01-01", periods=count, freq="D", tz="UTC")


def wide(**columns: list[float | None]) -> pd.DataFrame:
    frame = pd.DataFrame({name: pd.array(values, dtype="Float64") for name, values in columns.items()})
    frame.insert(0, "date", days(len(frame)))
    return frame


def events(changes: pd.DataFrame) -> list[tuple[int, str, str, float]]:
    return [
        ((event["period"] - changes.index[0]).days, event["entity"], event["kind"], event["value"])
        for event in changes.attrs["coverage_events"]
    ]


def check(series: pd.Series[Any], expected: list[float]) -> None:
    np.testing.assert_array_equal(series.to_numpy(dtype=float), np.array(expected, dtype=float))


def test_a_venue_first_listed_at_35000_is_coverage_and_not_flow(cell: Cell) -> None:
    changes = derive_change_series(wide(a=[100, 90, 95], b=[None, 35000, 35010]))
    assert changes.columns.tolist() == COLUMNS
    assert changes.index.name == "period"
    check(changes["total_value"], [100, 35090, 35105])
    check(changes["total_change"], [NAN, 34990, 15])
    check(changes["stable_entities_change"], [NAN, -10, 15])
    check(changes["coverage_change"], [NAN, 35000, 0])
    check(changes["entering_entity_count"], [0, 1, 0])
    check(changes["exiting_entity_count"], [0, 0, 0])
    assert events(changes) == [(1, "b", "first_listed", 35000.0)]


def test_a_reporting_gap_is_coverage_at_both_ends(cell: Cell) -> None:
    changes = derive_change_series(wide(a=[10, 11, 12, 13], b=[100, None, 120, 121]))
    check(changes["stable_entities_change"], [NAN, 1, 1, 2])
    check(changes["coverage_change"], [NAN, -100, 120, 0])
    check(changes["total_change"], [NAN, -99, 121, 2])
    assert events(changes) == [(1, "b", "gap_start", 100.0), (2, "b", "gap_end", 120.0)]


def test_a_delisted_venue_is_coverage(cell: Cell) -> None:
    changes = derive_change_series(wide(a=[10, 11, 12], b=[5, 6, None]))
    check(changes["coverage_change"], [NAN, 0, -6])
    check(changes["exiting_entity_count"], [0, 0, 1])
    assert events(changes) == [(2, "b", "delisted", 6.0)]


def test_a_null_placeholder_does_not_hide_a_sample(cell: Cell) -> None:
    rows = [
        {"time": "2024-01-01T05:00Z", "venue": "a", "v": 10.0},
        {"time": "2024-01-02T00:00Z", "venue": "a", "v": None},
        {"time": "2024-01-02T09:00Z", "venue": "a", "v": 12.0},
    ]
    for order in (rows, rows[::-1]):
        changes = derive_change_series(order, freq="1D")
        check(changes["stable_entities_change"], [NAN, 2])
        assert changes.attrs["coverage_events"] == []


def test_selecting_5_of_40_entities_adds_a_column_and_changes_no_other(cell: Cell) -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(1000, 50, (30, 40)).round(2), columns=[f"v{i}" for i in range(40)])
    frame.insert(0, "date", days(30))
    whole = derive_change_series(frame)
    chosen = frame.iloc[-1, 1:].astype(float).nlargest(5).index.tolist()
    top = derive_change_series(frame, selected=chosen)
    pd.testing.assert_frame_equal(top[COLUMNS], whole)
    np.testing.assert_allclose(top["selected_entities_change"], frame[chosen].sum(axis=1).diff())
    largest = derive_change_series(frame, selected=5)
    assert sorted(largest.attrs["selected"]) == sorted(chosen)
    np.testing.assert_allclose(largest["selected_entities_change"], top["selected_entities_change"])


def test_the_change_over_periods_without_any_report_is_in_the_next_period_with_one(cell: Cell) -> None:
    changes = derive_change_series(wide(a=[10, None, None, 12, 13], b=[5, None, None, 5, 6]))
    check(changes["total_value"], [15, NAN, NAN, 17, 19])
    check(changes["total_change"], [NAN, NAN, NAN, 2, 2])
    check(changes["stable_entities_change"], [NAN, NAN, NAN, 2, 2])
    check(changes["coverage_change"], [NAN, NAN, NAN, 0, 0])
    check(changes["spans_periods"], [0, 0, 0, 3, 1])
    assert events(changes) == []
    assert changes.attrs["data_quality"]["assumed"] == [
        "no entity reported in 2 of 5 periods: the change over them is in the next period with a report, "
        "and spans_periods counts them"
    ]
    skipped = [{"day": f"2024-01-0{day}", "e": "a", "v": float(day)} for day in (1, 2, 4, 5)] * 2
    by_day = derive_change_series(skipped, freq="1D", selected=["a"])
    check(by_day["total_value"], [1, 2, NAN, 4, 5])
    check(by_day["stable_entities_change"], [NAN, 1, NAN, 2, 1])
    check(by_day["selected_entities_change"], [NAN, 1, NAN, 2, 1])
    assert by_day["spans_periods"].dtype == "int64"


def test_an_entity_that_is_gone_after_periods_without_any_report_is_coverage(cell: Cell) -> None:
    changes = derive_change_series(wide(a=[None, 10, None, 12, None], b=[None, 5, None, None, None]))
    check(changes["total_change"], [NAN, NAN, NAN, -3, NAN])
    check(changes["stable_entities_change"], [NAN, NAN, NAN, 2, NAN])
    check(changes["coverage_change"], [NAN, NAN, NAN, -5, NAN])
    check(changes["exiting_entity_count"], [0, 0, 0, 1, 0])
    assert events(changes) == [(3, "b", "delisted", 5.0)]


def test_a_single_period_gives_one_row(cell: Cell) -> None:
    changes = derive_change_series([{"t": "2024-01-01T05:10Z", "e": "a", "v": 1.0}], freq="1h")
    check(changes["total_value"], [1])


def test_flows_are_summed_and_not_differenced(cell: Cell) -> None:
    changes = derive_change_series(wide(a=[1, -2, 3], b=[None, 10, -4]), kind="flow")
    check(changes["total_value"], [1, 8, -1])
    check(changes["total_change"], [NAN, 8, -1])
    check(changes["stable_entities_change"], [NAN, -2, -1])
    check(changes["coverage_change"], [NAN, 10, 0])
    hourly = pd.DataFrame({"time": pd.date_range("2024-01-01", periods=48, freq="h", tz="UTC"), "a": 1.0})
    by_day = derive_change_series(hourly, freq="1D", kind="flow")
    check(by_day["total_value"], [24, 24])
    check(by_day["total_change"], [NAN, 24])
    check(derive_change_series(hourly, freq="1D")["total_value"], [1, 1])
    check(derive_change_series(hourly, freq="1D", agg="sum")["total_value"], [24, 24])


@pytest.mark.parametrize("kind", ["level", "flow"])
def test_in_the_first_period_changes_are_null_and_counts_zero(cell: Cell, kind: str) -> None:
    first = derive_change_series(wide(a=[1, 2], b=[5, None]), kind=kind, selected=["a"]).iloc[0]
    assert first["total_value"] == 6
    assert (first["entering_entity_count"], first["exiting_entity_count"]) == (0, 0)
    changes = ["total_change", "stable_entities_change", "coverage_change", "selected_entities_change"]
    assert first[changes].isna().all()


def test_sign_inverts_changes_and_not_levels(cell: Cell) -> None:
    data = wide(a=[10, 12], b=[None, 5])
    plain, turned = derive_change_series(data), derive_change_series(data, sign=-1)
    for column in ("total_change", "stable_entities_change", "coverage_change"):
        check(turned[column], list(-plain[column]))
    check(turned["total_value"], list(plain["total_value"]))


def test_long_and_wide_data_give_the_same_result(cell: Cell) -> None:
    data = wide(a=[10, None, 12], b=[5, 6, 7])
    long = data.melt("date", var_name="venue", value_name="held").dropna()
    one, two = derive_change_series(data), derive_change_series(long)
    pd.testing.assert_frame_equal(one, two)
    said = derive_change_series(long, time_col="date", entity_col="venue", value_col="held")
    pd.testing.assert_frame_equal(one, said)
    assert events(one) == events(two)


def test_other_shapes_of_data_are_accepted(cell: Cell) -> None:
    text = derive_change_series("date,a,b\n2024-01-01,1,2\n2024-01-02,3,4")
    check(text["total_change"], [NAN, 4])
    numbers_as_text = [{"t": "2024-01-01", "e": "x", "v": "1.5"}, {"t": "2024-01-01", "e": "y", "v": "2"}]
    check(derive_change_series(numbers_as_text)["total_value"], [3.5])
    numbered = pd.DataFrame({"date": days(2).repeat(2), "id": [1, 2, 1, 2], "v": [1.0, 2.0, 3.0, 4.0]})
    check(derive_change_series(numbered, entity_col="id", value_col="v")["total_change"], [NAN, 4])
    unnamed = [{"t": "2024-01-01", "e": None, "v": 1.0}, {"t": "2024-01-01", "e": "y", "v": 2.0}] * 2
    check(derive_change_series(unnamed, entity_col="e")["total_value"], [3.0])
    infinite = derive_change_series(wide(a=[1, float("inf"), 3]))
    check(infinite["total_value"], [1, NAN, 3])


def test_a_single_row_per_time_still_belongs_to_its_entity(cell: Cell) -> None:
    rows = [{"day": "2024-01-01", "venue": "a", "btc": 10.0}, {"day": "2024-01-02", "venue": "b", "btc": 35000.0}]
    changes = derive_change_series(rows)
    check(changes["stable_entities_change"], [NAN, 0])
    check(changes["coverage_change"], [NAN, 34990])
    assert [event[1:3] for event in events(changes)] == [("b", "first_listed"), ("a", "delisted")]


def test_ambiguous_columns_have_to_be_named(cell: Cell) -> None:
    rows = [{"day": "2024-01-01", "venue": "a", "asset": "x", "btc": 10.0}]
    with pytest.raises(
        TimeError, match=r"several columns could name the entity \('venue', 'asset'\); pass entity_col="
    ):
        derive_change_series(rows)
    check(derive_change_series(rows, entity_col="venue")["total_value"], [10])
    two = [{"day": "2024-01-01", "venue": "a", "btc": 10.0, "eth": 1.0}]
    with pytest.raises(TimeError, match="value_col is not clear: the numeric columns are 'btc', 'eth'"):
        derive_change_series(two, entity_col="venue")
    check(derive_change_series(wide(a=[1, 2], b=[5, 6]), value_col="a")["total_value"], [1, 2])


def test_long_data_is_never_read_as_wide(cell: Cell) -> None:
    rows = [{"day": "2024-01-01", "venue": venue, "price": 1.0, "volume": 2.0} for venue in ("a", "b")]
    with pytest.raises(TimeError) as caught:
        derive_change_series(rows)
    assert str(caught.value) == (
        "rows of the same time differ in 'venue', so the data is long; "
        "pass entity_col='venue' and value_col= with one of 'price', 'volume'"
    )
    numbered = [{"day": "2024-01-01", "id": number, "v": 5.0} for number in (1, 2)]
    assert derive_change_series(numbered).attrs["data_quality"]["warnings"][-1] == (
        "1 rows have the same time as another row and were merged; "
        "if a column names the entity of each row, pass entity_col= and value_col="
    )


def test_only_text_columns_are_guessed_as_entities(cell: Cell) -> None:
    flagged = derive_change_series(wide(a=[1, 2]).assign(open=[True, False], seen=days(2)), time_col="date")
    check(flagged["stable_entities_change"], [NAN, 1])
    assert flagged.attrs["data_quality"]["warnings"] == ["the columns open, seen were not used"]
    zeros = [{"day": "2024-01-01", "id": f"00{number}", "v": 5.0} for number in (1, 2)]
    check(derive_change_series(zeros)["total_value"], [10])


def test_a_rule_that_gives_no_value_gives_no_observation(cell: Cell) -> None:
    rows = [("2024-01-01T00", "a", 1.0), ("2024-01-01T01", "a", 3.0), ("2024-01-01T00", "b", 7.0)]
    data = {"columns": ["t", "e", "v"], "rows": rows}
    check(derive_change_series(data, freq="1D", agg="var")["total_value"], [2])
    with pytest.raises(TimeError, match="agg='std' gives no value for any period"):
        derive_change_series(data, agg="std")


def test_a_duplicate_column_is_refused_by_name(cell: Cell) -> None:
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"], index=days(1))
    with pytest.raises(TimeError, match="the data has the column 'a' more than once; rename it"):
        derive_change_series(twice)


def test_the_quality_is_attached_and_reported(cell: Cell) -> None:
    changes = derive_change_series(wide(a=[1, None], b=[2, 3]).assign(note="x"))
    quality = changes.attrs["data_quality"]
    assert (quality["shape"], quality["rowsIn"], quality["entities"], quality["nulls"]) == ("wide", 2, 2, 1)
    assert quality["warnings"] == ["the columns note were not used"]
    assert cell.diagnostics["dataQuality"] == [quality]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"kind": "stock"}, "kind='stock' is not known"),
        ({"sign": 2}, "sign=2 must be 1 or -1"),
        ({"selected": ["z"]}, "selected names 'z', but the entities are 'a', 'b'"),
        ({"entity_col": "e"}, "entity_col='e' is not a column; the columns are 'a', 'b'"),
        ({"time_col": "t"}, "time_col='t' is not in the data"),
        ({"freq": "often"}, "freq='often' is not a bucket size"),
        ({"agg": "avg"}, "agg='avg' is not a rule"),
    ],
)
def test_wrong_arguments_are_refused_with_a_message(more: dict[str, Any], message: str) -> None:
    with pytest.raises(TimeError, match=message):
        derive_change_series(wide(a=[1, 2], b=[3, 4]), **more)


def test_data_without_any_observation_is_refused() -> None:
    with pytest.raises(TimeError, match="every value is null"):
        derive_change_series(wide(a=[None, None]))
    with pytest.raises(TimeError, match="no row has a time"):
        derive_change_series({"columns": ["time", "v"], "rows": []})


def test_the_docstring_has_the_rules() -> None:
    text = derive_change_series.__doc__ or ""
    assert "a positive change is a net flow into the place that holds it" in text
    assert "Flow and coverage." in text


# laws

cells = st.none() | st.integers(-(10**6), 10**6).map(float) | st.floats(-1e6, 1e6)


@st.composite
def matrices(draw: st.DrawFn) -> pd.DataFrame:
    height, width = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    rows = draw(st.lists(st.lists(cells, min_size=width, max_size=width), min_size=height, max_size=height))
    values = np.array([[NAN if cell is None else cell for cell in row] for row in rows], dtype=float)
    if np.isnan(values).all():
        values[0, 0] = 1.0
    return pd.DataFrame(values, index=days(height), columns=[f"e{i}" for i in range(width)])


def naive_changes(matrix: pd.DataFrame) -> pd.DataFrame:
    """A plain implementation of the definition, entity by entity and period by period."""
    rows: list[tuple[float, ...]] = []
    before, at = None, 0
    for place in range(len(matrix)):
        now = matrix.iloc[place].dropna()
        if now.empty:
            rows.append((NAN, NAN, NAN, NAN, 0, 0, 0))
            continue
        if before is None:
            rows.append((now.sum(), NAN, NAN, NAN, 0, 0, 0))
        else:
            stays, enters, leaves = (
                now.index.intersection(before.index),
                now.index.difference(before.index),
                before.index.difference(now.index),
            )
            stable = (now[stays] - before[stays]).sum()
            coverage = now[enters].sum() - before[leaves].sum()
            rows.append((now.sum(), stable + coverage, stable, coverage, len(enters), len(leaves), place - at))
        before, at = now, place
    return pd.DataFrame(rows, columns=COLUMNS, index=matrix.index)


def check_the_parts_add_up(changes: pd.DataFrame, sign: int = 1, exact: bool = True) -> None:
    """Every change is flow plus coverage, and over every range the changes add up to the last total minus the first."""
    tolerance = 0 if exact else 1e-6 * (1 + changes["total_value"].abs().max())
    parts = changes["stable_entities_change"] + changes["coverage_change"]
    np.testing.assert_array_equal(changes["total_change"].to_numpy(), parts.to_numpy())
    totals = changes["total_value"].dropna()
    observed = changes.loc[totals.index]
    for column in ("total_change", "stable_entities_change", "coverage_change"):
        assert changes[column].isna().sum() == len(changes) - len(totals) + 1
        assert np.isnan(observed[column].iloc[0])
    moved = np.r_[0.0, observed["total_change"].to_numpy()[1:].cumsum()]
    np.testing.assert_allclose(moved, sign * (totals - totals.iloc[0]), rtol=0, atol=tolerance)
    spans = changes["spans_periods"]
    assert (spans[~changes.index.isin(totals.index)] == 0).all()
    at = changes.index.get_indexer(totals.index)
    assert spans.loc[totals.index].tolist() == [0, *np.diff(at).tolist()]


@given(matrices())
def test_every_membership_pattern_matches_the_definition(matrix: pd.DataFrame) -> None:
    changes = derive_change_series(matrix)
    np.testing.assert_allclose(changes.to_numpy(float), naive_changes(matrix).to_numpy(float), rtol=1e-9, atol=1e-6)


@given(matrices(), st.sampled_from(["level", "flow"]), st.sampled_from([1, -1]))
def test_total_is_stable_plus_coverage_in_every_period(matrix: pd.DataFrame, kind: str, sign: int) -> None:
    changes = derive_change_series(matrix, kind=kind, sign=sign)
    if kind == "level":
        check_the_parts_add_up(changes, sign, exact=False)
        return
    parts = changes["stable_entities_change"] + changes["coverage_change"]
    np.testing.assert_array_equal(changes["total_change"].to_numpy(), parts.to_numpy())
    observed = changes["total_value"].notna() & (np.cumsum(changes["total_value"].notna()) > 1)
    assert changes["total_change"].notna().tolist() == observed.tolist()
    np.testing.assert_allclose(changes["total_change"][observed], sign * changes["total_value"][observed], atol=1e-6)


@given(matrices(), st.data())
def test_selection_never_changes_the_totals(matrix: pd.DataFrame, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(matrix.columns.tolist()), unique=True))
    whole = derive_change_series(matrix)
    part = derive_change_series(matrix, selected=chosen)
    pd.testing.assert_frame_equal(part[COLUMNS], whole)
    everyone = derive_change_series(matrix, selected=matrix.columns.tolist())
    there = everyone["selected_entities_change"].notna()
    np.testing.assert_allclose(
        everyone["selected_entities_change"][there], everyone["stable_entities_change"][there], atol=1e-6
    )


@given(matrices(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(matrix: pd.DataFrame, random: Any) -> None:
    long = matrix.rename_axis("time").reset_index().melt("time", var_name="entity", value_name="value")
    order = list(range(len(long)))
    random.shuffle(order)
    one = derive_change_series(long, entity_col="entity", value_col="value", freq="1D")
    two = derive_change_series(long.take(order), entity_col="entity", value_col="value", freq="1D")
    pd.testing.assert_frame_equal(one, two, check_exact=False, atol=1e-6)
    assert sorted(events(one)) == sorted(events(two))


@given(matrices())
def test_null_placeholders_and_repeated_samples_change_nothing(matrix: pd.DataFrame) -> None:
    long = matrix.rename_axis("time").reset_index().melt("time", var_name="entity", value_name="value").dropna()
    late = long.assign(time=long["time"] + pd.Timedelta("5h"))
    doubled = pd.concat([long.assign(value=NAN), late, late.assign(time=late["time"] + pd.Timedelta("1h"), value=NAN)])
    one = derive_change_series(long, entity_col="entity", value_col="value", freq="1D")
    two = derive_change_series(doubled.astype({"value": float}), entity_col="entity", value_col="value", freq="1D")
    pd.testing.assert_frame_equal(one, two, check_exact=False, atol=1e-6)


@given(matrices())
def test_events_match_the_counts_and_add_up_to_the_coverage(matrix: pd.DataFrame) -> None:
    changes = derive_change_series(matrix)
    entering, exiting = pd.Series(0, changes.index), pd.Series(0, changes.index)
    coverage = pd.Series(0.0, changes.index)
    for event in changes.attrs["coverage_events"]:
        enters = event["kind"] in ("first_listed", "gap_end")
        (entering if enters else exiting)[event["period"]] += 1
        coverage[event["period"]] += event["value"] if enters else -event["value"]
    assert entering.tolist() == changes["entering_entity_count"].tolist()
    assert exiting.tolist() == changes["exiting_entity_count"].tolist()
    known = changes["coverage_change"].notna()
    np.testing.assert_allclose(coverage[known], changes["coverage_change"][known], atol=1e-6)


@given(matrices())
def test_each_entity_is_listed_and_delisted_at_most_once(matrix: pd.DataFrame) -> None:
    changes = derive_change_series(matrix)
    kinds = pd.DataFrame(list(changes.attrs["coverage_events"]), columns=["period", "entity", "kind", "value"])
    for entity, own in kinds.groupby("entity"):
        counts = own["kind"].value_counts()
        assert counts.get("first_listed", 0) <= 1
        assert counts.get("delisted", 0) <= 1
        assert counts.get("gap_start", 0) == counts.get("gap_end", 0)
        last = matrix[entity].last_valid_index()
        assert (counts.get("delisted", 0) == 1) == (last != matrix.dropna(how="all").index[-1])


@given(matrices(), st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]))
def test_periods_in_a_zone_with_summer_time_give_the_same_changes(matrix: pd.DataFrame, tz: str) -> None:
    local = pd.date_range("2024-03-29 12:00", periods=len(matrix), freq="D", tz=tz)
    changes = derive_change_series(matrix.set_axis(local), freq="1D", tz=tz)
    plain = derive_change_series(matrix)
    np.testing.assert_array_equal(changes.to_numpy(float), plain.to_numpy(float))
    check_the_parts_add_up(changes, exact=False)
    assert changes.index.equals(local.normalize().rename("period").as_unit("ns"))


# zones, and days on which clocks change

AUTUMN = pd.Timestamp("2024-10-25T00:00Z")  # clocks go back in Berlin on the 27th and in New York on November 3rd
samples = st.lists(
    st.tuples(st.integers(0, 24 * 12 * 2), st.sampled_from("abc"), st.none() | st.integers(-1000, 1000)),
    min_size=1,
    max_size=60,
    unique_by=lambda sample: sample[:2],
).filter(lambda rows: any(value is not None for _, _, value in rows))
local_zones = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])


def long_of(rows: list[tuple[int, str, int | None]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["half_hours", "entity", "value"]).astype({"value": float})
    return frame.assign(time=AUTUMN + pd.to_timedelta(frame.pop("half_hours") * 30, unit="min"))


@given(samples, local_zones, st.randoms(use_true_random=False), st.sampled_from(["level", "flow"]))
def test_days_of_a_zone_contain_their_observations_in_any_order(
    rows: list[tuple[int, str, int | None]], tz: str, random: Any, kind: str
) -> None:
    frame = long_of(rows)
    there = frame.dropna().sort_values("time")
    local = there["time"].dt.tz_convert(tz).dt.date
    cells = there.groupby([local, "entity"])["value"]
    expected = (cells.last() if kind == "level" else cells.sum()).groupby(level=0).sum()
    shuffled = list(rows)
    random.shuffle(shuffled)
    for data in (frame, long_of(shuffled)):
        changes = derive_change_series(data, freq="1D", tz=tz, kind=kind)
        totals = changes["total_value"].dropna()
        assert pd.DatetimeIndex(totals.index).date.tolist() == expected.index.tolist()
        np.testing.assert_allclose(totals, expected)
        assert pd.DatetimeIndex(changes.index).is_unique
        assert set(pd.DatetimeIndex(changes.index).hour) == {0}, "every period is a day of the zone"


@given(samples, local_zones, st.sampled_from(["1h", "6h", "1D"]))
def test_total_is_stable_plus_coverage_while_clocks_change(
    rows: list[tuple[int, str, int | None]], tz: str, freq: str
) -> None:
    check_the_parts_add_up(derive_change_series(long_of(rows), freq=freq, tz=tz))


@given(samples, st.randoms(use_true_random=False))
def test_flows_with_duplicates_are_summed_in_any_order(rows: list[tuple[int, str, int | None]], random: Any) -> None:
    doubled = rows + rows
    random.shuffle(doubled)
    once = derive_change_series(long_of(rows), freq="1D", kind="flow")["total_value"]
    twice = derive_change_series(long_of(doubled), freq="1D", kind="flow")["total_value"]
    np.testing.assert_allclose(twice, 2 * once)


# calendars

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe"]
CALENDARS = ["D", "B", "ME", "BME", "MS", "W-FRI", "W-SUN", "2D", "12h", "QE"]


@st.composite
def reports(draw: st.DrawFn) -> tuple[pd.DataFrame, str]:
    """Rows of several entities, each with its own calendar, time of day, gaps, nulls and duplicates, in any order."""
    zone = draw(st.sampled_from(ZONES))
    seed = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parts = []
    for number in range(draw(st.integers(1, 5))):
        calendar = draw(st.sampled_from(CALENDARS))
        start = pd.Timestamp("2024-01-15") + pd.Timedelta(days=draw(st.integers(0, 40)))
        times = pd.date_range(start, periods=draw(st.integers(1, 200)), freq=calendar)
        times = times[times < pd.Timestamp("2024-11-20")] + pd.Timedelta(minutes=draw(st.integers(0, 1439)))
        times = times.tz_localize(zone, ambiguous="NaT", nonexistent="shift_forward").dropna()
        values = seed.integers(-1000, 100_000, len(times)).astype(float)
        values[seed.random(len(times)) < draw(st.sampled_from([0, 0, 0.02, 0.3, 1]))] = NAN
        parts.append(pd.DataFrame({"time": times, "venue": f"v{number}", "held": values}))
    frame = pd.concat(parts)
    if draw(st.booleans()):  # a stretch of time without any report
        outage = pd.Timestamp("2024-03-20", tz=zone)
        frame = frame[(frame["time"] < outage) | (frame["time"] > outage + pd.Timedelta(days=draw(st.integers(1, 30))))]
    if frame["held"].isna().all():
        frame = pd.concat(
            [frame, pd.DataFrame([(pd.Timestamp("2024-05-01", tz=zone), "v0", 7.0)], columns=frame.columns)]
        )
    frame = pd.concat([frame, frame.sample(frac=0.1, random_state=1)])
    return frame.sample(frac=1, random_state=draw(st.integers(0, 9)), ignore_index=True), zone


@settings(max_examples=200)
@given(reports(), st.sampled_from([None, "1h", "6h", "1D", "1W", "1M", "1Q"]), st.booleans())
def test_the_parts_add_up_over_any_range(data: tuple[pd.DataFrame, str], freq: str | None, is_wide: bool) -> None:
    rows, zone = data
    if is_wide:
        rows = rows.pivot_table(index="time", columns="venue", values="held", aggfunc="last", dropna=False)
        check_the_parts_add_up(derive_change_series(rows, freq=freq, tz=zone))
    else:
        check_the_parts_add_up(derive_change_series(rows, "time", "venue", "held", freq=freq, tz=zone))


def long(values: dict[str, pd.Series[Any]]) -> pd.DataFrame:
    return pd.concat(
        [pd.DataFrame({"time": held.index, "venue": venue, "held": held.array}) for venue, held in values.items()]
    )


def rising(times: pd.DatetimeIndex, first: float = 1000) -> pd.Series[Any]:
    return pd.Series(first + np.arange(len(times), dtype=float), index=times)


def test_weekdays_have_no_events_and_the_movement_over_a_weekend_is_on_monday(cell: Cell) -> None:
    weekdays = pd.bdate_range("2024-01-01", periods=30, tz="UTC")
    changes = derive_change_series(long({"a": rising(weekdays), "b": rising(weekdays, 50)}), freq="1D")
    assert events(changes) == []
    assert changes["total_change"].sum() == changes["stable_entities_change"].sum() == 58
    mondays = changes[(pd.DatetimeIndex(changes.index).day_of_week == 0) & changes["total_change"].notna()]
    assert set(mondays["spans_periods"]) == {3}
    check_the_parts_add_up(changes)


@pytest.mark.parametrize(
    ("calendar", "freq", "words"),
    [
        ("B", "1D", "on weekdays only"),
        ("C", "1D", "on Mon, Tue, Wed, Thu, Sun only"),
        ("W-FRI", "1D", "on Fri only"),
        ("ME", "1D", "about once a month"),
        ("BME", "1D", "about once a month"),
        ("MS", "1W", "about once a month"),
        ("QE", "1M", "about once a quarter"),
        ("6h", "1h", "only at some hours of the week"),
        ("2D", "1D", "about every 2D"),
    ],
)
def test_an_entity_with_its_own_calendar_has_no_gaps(cell: Cell, calendar: str, freq: str, words: str) -> None:
    every = pd.date_range("2024-01-01", "2024-12-31", freq={"1h": "h"}.get(freq, "D"), tz="UTC")
    chosen = pd.offsets.CustomBusinessDay(weekmask="Sun Mon Tue Wed Thu") if calendar == "C" else calendar
    own = pd.date_range("2024-01-01", "2024-12-31", freq=chosen, tz="UTC")
    own = own + pd.Timedelta(hours=9) if freq != "1h" else own
    rows = long({"always": rising(every), "own": rising(own, 35_000)})
    changes = derive_change_series(rows, "time", "venue", "held", freq=freq)
    assert events(changes) == []
    assert (changes["coverage_change"].dropna() == 0).all()
    assert changes["total_change"].sum() == changes["total_value"].iloc[-1] - changes["total_value"].iloc[0]
    assert changes.attrs["data_quality"]["assumed"] == [
        f"own reports {words}: between two reports its last value is counted"
    ]


def test_a_missed_report_of_a_calendar_is_a_gap(cell: Cell) -> None:
    every = pd.date_range("2024-01-01", periods=120, tz="UTC")
    weekdays = pd.bdate_range("2024-01-01", "2024-04-29", tz="UTC")
    fridays = pd.date_range("2024-01-05", "2024-04-29", freq="W-FRI", tz="UTC")
    rows = long({"always": rising(every), "b": rising(weekdays), "f": rising(fridays)})
    missed = (rows["venue"] == "b") & (rows["time"] == "2024-02-09") | (rows["venue"] == "f") & (
        rows["time"] == "2024-03-08"
    )
    changes = derive_change_series(rows[~missed], freq="1D")
    found = [
        (event["period"].strftime("%m-%d"), event["entity"], event["kind"])
        for event in changes.attrs["coverage_events"]
    ]
    # b misses a Friday, so it is missing until Monday
    assert found == [
        ("02-09", "b", "gap_start"),
        ("02-12", "b", "gap_end"),
        ("03-08", "f", "gap_start"),
        ("03-15", "f", "gap_end"),
    ]


def test_an_own_gap_stays_coverage(cell: Cell) -> None:
    every = pd.date_range("2024-01-01", periods=60, tz="UTC")
    gone = rising(every, 500).drop(every[20:34])
    changes = derive_change_series(long({"a": rising(every), "b": gone}), freq="1D")
    assert [event[1:] for event in events(changes)] == [("b", "gap_start", 519.0), ("b", "gap_end", 534.0)]
    assert changes.attrs["data_quality"]["assumed"] == []


@pytest.mark.parametrize("days_of_data", [2, 3, 40])
def test_different_times_of_day_are_not_coverage_changes(cell: Cell, days_of_data: int) -> None:
    morning = pd.date_range("2024-01-01 09:00", periods=days_of_data, tz="UTC")
    rows = long({"a": rising(morning, 100), "b": rising(morning + pd.Timedelta(hours=8), 145)})
    changes = derive_change_series(rows)
    assert len(changes) == days_of_data
    assert events(changes) == []
    assert changes["stable_entities_change"].dropna().tolist() == [2] * (days_of_data - 1)
    assert changes.attrs["data_quality"]["assumed"] == [
        "entities report at different times, each about once in D, so D is the period; pass freq= to choose another"
    ]


def test_times_that_vary_around_midnight_are_not_gaps(cell: Cell) -> None:
    minutes = np.where(np.arange(40) % 3 == 0, 2, -2)
    times = pd.date_range("2024-01-01", periods=40, tz="UTC") + pd.to_timedelta(minutes, unit="min")
    rows = long({"a": rising(times), "b": rising(pd.date_range("2024-01-01 12:00", periods=40, tz="UTC"))})
    changes = derive_change_series(rows, freq="1D")
    assert [event for event in events(changes) if event[1] == "a"] == []


def test_periods_finer_than_the_reports_are_named(cell: Cell) -> None:
    morning = pd.date_range("2024-01-01 09:00", periods=3, tz="UTC")
    rows = long({"a": rising(morning, 100), "b": rising(morning + pd.Timedelta(hours=8), 145)})
    quality = derive_change_series(rows, freq="1h").attrs["data_quality"]
    assert quality["warnings"] == [
        "entities enter or leave in 5 of 5 periods: the period h is finer than their reports, so pass a coarser freq="
    ]


def test_flows_of_weekdays_are_not_coverage(cell: Cell) -> None:
    every = pd.date_range("2024-01-01", periods=54, tz="UTC")
    weekdays = pd.bdate_range("2024-01-01", periods=40, tz="UTC")
    rows = long({"always": rising(every), "b": rising(weekdays, 7)})
    changes = derive_change_series(rows, freq="1D", kind="flow")
    assert events(changes) == []
    assert (changes["coverage_change"].dropna() == 0).all()
    assert changes["total_value"].sum() == rows["held"].sum()
    alone = derive_change_series(long({"b": rising(weekdays, 7)}), freq="1D", kind="flow")
    assert (alone["coverage_change"].dropna() == 0).all()
    assert alone["total_change"].sum() == rising(weekdays, 7).iloc[1:].sum()
    assert alone.attrs["data_quality"]["assumed"][0].startswith("no entity reported in 14 of 54 periods: ")


def test_columns_without_any_value_are_named(cell: Cell) -> None:
    quality = derive_change_series(wide(a=[1, 2], b=[None, None])).attrs["data_quality"]
    assert quality["warnings"] == ["b has no value and is never counted"]
