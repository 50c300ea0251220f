"""The cadence of a time series: the usual step between its points, if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sluice.buckets import CLOCK, DAY

SIZES = {"D": DAY, **CLOCK}
#: A series has a cadence if at least this share of its steps are whole multiples of it.
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
        for unit in ("D", "h", "min", "s", "ms", "us"):
            if self.step % SIZES[unit] == 0:
                return f"{self.step // SIZES[unit]}{unit}"
        return f"{self.step / SIZES['s']:.6g}s"

    def expected(self, start: int, end: int, anchor: int | None = None) -> int:
        """How many points a complete series has from `start` to `end` (nanoseconds, inclusive), one of them at `anchor`."""
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
    """The cadence of sorted, distinct instants (nanoseconds), or None when there is none.

    The cadence is the most common step. Gaps are whole multiples of it, so a series with gaps still has its cadence.
    Event data, whose steps are not multiples of one size, has none.
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
    """A duration as short text: ``36h``, ``12D``."""
    for unit in ("D", "h", "min"):
        size = SIZES[unit]
        if nanoseconds >= 2 * size or (unit == "D" and nanoseconds >= size and nanoseconds % size == 0):
            return f"{nanoseconds / size:.4g}{unit}"
    return f"{nanoseconds / SIZES['s']:.4g}s"


def _common_step(steps: Any) -> int:
    """The most common step. Steps that differ by less than the tolerance count as the same."""
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
    single = np.abs(steps - step) <= TOLERANCE * step
    repeats = single.sum() >= 2  # a step that occurs once is not a cadence
    return bool(repeats and near.mean() >= REGULAR_SHARE and single.mean() >= 0.3)


def _month_cadence(instants: Any, steps: Any) -> int:
    """1 for monthly, 3 for quarterly, 12 for yearly and so on; 0 when the points do not keep to a day of the month."""
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
    """Instants as a number of months; the fraction is the position within the month."""
    days = np.asarray(instants) // DAY
    dates = days.astype("datetime64[D]")
    month = dates.astype("datetime64[M]")
    start = month.astype("datetime64[D]").astype("int64")
    length = (month + 1).astype("datetime64[D]").astype("int64") - start
    position = (days - start) / (length - 1)  # 0 on the first day, 1 on the last: month ends meet the next month starts
    return month.astype("int64") + position


def _keeps_weekdays(instants: Any) -> bool:
    weekday = (np.asarray(instants) // DAY + 3) % 7
    long_enough = instants[-1] - instants[0] >= 7 * DAY
    return bool(long_enough and np.all(weekday < 5))
