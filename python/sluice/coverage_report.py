"""Reports sparse series in the diagnostics of a cell, for figures and charts alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sluice import _cell
from sluice.buckets import CLOCK, DAY, read_bucket
from sluice.cadence import Cadence, gap_text
from sluice.charts.rules import ISO_TIME
from sluice.coverage import COMPLETE, MIN_COVERAGE, PlottedSeries, Verdict, judge_coverage

CadenceArgument = Mapping[str, Any] | str | None

GIVEN_CADENCE = "the given cadence"
NANOSECONDS = 1_000_000
OFFSET = re.compile(r"(Z|[+-]\d{2}:?\d{2})$")


class CoverageReport:
    """Collects what the law of coverage says about one figure or chart."""

    def __init__(self, cadence: CadenceArgument) -> None:
        self.low: list[dict[str, Any]] = []
        self.unknown: list[dict[str, Any]] = []
        self._cadence = cadence

    def add(self, series: Sequence[tuple[int, PlottedSeries]]) -> None:
        """Judge series that share a time axis. Each comes with the number of its axes."""
        for (axes, one), verdict in zip(series, judge_coverage([one for _, one in series]), strict=True):
            fixed, skip = _chosen_cadence(self._cadence, one.label)
            found = COMPLETE if skip else verdict if fixed is None else _judge_cadence(one, fixed)
            if found is not None and found.kind == "low":
                self.low.append(_entry(axes, one.label, found))
            elif found is not None and found.kind == "unknown":
                self.unknown.append({"axes": axes, "label": one.label, "observed": int(one.has_value.sum())})

    def note(self) -> None:
        """Put the findings into the diagnostics of the running cell."""
        for key, entries in (("lowCoverage", self.low), ("coverageUnknown", self.unknown)):
            for entry in entries:
                _cell.current().note(key, entry)


def refuse_unknown_labels(cadence: CadenceArgument, labels: Iterable[str], error: type[Exception]) -> None:
    """Raise `error` when `cadence` names a series that was not drawn."""
    known = set(labels)
    unknown = [label for label in cadence if label not in known] if isinstance(cadence, Mapping) else []
    if unknown:
        raise error(
            f"cadence names {', '.join(map(repr, unknown))}, but the series are "
            f"{', '.join(map(repr, sorted(known))) or 'none'}"
        )


def wall_clock(texts: Sequence[Any]) -> Any:
    """ISO times as milliseconds since 1970 on their own wall clock, or None when one of them is not an ISO time."""
    if not texts or not all(isinstance(text, str) and ISO_TIME.fullmatch(text) for text in texts):
        return None
    naive = [OFFSET.sub("", text) if len(text) > len("2024-01-01T00:00") else text for text in texts]
    stamps = pd.to_datetime(naive, format="ISO8601", errors="coerce")
    return None if stamps.isna().any() else stamps.to_numpy().astype("datetime64[us]").astype("int64") / 1000


def _judge_cadence(one: PlottedSeries, cadence: Cadence) -> Verdict:
    """The verdict on a series whose cadence was given."""
    own = np.unique(one.places[one.has_value & np.isfinite(one.places)])
    if not len(own):
        return COMPLETE
    moments = np.round(own * NANOSECONDS).astype("int64")
    expected = cadence.expected(int(moments[0]), int(moments[-1]))
    # Several points in one step count once.
    observed = len(moments) if cadence.months else len(np.unique((moments - moments[0]) // cadence.step))
    if observed >= MIN_COVERAGE * expected:
        return COMPLETE
    widest = int(np.argmax(np.diff(own)))
    return Verdict("low", observed, expected, GIVEN_CADENCE, (float(own[widest]), float(own[widest + 1])))


def _entry(axes: int, label: str, verdict: Verdict) -> dict[str, Any]:
    start, end = verdict.gap
    return {
        "axes": axes,
        "label": label,
        "observed": verdict.observed,
        "expected": verdict.expected,
        "coverage": verdict.observed / verdict.expected,
        "against": verdict.against,
        "largestGap": gap_text((end - start) * NANOSECONDS),
        "gapStart": _iso(start),
        "gapEnd": _iso(end),
    }


def _iso(milliseconds: float) -> str:
    return pd.Timestamp(round(milliseconds * 1000), unit="us").isoformat()


def _chosen_cadence(cadence: CadenceArgument, label: str) -> tuple[Cadence | None, bool]:
    """The cadence that the caller set, and whether to skip the check."""
    chosen = cadence.get(label, "") if isinstance(cadence, Mapping) else cadence or ""
    if chosen is None:
        return None, True
    if chosen == "":
        return None, False
    bucket = read_bucket(chosen)
    assert bucket is not None
    months = {"M": 1, "Q": 3, "Y": 12}.get(bucket.unit, 0) * bucket.count
    if months:
        return Cadence(int(months * 30.436875 * DAY), months), False
    size = CLOCK.get(bucket.unit) or {"D": DAY, "W": 7 * DAY}[bucket.unit]
    return Cadence(bucket.count * size), False
