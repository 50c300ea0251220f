"""What the places on an axis stand for: numbers, times, or categories."""

from __future__ import annotations

import datetime as dt
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from sluice.figures.pandas_periods import ConvertedTimes, converted_times

MICROSECONDS_A_DAY = 86_400_000_000
NANOSECONDS_A_MILLISECOND = 1_000_000
#: Integers up to here are the same number in JSON for every reader.
SAFE_INTEGER = 2**53
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
SCALES = ("linear", "log", "symlog", "logit")


@dataclass(frozen=True)
class Scale:
    """How to read one axis.

    Attributes
    ----------
    kind : {"linear", "log", "symlog", "logit", "time", "category", "polar", "other"}
        What the axis shows.
    labels : dict
        The categories of the axis, or the tick labels that were set by hand: text by place.
    zone : str or tzinfo, optional
        The zone that the ticks of a time axis are written in.
    period_freq : offset, optional
        The periods whose ordinals are the places, if pandas drew the axis.
    converted : list
        The times that pandas replaced by periods.
    """

    kind: str
    labels: dict[float, str]
    zone: Any = None
    period_freq: Any = None
    converted: Sequence[ConvertedTimes] = field(default=())

    def values(self, numbers: Any, plain: Any = None) -> list[Any]:
        """JSON numbers for places on this axis: milliseconds since 1970 on a time axis.

        `plain` is what was plotted, before its conversion to floats.
        """
        places = as_floats(numbers)
        stamps = self.instants(places, plain) if self.kind == "time" else None
        if stamps is not None:
            whole = self.nanoseconds(numbers, plain) is not None
            return [None if pd.isna(stamp) else _milliseconds(stamp.value, whole) for stamp in stamps]
        return _exact_integers(plain, places) or [_number(value) for value in places.tolist()]

    def nanoseconds(self, numbers: Any, plain: Any = None) -> list[int | None] | None:
        """The nanoseconds after each whole millisecond. None if a float of milliseconds tells the times apart."""
        stamps = self.instants(numbers, plain) if self.kind == "time" else None
        if stamps is None:
            return None
        known = [None if pd.isna(stamp) else stamp.value for stamp in stamps]
        if all(value is None or round(value / NANOSECONDS_A_MILLISECOND * 1000) * 1000 == value for value in known):
            return None
        return [None if value is None else value % NANOSECONDS_A_MILLISECOND for value in known]

    def instants(self, numbers: Any, plain: Any = None) -> Any:
        """Timestamps for places on a time axis, or None when they are not times."""
        stamps = self._stamps(as_floats(numbers), plain)
        return None if stamps is None else stamps.as_unit("ns")

    def text(self, number: Any) -> str:
        """A place for a reader: its time, its category or its number."""
        stamps = self.instants([number]) if self.kind == "time" else None
        if stamps is not None:
            return "?" if pd.isna(stamps[0]) else stamps[0].isoformat()
        return self.labels.get(float(number)) or str(float(number))

    def _stamps(self, places: Any, plain: Any) -> pd.DatetimeIndex | None:
        exact = _plain_times(plain, len(places))
        if exact is not None:
            return exact
        if self.period_freq is not None:
            drawn = next((found for one in self.converted if (found := one.at(places)) is not None), None)
            return self._from_ordinals(places) if drawn is None else drawn
        return self._from_day_numbers(places)

    def _from_ordinals(self, places: Any) -> pd.DatetimeIndex:
        """Pandas draws periods at their ordinal."""
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", FutureWarning
            )  # pandas itself draws business days this way, and warns about it
            starts = [
                pd.Period(ordinal=round(place), freq=self.period_freq).start_time if np.isfinite(place) else pd.NaT
                for place in places
            ]
        return pd.DatetimeIndex(starts)

    def _from_day_numbers(self, places: Any) -> pd.DatetimeIndex | None:
        """Matplotlib draws dates at their number of days since its epoch, which a double holds to the microsecond."""
        from matplotlib import dates

        epoch: Any = dates.get_epoch()  # type: ignore[no-untyped-call]
        present = np.isfinite(places)
        if np.abs(places[present]).max(initial=0) > 1e8:
            return None
        micros = np.round(np.where(present, places, 0) * MICROSECONDS_A_DAY).astype("int64")
        near = np.round(micros / 1000).astype("int64") * 1000
        # Sums of day numbers are off by a microsecond or two.
        micros = np.where(np.abs(micros - near) <= 2, near, micros)
        stamps = np.datetime64(epoch, "us") + micros.astype("timedelta64[us]")
        index = pd.DatetimeIndex(np.where(present, stamps, np.datetime64("NaT", "us")))
        return index if self.zone is None else index.tz_localize("UTC").tz_convert(self.zone)


def read_scale(axis: Any) -> Scale:
    """The scale of one axis of an axes."""
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    name = type(converter).__name__
    period_freq = getattr(axis.get_major_formatter(), "freq", None)  # only the formatter of pandas for periods has one
    if period_freq is None and name == "PeriodConverter":  # another formatter was set
        period_freq = getattr(axis, "freq", None)
    if name == "StrCategoryConverter":
        return Scale("category", {float(place): str(text) for text, place in axis.units._mapping.items()})
    labels = _set_labels(axis)
    if "Date" in name or name == "PeriodConverter" or _has_date_ticks(axis):
        freq = _freq(period_freq)
        converted = converted_times(axis.axes, freq)
        return Scale("time", labels, converted[0].times.tz if converted else _zone(axis.get_units()), freq, converted)
    labels = labels or _names_by_function(axis)
    if axis.axes.name == "polar" and axis is axis.axes.xaxis:
        return Scale("polar", labels)
    return Scale(axis.get_scale() if axis.get_scale() in SCALES else "other", labels)


