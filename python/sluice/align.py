"""`align_timeseries` and `safe_merge_timeseries`: several sources on one index of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sluice import _cell
from sluice.aggregate import merge_duplicates, rules_for
from sluice.buckets import Bucket, read_bucket
from sluice.errors import TimeError
from sluice.frame import to_frame
from sluice.numbers import as_numbers
from sluice.quality import Quality, describe_join, describe_source
from sluice.time_column import split_time
from sluice.times import read_times, zone

HOW = ("outer", "inner", "left", "right")


def align_timeseries(
    *sources: Any,
    time_col: Any = None,
    freq: Any = None,
    how: str = "outer",
    agg: Any = None,
    tz: str = "UTC",
    names: Sequence[str] | None = None,
) -> list[pd.DataFrame]:
    """Put several time series on one index; one DataFrame comes back for each source, all with the same index.

    Parameters
    ----------
    *sources : object
        Anything that `to_frame` takes.
    time_col : str or list of str, optional
        The column of times, for all sources or for each; found by dtype and name if not given. Times may be epochs
        in s, ms, µs or ns (told apart by magnitude), ISO text with or without zone, dates, or a mix.
    freq : str, optional
        The size of the buckets that times are floored to, like ``"1h"``, ``"1D"``, ``"1W"`` (weeks from Monday),
        ``"1M"``. Buckets are labelled by their start. Without it times are taken as they are.
    how : {"outer", "inner", "left", "right"}
        Which buckets are kept: of any source, of all, of the first, of the last.
    agg : str, function or dict, optional
        How rows of one bucket become one. ``"level"`` (default): the last value that is not null, right for prices,
        balances and other levels. ``"flow"``: the sum, null if all are null, right for volumes and other amounts per
        period. Also ``"first"``, ``"mean"``, ``"median"``, ``"min"``, ``"max"``, ``"count"``, or a function. A dict
        gives rules by column, ``{"price": "level", "volume": "flow"}``; prefixed names work too.
    tz : str
        The zone of times that have none, and of the resulting index.
    names : list of str, optional
        One name for each source. Columns become ``name_column``; a column name that only one source has is there
        without the prefix too.

    Returns
    -------
    list of DataFrame
        ``.attrs["data_quality"]`` says what was done: rows in and out, duplicates merged, nulls, gaps, range and
        cadence of each source, the overlap, which zones were assumed, and warnings.

    Raises
    ------
    TimeError
        When a source has no times, or when no bucket is left. The message has the range of each source.

    Examples
    --------
    >>> price = [{"time": "2024-01-01T10:00Z", "usd": None}, {"time": "2024-01-01T11:00Z", "usd": 42.0}]
    >>> flows = [[1704067200000, 5.0], [1704153600000, 7.0]]
    >>> p, f = align_timeseries(price, flows, freq="1D", names=["cg", "net"])
    >>> p["usd"].tolist()
    [42.0, nan]
    >>> f["value"].tolist()
    [5.0, 7.0]
    """
    parts, quality = _align(sources, time_col, freq, how, agg, tz, names, "align_timeseries")
    for part in parts:
        part.attrs["data_quality"] = quality
    return parts


def safe_merge_timeseries(
    *sources: Any,
    time_col: Any = None,
    freq: Any = None,
    how: str = "outer",
    agg: Any = None,
    tz: str = "UTC",
    names: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Merge several time series into one DataFrame with one row for each time. Never a cross join.

    Takes what `align_timeseries` takes and joins its frames. Without `names`, a column that several sources have is
    prefixed with ``source1``, ``source2``, … in each of them; others keep their names.

    Returns
    -------
    DataFrame
        Indexed by time. ``.attrs["data_quality"]`` as in `align_timeseries`.

    Examples
    --------
    >>> btc = {"2024-01-01": 42000.0, "2024-01-02": 43000.0}
    >>> fees = [{"date": "2024-01-02", "fee": 3.5}]
    >>> merged = safe_merge_timeseries(btc, fees, freq="1D", names=["btc", "net"])
    >>> merged[["value", "fee"]].reset_index()
                           time    value  fee
    0 2024-01-01 00:00:00+00:00  42000.0  NaN
    1 2024-01-02 00:00:00+00:00  43000.0  3.5
    >>> merged.attrs["data_quality"]["overlap"]
    0.5
    """
    parts, quality = _align(sources, time_col, freq, how, agg, tz, names, "safe_merge_timeseries")
    merged = pd.DataFrame(
        {column: part[column].array for part in parts for column in part.columns}, index=parts[0].index, copy=False
    )
    merged.attrs["data_quality"] = quality
    return merged


