"""The coverage of plotted time series: which share of the expected points a line has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from sluice.buckets import CLOCK, DAY, read_bucket
from sluice.cadence import Cadence, find_cadence, gap_text
from sluice.errors import FigureError
from sluice.figures.reading import Reading

#: A line with a smaller share of its expected points is reported.
MIN_COVERAGE = 0.6

CadenceArgument = Mapping[str, Any] | str | None


def low_coverage(readings: list[Reading], cadence: CadenceArgument) -> list[dict[str, Any]]:
    """The lines whose coverage is too low.

    The expected points are those of the line's own cadence over the time span that the figure shows. Markers without a
    line and lines without a cadence are not checked. A line that never has points at night or on weekends is not
    expected to have any then.
    """
    _refuse_unknown_labels(readings, cadence)
    found = []
    for number, reading in enumerate(readings):
        lines = [(line, series) for line, series in reading.lines if series["type"] in ("line", "step")]
        if reading.x.kind != "time" or not lines:
            continue
        span = _span(reading)
        for position, (line, series) in enumerate(lines):
            label = series.get("label", f"line {position + 1}")
            measured = _measure(reading, line, span, *_chosen_cadence(cadence, label))
            if measured is not None and measured["coverage"] < MIN_COVERAGE:
                found.append({"axes": number, "label": label, **measured})
    return found


def _measure(
    reading: Reading, line: Any, span: tuple[int, int] | None, fixed: Cadence | None, skip: bool
) -> dict[str, Any] | None:
    stamps = reading.x.instants(line.get_xdata(orig=False), line.get_xdata(orig=True))
    if stamps is None or skip:
        return None
    moments = stamps.asi8
    has_value = (
        np.isfinite(np.ma.filled(np.ma.asarray(line.get_ydata(orig=False), dtype=float), np.nan)) & ~stamps.isna()
    )
    drawn = np.unique(moments[~stamps.isna()])
    start, end = span if span is not None else (int(drawn[0]), int(drawn[-1])) if len(drawn) else (0, 0)
    shown = drawn[(drawn >= start) & (drawn <= end)]
    cadence = fixed or find_cadence(shown)
    if cadence is None or not len(shown):
        return None
    points = np.unique(moments[has_value])
    points = points[(points >= start) & (points <= end)]
    expected = _expected(cadence, shown, start, end)
    # Several points in one step of a given cadence count once.
    counted = len(points) if fixed is None or fixed.months else len(np.unique(points // fixed.step))
    gap_start, gap_end = _largest_gap(points, start, end)
    return {
        "observed": len(points),
        "expected": expected,
        "coverage": min(counted / expected, 1.0) if expected else 1.0,
        "largestGap": gap_text(gap_end - gap_start),
        "cadence": cadence.text,
        "gapStart": _iso(gap_start, stamps),
        "gapEnd": _iso(gap_end, stamps),
    }


def _expected(cadence: Cadence, shown: Any, start: int, end: int) -> int:
    if cadence.months or cadence.weekdays_only or cadence.step >= DAY or end - start < 3 * DAY:
        return cadence.expected(start, end, int(shown[0]))
    return _expected_in_active_hours(cadence, shown, start, end)


def _expected_in_active_hours(cadence: Cadence, shown: Any, start: int, end: int) -> int:
    """Expect only the times of day that the line uses on most days, and no weekends if it has none."""
    slots_a_day = max(round(DAY / cadence.step), 1)
    days = shown // DAY
    slots = np.minimum((shown % DAY) * slots_a_day // DAY, slots_a_day - 1)
    used_days = len(np.unique(days))
    per_slot = np.bincount(np.unique(days * slots_a_day + slots) % slots_a_day, minlength=slots_a_day)
    active = int((per_slot >= 0.5 * used_days).sum())
    if active >= 0.9 * slots_a_day or not active or used_days < 3:
        return cadence.expected(start, end, int(shown[0]))
    skips_weekends = bool(np.all((days + 3) % 7 < 5)) and used_days >= 4
    first, last = (np.array([start, end]) // DAY).astype("datetime64[D]")
    all_days = int(np.busday_count(first, last + 1)) if skips_weekends else int((last - first).astype("int64")) + 1
    return active * all_days


def _span(reading: Reading) -> tuple[int, int] | None:
    """The time span that the figure shows: the limits if they were set, otherwise from the first to the last value."""
    axes = reading.axes
    low, high = sorted(axes.get_xlim())
    siblings = axes.get_shared_x_axes().get_siblings(axes)
    if all(sibling.get_autoscalex_on() for sibling in siblings):
        limits = [sibling.dataLim.intervalx for sibling in siblings if np.all(np.isfinite(sibling.dataLim.intervalx))]
        if limits:
            low, high = min(pair[0] for pair in limits), max(pair[1] for pair in limits)
    stamps = reading.x.instants(np.array([low, high]))
    return None if stamps is None or stamps.isna().any() else (int(stamps.asi8[0]), int(stamps.asi8[1]))


def _largest_gap(points: Any, start: int, end: int) -> tuple[int, int]:
    bounds = np.concatenate([[start], points, [end]])
    widest = int(np.argmax(np.diff(bounds)))
    return int(bounds[widest]), int(bounds[widest + 1])


def _chosen_cadence(cadence: CadenceArgument, label: str) -> tuple[Cadence | None, bool]:
    """The cadence that the caller set, and whether to skip the check."""
    chosen = cadence.get(label, "") if isinstance(cadence, Mapping) else cadence or ""
    if chosen is None:
        return None, True
    if chosen == "":
        return None, False
    bucket = read_bucket(chosen)
    assert bucket is not None
    months = {"M": 1, "Q": 3, "Y": 12}.get(bucket.unit, 0) * bucket.count
    if months:
        return Cadence(int(months * 30.436875 * DAY), months), False
    size = CLOCK.get(bucket.unit) or {"D": DAY, "W": 7 * DAY}[bucket.unit]
    return Cadence(bucket.count * size), False


def _refuse_unknown_labels(readings: list[Reading], cadence: CadenceArgument) -> None:
    if not isinstance(cadence, Mapping):
        return
    labels = {
        series.get("label", f"line {position + 1}")
        for reading in readings
        for position, (_, series) in enumerate(reading.lines)
    }
    unknown = [label for label in cadence if label not in labels]
    if unknown:
        raise FigureError(
            f"cadence names {', '.join(map(repr, unknown))}, but the lines are "
            f"{', '.join(map(repr, sorted(labels))) or 'none'}"
        )


def _iso(nanoseconds: int, stamps: pd.DatetimeIndex) -> str:
    stamp = pd.Timestamp(nanoseconds, tz="UTC")
    return (stamp.tz_localize(None) if stamps.tz is None else stamp.tz_convert(stamps.tz)).isoformat()
