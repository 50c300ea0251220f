"""The cadence of a time series: how far apart its points usually are, or that they keep no rhythm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

SECOND = 10**9
DAY = 24 * 3600 * SECOND
#: Points that keep a rhythm: this share of the steps must be one or a few whole multiples of the cadence.
REGULAR_SHARE = 0.8
TOLERANCE = 0.1


@dataclass(frozen=True)
class Cadence:
    """A step between points: whole months, or a fixed number of nanoseconds."""

    step: int
    months: int = 0
    weekdays_only: bool = False

    @property
    def text(self) -> str:
        """As pandas would write it, for example ``1D``, ``5min``, ``1M``."""
        if self.months:
            return f"{self.months // 12}Y" if self.months % 12 == 0 else f"{self.months}M"
        if self.weekdays_only:
            return "1B"
        for unit, size in (
            ("D", DAY),
            ("h", 3600 * SECOND),
            ("min", 60 * SECOND),
            ("s", SECOND),
            ("ms", 10**6),
            ("us", 1000),
        ):
            if self.step % size == 0:
                return f"{self.step // size}{unit}"
        return f"{self.step / SECOND:.6g}s"

    def expected(self, start: int, end: int, anchor: int | None = None) -> int:
        """How many points there would be from `start` to `end` (nanoseconds, included), one of them at `anchor`."""
        at = start if anchor is None else anchor
        if self.weekdays_only:
            first, last = (np.array([start, end]) // DAY).astype("datetime64[D]")
            return int(np.busday_count(first, last + 1))
        places = (
            _months(np.array([start, at, end])) / self.months
            if self.months
            else np.array([start, at, end], dtype=float) / self.step
        )
        slack = 0.15 / self.months if self.months else 0.5 * TOLERANCE
        return max(int(np.floor(places[1] - places[0] + slack) + np.floor(places[2] - places[1] + slack)) + 1, 0)


def find_cadence(instants: Any) -> Cadence | None:
    """The cadence of sorted, distinct instants (nanoseconds), or None when they keep none.

    The cadence is the most common step. Holes are whole multiples of it, so a series with holes keeps its cadence;
    event data, whose steps are no multiples of anything, has none.
    """
    if len(instants) < 3:
        return None
    steps = np.diff(instants)
    months = _month_cadence(instants, steps)
    if months:
        return Cadence(int(months * 30.436875 * DAY), months)
    step = _common_step(steps)
    if step <= 0 or not _is_regular(steps, step):
        return None
    return Cadence(step, 0, step == DAY and _keeps_weekdays(instants))


def gap_text(nanoseconds: float) -> str:
    """A length of time for a reader: ``36h``, ``12D``."""
    for unit, size in (("D", DAY), ("h", 3600 * SECOND), ("min", 60 * SECOND)):
        if nanoseconds >= 2 * size or (unit == "D" and nanoseconds >= size and nanoseconds % size == 0):
            return f"{nanoseconds / size:.4g}{unit}"
    return f"{nanoseconds / SECOND:.4g}s"


def _common_step(steps: Any) -> int:
    """The smallest step that is common: jitter within the tolerance counts as the same step."""
    order = np.sort(steps)
    counts = np.searchsorted(order, order * (1 + TOLERANCE), side="right") - np.searchsorted(
        order, order * (1 - TOLERANCE), side="left"
    )
    best = order[int(np.argmax(counts))]
    near = order[(order >= best * (1 - TOLERANCE)) & (order <= best * (1 + TOLERANCE))]
    return int(np.median(near))


def _is_regular(steps: Any, step: int) -> bool:
    multiples = np.maximum(np.round(steps / step), 1)
    near = np.abs(steps - multiples * step) <= TOLERANCE * step * np.sqrt(multiples)
    most = np.abs(steps - step) <= TOLERANCE * step
    heard_twice = most.sum() >= 2  # one step alone is no rhythm
    return bool(heard_twice and near.mean() >= REGULAR_SHARE and most.mean() >= 0.3)


def _month_cadence(instants: Any, steps: Any) -> int:
    """1 for monthly, 3 for quarterly, 12 for yearly and so on; 0 when no day of the month is kept."""
    if np.median(steps) < 27 * DAY:
        return 0
    moves = np.diff(_months(instants))
    whole = np.round(moves)
    if not np.all(np.abs(moves - whole) <= 0.12) or whole.min() < 1:
        return 0
    values, counts = np.unique(whole.astype(int), return_counts=True)
    common = int(values[np.argmax(counts)])
    return common if np.mean(np.mod(whole, common) == 0) >= REGULAR_SHARE else 0


def _months(instants: Any) -> Any:
    """Instants as a number of months; the fraction is the place in the month."""
    days = np.asarray(instants) // DAY
    dates = days.astype("datetime64[D]")
    month = dates.astype("datetime64[M]")
    start = month.astype("datetime64[D]").astype("int64")
    length = (month + 1).astype("datetime64[D]").astype("int64") - start
    place = (days - start) / (length - 1)
    return month.astype("int64") + place  # so that the last day of a month is next to the first of the following one


def _keeps_weekdays(instants: Any) -> bool:
    weekday = (np.asarray(instants) // DAY + 3) % 7
    long_enough = instants[-1] - instants[0] >= 7 * DAY
    return bool(long_enough and np.all(weekday < 5))
