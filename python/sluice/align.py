"""`align_timeseries` and `safe_merge_timeseries`: put several time series on one time index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from sluice import _cell
from sluice.errors import TimeError
from sluice.quality import Quality, describe_join
from sluice.sources import Labels, Source, read_sources
from sluice.times import check_zone

JOINS = ("outer", "inner", "left", "right")


def align_timeseries(
    *sources: Any,
    time_col: Any = None,
    freq: Any = None,
    how: str = "outer",
    agg: Any = None,
    tz: str = "UTC",
    names: Sequence[str] | None = None,
) -> list[pd.DataFrame]:
    """Put several time series on one time index. Returns one DataFrame per source, all with the same index.

    Parameters
    ----------
    *sources : object
        Anything that `to_frame` accepts.
    time_col : str or list of str, optional
        The time column, one for all sources or one per source. By default it is found by dtype and name. Times can be
        epochs in s, ms, µs or ns (told apart by magnitude), ISO text with or without a zone, dates, or a mix of them.
    freq : str, optional
        The bucket size that times are floored to: ``"1h"``, ``"1D"``, ``"1W"`` (weeks start on Monday), ``"1M"``.
        A bucket is labelled by its start. By default times are used as they are.
    how : {"outer", "inner", "left", "right"}
        Which buckets to keep: those of any source, of all sources, of the first source, of the last source.
    agg : str, function or dict, optional
        How several rows of one bucket are combined. ``"level"`` (default) takes the last value that is not null; use it
        for prices, balances and other levels. ``"flow"`` sums, and is null if all values are null; use it for volumes
        and other amounts per period. Also ``"first"``, ``"mean"``, ``"median"``, ``"min"``, ``"max"``, ``"count"``, or
        a function. A dict sets the rule per column, ``{"price": "level", "volume": "flow"}``; it accepts prefixed
        column names too.
    tz : str
        The zone assumed for times without one, and the zone of the resulting index.
    names : list of str, optional
        One name per source. Columns are then called ``name_column``. A column name that only one source has is also
        available without the prefix.

    Returns
    -------
    list of DataFrame
        ``.attrs["data_quality"]`` reports what was done: rows in and out, merged duplicates, nulls, gaps, range and
        cadence of each source, their overlap, assumed zones, and warnings.

    Raises
    ------
    TimeError
        When a source has no times, or when no bucket is left. The message has the time range of each source.

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
    """Merge several time series into one DataFrame with one row per time. Duplicate times never multiply rows.

    Takes the parameters of `align_timeseries` and joins the frames that it returns. Without `names`, a column that
    several sources have is prefixed with ``source1``, ``source2``, … in each of them. Other columns keep their names.

    Returns
    -------
    DataFrame
        Indexed by time, with ``.attrs["data_quality"]`` as in `align_timeseries`.

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


def _align(
    values: tuple[Any, ...],
    time_col: Any,
    freq: Any,
    how: str,
    agg: Any,
    tz: str,
    names: Sequence[str] | None,
    helper: str,
) -> tuple[list[pd.DataFrame], Quality]:
    if how not in JOINS:
        raise TimeError(f"how={how!r} is not known; use one of {', '.join(JOINS)}")
    tz = check_zone(tz)
    sources, bucket, has_names = read_sources(values, time_col, freq, agg, tz, names)
    indexes = [source.buckets for source in sources]
    index = _common_index(indexes, how)
    quality = describe_join(helper, [source.facts for source in sources], indexes, index, bucket, how, tz)
    if not len(index):
        raise TimeError(_explain_empty(sources, how))
    _cell.current().note("dataQuality", quality)
    return _label_columns(sources, index, has_names), quality


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


def _label_columns(sources: list[Source], index: pd.DatetimeIndex, has_names: bool) -> list[pd.DataFrame]:
    labels: list[Labels] = [source.labels for source in sources]
    all_columns = [column for listed in labels for column in listed]
    prefixed = {label for listed in labels for label in listed.values()}
    if len(prefixed) < len(all_columns):
        raise TimeError("two columns get the same name when prefixed; choose other names=")
    parts = []
    for source in sources:
        columns = {label: source.frame[column] for column, label in source.labels.items()}
        if has_names:
            unique = [column for column in source.labels if all_columns.count(column) == 1 and column not in prefixed]
            columns |= {column: source.frame[column] for column in unique}
        parts.append(_reindex(pd.DataFrame(columns), source.buckets, index))
    return parts


def _reindex(frame: pd.DataFrame, buckets: pd.DatetimeIndex, index: pd.DatetimeIndex) -> pd.DataFrame:
    """Move the rows of `frame`, one per bucket of `buckets`, to their positions on `index`."""
    if len(buckets) == len(index) and np.array_equal(buckets.asi8, index.asi8):
        return frame.set_axis(index, axis=0)
    positions = np.searchsorted(buckets.asi8, index.asi8)
    positions[positions == len(buckets)] = 0
    present = buckets.asi8[positions] == index.asi8 if len(buckets) else np.zeros(len(index), dtype=bool)
    frame = _keep_long_integers(frame)
    taken = (
        frame.reset_index(drop=True).reindex(np.where(present, positions, -1))
        if len(frame)
        else frame.reindex(range(len(index)))
    )
    return taken.set_axis(index, axis=0)


def _keep_long_integers(frame: pd.DataFrame) -> pd.DataFrame:
    """Make columns with integers beyond 2^53 nullable: pandas turns integers with gaps into floats, which lose digits."""
    long = [
        column
        for column in frame.columns
        if isinstance(frame[column].dtype, np.dtype) and frame[column].dtype.kind in "iu" and _is_long(frame[column])
    ]
    return frame.astype({column: "UInt64" if frame[column].dtype.kind == "u" else "Int64" for column in long})


def _is_long(integers: pd.Series[Any]) -> bool:
    return bool(len(integers)) and max(abs(int(integers.max())), abs(int(integers.min()))) >= 2**53


def _explain_empty(sources: list[Source], how: str) -> str:
    ranges = "; ".join(
        f"{source.name} has {len(source.buckets)} buckets"
        + (f" from {source.buckets[0]} to {source.buckets[-1]}" if len(source.buckets) else "")
        for source in sources
    )
    reason = (
        "no bucket exists in every source"
        if how == "inner" and all(len(source.buckets) for source in sources)
        else "no row has a time"
    )
    return (
        f"the merged series would be empty: {reason} (how={how!r}). {ranges}. "
        "Use how='outer', a coarser freq, or sources that overlap"
    )
