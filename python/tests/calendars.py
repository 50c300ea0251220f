"""Calendars and rhythms for the tests of coverage, and series drawn on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sluice.coverage import PlottedSeries

CALENDARS = {"daily": "D", "weekday": "B", "hourly": "h", "weekly": "W-SUN", "monthly": "MS"}


def calendar(name: str, periods: int) -> pd.DatetimeIndex:
    return pd.date_range("2024-01-01", periods=periods, freq=CALENDARS[name])


def drawn(label: str, index: Any, has_value: Any = True, *, markers: bool = False) -> PlottedSeries:
    places = pd.DatetimeIndex(index).as_unit("us").asi8 / 1000
    return PlottedSeries(label, places, np.broadcast_to(has_value, len(places)).copy(), markers)


def random_subset(places: int, count: int, seed: int) -> Any:
    return np.sort(np.random.default_rng(seed).choice(places, count, replace=False))


def every(step: int) -> Any:
    return lambda index: np.arange(len(index)) % step == step - 1


#: Regular points of each calendar.
RHYTHMS: dict[str, dict[str, Any]] = {
    "daily": {
        "every 2nd day": every(2),
        "every 7th day": every(7),
        "every 10th day": every(10),
        "Mondays": lambda index: index.day_of_week == 0,
        "weekdays": lambda index: index.day_of_week < 5,
        "every 2nd weekday": lambda index: np.isin(index, index[index.day_of_week < 5][::2]),
        "month starts": lambda index: index.is_month_start,
        "month ends": lambda index: index.is_month_end,
        "the 15th": lambda index: index.day == 15,
        "quarter ends": lambda index: index.is_quarter_end,
        "quarters that end in January": lambda index: index.is_month_end & (index.month % 3 == 1),
        "third Fridays": lambda index: (index.day_of_week == 4) & (index.day > 14) & (index.day < 22),
    },
    "weekday": {
        "Fridays": lambda index: index.day_of_week == 4,
        "every 2nd weekday": every(2),
        "last weekdays of the month": lambda index: np.append(index.month[1:] != index.month[:-1], True),
        "first weekdays of the quarter": lambda index: np.append(False, index.quarter[1:] != index.quarter[:-1]),
    },
    "hourly": {
        "midnights": lambda index: index.hour == 0,
        "every day at 16": lambda index: index.hour == 16,
        "every 3rd hour": every(3),
        "market hours": lambda index: (index.day_of_week < 5) & (index.hour >= 9) & (index.hour < 16),
        "midnights of New York": lambda index: index.tz_localize("UTC").tz_convert("America/New_York").hour == 0,
        "midnights of London": lambda index: index.tz_localize("UTC").tz_convert("Europe/London").hour == 0,
    },
    "weekly": {
        "every 2nd week": every(2),
        "every 4th week": every(4),
        "the first of each month": lambda index: index.day <= 7,
    },
    "monthly": {
        "quarters": every(3),
        "years": every(12),
        "half years": every(6),
        "years that start in June": lambda index: index.month == 6,
    },
}
#: A whole year, or enough of a calendar for ten years of its rhythms.
SPANS = {"daily": 366, "weekday": 262, "hourly": 24 * 366, "weekly": 157, "monthly": 120}
