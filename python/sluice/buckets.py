"""Time buckets: what `freq` means, and which bucket an instant falls into."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sluice.errors import TimeError
from sluice.wall_clock import localize

WORDS = {
    "second": "s", "minute": "min", "hour": "h", "hourly": "h", "day": "D", "daily": "D", "week": "W", "weekly": "W",
    "month": "M", "monthly": "M", "quarter": "Q", "quarterly": "Q", "year": "Y", "yearly": "Y", "annual": "Y",
    "H": "h", "T": "min", "S": "s", "d": "D", "m": "min", "w": "W",
    "ME": "M", "MS": "M", "QE": "Q", "QS": "Q", "YE": "Y", "YS": "Y", "A": "Y", "BMS": "M", "BME": "M",
}  # fmt: skip
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
#: Nanoseconds of each clock unit, the largest first.
CLOCK = {"h": 3600 * 10**9, "min": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
HOUR = CLOCK["h"]
DAY = 24 * HOUR
MISSING = np.iinfo("int64").min


@dataclass(frozen=True)
class Bucket:
    """A bucket size: `count` times `unit`, where the unit is a clock unit, ``D``, ``W``, ``M``, ``Q`` or ``Y``.

    Clock sizes that divide an hour, or are whole hours, count from midnight of 1970 on the zone's wall clock.
    Weeks start on `weekday` (0 is Monday).
    """

    count: int
    unit: str
    weekday: int = 0

    @property
    def text(self) -> str:
        """The size as it is written in reports."""
        day = f"-{WEEKDAYS[self.weekday]}" if self.unit == "W" and self.weekday else ""
        return f"{self.count if self.count > 1 else ''}{self.unit}{day}"

    def floor(self, instants: pd.DatetimeIndex, tz: str) -> pd.DatetimeIndex:
        """The start of the bucket of each instant, in `tz`."""
        if self.unit in CLOCK:
            return self._floor_clock(instants, tz)
        days = instants.tz_convert(tz).tz_localize(None).to_numpy().astype("datetime64[D]").astype("int64")
        return _midnights(self._floor_days(days), tz)

    def between(self, start: pd.Timestamp, end: pd.Timestamp, tz: str) -> pd.DatetimeIndex:
        """Every bucket from the one that starts at `start` to the one that starts at `end`, including empty ones."""
        if self.unit in CLOCK:
            step = self.count * CLOCK[self.unit]
            if (end.value - start.value) // step > 20_000_000:
                raise TimeError(
                    f"freq={self.text!r} gives more than 20 million buckets from {start} to {end}; use a coarser freq"
                )
            half = max(step // 2, 1) if tz != "UTC" else step  # when clocks change, buckets are shorter or longer
            every = self.floor(_as_instants(np.arange(start.value, end.value + 1, half), "UTC"), tz)
            return _as_instants(np.unique(np.r_[every.asi8, start.value, end.value]), tz)
        first, last = (
            int(stamp.tz_localize(None).to_datetime64().astype("datetime64[D]").astype("int64"))
            for stamp in (start, end)
        )
        return _midnights(np.unique(self._floor_days(np.arange(first, last + 1))), tz)

    def _floor_clock(self, instants: pd.DatetimeIndex, tz: str) -> pd.DatetimeIndex:
        """Floor on the wall clock, but keep instants apart: the repeated hour in autumn stays two hours.

        A size like 45min or 100min does not fit into hours, so it is counted in UTC.
        """
        exact = instants.as_unit("ns")
        size = self.count * CLOCK[self.unit]
        use_wall_clock = tz != "UTC" and (HOUR % size == 0 or size % HOUR == 0)
        wall = exact.tz_convert(tz).tz_localize(None).asi8 if use_wall_clock else exact.asi8
        missing = exact.isna()
        starts = _as_instants(np.where(missing, MISSING, exact.asi8 - np.mod(wall, size)), tz)
        if not use_wall_clock or size % HOUR:
            return starts
        return _with_clock_changes(starts, np.where(missing, MISSING, wall - np.mod(wall, size)), tz)

    def _floor_days(self, days: Any) -> Any:
        missing = days == MISSING
        return np.where(missing, MISSING, self._floor_present_days(np.where(missing, 0, days)))

    def _floor_present_days(self, days: Any) -> Any:
        if self.unit == "D":
            return days - np.mod(days, self.count)
        if self.unit == "W":  # day 4 of 1970 was a Monday
            return days - np.mod(days - 4 - self.weekday, 7 * self.count)
        months = days.astype("datetime64[D]").astype("datetime64[M]").astype("int64")
        size = self.count * {"M": 1, "Q": 3, "Y": 12}[self.unit]
        return (months - np.mod(months, size)).astype("datetime64[M]").astype("datetime64[D]").astype("int64")


def read_bucket(freq: object) -> Bucket | None:
    """Parse `freq`. None stays None.

    Raises
    ------
    TimeError
        For anything that is not a bucket size.
    """
    if freq is None or isinstance(freq, Bucket):
        return freq
    if isinstance(freq, dt.timedelta | np.timedelta64):
        return _exact_bucket(pd.Timedelta(freq).value, freq)
    text = getattr(freq, "freqstr", freq)
    match = re.fullmatch(r"\s*(\d*)\s*([A-Za-z]+)(?:-([A-Za-z]{3}))?\s*", str(text))
    if not match:
        raise _unknown(freq)
    unit = WORDS.get(match[2], match[2])
    if unit not in CLOCK and unit not in ("D", "W", "M", "Q", "Y"):
        unit = WORDS.get(unit.lower(), unit.lower())
    if (unit not in CLOCK and unit not in ("D", "W", "M", "Q", "Y")) or match[1] == "0":
        raise _unknown(freq)
    anchor = (match[3] or "MON").upper()
    return Bucket(int(match[1] or 1), unit, WEEKDAYS.index(anchor) if unit == "W" and anchor in WEEKDAYS else 0)


def _exact_bucket(nanoseconds: int, freq: object) -> Bucket:
    if nanoseconds > 0 and nanoseconds % DAY == 0:
        return Bucket(nanoseconds // DAY, "D")
    for unit, size in CLOCK.items():
        if nanoseconds > 0 and nanoseconds % size == 0:
            return Bucket(nanoseconds // size, unit)
    raise _unknown(freq)


def _unknown(freq: object) -> TimeError:
    return TimeError(
        f"freq={freq!r} is not a bucket size; use a count and a unit, like '5min', '1h', '1D', '1W' (weeks from Monday), "
        "'W-SUN' (weeks from Sunday), '1M', '1Q' or '1Y'"
    )


def _as_instants(nanoseconds: Any, tz: str) -> pd.DatetimeIndex:
    return pd.DatetimeIndex(nanoseconds.astype("datetime64[ns]")).tz_localize("UTC").tz_convert(tz)


def _with_clock_changes(starts: pd.DatetimeIndex, walls: Any, tz: str) -> pd.DatetimeIndex:
    """Correct `starts`, which were computed as if clocks never changed. Where a clock changed within the bucket, use `walls`."""
    changed = starts.tz_localize(None).asi8 != walls
    if not changed.any():
        return starts
    instants = starts.asi8.copy()
    instants[changed] = localize(pd.DatetimeIndex(walls[changed].astype("datetime64[ns]")), tz).asi8
    return _as_instants(instants, tz)


def _midnights(days: Any, tz: str) -> pd.DatetimeIndex:
    return localize(pd.DatetimeIndex(days.astype("datetime64[D]").astype("datetime64[ns]")), tz)
