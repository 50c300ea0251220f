"""Collects the time series of a chart for the check of coverage. The same as check-chart-coverage.ts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sluice.coverage import PlottedSeries
from sluice.coverage_report import CadenceArgument, CoverageReport, refuse_unknown_labels, wall_clock
from sluice.errors import ChartError


def chart_coverage(spec: dict[str, Any], rows: list[dict[str, Any]], cadence: CadenceArgument) -> CoverageReport:
    """The report on the series of a chart."""
    labels = {one["key"]: _label(one) for one in spec["series"]}
    closing = [spec["ohlc"]["closeKey"]] if "ohlc" in spec else []
    if isinstance(cadence, Mapping):
        cadence = {name if name in labels.values() else labels.get(name, name): step for name, step in cadence.items()}
    refuse_unknown_labels(cadence, [*labels.values(), *closing], ChartError)
    report = CoverageReport(cadence)
    report.add([(0, one) for one in chart_series(spec, rows)])
    return report


def chart_series(spec: dict[str, Any], rows: list[dict[str, Any]]) -> list[PlottedSeries]:
    """The series of a chart along time. Empty when its x axis does not consist of ISO times."""
    if spec["type"] in ("histogram", "heatmap") or spec.get("xAxis", {}).get("type") == "number":
        return []
    places = wall_clock([row.get(spec["xKey"]) for row in rows])
    if places is None:
        return []
    drawn = [(one["key"], _label(one), one.get("type", spec["type"]) == "scatter") for one in spec["series"]]
    if "ohlc" in spec:
        drawn.append((spec["ohlc"]["closeKey"], spec["ohlc"]["closeKey"], False))
    return [
        PlottedSeries(label, places, np.array([row.get(key) is not None for row in rows], dtype=bool), markers)
        for key, label, markers in drawn
    ]


def _label(series: dict[str, Any]) -> str:
    label: str = series.get("label") or series["key"]
    return label
