"""Reads bars (vertical, horizontal, grouped, stacked, with error bars) and histograms."""

from __future__ import annotations

from collections.abc import Sequence
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
            _add_histogram(reading, histogram, [container], patches)
        else:
            _read_bars(reading, container, patches)


def _add_histogram(reading: Reading, record: dict[str, Any], artists: list[Any], bins: Sequence[Any] = ()) -> None:
    """Add a histogram from the counts and edges that it was drawn from."""
    edges = record["edges"]
    centres = (edges[:-1] + edges[1:]) / 2
    counts = plain_numbers(record["counts"])
    baseline = None if record["baseline"] is None else plain_numbers(record["baseline"])
    axis, scale = ("y", reading.y) if record["horizontal"] else ("x", reading.x)
    places, bounds = scale.values(centres), scale.values(edges)
    x, y = (counts, places) if record["horizontal"] else (places, counts)
    orientation = "horizontal" if record["horizontal"] else None
    more = {"orientation": orientation, "edges": bounds, "baseline": baseline, "artists": artists, "parts": bins}
    series = reading.add("histogram", record["label"], x, y, **more)
    reading.occupy(series, axis, edges[:-1], edges[1:])


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
            _add_histogram(reading, record, [patch])


def read_outline_histograms(reading: Reading) -> None:
    """Read histograms drawn as one outline. They have no bars, but their counts were recorded."""
    for patch in reading.remaining(reading.axes.patches):
        record = call_record(patch, "hist")
        if record is not None:
            reading.claim(patch)
            _add_histogram(reading, record, [patch])


def _read_bars(reading: Reading, container: Any, patches: list[Any]) -> None:
    """Along `axis` the bars stand side by side; their lengths are along the other axis."""
    horizontal = getattr(container, "orientation", None) == "horizontal"
    boxes = np.array(
        [[patch.get_x(), patch.get_y(), patch.get_width(), patch.get_height()] for patch in patches], float
    )
    if horizontal:
        boxes = boxes[:, [1, 0, 3, 2]]
    sides, starts, widths, drawn = boxes.T
    axis, scale, along = ("y", reading.y, reading.x) if horizontal else ("x", reading.x, reading.y)
    lengths, plain_lengths = _exact_lengths(container, drawn, starts)
    centres, plain = _centres(container, sides, widths)
    places = scale.values(centres, plain)
    ends, baseline = _lengths(along, lengths, plain_lengths, starts)
    series = reading.add(
        "barh" if horizontal else "bar",
        _label(container),
        ends if horizontal else places,
        places if horizontal else ends,
        baseline=baseline,
        labels=_own_labels(patches),
        artists=[container],
        parts=patches,
        **reading.nanoseconds(**{axis: (centres, plain)}),
        **(error_lengths(reading, container.errorbar, len(patches)) if container.errorbar else {}),
    )
    reading.occupy(series, axis, np.minimum(sides, sides + widths), np.maximum(sides, sides + widths))


def _label(container: Any) -> str | None:
    """The common label of all bars. None when the bars have different labels."""
    own = {shown_label(patch.get_label()) for patch in container.patches}
    return shown_label(container.get_label()) or (own.pop() if len(own) == 1 else None)


def _own_labels(patches: list[Any]) -> list[str | None] | None:
    """The labels of bars that differ."""
    own = [shown_label(patch.get_label()) for patch in patches]
    return own if len(set(own)) > 1 else None


def _exact_lengths(container: Any, drawn: Any, starts: Any) -> tuple[Any, Any]:
    """The lengths passed to the call, if they match the drawn ones. The drawn length of a stacked bar has rounding errors."""
    record = call_record(container, "bar")
    try:
        values = np.broadcast_to(as_floats(record["length"]), drawn.shape) if record else drawn
    except (TypeError, ValueError):  # durations
        return drawn, None
    rounding = 1e-12 * np.nanmax(np.abs(starts) + np.abs(drawn), initial=0)
    fits = np.allclose(values, drawn, rtol=1e-12, atol=rounding, equal_nan=True)
    return (values, record["length"] if record else None) if fits else (drawn, None)


def _lengths(scale: Scale, lengths: Any, plain: Any, starts: Any) -> tuple[list[Any], list[Any] | None]:
    """The lengths and baselines of bars. On a time axis, the ends instead of the lengths."""
    if scale.kind == "time":
        return scale.values(starts + lengths), scale.values(starts)
    return scale.values(lengths, plain), plain_numbers(starts) if np.any(np.nan_to_num(starts)) else None


def _centres(container: Any, starts: Any, widths: Any) -> tuple[Any, Any]:
    """The places passed to the call, if they match the drawn ones, whose middle may have rounding errors."""
    drawn = starts + widths / 2
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
