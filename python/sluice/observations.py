"""Reads wide or long data into observations: one value per entity and period in which the entity was counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from sluice.aggregate import check_rule
from sluice.buckets import MISSING, Bucket, read_bucket
from sluice.errors import TimeError
from sluice.frame import to_frame
from sluice.numeric_text import parse_numeric_text
from sluice.reporting import Grid, find_carried, find_shared_period, in_zone, wall_clock
from sluice.time_column import split_time
from sluice.times import Times, check_zone, read_times


@dataclass(frozen=True)
class Observations:
    """Parallel arrays, sorted by entity, then period. Each pair occurs once, and all values are finite.

    `period` and `entity` hold positions in `periods` and `entities`. `first` and `last` are the times of the first and the
    last report in the period; `carried` says that there was none.

    `periods` are those in which at least one entity reported; `every_period` has the others, too.
    """

    period: Any
    entity: Any
    value: Any
    first: Any
    last: Any
    carried: Any
    periods: pd.DatetimeIndex
    every_period: pd.DatetimeIndex
    entities: list[Any]
    quality: dict[str, Any]


@dataclass(frozen=True)
class _Entries:
    """One entry per cell of the data, including nulls. `entity` holds positions in `entities`, `row` the row of the data."""

    row: Any
    entity: Any
    value: Any
    entities: list[Any]


def read_observations(
    data: Any, time_col: str | None, entity_col: str | None, value_col: str | None, freq: Any, agg: Any, tz: str
) -> tuple[Observations, Bucket | None]:
    """Read the data, floor its times and merge duplicates by the rule `agg`. Also returns the size of a period.

    Raises
    ------
    TimeError
        When times, entities or values cannot be found, or when there is no value at all.
    """
    tz = check_zone(tz)
    bucket = read_bucket(freq)
    frame = to_frame(data)
    if not frame.columns.is_unique:
        raise TimeError(
            f"the data has the column {frame.columns[frame.columns.duplicated()][0]!r} more than once; rename it"
        )
    times, rest, time_name = split_time(frame, time_col, "the data")
    rest = parse_numeric_text(rest)
    read = read_times(times, tz)
    timed = read.instants.notna()
    rest = rest if timed.all() else rest[timed]
    instants = read.instants if timed.all() else read.instants[timed]
    entity_col, value_col = _long_columns(rest, instants, entity_col, value_col)
    if not len(instants):
        raise TimeError("no row has a time, so there is no change to derive")
    entries = _long(rest, entity_col, value_col) if entity_col is not None else _wide(rest, value_col)
    shared = _shared_period(entries, instants, tz) if bucket is None else None
    facts = _facts(rest, entries, read, time_name, entity_col, value_col, bucket or shared, len(timed), tz)
    if shared is not None:
        facts["assumed"].append(
            f"entities report at different times, each about once in {shared.text}, so {shared.text} is the period; "
            "pass freq= to choose another"
        )
    codes, periods = _period_codes(instants, bucket or shared, tz)
    return _merge(entries, codes, instants, periods, agg, facts), bucket or shared


def _shared_period(entries: _Entries, instants: pd.DatetimeIndex, tz: str) -> Bucket | None:
    present = np.isfinite(entries.value)
    return find_shared_period(entries.entity[present], instants.asi8[entries.row[present]], tz)


def carry_between_reports(observations: Observations, bucket: Bucket | None, kind: str) -> Observations:
    """Count each entity also in periods in which it did not report because, by its own calendar, no report was due.

    A level keeps its last value, or its first value in periods before the first report; a flow is zero. What was assumed
    is added to the quality.
    """
    entity, period, value = observations.entity, observations.period, observations.value
    count = len(observations.periods)
    starts = np.flatnonzero(np.r_[True, entity[1:] != entity[:-1]])
    ends = np.r_[starts[1:], len(entity)]
    grid = Grid.create(observations.periods, observations.every_period, bucket, int(observations.last.max()))
    first, last = (
        wall_clock(in_zone(moments, observations.periods.tz)) for moments in (observations.first, observations.last)
    )
    added: list[tuple[Any, Any, Any]] = []
    calendars: dict[str, list[str]] = {}
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        places = period[start:end]
        if end - start in (count, int(places[-1] - places[0]) + 1):
            continue  # no gap of its own
        found = find_carried(places, first[start:end], last[start:end], grid)
        if found is None:
            continue
        carried, words = np.flatnonzero(found[0]), found[1]
        source = start + np.maximum(np.searchsorted(places, carried, side="right") - 1, 0)
        values = value[source] if kind == "level" else np.zeros(len(source))
        added.append((np.full(len(carried), entity[start]), carried, values))
        calendars.setdefault(words, []).append(str(observations.entities[entity[start]]))
    if not added:
        return observations
    counted = "its last value is counted" if kind == "level" else "its flow is zero"
    observations.quality["assumed"].extend(
        f"{listed(names)} {'reports' if len(names) == 1 else 'report'} {words}: between two reports {counted}"
        for words, names in calendars.items()
    )
    more_entity, more_period, more_value = (np.concatenate(parts) for parts in zip(*added, strict=True))
    entity, period = np.r_[entity, more_entity], np.r_[period, more_period]
    order = np.lexsort((period, entity))
    starts_at = observations.periods.asi8[more_period]
    return replace(
        observations,
        entity=entity[order],
        period=period[order],
        value=np.r_[value, more_value][order],
        first=np.r_[observations.first, starts_at][order],
        last=np.r_[observations.last, starts_at][order],
        carried=np.r_[observations.carried, np.ones(len(more_period), dtype=bool)][order],
    )


def listed(names: Sequence[Any]) -> str:
    """The first five names."""
    return ", ".join(map(str, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _long_columns(
    rest: pd.DataFrame, instants: pd.DatetimeIndex, entity_col: str | None, value_col: str | None
) -> tuple[str | None, str | None]:
    for role, column in (("entity_col", entity_col), ("value_col", value_col)):
        if column is not None and column not in rest.columns:
            raise TimeError(f"{role}={column!r} is not a column; the columns are {', '.join(map(repr, rest.columns))}")
    if entity_col is None and (value_col is not None or len(_numeric(rest)) == 1):
        entity_col = _only_text_column(rest)
    if entity_col is None:
        _refuse_long(rest, instants)
        return None, value_col
    return entity_col, value_col if value_col is not None else _only_value_column(rest, entity_col)


def _refuse_long(rest: pd.DataFrame, instants: pd.DatetimeIndex) -> None:
    """Refuse data that looks long: rows of the same time that differ in a text column. As wide data they would be merged."""
    if not instants.has_duplicates:
        return
    for column in _text(rest):
        if len(pd.MultiIndex.from_arrays([instants, rest[column]]).unique()) > instants.nunique():
            raise TimeError(
                f"rows of the same time differ in {column!r}, so the data is long; "
                f"pass entity_col={column!r} and value_col= with one of {', '.join(map(repr, _numeric(rest)))}"
            )


def _only_text_column(rest: pd.DataFrame) -> Any:
    text = _text(rest)
    if len(text) > 1:
        raise TimeError(f"several columns could name the entity ({', '.join(map(repr, text))}); pass entity_col=")
    return text[0] if text else None


def _only_value_column(rest: pd.DataFrame, entity_col: str) -> Any:
    numeric = [column for column in _numeric(rest) if column != entity_col]
    if len(numeric) != 1:
        raise TimeError(
            f"value_col is not clear: the numeric columns are "
            f"{', '.join(map(repr, numeric)) or 'none'}; pass value_col="
        )
    return numeric[0]


def _text(rest: pd.DataFrame) -> list[Any]:
    """Columns that may name an entity."""
    return [
        column
        for column in rest.columns
        if rest[column].dtype == object
        or isinstance(rest[column].dtype, pd.CategoricalDtype)
        or pd.api.types.is_string_dtype(rest[column].dtype)
    ]


def _numeric(rest: pd.DataFrame) -> list[Any]:
    return [
        column
        for column in rest.columns
        if pd.api.types.is_numeric_dtype(rest[column].dtype) and not pd.api.types.is_bool_dtype(rest[column].dtype)
    ]


def _period_codes(instants: pd.DatetimeIndex, bucket: Bucket | None, tz: str) -> tuple[Any, pd.DatetimeIndex]:
    """The position of each row's period, and all periods. With a bucket size, periods without rows are included."""
    floored = bucket.floor(instants, tz) if bucket else instants.tz_convert(tz)
    moments = floored.asi8
    distinct = pd.DatetimeIndex(np.unique(moments).astype("datetime64[ns]")).tz_localize("UTC").tz_convert(tz)
    periods = bucket.between(distinct[0], distinct[-1], tz) if bucket else distinct
    return np.searchsorted(periods.asi8, moments), periods.rename("period")


