"""Reads the sources of a merge: finds their times, floors them to buckets and merges rows of the same bucket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sluice.aggregate import merge_duplicates, rules_for
from sluice.buckets import Bucket, read_bucket
from sluice.errors import TimeError
from sluice.frame import to_frame
from sluice.numeric_text import parse_numeric_text
from sluice.quality import describe_source
from sluice.time_column import split_time
from sluice.times import read_times

#: What the columns of a source are called in the merged frame.
Labels = dict[Any, str]


@dataclass
class Source:
    """One source with one row per bucket."""

    name: str
    frame: pd.DataFrame
    buckets: pd.DatetimeIndex
    facts: dict[str, Any]
    labels: Labels


@dataclass(frozen=True)
class _Split:
    """One source with its times apart from its other columns."""

    name: str
    times: Any
    rest: pd.DataFrame
    time_column: str


def read_sources(
    values: Sequence[Any], time_col: Any, freq: Any, agg: Any, tz: str, names: Sequence[str] | None
) -> tuple[list[Source], Bucket | None, bool]:
    """Read every source. Returns the sources, the bucket size, and whether they have names of their own.

    Raises
    ------
    TimeError
        When a source has no times, or an argument does not fit the sources.
    """
    bucket = read_bucket(freq)
    values, given_names = _unpack(list(values), names)
    time_cols = _time_col_per_source(time_col, len(values))
    source_names = given_names or [f"source{position}" for position in range(1, len(values) + 1)]
    parts = [_split(*part) for part in zip(values, time_cols, source_names, strict=True)]
    labels = _labels([list(part.rest.columns) for part in parts], given_names)
    used_rules: set[Any] = set()
    sources = [_read(part, labels[place], bucket, agg, tz, used_rules) for place, part in enumerate(parts)]
    _refuse_unused_rules(agg, used_rules, sources)
    return sources, bucket, given_names is not None


def _unpack(values: list[Any], names: Sequence[str] | None) -> tuple[list[Any], list[str] | None]:
    """The sources and their names. A single list or dict of frames is unpacked."""
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


def _time_col_per_source(time_col: Any, count: int) -> list[str | None]:
    if isinstance(time_col, list | tuple):
        if len(time_col) != count:
            raise TimeError(f"time_col has {len(time_col)} names for {count} sources")
        return list(time_col)
    return [time_col] * count


def _split(value: Any, time_col: str | None, name: str) -> _Split:
    frame = to_frame(value)
    if not frame.columns.is_unique:
        raise TimeError(
            f"{name} has the column {frame.columns[frame.columns.duplicated()][0]!r} more than once; rename it"
        )
    return _Split(name, *split_time(frame, time_col, name))


def _labels(columns: list[list[Any]], given_names: list[str] | None) -> list[Labels]:
    """With names every column is prefixed; without, only those that several sources have."""
    if given_names is not None:
        return [
            {column: f"{name}_{column}" for column in listed} for name, listed in zip(given_names, columns, strict=True)
        ]
    shared = {column for listed in columns for column in listed if sum(column in other for other in columns) > 1}
    return [
        {column: f"source{position}_{column}" if column in shared else column for column in listed}
        for position, listed in enumerate(columns, 1)
    ]


def _read(part: _Split, labels: Labels, bucket: Bucket | None, agg: Any, tz: str, used_rules: set[Any]) -> Source:
    """Floor and sort the times, and merge rows of the same bucket. Adds the keys of `agg` that apply to `used_rules`."""
    read = read_times(part.times, tz)
    rest = parse_numeric_text(part.rest)
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
    used_rules |= used
    if len(buckets) < len(moments) or any(
        rule not in ("last", "first", "sum", "min", "max") for rule in rules.values()
    ):
        merged = merge_duplicates(rest, np.cumsum(starts) - 1, len(buckets), rules)
    else:
        merged = rest
    facts = describe_source(part.name, part.time_column, len(timed), instants, buckets, merged, read, bucket, rest)
    return Source(part.name, merged, buckets, facts, labels)


def _refuse_unused_rules(agg: Any, used_rules: set[Any], sources: list[Source]) -> None:
    unknown = [key for key in agg if key not in used_rules] if isinstance(agg, Mapping) else []
    if unknown:
        columns = [column for source in sources for column in source.frame.columns]
        raise TimeError(
            f"agg names {', '.join(map(repr, unknown))}, but the columns are {', '.join(map(repr, columns))}"
        )
