"""Collects the time series of a figure for the check of coverage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sluice.coverage import PlottedSeries
from sluice.coverage_report import CadenceArgument, CoverageReport, refuse_unknown_labels, wall_clock
from sluice.errors import FigureError
from sluice.figures.pandas_nulls import drawn_nulls
from sluice.figures.reading import Reading, Series
from sluice.figures.scales import Scale

#: Kinds of series that are judged. Boxes, histograms and heatmaps have no points in time.
JUDGED = ("line", "step", "area", "bar", "barh", "errorbar", "scatter", "stem")


def figure_coverage(readings: list[Reading], cadence: CadenceArgument) -> CoverageReport:
    """The report on all series of a figure. Axes that share their x axis, like twins, are judged together."""
    refuse_unknown_labels(cadence, [label for reading in readings for label in _labels(reading)], FigureError)
    report = CoverageReport(cadence)
    for group in _groups(readings):
        report.add([(number, one) for number in group for one in _plotted(readings[number])])
        for number in group:
            horizontal = _plotted(readings[number], horizontal=True)
            report.add([(number, one) for one in horizontal])
    return report


def _groups(readings: list[Reading]) -> list[list[int]]:
    groups: list[list[int]] = []
    for number, reading in enumerate(readings):
        shared = reading.axes.get_shared_x_axes()
        group = next((one for one in groups if shared.joined(readings[one[0]].axes, reading.axes)), None)
        if group is None:
            groups.append([number])
        else:
            group.append(number)
    return groups


def _plotted(reading: Reading, *, horizontal: bool = False) -> list[PlottedSeries]:
    """The series along x, or the horizontal bars along y."""
    scale, along, across = (reading.y, "y", "x") if horizontal else (reading.x, "x", "y")
    low, high = (-np.inf, np.inf) if horizontal else _limits(reading)
    found = []
    only_markers = _error_bars_without_line(reading)
    for one, label in zip(_judged(reading), _labels(reading), strict=True):
        if (one["type"] == "barh") != horizontal:
            continue
        places = _places(one, along, scale)
        if places is None:
            continue
        has_value = np.array([value is not None for value in one[across]], dtype=bool)
        nulls = drawn_nulls(reading.axes, label, len(has_value)) if one["type"] in ("area", "bar", "barh") else None
        if nulls is not None:
            has_value &= ~nulls
        shown = np.isfinite(places) & (places >= low) & (places <= high)
        markers = one["type"] in ("scatter", "stem") or id(one) in only_markers
        found.append(PlottedSeries(label, places[shown], has_value[shown], markers))
    return found


def _judged(reading: Reading) -> list[Series]:
    return [one for one in reading.series if one["type"] in JUDGED]


def _labels(reading: Reading) -> list[str]:
    """The label of each judged series, or its kind and its number among those of this kind."""
    labels, counts = [], dict.fromkeys(JUDGED, 0)
    for one in _judged(reading):
        kind = "line" if one["type"] == "step" else one["type"]
        counts[kind] += 1
        labels.append(one.get("label", f"{kind} {counts[kind]}"))
    return labels


def _places(one: Series, axis: str, scale: Scale) -> Any:
    """Places on the wall clock of the axis; None when they are not times. Names count if all of them are ISO times."""
    if scale.kind == "time":
        return _wall_clock(np.array(one[axis], dtype=float), scale)
    texts = [text for _, text in sorted(scale.labels.items())]
    times = wall_clock(texts)
    if times is None:
        return None
    if f"{axis}Categories" in one:
        return times[one[f"{axis}Categories"]]
    known = dict(zip(sorted(scale.labels), times, strict=True))
    places = [np.nan if value is None else known.get(value) for value in one[axis]]
    return None if None in places else np.array(places, dtype=float)


def _wall_clock(instants: Any, scale: Scale) -> Any:
    """Milliseconds since 1970 on the clock of the axis's zone."""
    if scale.zone is None:
        return instants
    present = np.isfinite(instants)
    micros = np.round(np.where(present, instants, 0) * 1000).astype("int64")
    local = pd.DatetimeIndex(micros.astype("datetime64[us]")).tz_localize("UTC").tz_convert(scale.zone)
    return np.where(present, local.tz_localize(None).as_unit("us").asi8 / 1000, np.nan)


def _limits(reading: Reading) -> tuple[float, float]:
    """The part of the time axis that the figure shows, if its limits were set."""
    axes = reading.axes
    siblings = axes.get_shared_x_axes().get_siblings(axes)
    if reading.x.kind != "time" or all(one.get_autoscalex_on() for one in siblings):
        return -np.inf, np.inf
    low, high = _wall_clock(np.array(reading.x.values(np.sort(axes.get_xlim())), dtype=float), reading.x)
    return float(low), float(high)


def _error_bars_without_line(reading: Reading) -> set[int]:
    from matplotlib.container import BarContainer, ErrorbarContainer

    containers = reading.axes.containers
    of_bars = {id(one.errorbar) for one in containers if isinstance(one, BarContainer)}
    lines = [one.lines[0] for one in containers if isinstance(one, ErrorbarContainer) and id(one) not in of_bars]
    series = [one for one in reading.series if one["type"] == "errorbar"]
    if len(lines) != len(series):
        return set()
    return {
        id(one)
        for one, line in zip(series, lines, strict=True)
        if line is None or line.get_linestyle() in ("None", "", " ", "none")
    }