def _long(rest: pd.DataFrame, entity_col: str, value_col: str | None) -> _Entries:
    codes, entities = pd.factorize(rest[entity_col], use_na_sentinel=False)
    named = ["(none)" if entity is None or entity != entity else entity for entity in entities]
    return _Entries(np.arange(len(rest)), codes, _floats(rest[value_col]), named)


def _wide(rest: pd.DataFrame, value_col: str | None) -> _Entries:
    columns = _numeric(rest) if value_col is None else [value_col]
    if not columns:
        raise TimeError(
            f"no column is numeric; the columns are {', '.join(map(repr, rest.columns)) or 'none'}; "
            "pass entity_col= and value_col= for long data"
        )
    values = np.column_stack([_floats(rest[column]) for column in columns])
    height, width = values.shape
    return _Entries(np.repeat(np.arange(height), width), np.tile(np.arange(width), height), values.ravel(), columns)


def _floats(series: pd.Series[Any]) -> Any:
    if not pd.api.types.is_numeric_dtype(series.dtype):
        raise TimeError(
            f"the column {series.name!r} has the dtype {series.dtype}, not numbers; pass another value_col="
        )
    return series.to_numpy(dtype="float64", na_value=np.nan)


def _merge(
    entries: _Entries,
    codes: Any,
    instants: pd.DatetimeIndex,
    periods: pd.DatetimeIndex,
    agg: Any,
    facts: dict[str, Any],
) -> Observations:
    present = np.isfinite(entries.value)
    if not present.any():
        raise TimeError("every value is null, so there is no change to derive")
    row, entity, value = (
        (entries.row, entries.entity, entries.value)
        if present.all()
        else (entries.row[present], entries.entity[present], entries.value[present])
    )
    if not instants.is_monotonic_increasing:
        order = np.argsort(instants.asi8[row], kind="stable")
        row, entity, value = row[order], entity[order], value[order]
    key = entity.astype("int64") * len(periods) + codes[row]
    distinct, merged = _reduce(key, value, check_rule(agg), len(entries.entities) * len(periods))
    moments, size = instants.asi8[row], len(entries.entities) * len(periods)
    last = _reduce(key, moments, "latest", size)[1]
    first = _reduce(key[::-1], moments[::-1], "latest", size)[1]
    facts["duplicatesMerged"] = len(key) - len(distinct)
    if not np.isfinite(merged).all():  # a rule like std gives no value for a single row
        present = np.isfinite(merged)
        distinct, merged, first, last = distinct[present], merged[present], first[present], last[present]
    if not len(distinct):
        raise TimeError(f"agg={agg!r} gives no value for any period, so there is no change to derive")
    places, period = np.unique(distinct % len(periods), return_inverse=True)
    if len(places) < len(periods):
        facts["assumed"].append(
            f"no entity reported in {len(periods) - len(places)} of {len(periods)} periods: the change over them is in the "
            "next period with a report, and spans_periods counts them"
        )
    entity = distinct // len(periods)
    reported = np.zeros(len(period), dtype=bool)
    return Observations(
        period, entity, merged, first, last, reported, periods[places], periods, entries.entities, facts
    )


