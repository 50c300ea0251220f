"""The data quality report of a merged series."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sluice.buckets import CLOCK, HOUR, Bucket
from sluice.cadence import find_cadence, gap_text
from sluice.times import Times

#: A smaller share of buckets that have every source gives a warning.
ENOUGH_OVERLAP = 0.5


class Quality(dict[str, Any]):
    """The report in `.attrs`. Pandas deep-copies attrs with each operation; a report is never changed, so it is shared."""

    def __deepcopy__(self, _memo: object) -> Quality:
        return self


def describe_source(
    name: str,
    column: str,
    rows: int,
    instants: pd.DatetimeIndex,
    buckets: pd.DatetimeIndex,
    merged: pd.DataFrame,
    read: Times,
    bucket: Bucket | None,
    timed: pd.DataFrame,
) -> dict[str, Any]:
    """The report about one source."""
    nulls = {str(label): count for label in merged.columns if (count := int(merged[label].isna().sum()))}
    facts = {
        "name": name,
        "timeColumn": column,
        "timeKinds": list(read.kinds),
        "rowsIn": rows,
        "rowsOut": len(buckets),
        "rowsWithoutTime": rows - len(instants),
        "duplicatesMerged": len(instants) - len(buckets),
        "nulls": nulls,
        "start": buckets[0].isoformat() if len(buckets) else None,
        "end": buckets[-1].isoformat() if len(buckets) else None,
        "assumedZone": read.naive,
        **_gaps(buckets, bucket),
    }
    entities = _entity_columns(instants, timed)
    if entities:
        facts["entityColumns"] = entities
    return facts


def describe_join(
    helper: str,
    facts: list[dict[str, Any]],
    indexes: list[pd.DatetimeIndex],
    index: pd.DatetimeIndex,
    bucket: Bucket | None,
    how: str,
    tz: str,
) -> Quality:
    """The report about all sources together, with warnings."""
    distinct, counts = np.unique(np.concatenate([part.asi8 for part in indexes]), return_counts=True)
    complete, union = int((counts == len(indexes)).sum()), len(distinct)
    overlap = complete / union if union else 0.0
    return Quality(
        helper=helper,
        freq=bucket.text if bucket else None,
        tz=tz,
        how=how,
        rows=len(index),
        buckets=union,
        completeBuckets=complete,
        overlap=overlap,
        sources=facts,
        warnings=_warnings(facts, overlap, complete, union, bucket, tz),
    )


def _gaps(buckets: pd.DatetimeIndex, bucket: Bucket | None) -> dict[str, Any]:
    """Cadence, number of missing buckets and largest gap."""
    moments = buckets.asi8
    cadence = find_cadence(moments)
    if bucket and bucket.unit in CLOCK and len(buckets):
        size = bucket.count * CLOCK[bucket.unit]
        clock = (
            moments if size <= HOUR else buckets.tz_localize(None).asi8
        )  # on the wall clock, days of 23 and 25 hours count as 24
        missing = int(clock[-1] - clock[0]) // size + 1 - len(buckets)
    elif bucket and len(buckets):
        missing = len(bucket.between(buckets[0], buckets[-1], str(buckets.tz))) - len(buckets)
    else:
        missing = max(cadence.expected(int(moments[0]), int(moments[-1])) - len(moments), 0) if cadence else 0
    largest = int(np.diff(moments).max()) if len(moments) > 1 else 0
    return {
        "cadence": cadence.text if cadence else None,
        "gaps": max(missing, 0),
        "largestGap": gap_text(largest) if largest else None,
    }


def _entity_columns(instants: pd.DatetimeIndex, timed: pd.DataFrame) -> list[str]:
    """Text columns in which rows of the same instant differ. Merging such rows by time mixes entities."""
    moments = instants.asi8
    same: Any = np.flatnonzero(moments[1:] == moments[:-1])[:1000]
    if len(same) < 0.25 * min(len(moments), 1000) or not len(same):
        return []
    found = []
    for column in timed.columns:
        series = timed[column]
        if pd.api.types.is_numeric_dtype(series.dtype) or series.dtype.kind == "M":
            continue
        left, right = series.take(same).to_numpy(dtype=object), series.take(same + 1).to_numpy(dtype=object)
        if np.mean(left != right) > 0.5:
            found.append(str(column))
    return found


def _warnings(
    facts: list[dict[str, Any]], overlap: float, complete: int, union: int, bucket: Bucket | None, tz: str
) -> list[str]:
    warnings = []
    for source in facts:
        name = source["name"]
        if not source["rowsOut"]:
            warnings.append(f"{name} has no rows with a time, so its columns are all null")
        if source["rowsWithoutTime"]:
            warnings.append(f"{name}: {source['rowsWithoutTime']} rows have no time and are left out")
        if source["assumedZone"]:
            warnings.append(f"{name}: {source['assumedZone']} times have no zone and were read as {tz}")
        if "entityColumns" in source:
            listed = ", ".join(source["entityColumns"])
            warnings.append(
                f"{name} has several rows at one time that differ in {listed}; "
                f"pivot or filter by it first, otherwise values of different {listed} are merged"
            )
    if len(facts) > 1 and overlap < ENOUGH_OVERLAP:
        advice = "" if bucket else "; pass freq= so that times of different sources fall into the same bucket"
        warnings.append(f"only {complete} of {union} buckets ({overlap:.0%}) have every source{advice}")
    return warnings
