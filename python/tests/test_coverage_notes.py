"""Coverage events reach the diagnostics of a cell without its help."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Cell
from hypothesis import given
from hypothesis import strategies as st

from sluice import derive_change_series, set_result
from sluice.coverage_notes import MAX_EVENTS, MAX_PERIODS


def panel(days: int = 4, **entities: list[float | None]) -> pd.DataFrame:
    frame = pd.DataFrame(entities, dtype=float)
    return frame.assign(day=pd.date_range("2024-01-01", periods=len(frame)))


HARBOUR = panel(meridian=[100, 96, 97, 98], harbour=[None, 35_000, 35_001, 35_002])


def test_events_are_noted_although_the_cell_returns_something_else(cell: Cell) -> None:
    set_result(derive_change_series(HARBOUR, freq="1D")["total_change"].sum())
    assert cell.diagnostics["coverageEvents"] == [
        {
            "period": "2024-01-02T00:00:00+00:00",
            "entity": "harbour",
            "kind": "first_listed",
            "value": 35_000.0,
            "series": "the total of meridian, harbour",
        }
    ]
    day = 86_400_000
    assert cell.diagnostics["coverageSeries"] == [
        {
            "series": "the total of meridian, harbour",
            "kind": "level",
            "periods": 3,
            "total": 35_000.0,
            "stable": 0.0,
            "first": 100.0,
            "at": [1704067200000 + day, 1704067200000 + 2 * day, 1704067200000 + 3 * day],
            "change": [34_996.0, 2.0, 2.0],
            "coverage": [[0, 35_000.0]],
        }
    ]


def test_a_series_without_events_is_not_noted(cell: Cell) -> None:
    derive_change_series(panel(a=[1, 2, 3], b=[4, 5, 6]))
    assert set(cell.diagnostics) == {"dataQuality"}


def test_the_same_series_is_noted_once_and_another_one_gets_a_number(cell: Cell) -> None:
    changes = derive_change_series(HARBOUR, freq="1D")
    changes["total_change"] *= 2  # what the cell does with its frame does not matter
    derive_change_series(HARBOUR, freq="1D")
    assert len(cell.diagnostics["coverageEvents"]) == 1
    derive_change_series(HARBOUR[1:].assign(harbour=[np.nan, 1.0, 2.0]), freq="1D")
    names = ["the total of meridian, harbour", "the total of meridian, harbour (series 2 of the cell)"]
    assert [event["series"] for event in cell.diagnostics["coverageEvents"]] == names
    assert [one["series"] for one in cell.diagnostics["coverageSeries"]] == names


def test_the_largest_events_are_noted_and_the_others_counted(cell: Cell) -> None:
    rows = [
        {"day": day, "venue": f"v{number}", "btc": float(number + 1)}
        for number in range(400)
        for day in pd.date_range("2024-01-01", periods=3 if number else 6)
    ]
    derive_change_series(rows, entity_col="venue", value_col="btc", freq="1D")
    events = cell.diagnostics["coverageEvents"]
    assert [event["value"] for event in events] == [float(value) for value in range(401 - MAX_EVENTS, 401)]
    assert events[0]["series"] == "btc by venue"
    assert cell.diagnostics["omittedDiagnostics"] == {"coverageEvents": 399 - MAX_EVENTS}


def test_of_a_long_series_the_periods_around_events_are_noted(cell: Cell) -> None:
    size = MAX_PERIODS + 10
    values: dict[str, Any] = {"a": np.arange(size, dtype=float), "b": [None] * 600 + [7.0] * (size - 600)}
    changes = derive_change_series(panel(**values), freq="1D")
    (entry,) = cell.diagnostics["coverageSeries"]
    assert (entry["periods"], entry["total"]) == (size - 1, changes["total_change"].sum())
    assert entry["places"] == [597, 598, 599, 600, 601]
    assert (entry["change"], entry["coverage"]) == ([1.0, 1.0, 8.0, 1.0, 1.0], [[2, 7.0]])
    omitted = {"series": "the total of a, b", "periods": size - 1, "noted": 5}
    assert cell.diagnostics["coverageSeriesOmitted"] == [omitted]
    derive_change_series(panel(**{**values, "a": np.arange(size) * 2.0}), freq="1D")
    assert len(cell.diagnostics["coverageSeries"][1]["at"]) == 5


@given(
    values=st.lists(st.lists(st.none() | st.floats(0, 1e6), min_size=3, max_size=3), min_size=2, max_size=12),
    kind=st.sampled_from(["level", "flow"]),
    sign=st.sampled_from([1, -1]),
)
def test_the_noted_series_has_the_changes_and_the_coverage(
    values: list[list[float | None]], kind: str, sign: int
) -> None:
    frame = pd.DataFrame(values, columns=["a", "b", "c"], dtype=float)
    if frame.isna().all(axis=None):
        return
    one = Cell()
    changes = derive_change_series(
        frame.assign(day=pd.date_range("2024-01-01", periods=len(frame))), freq="1D", kind=kind, sign=sign
    )
    known = changes.dropna(subset="total_change")
    for entry in one.diagnostics.get("coverageSeries", []):
        assert entry["change"] == pytest.approx(known["total_change"].tolist(), rel=1e-7)
        coverage = np.zeros(len(known))
        for place, value in entry["coverage"]:
            coverage[place] = value
        assert coverage.tolist() == pytest.approx(known["coverage_change"].tolist(), rel=1e-7)
        assert (entry["total"], entry["stable"]) == pytest.approx(
            (known["total_change"].sum(), known["stable_entities_change"].sum()), abs=1e-3
        )
        if kind == "level":
            last = changes["total_value"].dropna().iloc[-1]
            assert entry["first"] + entry["total"] == pytest.approx(sign * last, abs=1e-3)
    assert len(one.diagnostics.get("coverageEvents", [])) == len(changes.attrs["coverage_events"])


def test_the_notes_fit_next_to_others(cell: Cell) -> None:
    generator = np.random.default_rng(1)
    values = {f"a venue with a long name {number}": generator.random(3000) for number in range(20)}
    for one in values.values():
        one[generator.random(3000) < 0.02] = np.nan
    derive_change_series(panel(**{name: one.tolist() for name, one in values.items()}), freq="1D")
    assert len(json.dumps(cell.diagnostics)) < 90_000
    assert len(cell.diagnostics["coverageSeries"][0]["at"]) == MAX_PERIODS // 2