@dataclass
class _Source:
    """One source on its way: its own buckets, then its place on the common index."""

    name: str
    frame: pd.DataFrame
    buckets: pd.DatetimeIndex
    facts: dict[str, Any]
    labels: dict[Any, str]


def _align(
    sources: tuple[Any, ...],
    time_col: Any,
    freq: Any,
    how: str,
    agg: Any,
    tz: str,
    names: Sequence[str] | None,
    helper: str,
) -> tuple[list[pd.DataFrame], Quality]:
    if how not in HOW:
        raise TimeError(f"how={how!r} is not known; use one of {', '.join(HOW)}")
    tz = zone(tz)
    bucket = read_bucket(freq)
    values, given = _unpack(sources, names)
    time_cols = _per_source(time_col, len(values))
    sourced = [
        _split(value, column, given, position)
        for position, (value, column) in enumerate(zip(values, time_cols, strict=True))
    ]
    labels = _labels([list(rest.columns) for _, _, rest, _ in sourced], given)
    read = [_read(*one, labels[position], bucket, agg, tz) for position, one in enumerate(sourced)]
    _refuse_unknown_rules(agg, read)
    index = _common_index([source.buckets for source in read], how)
    quality = describe_join(
        helper, [source.facts for source in read], [source.buckets for source in read], index, bucket, how, tz
    )
    if not len(index):
        raise TimeError(_why_empty(read, how))
    _cell.current().note("dataQuality", quality)
    return _labelled(read, index, labels, given), quality


def _unpack(sources: tuple[Any, ...], names: Sequence[str] | None) -> tuple[list[Any], list[str] | None]:
    """The sources and their names; a single list or dict of frames is taken apart."""
    values = list(sources)
    if (
        len(values) == 1
        and isinstance(values[0], list | tuple)
        and values[0]
        and all(isinstance(item, pd.DataFrame | pd.Series) for item in values[0])
    ):
        values = list(values[0])
    if (
        len(values) == 1
        and isinstance(values[0], Mapping)
        and values[0]
        and all(isinstance(item, pd.DataFrame) for item in values[0].values())
    ):
        names = [str(key) for key in values[0]] if names is None else names
        values = list(values[0].values())
    if not values:
        raise TimeError("there is no source to align; pass at least one")
    if names is None:
        return values, None
    if isinstance(names, str) or len(names) != len(values) or len(set(names)) != len(values):
        raise TimeError(f"names must be {len(values)} different names, one for each source, got {names!r}")
    return values, list(names)


def _per_source(time_col: Any, count: int) -> list[str | None]:
    if isinstance(time_col, list | tuple):
        if len(time_col) != count:
            raise TimeError(f"time_col has {len(time_col)} names for {count} sources")
        return list(time_col)
    return [time_col] * count


def _split(
    value: Any, time_col: str | None, given: list[str] | None, position: int
) -> tuple[str, Any, pd.DataFrame, str]:
    name = given[position] if given else f"source{position + 1}"
    frame = to_frame(value)
    if not frame.columns.is_unique:
        raise TimeError(
            f"{name} has the column {frame.columns[frame.columns.duplicated()][0]!r} more than once; rename it"
        )
    times, rest, column = split_time(frame, time_col, name)
    return name, times, rest, column


def _labels(columns: list[list[Any]], given: list[str] | None) -> list[dict[Any, str]]:
    """What each column is called in the end, before the unprefixed names are added."""
    if given is not None:
        return [{column: f"{name}_{column}" for column in listed} for name, listed in zip(given, columns, strict=True)]
    shared = {column for listed in columns for column in listed if sum(column in other for other in columns) > 1}
    return [
        {column: f"source{position}_{column}" if column in shared else column for column in listed}
        for position, listed in enumerate(columns, 1)
    ]


def _read(
    name: str,
    times: Any,
    rest: pd.DataFrame,
    column: str,
    labels: dict[Any, str],
    bucket: Bucket | None,
    agg: Any,
    tz: str,
) -> _Source:
    read = read_times(times, tz)
    rest = as_numbers(rest)
    instants = read.instants
    timed = instants.notna()
    if not timed.all():
        instants, rest = instants[timed], rest[timed]
    if not instants.is_monotonic_increasing:
        order = np.argsort(instants.asi8, kind="stable")
        instants, rest = instants[order], rest.take(order)
    floored = bucket.floor(instants, tz) if bucket else instants.tz_convert(tz)
    moments = floored.asi8
    starts = np.r_[True, moments[1:] != moments[:-1]] if len(moments) else np.zeros(0, dtype=bool)
    buckets = floored[starts]
    rules, used = rules_for(list(rest.columns), agg, labels)
    if len(buckets) < len(moments) or any(
        rule not in ("last", "first", "sum", "min", "max") for rule in rules.values()
    ):
        merged = merge_duplicates(rest, np.cumsum(starts) - 1, len(buckets), rules)
    else:
        merged = rest
    facts = describe_source(name, column, len(timed), instants, buckets, merged, read, bucket, rest)
    facts["_used"] = used
    return _Source(name, merged, buckets, facts, labels)


