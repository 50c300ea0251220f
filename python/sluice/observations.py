"""Reads wide or long data into observations: one value per entity and period in which the entity was observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sluice.aggregate import check_rule
from sluice.buckets import Bucket, read_bucket
from sluice.errors import TimeError
from sluice.frame import to_frame
from sluice.numeric_text import parse_numeric_text
from sluice.time_column import split_time
from sluice.times import Times, check_zone, read_times


@dataclass(frozen=True)
class Observations:
    """Parallel arrays, sorted by entity, then period. Each pair occurs once, and all values are finite.

    `period` and `entity` hold positions in `periods` and `entities`.
    """

    period: Any
    entity: Any
    value: Any
    periods: pd.DatetimeIndex
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
) -> Observations:
    """Read the data, floor its times and merge duplicates by the rule `agg`.

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
    codes, periods = _period_codes(instants, bucket, tz)
    entries = _long(rest, entity_col, value_col) if entity_col is not None else _wide(rest, value_col)
    return _merge(
        entries,
        codes,
        instants,
        periods,
        agg,
        _facts(rest, entries, read, time_name, entity_col, value_col, bucket, len(timed), tz),
    )


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
    if not len(instants):
        raise TimeError("no row has a time, so there is no change to derive")
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
    facts["duplicatesMerged"] = len(key) - len(distinct)
    if not np.isfinite(merged).all():  # a rule like std gives no value for a single row
        distinct, merged = distinct[np.isfinite(merged)], merged[np.isfinite(merged)]
    if not len(distinct):
        raise TimeError(f"agg={agg!r} gives no value for any period, so there is no change to derive")
    return Observations(distinct % len(periods), distinct // len(periods), merged, periods, entries.entities, facts)


def _reduce(key: Any, value: Any, rule: Any, size: int) -> tuple[Any, Any]:
    """The distinct keys in order, and the aggregated value of each."""
    if rule in ("last", "sum") and size <= 8 * len(key) + 1_000_000:
        return _reduce_dense(key, value, rule, size)
    if rule == "last":
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
    ignored = [str(column) for column in rest.columns if column not in used]
    without_time = rows_in - len(rest)
    warnings = []
    if ignored:
        warnings.append(f"the columns {', '.join(ignored[:10])} were not used")
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
        "warnings": warnings,
    }