def _reduce(key: Any, value: Any, rule: Any, size: int) -> tuple[Any, Any]:
    """The distinct keys in order, and the aggregated value of each. ``latest`` is ``last`` for instants."""
    if rule in ("last", "sum", "latest") and size <= 8 * len(key) + 1_000_000:
        return _reduce_dense(key, value, rule, size)
    if rule in ("last", "latest"):
        order = np.argsort(key, kind="stable")
        last = np.r_[key[order][1:] != key[order][:-1], True]
        return key[order][last], value[order][last]
    grouped = pd.Series(value).groupby(key, sort=True)
    reduced = grouped.agg(rule)
    return reduced.index.to_numpy(), reduced.to_numpy(dtype="float64")


def _reduce_dense(key: Any, value: Any, rule: str, size: int) -> tuple[Any, Any]:
    """Aggregate into a table of all possible keys, which is faster than sorting while most of it is filled."""
    if rule == "sum":
        filled = np.bincount(key, minlength=size) > 0
        table = np.bincount(key, weights=value, minlength=size)
    elif rule == "latest":
        table = np.full(size, MISSING)
        table[key] = value
        filled = table != MISSING
    else:
        table = np.full(size, np.nan)
        table[key] = value  # numpy keeps the last value of a repeated index
        filled = table == table
    distinct = np.flatnonzero(filled)
    return distinct, table[distinct]


def _facts(
    rest: pd.DataFrame,
    entries: _Entries,
    read: Times,
    time_name: str,
    entity_col: str | None,
    value_col: str | None,
    bucket: Bucket | None,
    rows_in: int,
    tz: str,
) -> dict[str, Any]:
    used = {entity_col, value_col} if entity_col is not None else set(entries.entities)
    valued = np.bincount(entries.entity[np.isfinite(entries.value)], minlength=len(entries.entities))
    empty = [str(entity) for entity, count in zip(entries.entities, valued, strict=True) if not count]
    ignored = [str(column) for column in rest.columns if column not in used]
    without_time = rows_in - len(rest)
    warnings = []
    if ignored:
        warnings.append(f"the columns {', '.join(ignored[:10])} were not used")
    if empty:
        warnings.append(
            f"{listed(empty)} {'has' if len(empty) == 1 else 'have'} no value and {'is' if len(empty) == 1 else 'are'} never counted"
        )
    if without_time:
        warnings.append(f"{without_time} rows have no time and are left out")
    if read.naive:
        warnings.append(f"{read.naive} times have no zone and were read as {tz}")
    repeated = int(pd.Series(read.instants).dropna().duplicated().sum()) if entity_col is None else 0
    if repeated:
        warnings.append(
            f"{repeated} rows have the same time as another row and were merged; "
            "if a column names the entity of each row, pass entity_col= and value_col="
        )
    return {
        "shape": "wide" if entity_col is None else "long",
        "timeColumn": time_name,
        "entityColumn": entity_col,
        "valueColumn": value_col,
        "freq": bucket.text if bucket else None,
        "rowsIn": rows_in,
        "rowsWithoutTime": without_time,
        "entities": len(entries.entities),
        "nulls": int((~np.isfinite(entries.value)).sum()),
        "assumedZone": read.naive,
        "assumed": [],
        "warnings": warnings,
    }
