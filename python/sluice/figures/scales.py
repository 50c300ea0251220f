"""What the positions on an axis stand for: numbers, times, or categories."""

from __future__ import annotations

import datetime as dt
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

MICROSECONDS_A_DAY = 86_400_000_000


@dataclass(frozen=True)
class Scale:
    """How to read one axis.

    Attributes
    ----------
    kind : {"linear", "log", "time", "category"}
        What the axis shows.
    categories : dict
        Text by position, for categories.
    loose : bool
        Whether the categories are tick labels that were set by hand. Then bars next to a tick belong to it.
    """

    kind: str
    categories: dict[float, str]
    loose: bool = False
    zone: Any = None
    period_freq: Any = None

    def values(self, numbers: Any, plain: Any = None) -> list[Any]:
        """JSON values for positions on this axis. `plain` is what was plotted, before its conversion to numbers."""
        positions = as_floats(numbers)
        if self.kind == "time":
            return self._times(positions, plain)
        if self.categories:
            return self._categories(positions)
        return [_number(value) for value in positions.tolist()]

    def instants(self, numbers: Any, plain: Any = None) -> Any:
        """Timestamps for positions on a time axis, or None when they are not times."""
        stamps = self._stamps(as_floats(numbers), plain)
        return None if stamps is None else stamps.as_unit("ns")

    def _times(self, positions: Any, plain: Any) -> list[Any]:
        stamps = self._stamps(positions, plain)
        if stamps is None:
            return [_number(value) for value in positions.tolist()]
        return [None if pd.isna(stamp) else stamp.isoformat() for stamp in stamps]

    def _stamps(self, positions: Any, plain: Any) -> pd.DatetimeIndex | None:
        exact = _plain_times(plain, len(positions))
        if exact is not None:
            return exact
        if self.period_freq is not None:
            return self._from_ordinals(positions)
        return self._from_day_numbers(positions)

    def _from_ordinals(self, positions: Any) -> pd.DatetimeIndex:
        """Pandas draws periods at their ordinal."""
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", FutureWarning
            )  # pandas itself draws business days this way, and warns about it
            starts = [
                pd.Period(ordinal=round(position), freq=self.period_freq).start_time
                if np.isfinite(position)
                else pd.NaT
                for position in positions
            ]
        return pd.DatetimeIndex(starts)

    def _from_day_numbers(self, positions: Any) -> pd.DatetimeIndex | None:
        """Matplotlib draws dates at their number of days since its epoch, which a double holds to the microsecond."""
        from matplotlib import dates

        epoch: Any = dates.get_epoch()  # type: ignore[no-untyped-call]
        present = np.isfinite(positions)
        if np.abs(positions[present]).max(initial=0) > 1e8:
            return None
        micros = np.round(np.where(present, positions, 0) * MICROSECONDS_A_DAY).astype("int64")
        near = np.round(micros / 1000).astype("int64") * 1000
        # Sums of day numbers are off by a microsecond or two.
        micros = np.where(np.abs(micros - near) <= 2, near, micros)
        stamps = np.datetime64(epoch, "us") + micros.astype("timedelta64[us]")
        index = pd.DatetimeIndex(np.where(present, stamps, np.datetime64("NaT", "us")))
        return index if self.zone is None else index.tz_localize("UTC").tz_convert(self.zone)

    def _categories(self, positions: Any) -> list[Any]:
        """The category of each position. Numbers if some position has no category or two share one."""
        ticks = np.array(sorted(self.categories))
        above = np.clip(np.searchsorted(ticks, positions), 1, max(len(ticks) - 1, 1))
        below = ticks[above - 1]
        above = ticks[np.minimum(above, len(ticks) - 1)]
        nearest = np.where(np.abs(positions - below) <= np.abs(above - positions), below, above)
        reach = 0.5 * (np.diff(ticks).min() if len(ticks) > 1 else 1.0) if self.loose else 1e-6
        fits = np.abs(positions - nearest) < reach
        if not fits.all() or len(np.unique(nearest)) < len(np.unique(positions)):
            return [_number(value) for value in positions.tolist()]
        return [self.categories[position] for position in nearest.tolist()]


