"""What the numbers along an axis stand for: numbers, times, or categories."""

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
        Text by place, for categories.
    loose : bool
        The categories are tick labels that somebody set; bars next to a tick belong to it.
    """

    kind: str
    categories: dict[float, str]
    loose: bool = False
    zone: Any = None
    period_freq: Any = None

    def values(self, numbers: Any, plain: Any = None) -> list[Any]:
        """JSON values for places along this axis; `plain` is what was plotted, before it was made numbers."""
        places = as_floats(numbers)
        if self.kind == "time":
            return self._times(places, plain)
        if self.categories:
            return self._categories(places)
        return [_number(value) for value in places.tolist()]

    def instants(self, numbers: Any, plain: Any = None) -> Any:
        """Nanoseconds for places along a time axis, or None when they are no times."""
        stamps = self._stamps(as_floats(numbers), plain)
        return None if stamps is None else stamps.as_unit("ns")

    def _times(self, places: Any, plain: Any) -> list[Any]:
        stamps = self._stamps(places, plain)
        if stamps is None:
            return [_number(value) for value in places.tolist()]
        return [None if pd.isna(stamp) else stamp.isoformat() for stamp in stamps]

    def _stamps(self, places: Any, plain: Any) -> pd.DatetimeIndex | None:
        exact = _plain_times(plain, len(places))
        if exact is not None:
            return exact
        if self.period_freq is not None:
            return self._from_ordinals(places)
        return self._from_day_numbers(places)

    def _from_ordinals(self, places: Any) -> pd.DatetimeIndex:
        """Pandas draws periods by their number."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # it draws business days so, and warns of it
            starts = [
                pd.Period(ordinal=round(place), freq=self.period_freq).start_time if np.isfinite(place) else pd.NaT
                for place in places
            ]
        return pd.DatetimeIndex(starts)

    def _from_day_numbers(self, places: Any) -> pd.DatetimeIndex | None:
        """Matplotlib's dates are days since its epoch; a double holds them to the microsecond."""
        from matplotlib import dates

        epoch: Any = dates.get_epoch()  # type: ignore[no-untyped-call]
        there = np.isfinite(places)
        if np.abs(places[there]).max(initial=0) > 1e8:
            return None
        micros = np.round(np.where(there, places, 0) * MICROSECONDS_A_DAY).astype("int64")
        near = np.round(micros / 1000).astype("int64") * 1000
        micros = np.where(
            np.abs(micros - near) <= 2, near, micros
        )  # sums of day numbers are off by a microsecond or two
        stamps = np.datetime64(epoch, "us") + micros.astype("timedelta64[us]")
        index = pd.DatetimeIndex(np.where(there, stamps, np.datetime64("NaT", "us")))
        return index if self.zone is None else index.tz_localize("UTC").tz_convert(self.zone)

    def _categories(self, places: Any) -> list[Any]:
        """The category of each place, or plain numbers when some place has none or two share one."""
        ticks = np.array(sorted(self.categories))
        above = np.clip(np.searchsorted(ticks, places), 1, max(len(ticks) - 1, 1))
        below = ticks[above - 1]
        above = ticks[np.minimum(above, len(ticks) - 1)]
        nearest = np.where(np.abs(places - below) <= np.abs(above - places), below, above)
        reach = 0.5 * (np.diff(ticks).min() if len(ticks) > 1 else 1.0) if self.loose else 1e-6
        fits = np.abs(places - nearest) < reach
        if not fits.all() or len(np.unique(nearest)) < len(np.unique(places)):
            return [_number(value) for value in places.tolist()]
        return [self.categories[place] for place in nearest.tolist()]


def read_scale(axis: Any) -> Scale:
    """The scale of one axis of an axes."""
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    name = type(converter).__name__
    period_freq = getattr(axis.get_major_formatter(), "freq", None)  # only pandas' formatter for periods has one
    if name == "StrCategoryConverter":
        return Scale("category", {float(place): str(text) for text, place in axis.units._mapping.items()})
    if "Date" in name or name == "PeriodConverter" or _has_date_ticks(axis):
        return Scale("time", {}, zone=_zone(axis.get_units()), period_freq=_freq(period_freq))
    labels = _set_labels(axis)
    if labels:
        return Scale("category", labels, loose=True)
    return Scale("log" if axis.get_scale() in ("log", "symlog") else "linear", {})


def as_floats(numbers: Any) -> Any:
    """A flat array of floats; what is masked is NaN."""
    array = np.ma.asarray(numbers)
    if array.dtype.kind not in "fiub":
        array = np.ma.asarray([np.nan if value is None else value for value in array.ravel().tolist()], dtype=float)
    return np.ma.filled(array.astype(float), np.nan).ravel()


def plain_numbers(numbers: Any) -> list[float | None]:
    """Floats as JSON numbers; what is not finite is null. Whole numbers stay whole."""
    array = np.ma.asarray(numbers)
    if array.dtype.kind in "iu" and not np.ma.is_masked(array):
        return [int(value) for value in array.ravel().tolist()]
    return [_number(value) for value in as_floats(numbers).tolist()]


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _has_date_ticks(axis: Any) -> bool:
    """Date numbers plotted as plain floats, with a date formatter on the axis."""
    from matplotlib.dates import AutoDateFormatter, ConciseDateFormatter, DateFormatter

    return isinstance(axis.get_major_formatter(), AutoDateFormatter | ConciseDateFormatter | DateFormatter)


def _zone(units: Any) -> Any:
    return units if isinstance(units, str | dt.tzinfo) else None


def _freq(freq: Any) -> Any:
    """As an offset: months are ``ME`` among offsets and ``M`` among periods, and a period takes the offset itself."""
    return pd.tseries.frequencies.to_offset(freq) if isinstance(freq, str) else freq


def _set_labels(axis: Any) -> dict[float, str]:
    """Tick labels that were set by hand, by place; labels that only repeat the numbers are no categories."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter

    locator, formatter = axis.get_major_locator(), axis.get_major_formatter()
    if not isinstance(locator, FixedLocator) or not isinstance(formatter, FixedFormatter | FuncFormatter):
        return {}
    places = [float(place) for place in np.ravel(locator())]
    texts = formatter.format_ticks(places)
    labels = {place: str(text) for place, text in zip(places, texts, strict=False) if str(text)}
    return labels if any(not _repeats(place, text) for place, text in labels.items()) else {}


def _repeats(place: float, text: str) -> bool:
    try:
        return float(text.replace("\N{MINUS SIGN}", "-").replace(",", "").rstrip("%")) in (place, place * 100)
    except ValueError:
        return False


def _plain_times(plain: Any, count: int) -> pd.DatetimeIndex | None:
    """Datetimes as they were plotted, with their zone and all digits; None when these were no datetimes."""
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
    except (ValueError, TypeError):  # zones that differ
        return pd.DatetimeIndex([pd.Timestamp(value).tz_convert("UTC") for value in listed])
