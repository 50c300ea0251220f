"""Reads pies, boxes, violins and filled areas, whose artists do not keep the plotted numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from sluice.figures.plot_calls import any_call_record, call_record
from sluice.figures.reading import Reading, shown_label
from sluice.figures.scales import plain_numbers


def read_pies(reading: Reading) -> None:
    """Read wedges: the plotted values if they were recorded, otherwise the shares of the circle."""
    from matplotlib.patches import Wedge

    wedges = [patch for patch in reading.remaining(reading.axes.patches) if isinstance(patch, Wedge)]
    reading.claim(*wedges)
    while wedges:
        record = call_record(wedges[0], "pie")
        group = [wedge for wedge in wedges if call_record(wedge, "pie") is record]
        wedges = [wedge for wedge in wedges if call_record(wedge, "pie") is not record]
        shares = [(wedge.theta2 - wedge.theta1) / 360 for wedge in group]
        labels = [shown_label(wedge.get_label()) for wedge in group]
        if record is not None and len(record["values"]) == len(group) and _same_shares(record["values"], shares):
            values = record["values"]
            labels = record["labels"] or labels
        else:
            values = shares
        named = labels if any(labels) else None
        reading.add("pie", None, list(range(len(group))), plain_numbers(values), labels=named, parts=group)


def read_boxes(reading: Reading) -> None:
    """Read box plots and violins: five numbers each (low, lower quartile, median, upper quartile, high), outliers as z."""
    axes = reading.axes
    for artist in [*axes.lines, *axes.patches, *axes.collections]:
        record = any_call_record(artist)
        if record is None or record["method"] not in ("bxp", "violin"):
            continue
        reading.claim(artist)
        if id(record) in reading.claimed:
            continue
        reading.claimed.add(id(record))
        _read_box(reading, record)


def read_areas(reading: Reading) -> None:
    """Read areas of `fill_between` and `stackplot`: y is the first edge, baseline the second."""
    from matplotlib.collections import PolyCollection

    for area in reading.remaining(reading.axes.collections):
        record = call_record(area, "fill_between")
        if not isinstance(area, PolyCollection) or record is None:
            continue
        reading.claim(area)
        if not _is_same_area(area, record):
            reading.cannot_read(area, "the area was changed after it was drawn")
            continue
        if reading.is_too_large(area, len(record["x"])):
            continue
        plain = record["plain"]
        x = record["x"], plain.to_numpy() if hasattr(plain, "to_numpy") else plain
        more = {"baseline": reading.y.values(record["baseline"]), "artists": [area], **reading.nanoseconds(x=x)}
        reading.add("area", area.get_label(), reading.x.values(*x), reading.y.values(record["y"]), **more)


def _same_shares(values: list[float], shares: list[float]) -> bool:
    total = sum(values) if sum(values) > 0 else 1.0
    normalized = np.allclose(np.array(values) / total, shares, atol=1e-5)
    return bool(normalized or np.allclose(values, shares, atol=1e-5))


def _read_box(reading: Reading, record: dict[str, Any]) -> None:
    axis, scale = ("y", reading.y) if record["horizontal"] else ("x", reading.x)
    places = scale.values(record["positions"])
    summaries = [plain_numbers(summary) for summary in record["summaries"]]
    outliers = (
        None
        if not record["outliers"] or not any(record["outliers"])
        else [plain_numbers(values) for values in record["outliers"]]
    )
    x, y = (summaries, places) if record["horizontal"] else (places, summaries)
    kind = "box" if record["method"] == "bxp" else "violin"
    orientation = "horizontal" if record["horizontal"] else None
    series = reading.add(kind, None, x, y, z=outliers, orientation=orientation, parts=record["bodies"])
    reading.occupy(series, axis, record["positions"], record["positions"])
    for name in record["unread"]:
        reading.note_unread(kind, f"the marked {name}")


def _is_same_area(area: Any, record: dict[str, Any]) -> bool:
    """Whether the drawn extent matches the recorded values."""
    drawn = [path.vertices for path in area.get_paths() if len(path.vertices)]
    known = np.isfinite(record["x"]) & np.isfinite(record["y"]) & np.isfinite(record["baseline"])
    if not drawn or not known.any():
        return not drawn and not known.any()
    vertices = np.concatenate(drawn)
    values = np.concatenate([record["y"][known], record["baseline"][known]])
    return bool(
        vertices[:, 1].min() >= values.min() - 1e-9 * abs(values.min())
        and vertices[:, 1].max() <= values.max() + 1e-9 * abs(values.max())
        and np.isclose(vertices[:, 0].max(), record["x"][known].max())
    )