def _refuse_unknown_rules(agg: Any, read: list[_Source]) -> None:
    used = set().union(*(source.facts.pop("_used") for source in read))
    unknown = [key for key in agg if key not in used] if isinstance(agg, Mapping) else []
    if unknown:
        columns = [column for source in read for column in source.frame.columns]
        raise TimeError(
            f"agg names {', '.join(map(repr, unknown))}, but the columns are {', '.join(map(repr, columns))}"
        )


def _common_index(indexes: list[pd.DatetimeIndex], how: str) -> pd.DatetimeIndex:
    if how in ("left", "right"):
        index = indexes[0 if how == "left" else -1]
    else:
        moments = np.concatenate([part.asi8 for part in indexes])
        distinct, counts = np.unique(moments, return_counts=True)
        if how == "inner":
            distinct = distinct[counts == len(indexes)]
        index = pd.DatetimeIndex(distinct.astype("datetime64[ns]")).tz_localize("UTC").tz_convert(indexes[0].tz)
    return index.rename("time")


def _labelled(
    read: list[_Source], index: pd.DatetimeIndex, labels: list[dict[Any, str]], given: list[str] | None
) -> list[pd.DataFrame]:
    everywhere = [column for listed in labels for column in listed]
    prefixed = {label for listed in labels for label in listed.values()}
    if len(prefixed) < len(everywhere):
        raise TimeError("two columns get the same name when prefixed; choose other names=")
    parts = []
    for source in read:
        columns = {label: source.frame[column] for column, label in source.labels.items()}
        if given is not None:
            alone = [column for column in source.labels if everywhere.count(column) == 1 and column not in prefixed]
            columns |= {column: source.frame[column] for column in alone}
        parts.append(_on(pd.DataFrame(columns), source.buckets, index))
    return parts


def _on(frame: pd.DataFrame, buckets: pd.DatetimeIndex, index: pd.DatetimeIndex) -> pd.DataFrame:
    """The rows of `frame`, which belong to `buckets`, at their places on `index`."""
    if len(buckets) == len(index) and np.array_equal(buckets.asi8, index.asi8):
        return frame.set_axis(index, axis=0)
    places = np.searchsorted(buckets.asi8, index.asi8)
    places[places == len(buckets)] = 0
    there = buckets.asi8[places] == index.asi8 if len(buckets) else np.zeros(len(index), dtype=bool)
    frame = _keep_long_integers(frame)
    taken = (
        frame.reset_index(drop=True).reindex(np.where(there, places, -1))
        if len(frame)
        else frame.reindex(range(len(index)))
    )
    return taken.set_axis(index, axis=0)


def _keep_long_integers(frame: pd.DataFrame) -> pd.DataFrame:
    """Integers beyond 2^53 would lose digits as floats, which pandas makes of integers that get gaps."""
    long = [
        column
        for column in frame.columns
        if isinstance(frame[column].dtype, np.dtype) and frame[column].dtype.kind in "iu" and _is_long(frame[column])
    ]
    return frame.astype({column: "UInt64" if frame[column].dtype.kind == "u" else "Int64" for column in long})


def _is_long(integers: pd.Series[Any]) -> bool:
    return bool(len(integers)) and max(abs(int(integers.max())), abs(int(integers.min()))) >= 2**53


def _why_empty(read: list[_Source], how: str) -> str:
    ranges = "; ".join(
        f"{source.name} has {len(source.buckets)} buckets"
        + (f" from {source.buckets[0]} to {source.buckets[-1]}" if len(source.buckets) else "")
        for source in read
    )
    reason = (
        "no bucket is in every source"
        if how == "inner" and all(len(source.buckets) for source in read)
        else "there are no rows with a time"
    )
    return (
        f"the merged series would be empty: {reason} (how={how!r}). {ranges}. "
        "Use how='outer', a coarser freq, or sources that overlap"
    )
