"""Reads bars (vertical, horizontal, grouped, stacked, with error bars) and histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from sluice.figures.error_bars import error_lengths
from sluice.figures.plot_calls import call_record
from sluice.figures.reading import Reading, shown_label
from sluice.figures.scales import Scale, as_floats, plain_numbers


def read_bars(reading: Reading) -> None:
    """Read every container of bars in the axes."""
    from matplotlib.container import BarContainer

    for container in reading.axes.containers:
        if not isinstance(container, BarContainer):
            continue
        patches = reading.remaining(container.patches)
        reading.claim(*container.patches)
        if not patches:
            continue
        histogram = call_record(container, "hist")
        if histogram is not None and _matches_record(patches, histogram):
            read_histogram(reading, histogram)
        elif getattr(container, "orientation", None) == "horizontal":
            _read_horizontal(reading, container, patches)
        else:
            _read_vertical(reading, container, patches)


def read_histogram(reading: Reading, record: dict[str, Any]) -> None:
    """Add a histogram from the counts and edges that it was drawn from."""
    edges = record["edges"]
    centres = (edges[:-1] + edges[1:]) / 2
    counts = plain_numbers(record["counts"])
    baseline = None if record["baseline"] is None else plain_numbers(record["baseline"])
    scale = reading.y if record["horizontal"] else reading.x
    scale = Scale("linear", {}) if scale.categories else scale
    positions, bounds = scale.values(centres), scale.values(edges)
    x, y = (counts, positions) if record["horizontal"] else (positions, counts)
    reading.add("histogram", record["label"], x, y, edges=bounds, baseline=baseline)


def read_stairs(reading: Reading) -> None:
    """Read the patches that `stairs` draws."""
    from matplotlib.patches import StepPatch

    for patch in reading.remaining(reading.axes.patches):
        if isinstance(patch, StepPatch):
            reading.claim(patch)
            values, edges, baseline = patch.get_data()
            edges = as_floats(edges)
            record = {
                "counts": values,
                "edges": edges,
                "baseline": None
                if baseline is None or not np.any(baseline)
                else np.broadcast_to(baseline, np.shape(values)),
                "horizontal": patch.orientation == "horizontal",
                "label": patch.get_label(),
            }
            read_histogram(reading, record)


def read_outline_histograms(reading: Reading) -> None:
    """Read histograms drawn as one outline. They have no bars, but their counts were recorded."""
    for patch in reading.remaining(reading.axes.patches):
        record = call_record(patch, "hist")
        if record is not None:
            reading.claim(patch)
            read_histogram(reading, record)


def _read_vertical(reading: Reading, container: Any, patches: list[Any]) -> None:
    bottoms = np.array([patch.get_y() for patch in patches], dtype=float)
    heights = _exact_lengths(container, [patch.get_height() for patch in patches], bottoms)
    centres, plain = _centres(container, [patch.get_x() for patch in patches], [patch.get_width() for patch in patches])
    x = reading.x.values(centres, plain)
    y, baseline = _lengths(reading.y, heights, bottoms)
    errors = error_lengths(reading, container.errorbar, len(patches)) if container.errorbar else {}
    reading.add("bar", _label(container), x, y, baseline=baseline, **errors)


def _read_horizontal(reading: Reading, container: Any, patches: list[Any]) -> None:
    lefts = np.array([patch.get_x() for patch in patches], dtype=float)
    widths = _exact_lengths(container, [patch.get_width() for patch in patches], lefts)
    centres, plain = _centres(
        container, [patch.get_y() for patch in patches], [patch.get_height() for patch in patches]
    )
    y = reading.y.values(centres, plain)
    x, baseline = _lengths(reading.x, widths, lefts)
    errors = error_lengths(reading, container.errorbar, len(patches)) if container.errorbar else {}
    reading.add("barh", _label(container), x, y, baseline=baseline, **errors)


def _label(container: Any) -> str | None:
    """The common label of all bars. None when the bars have different labels."""
    own = {shown_label(patch.get_label()) for patch in container.patches}
    return shown_label(container.get_label()) or (own.pop() if len(own) == 1 else None)


def _exact_lengths(container: Any, drawn: list[float], starts: Any) -> Any:
    """The lengths passed to the call, if they match the drawn ones. The drawn length of a stacked bar has rounding errors."""
    lengths = np.array(drawn, dtype=float)
    record = call_record(container, "bar")
    try:
        values = np.broadcast_to(as_floats(record["length"]), lengths.shape) if record else lengths
    except (TypeError, ValueError):  # durations
        return lengths
    rounding = 1e-12 * np.nanmax(np.abs(starts) + np.abs(lengths), initial=0)
    fits = np.allclose(values, lengths, rtol=1e-12, atol=rounding, equal_nan=True)
    return values if fits else lengths


def _lengths(scale: Scale, lengths: Any, starts: Any) -> tuple[list[Any], list[Any] | None]:
    """The lengths and baselines of bars. On a time axis, the ends instead of the lengths."""
    if scale.kind == "time":
        return scale.values(starts + lengths), scale.values(starts)
    return plain_numbers(lengths), plain_numbers(starts) if np.any(np.nan_to_num(starts)) else None


def _centres(container: Any, starts: list[float], widths: list[float]) -> tuple[Any, Any]:
    """The positions passed to the call, if they match the drawn ones, whose middle may have rounding errors."""
    drawn = np.array(starts, dtype=float) + np.array(widths, dtype=float) / 2
    record = call_record(container, "bar")
    if record is None or record["position"] is None or len(record["position"]) != len(drawn):
        return drawn, None
    if not np.allclose(record["position"], drawn, rtol=1e-12, atol=1e-9, equal_nan=True):
        return drawn, None
    plain = record["plain"]
    return record["position"], plain.to_numpy() if hasattr(plain, "to_numpy") else plain


def _matches_record(patches: list[Any], record: dict[str, Any]) -> bool:
    lengths = [patch.get_width() if record["horizontal"] else patch.get_height() for patch in patches]
    return len(lengths) == len(record["counts"]) and np.allclose(lengths, record["counts"], equal_nan=True)
