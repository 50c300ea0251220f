"""When entities report: the period that they share, and the calendar that each of them keeps.

An entity that keeps a calendar of its own (weekdays, month ends, once a week) is not missing between two of its reports.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sluice.buckets import CLOCK, DAY, Bucket
from sluice.cadence import gap_text

WEEK = 7 * DAY
MONTH = 30.436875 * DAY
#: Steps between reports count as the same if they differ by at most this share.
STEP_TOLERANCE = 0.25
#: An entity keeps a calendar only if at least this share of its steps, or of the due periods, fits it.
REGULAR_SHARE = 0.8
#: A weekly calendar is accepted only if missing periods would give the same pattern less often than this.
CHANCE = 0.01
DAY_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
PERIODS = (
    Bucket(1, "min"), Bucket(5, "min"), Bucket(10, "min"), Bucket(15, "min"), Bucket(30, "min"),
    Bucket(1, "h"), Bucket(2, "h"), Bucket(3, "h"), Bucket(4, "h"), Bucket(6, "h"), Bucket(8, "h"), Bucket(12, "h"),
    Bucket(1, "D"), Bucket(1, "W"), Bucket(1, "M"), Bucket(1, "Q"), Bucket(1, "Y"),
)  # fmt: skip


@dataclass(frozen=True)
class Grid:
    """The periods in which at least one entity reported, on the wall clock, in nanoseconds.

    `slots` is the position of each period in its week, or None when periods do not repeat within a week.
    """

    starts: Any
    ends: Any
    slots: Any
    slot_size: int

    @classmethod
    def create(cls, periods: pd.DatetimeIndex, every_period: pd.DatetimeIndex, bucket: Bucket | None, end: int) -> Grid:
        """The grid of `periods`, which are part of `every_period`. The last one ends with the last report, at `end` in UTC."""
        starts = wall_clock(periods)
        ends = starts + 1
        if bucket is not None:
            bounds = wall_clock(every_period)
            after = np.r_[bounds[1:], bounds[-1] + _size(bucket)]
            ends = after[np.searchsorted(every_period.asi8, periods.asi8)]
            ends[-1] = wall_clock(in_zone(np.array([end]), periods.tz))[0] + 1
        clock = CLOCK.get(bucket.unit, 0) * bucket.count if bucket is not None else 0
        size = clock if clock and DAY % clock == 0 else DAY
        repeats = bucket is None or size == clock or (bucket.unit == "D" and bucket.count == 1)
        slots = (starts + 3 * DAY) % WEEK // size if repeats else None  # day 0 of 1970 was a Thursday
        return cls(starts, ends, slots, size)


def in_zone(moments: Any, tz: Any) -> pd.DatetimeIndex:
    """Nanoseconds in UTC as times in a zone."""
    return pd.DatetimeIndex(moments.astype("datetime64[ns]")).tz_localize("UTC").tz_convert(tz)


def wall_clock(instants: pd.DatetimeIndex) -> Any:
    """The times on the wall clock of their zone, as nanoseconds."""
    return instants.tz_localize(None).asi8


def find_shared_period(entity: Any, moments: Any, tz: str) -> Bucket | None:
    """The period that entities share although they report at different times within it. None when there is none.

    `entity` and `moments` (nanoseconds in UTC) are parallel, one entry per report.
    """
    reports = np.unique(np.column_stack([entity, moments]), axis=0)
    times = np.unique(reports[:, 1])
    same_entity = np.diff(reports[:, 0]) == 0
    steps = np.diff(reports[:, 1])[same_entity]
    reporting = len(np.unique(reports[1:, 0][same_entity]))
    if reporting < 2:
        return None
    step = float(np.median(steps))
    whole = np.maximum(np.round(steps / step), 1)
    if np.mean(np.abs(steps - whole * step) <= STEP_TOLERANCE * step) < REGULAR_SHARE:
        return None
    if step > (1 + STEP_TOLERANCE) * DAY and len(steps) < 2 * reporting:
        return None  # two dates of each entity do not show a rhythm
    near = [one for one in PERIODS if abs(_size(one) - step) <= STEP_TOLERANCE * step]
    smaller = [one for one in PERIODS if _size(one) <= step]
    bucket = min(near, key=lambda one: abs(_size(one) - step)) if near else smaller[-1] if smaller else None
    if bucket is None:
        return None
    floored = bucket.floor(in_zone(reports[:, 1], "UTC"), tz).asi8
    cells = np.unique(np.column_stack([reports[:, 0], floored]), axis=0)
    merges_reports = len(reports) - len(cells) > 0.05 * len(reports)
    return None if merges_reports or len(np.unique(floored)) == len(times) else bucket


def find_carried(places: Any, first: Any, last: Any, grid: Grid) -> tuple[Any, str] | None:
    """The periods of the grid in which an entity did not report and was not due, and its calendar in words.

    `places` are the periods of its reports, `first` and `last` the times of its first and last report in each of them, on
    the wall clock. None when the entity keeps no calendar of its own, so that each period without a report is a gap.
    """
    reported = np.zeros(len(grid.starts), dtype=bool)
    reported[places] = True
    for find in (_weekly_calendar, _regular_steps):
        found = find(places, (first, last), reported, grid)
        if found is not None:
            return found if found[0].any() else None
    return None


def _weekly_calendar(places: Any, _times: Any, reported: Any, grid: Grid) -> tuple[Any, str] | None:
    """Reports in some periods of the week only: weekdays, trading hours, every Friday."""
    if grid.slots is None or len(places) < 3:
        return None
    first, last = int(places[0]), int(np.searchsorted(grid.starts, grid.starts[places[-1]] + WEEK))
    count = WEEK // grid.slot_size
    seen = np.bincount(grid.slots[first:last], minlength=count)
    closed = (np.bincount(grid.slots[places], minlength=count) == 0) & (seen >= 2)
    due, skipped = int(seen[~closed].sum()), int(seen[closed].sum())
    missed = due - len(places)
    if not closed.any() or missed > (1 - REGULAR_SHARE) * due:
        return None
    patterns = math.lgamma((seen > 0).sum() + 1) - math.lgamma(closed.sum() + 1)
    patterns -= math.lgamma((seen > 0).sum() - closed.sum() + 1)
    if skipped * math.log((missed + 1) / (due + 2)) + patterns > math.log(CHANCE):
        return None
    is_closed = closed[grid.slots] & ~reported
    position = np.arange(len(reported))
    last_report = np.maximum.accumulate(np.where(reported, position, -1))
    last_missed = np.maximum.accumulate(np.where(~reported & ~is_closed, position, -1))
    carried = is_closed & (last_report > last_missed)
    if is_closed[:first].all():
        carried[:first] = True
    return carried, _describe_week(closed, grid.slot_size)


def _describe_week(closed: Any, slot_size: int) -> str:
    if slot_size != DAY:
        return "only at some hours of the week"
    if not closed[:5].any() and closed[5:].all():
        return "on weekdays only"
    return f"on {', '.join(name for name, is_closed in zip(DAY_NAMES, closed, strict=True) if not is_closed)} only"


def _regular_steps(places: Any, times: tuple[Any, Any], reported: Any, grid: Grid) -> tuple[Any, str] | None:
    """Reports about every N periods: once a week, at the end of each month, every six hours.

    Two reports that are about one step apart have no gap between them. After a report that is followed by none in time,
    the entity is missing from the period in which the next one was due.
    """
    first, last = times
    steps = first[1:] - last[:-1]
    if len(steps) < 2:
        return None
    step = int(np.median(steps))
    spacing = float(np.median(np.diff(grid.starts)))
    enough = 2 if step >= 20 * spacing else 3 if step >= 2.5 * spacing else 5
    if step <= 0 or len(steps) < enough:
        return None
    if np.mean(np.abs(steps - step) <= STEP_TOLERANCE * step) < REGULAR_SHARE:
        return None
    in_time = np.r_[steps <= (1 + STEP_TOLERANCE) * step, False]
    until = np.where(in_time, np.iinfo("int64").max, last + step)  # integers, because floats lose nanoseconds
    latest = np.searchsorted(places, np.arange(len(reported)), side="right") - 1
    carried = ~reported & (latest >= 0) & (grid.ends <= until[latest])
    if first[0] - grid.starts[0] < step:
        carried[: places[0]] = True
    return carried, _describe_step(step)


def _describe_step(step: float) -> str:
    for size, words in (
        (MONTH, "about once a month"),
        (3 * MONTH, "about once a quarter"),
        (12 * MONTH, "about once a year"),
    ):
        if abs(step - size) <= 0.1 * size:
            return words
    return f"about every {gap_text(step)}"


def _size(bucket: Bucket) -> int:
    months = {"M": 1, "Q": 3, "Y": 12}.get(bucket.unit)
    if months:
        return int(bucket.count * months * MONTH)
    return bucket.count * (CLOCK.get(bucket.unit) or {"D": DAY, "W": WEEK}[bucket.unit])
