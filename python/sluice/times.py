"""Parses the times that tools send: epochs of any unit, ISO text with and without a zone, dates, and mixes of them."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sluice.errors import TimeError
from sluice.wall_clock import localize

ZONED = re.compile(r"[T ]\d{1,2}(?::?\d\d){0,2}(?:[.,]\d+)?\s*(?:Z|z|UTC|GMT|[+-]\d\d(?::?\d\d)?)$")
EPOCH = re.compile(r"[+-]?\d{9,}(?:\.\d+)?")
PERIOD = re.compile(r"\d{4}-?[QqWw]\d{1,2}")
DAY_OR_MONTH_FIRST = re.compile(r"(\d{1,2})[/.](\d{1,2})[/.]\d{4}\b")


@dataclass(frozen=True)
class Times:
    """Instants, one per parsed value.

    Attributes
    ----------
    instants : DatetimeIndex
        In UTC; NaT where there was no time.
    naive : int
        How many of them had no zone and were read in the assumed zone.
    kinds : tuple of str
        The kinds of times found, for example ``("epoch ms", "ISO text without zone")``.
    """

    instants: pd.DatetimeIndex
    naive: int
    kinds: tuple[str, ...]


def read_times(values: Any, tz: str = "UTC") -> Times:
    """Parse a column of times.

    Parameters
    ----------
    values : array-like
        Epochs in seconds, milliseconds, microseconds or nanoseconds (told apart by magnitude), ISO 8601 text,
        datetimes, dates and periods, also mixed.
    tz : str
        The zone assumed for times without one.

    Raises
    ------
    TimeError
        For a value that is not a time, or ambiguous text like 01/02/2024.
    """
    column: pd.Series[Any] = pd.Series(values).reset_index(drop=True)
    if isinstance(column.dtype, pd.PeriodDtype):
        column = pd.Series(pd.PeriodIndex(column).to_timestamp())
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return Times(pd.DatetimeIndex(column).tz_convert("UTC").as_unit("ns"), 0, ("times with zone",))
    if column.dtype.kind == "M":
        return Times(_utc(pd.DatetimeIndex(column), tz), int(column.notna().sum()), ("times without zone",))
    if pd.api.types.is_bool_dtype(column.dtype):
        raise TimeError("the time column holds booleans, not times")
    if pd.api.types.is_numeric_dtype(column.dtype):
        return _read_numbers(column, tz)
    return _read_distinct(column, tz)


def check_zone(tz: str | None) -> str:
    """Return the name of the zone. Raises TimeError when there is no such zone."""
    name = "UTC" if tz is None else tz
    try:
        pd.Timestamp(0, tz=name)
    except Exception:
        raise TimeError(f"tz={tz!r} is not a time zone; use a name like 'UTC' or 'Europe/Berlin'") from None
    return name


def _utc(naive: pd.DatetimeIndex, tz: str) -> pd.DatetimeIndex:
    return localize(naive, tz).tz_convert("UTC")


def _read_distinct(column: pd.Series[Any], tz: str) -> Times:
    """Parse each distinct value once, because text and objects repeat a lot in a time column."""
    try:
        codes, distinct = pd.factorize(column)
    except TypeError:  # lists and dicts
        raise TimeError(f"{column.iloc[0]!r} is not a time; use epochs, ISO text, dates or datetimes") from None
    listed = distinct.tolist() if hasattr(distinct, "tolist") else list(distinct)
    parsed = np.full(len(listed) + 1, np.datetime64("NaT", "ns"))
    naive = np.zeros(len(listed) + 1, dtype=bool)
    kinds: list[str] = []
    for kind, positions in _by_kind(listed).items():
        part = _READERS[kind]([listed[i] for i in positions], tz)
        parsed[positions] = part.instants.tz_localize(None).to_numpy()
        naive[positions] = part.naive > 0
        kinds += part.kinds
    instants = pd.DatetimeIndex(parsed[codes]).tz_localize("UTC")
    return Times(instants, int((naive[codes] & instants.notna()).sum()), tuple(kinds))


def _by_kind(listed: list[Any]) -> dict[str, list[int]]:
    kinds: dict[str, list[int]] = {}
    for position, value in enumerate(listed):
        kinds.setdefault(_kind(value), []).append(position)
    kinds.pop("nothing", None)
    return kinds


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return _text_kind(value.strip())
    if isinstance(value, bool):
        return "other"
    if isinstance(value, int | float | np.integer | np.floating):
        return "numbers"
    if isinstance(value, dt.datetime):
        return "zoned datetimes" if value.tzinfo is not None else "datetimes"
    if isinstance(value, dt.date | np.datetime64):
        return "datetimes"
    return "periods" if isinstance(value, pd.Period) else "other"


def _text_kind(text: str) -> str:
    if text == "" or text.lower() in ("nan", "nat", "null", "none"):
        return "nothing"
    if EPOCH.fullmatch(text):
        return "numbers"
    if ZONED.search(text):
        return "zoned text"
    if PERIOD.fullmatch(text):
        return "periods"
    return "day or month first" if DAY_OR_MONTH_FIRST.match(text) else "text"


def _read_numbers(numbers: Any, tz: str) -> Times:
    """Epochs, with the unit by magnitude. A column of only years, or only YYYYMMDD numbers, is read as such."""
    column = pd.to_numeric(pd.Series(numbers), errors="raise")
    values = column.to_numpy(dtype="float64", na_value=np.nan)
    present = np.isfinite(values)
    seen = values[present]
    if len(seen) and np.all(seen % 1 == 0):
        if np.all((seen >= 1500) & (seen <= 2200)):
            return _read_text_numbers(column, present, "%Y", tz, "years")
        if np.all((seen >= 19000101) & (seen <= 21991231)):
            return _read_text_numbers(column, present, "%Y%m%d", tz, "YYYYMMDD numbers")
    nanoseconds, units = _epochs(column, values, present)
    instants = pd.DatetimeIndex(nanoseconds.astype("datetime64[ns]")).tz_localize("UTC")
    return Times(pd.DatetimeIndex(instants.where(present)), 0, tuple(f"epoch {unit}" for unit in units))


def _read_text_numbers(column: pd.Series[Any], present: Any, layout: str, tz: str, kind: str) -> Times:
    texts = np.full(len(present), None, dtype=object)
    texts[present] = [str(int(value)) for value in column[present]]
    parsed = pd.DatetimeIndex(pd.to_datetime(pd.Series(texts, dtype=object), format=layout, errors="coerce"))
    _refuse_unread(parsed, list(texts), present)
    return Times(_utc(parsed, tz), int(present.sum()), (kind,))


def _epochs(column: pd.Series[Any], values: Any, present: Any) -> tuple[Any, list[str]]:
    """Nanoseconds since 1970. Integers are not converted to floats, so that no nanosecond is lost."""
    size = np.abs(np.where(present, values, 0.0))
    whole = column.dtype.kind in "iu" and bool(present.all())
    exact = column.to_numpy().astype("int64") if whole else None
    nanoseconds = np.zeros(len(values), dtype="int64")
    units: list[str] = []
    for unit, least, below, factor in (
        ("s", 0, 1e11, 10**9),
        ("ms", 1e11, 1e14, 10**6),
        ("us", 1e14, 1e17, 1000),
        ("ns", 1e17, 9.2e18, 1),
    ):
        mask = present & (size >= least) & (size < below)
        if not mask.any():
            continue
        units.append(unit)
        if exact is not None:
            nanoseconds[mask] = exact[mask] * factor
        else:
            nanoseconds[mask] = _scale(values[mask], factor)
    if (present & (size >= 9.2e18)).any():
        raise TimeError(f"{column[present & (size >= 9.2e18)].iloc[0]!r} is too large for a time in any unit")
    return nanoseconds, units


def _scale(values: Any, factor: int) -> Any:
    """Floating-point epochs: the integer part exactly, the fraction to the microsecond, which is what a double can hold."""
    whole = np.floor(values)
    fraction = np.round((values - whole) * factor / 1000) * 1000 if factor >= 1000 else 0
    return whole.astype("int64") * factor + np.asarray(fraction).astype("int64")


def _read_digits(values: list[Any], tz: str) -> Times:
    return _read_numbers([value if not isinstance(value, str) else _number(value.strip()) for value in values], tz)


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _read_zoned_text(values: list[str], _tz: str) -> Times:
    return Times(_parse(values, utc=True), 0, ("ISO text with zone",))


def _read_text(values: list[str], tz: str) -> Times:
    parsed = _parse(values, utc=False)
    if parsed.tz is not None:
        return Times(parsed.tz_convert("UTC").as_unit("ns"), 0, ("text with zone",))
    return Times(_utc(parsed, tz), len(values), ("ISO text without zone",))


def _parse(values: list[str], *, utc: bool) -> pd.DatetimeIndex:
    texts = pd.Series([value.strip().replace(",", ".") if utc else value.strip() for value in values], dtype=object)
    parsed = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=utc)
    left = parsed.isna()
    if left.any():
        other = pd.to_datetime(texts[left], format="mixed", errors="coerce", utc=utc)
        if left.all():
            parsed = other
        else:
            parsed = pd.Series([*parsed[~left], *other], index=[*parsed.index[~left], *other.index]).sort_index()
    index = pd.DatetimeIndex(parsed)
    _refuse_unread(index, values)
    return index.as_unit("ns")


def _read_day_or_month_first(values: list[str], tz: str) -> Times:
    parts = [
        tuple(map(int, match.groups())) for match in map(DAY_OR_MONTH_FIRST.match, map(str.strip, values)) if match
    ]
    day_first = any(first > 12 for first, _ in parts)
    month_first = any(second > 12 for _, second in parts)
    if day_first == month_first:
        raise TimeError(
            f"times like {values[0]!r} can mean day first or month first; convert the column first, with "
            "pd.to_datetime(column, dayfirst=True) or dayfirst=False"
        )
    parsed = pd.DatetimeIndex(
        pd.to_datetime(pd.Series(values, dtype=object), format="mixed", dayfirst=day_first, errors="coerce")
    )
    _refuse_unread(parsed, values)
    return Times(_utc(parsed, tz), len(values), ("dates, day first" if day_first else "dates, month first",))


def _read_datetimes(values: list[Any], tz: str) -> Times:
    parsed = pd.DatetimeIndex([pd.Timestamp(value) for value in values])
    return Times(_utc(parsed, tz), len(values), ("datetimes without zone",))


def _read_zoned_datetimes(values: list[Any], _tz: str) -> Times:
    parsed = pd.DatetimeIndex([pd.Timestamp(value).tz_convert("UTC") for value in values])
    return Times(parsed.as_unit("ns"), 0, ("datetimes with zone",))


def _read_periods(values: list[Any], tz: str) -> Times:
    stamps = [(pd.Period(value) if isinstance(value, str) else value).start_time for value in values]
    return Times(_utc(pd.DatetimeIndex(stamps), tz), len(values), ("periods",))


def _read_other(values: list[Any], _tz: str) -> Times:
    raise TimeError(
        f"{values[0]!r} ({type(values[0]).__name__}) is not a time; use epochs, ISO text, dates or datetimes"
    )


def _refuse_unread(parsed: pd.DatetimeIndex, values: list[Any], present: Any = True) -> None:
    bad = [repr(values[i]) for i in np.flatnonzero(parsed.isna() & present)[:3]]
    if bad:
        raise TimeError(f"cannot parse {', '.join(bad)} as a time; use epochs, ISO 8601 text, dates or datetimes")


_READERS = {
    "numbers": _read_digits,
    "zoned text": _read_zoned_text,
    "text": _read_text,
    "day or month first": _read_day_or_month_first,
    "datetimes": _read_datetimes,
    "zoned datetimes": _read_zoned_datetimes,
    "periods": _read_periods,
    "other": _read_other,
}