def as_floats(numbers: Any) -> Any:
    """A flat array of floats, with NaN for masked values."""
    array = np.ma.asarray(numbers)
    if array.dtype.kind not in "fiub":
        array = np.ma.asarray([np.nan if value is None else value for value in array.ravel().tolist()], dtype=float)
    return np.ma.filled(array.astype(float), np.nan).ravel()


def plain_numbers(numbers: Any) -> list[Any]:
    """JSON numbers, with null for values that are not finite. Integers stay integers, beyond 2^53 as text of all their digits."""
    array = np.ma.asarray(numbers)
    if array.dtype.kind in "iu" and not np.ma.is_masked(array):
        return [_integer(value) for value in array.ravel().tolist()]
    return [_number(value) for value in as_floats(numbers).tolist()]


def zone_name(zone: Any) -> str:
    """The name of a time zone, or its offset like ``+02:00`` if it has none."""
    name = str(getattr(zone, "key", None) or getattr(zone, "zone", None) or zone)
    if isinstance(zone, str) or "/" in name or name == "UTC":
        return name
    offset = pd.Timestamp("2000-01-01", tz=zone).strftime("%z")
    return f"{offset[:3]}:{offset[3:5]}"


def _exact_integers(plain: Any, floats: Any) -> list[Any] | None:
    """The plotted integers, if some are beyond 2^53, where a float loses digits. None if the floats are exact or differ."""
    if plain is None or not np.any(np.abs(floats) >= SAFE_INTEGER):
        return None
    listed = np.ma.asarray(plain).ravel().tolist()
    if len(listed) != len(floats) or not all(isinstance(value, int) for value in listed):
        return None
    return [_integer(value) for value in listed] if [float(value) for value in listed] == floats.tolist() else None


def _integer(value: int) -> int | str:
    return int(value) if abs(value) <= SAFE_INTEGER else str(value)


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _milliseconds(nanoseconds: int, whole: bool) -> int | float:
    if whole or nanoseconds % NANOSECONDS_A_MILLISECOND == 0:
        return nanoseconds // NANOSECONDS_A_MILLISECOND
    return nanoseconds / NANOSECONDS_A_MILLISECOND


def _has_date_ticks(axis: Any) -> bool:
    """Whether the axis has a date formatter, for dates that were plotted as plain floats."""
    from matplotlib.dates import AutoDateFormatter, ConciseDateFormatter, DateFormatter

    return isinstance(axis.get_major_formatter(), AutoDateFormatter | ConciseDateFormatter | DateFormatter)


def _zone(units: Any) -> Any:
    return units if isinstance(units, str | dt.tzinfo) else None


def _freq(freq: Any) -> Any:
    """The frequency as an offset object: its text differs between offsets (``ME``) and periods (``M``)."""
    return pd.tseries.frequencies.to_offset(freq, is_period=True) if isinstance(freq, str) else freq


def _set_labels(axis: Any) -> dict[float, str]:
    """Tick labels that were set by hand, by place. Empty if they only repeat the numbers."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter

    locator, formatter = axis.get_major_locator(), axis.get_major_formatter()
    locator = getattr(locator, "base", locator)  # the angles of a polar axes
    if isinstance(locator, FixedLocator) and isinstance(formatter, FixedFormatter | FuncFormatter):
        places = [float(place) for place in np.ravel(locator())]
        labels = dict(zip(places, map(str, formatter.format_ticks(places)), strict=False))
    elif isinstance(formatter, FixedFormatter):  # labels without places stand at whatever ticks there are
        low, high = sorted(axis.get_view_interval())
        ticks = [float(place) for place in np.ravel(axis.get_majorticklocs())]
        labels = {at: str(text) for at, text in zip(ticks, formatter.seq, strict=False) if low <= at <= high}
    else:
        return {}
    shown = {place: text for place, text in labels.items() if text}
    return shown if any(not _repeats(place, text) for place, text in shown.items()) else {}


def _names_by_function(axis: Any) -> dict[float, str]:
    """The names that a function gives to the ticks in view. Empty if it only writes their numbers."""
    from matplotlib.ticker import FuncFormatter

    formatter = axis.get_major_formatter()
    if not isinstance(formatter, FuncFormatter):
        return {}
    low, high = sorted(axis.get_view_interval())
    ticks = [float(place) for place in np.ravel(axis.get_majorticklocs()) if low <= place <= high]
    shown = {place: str(text) for place, text in zip(ticks, formatter.format_ticks(ticks), strict=True) if text}
    return shown if any(not _writes_number(place, text) for place, text in shown.items()) else {}


def _repeats(place: float, text: str) -> bool:
    """Whether a label is the number of its place, rounded to the digits that it shows."""
    digits = text.strip().replace("\N{MINUS SIGN}", "-").replace(",", "")
    try:
        written = float(digits.rstrip("%"))
    except ValueError:
        return False
    mantissa, _, exponent = digits.rstrip("%").lower().partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    shares = (1, 100) if digits.endswith("%") else (1,)
    return any(abs(written - place * share) <= 0.5 * unit * (1 + 1e-9) for share in shares)


def _writes_number(place: float, text: str) -> bool:
    """Whether a label writes the number of its place in any unit, like ``$1.2M`` or ``35 %``, and names nothing."""
    found = _NUMBER.search(text.replace("\N{MINUS SIGN}", "-").replace(",", ""))
    if found is None:
        return False
    written = abs(float(found[0]))
    half = 0.5 * 10.0 ** -len(found[0].partition(".")[2])
    powers = 10.0 ** np.arange(-18, 19)
    return bool(np.any(np.abs(written - abs(place) * powers) <= half * (1 + 1e-9)))


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