def read_scale(axis: Any) -> Scale:
    """The scale of one axis of an axes."""
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    name = type(converter).__name__
    period_freq = getattr(axis.get_major_formatter(), "freq", None)  # only the formatter of pandas for periods has one
    if name == "StrCategoryConverter":
        return Scale("category", {float(position): str(text) for text, position in axis.units._mapping.items()})
    if "Date" in name or name == "PeriodConverter" or _has_date_ticks(axis):
        return Scale("time", {}, zone=_zone(axis.get_units()), period_freq=_freq(period_freq))
    labels = _set_labels(axis)
    if labels:
        return Scale("category", labels, loose=True)
    return Scale("log" if axis.get_scale() in ("log", "symlog") else "linear", {})


def as_floats(numbers: Any) -> Any:
    """A flat array of floats, with NaN for masked values."""
    array = np.ma.asarray(numbers)
    if array.dtype.kind not in "fiub":
        array = np.ma.asarray([np.nan if value is None else value for value in array.ravel().tolist()], dtype=float)
    return np.ma.filled(array.astype(float), np.nan).ravel()


def plain_numbers(numbers: Any) -> list[float | None]:
    """JSON numbers, with null for values that are not finite. Integers stay integers."""
    array = np.ma.asarray(numbers)
    if array.dtype.kind in "iu" and not np.ma.is_masked(array):
        return [int(value) for value in array.ravel().tolist()]
    return [_number(value) for value in as_floats(numbers).tolist()]


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _has_date_ticks(axis: Any) -> bool:
    """Whether the axis has a date formatter, for dates that were plotted as plain floats."""
    from matplotlib.dates import AutoDateFormatter, ConciseDateFormatter, DateFormatter

    return isinstance(axis.get_major_formatter(), AutoDateFormatter | ConciseDateFormatter | DateFormatter)


def _zone(units: Any) -> Any:
    return units if isinstance(units, str | dt.tzinfo) else None


def _freq(freq: Any) -> Any:
    """The frequency as an offset object: its text differs between offsets (``ME``) and periods (``M``)."""
    return pd.tseries.frequencies.to_offset(freq) if isinstance(freq, str) else freq


def _set_labels(axis: Any) -> dict[float, str]:
    """Tick labels that were set by hand, by position. Empty if they only repeat the numbers."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter

    locator, formatter = axis.get_major_locator(), axis.get_major_formatter()
    if not isinstance(locator, FixedLocator) or not isinstance(formatter, FixedFormatter | FuncFormatter):
        return {}
    positions = [float(position) for position in np.ravel(locator())]
    texts = formatter.format_ticks(positions)
    labels = {position: str(text) for position, text in zip(positions, texts, strict=False) if str(text)}
    return labels if any(not _repeats(position, text) for position, text in labels.items()) else {}


def _repeats(position: float, text: str) -> bool:
    try:
        return float(text.replace("\N{MINUS SIGN}", "-").replace(",", "").rstrip("%")) in (position, position * 100)
    except ValueError:
        return False


def _plain_times(plain: Any, count: int) -> pd.DatetimeIndex | None:
    """The datetimes as they were plotted, with zone and all digits. None if something else was plotted."""
    if plain is None or isinstance(plain, str) or not hasattr(plain, "__len__") or len(plain) != count or not count:
        return None
    if isinstance(plain, np.ndarray) and plain.dtype.kind not in "MO":
        return None
    if isinstance(plain, np.ndarray) and plain.dtype.kind == "M":
        return pd.DatetimeIndex(np.ma.filled(plain, np.datetime64("NaT")))
    listed = list(plain)
    if not all(
        isinstance(value, dt.date | np.datetime64 | pd.Timestamp) or value is None or value is pd.NaT
        for value in listed
    ):
        return None
    try:
        return pd.DatetimeIndex([pd.Timestamp(value) for value in listed])
    except (ValueError, TypeError):  # different zones
        return pd.DatetimeIndex([pd.Timestamp(value).tz_convert("UTC") for value in listed])
