"""Puts the coverage events of derived series into the diagnostics of the cell, whether or not the cell returns them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sluice import _cell

#: Events of one cell. Of more events, those with the largest values are noted.
MAX_EVENTS = 100
#: Periods of all series of a cell; those with coverage count twice. Of a longer series, only the periods around its events are noted.
MAX_PERIODS = 2000
#: How many periods before and after an event are noted of a series that is too long.
AROUND_EVENT = 2
#: Of the name of an entity or a series.
MAX_NAME_CHARACTERS = 100


def note_coverage(changes: pd.DataFrame, kind: str, sign: int, name: str) -> None:
    """Note the events of `changes`, and the numbers that show what they did to its total. The same series is noted once.

    The host states the events in the answer, and finds uncorrected changes in drawings and in the answer.
    """
    report = _cell.current()
    events = changes.attrs["coverage_events"]
    index: Any = changes.index
    columns = changes[["total_change", "coverage_change"]].to_numpy()
    key = (name, hash(index.asi8.tobytes()), hash(columns.tobytes()))
    known = report.coverage_series
    if not events or key in known:
        return
    known.append(key)
    name = _clipped(name)
    series = name if len(known) == 1 else f"{name} (series {len(known)} of the cell)"
    left = MAX_EVENTS - len(report.noted("coverageEvents"))
    largest = sorted(range(len(events)), key=lambda at: -abs(events[at]["value"]))[:left]
    for event in (events[at] for at in sorted(largest)):
        report.note(
            "coverageEvents",
            {
                **event,
                "series": series,
                "period": event["period"].isoformat(),
                "entity": _clipped(str(event["entity"])),
            },
        )
    report.leave_out("coverageEvents", len(events) - len(largest))
    room = MAX_PERIODS - sum(len(one["at"]) + len(one["coverage"]) for one in report.noted("coverageSeries"))
    entry = _series_entry(changes, kind, sign, series, room)
    if entry["periods"] > len(entry["at"]):
        kept = {"series": series, "periods": entry["periods"], "noted": len(entry["at"])}
        report.note("coverageSeriesOmitted", kept)
    if entry["at"] and np.isfinite([entry["total"], entry["stable"], entry["first"], *entry["change"]]).all():
        report.note("coverageSeries", entry)


def _series_entry(changes: pd.DataFrame, kind: str, sign: int, series: str, room: int) -> dict[str, Any]:
    """The periods with a change, in milliseconds on the wall clock, their changes, and the places with coverage."""
    known = changes[changes["total_change"].notna().to_numpy()]
    coverage = known["coverage_change"].to_numpy()
    events = np.flatnonzero((known["entering_entity_count"] + known["exiting_entity_count"]).to_numpy() > 0)
    kept = np.arange(len(known))
    if len(known) + len(events) > room:
        around = (events[:, None] + np.arange(-AROUND_EVENT, AROUND_EVENT + 1)).ravel()
        kept = np.unique(around[(around >= 0) & (around < len(known))])
        kept = kept[: max(room, 0) // 2]
    index: Any = known.index
    moments = index.tz_localize(None).to_numpy().astype("datetime64[ms]").astype("int64")
    places = {int(place): number for number, place in enumerate(kept)}
    return {
        "series": series,
        "kind": kind,
        "periods": len(known),
        # of all periods
        "total": float(known["total_change"].sum()),
        "stable": float(known["stable_entities_change"].sum()),
        "first": sign * float(changes["total_value"].dropna().iloc[0]),
        # of the noted periods
        **({"places": kept.tolist()} if len(kept) < len(known) else {}),
        "at": moments[kept].tolist(),
        "change": [_short(value) for value in known["total_change"].to_numpy()[kept]],
        "coverage": [[places[place], _short(coverage[place])] for place in events.tolist() if place in places],
    }


def _clipped(name: str) -> str:
    return name if len(name) <= MAX_NAME_CHARACTERS else f"{name[: MAX_NAME_CHARACTERS - 1]}…"


def _short(value: float) -> float:
    return float(f"{value:.8g}")
