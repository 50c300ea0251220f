"""Finds tick labels that overlap, and legends with too many entries."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

MAX_LEGEND_ENTRIES = 20
MAX_LABELS = 300


@dataclass(frozen=True)
class _Box:
    """The drawn box of a label, along its own direction: a rotated label is only as tall as its letters."""

    text: str
    x: float
    y: float
    width: float
    height: float
    angle: float

    def overlaps(self, other: _Box) -> bool:
        """Whether the boxes share more than an edge."""
        across, up = other.x - self.x, other.y - self.y
        cos, sin = math.cos(math.radians(self.angle)), math.sin(math.radians(self.angle))
        along, beside = abs(across * cos + up * sin), abs(up * cos - across * sin)
        return along < (self.width + other.width) / 2 - 0.5 and beside < (self.height + other.height) / 2 - 0.5


def overlapping_labels(axes: Any, number: int, renderer: Any) -> list[dict[str, Any]]:
    """How many neighbouring tick labels overlap on each axis of a drawn axes."""
    found = []
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if not axes.get_visible() or not axis.get_visible() or not axes.axison:
            continue
        boxes = [_box(label, renderer) for label in _labels(axis)]
        pairs = [(one, two) for one, two in itertools.pairwise(boxes) if one.overlaps(two)]
        if pairs:
            found.append(
                {"axes": number, "axis": name, "pairs": len(pairs), "example": [pairs[0][0].text, pairs[0][1].text]}
            )
    return found


def large_legends(figure: Any, axes: list[Any]) -> list[dict[str, Any]]:
    """The legends with more entries than a reader can tell apart."""
    legends = [(number, one.get_legend()) for number, one in enumerate(axes)] + [
        (None, legend) for legend in figure.legends
    ]
    counts = [(number, len(legend.get_texts())) for number, legend in legends if legend is not None]
    return [{"axes": number, "entries": entries} for number, entries in counts if entries > MAX_LEGEND_ENTRIES]


def _labels(axis: Any) -> list[Any]:
    """The labels of major ticks within the view, in order along the axis."""
    low, high = sorted(axis.get_view_interval())
    ticks = [tick for tick in axis.get_major_ticks()[:MAX_LABELS] if low - 1e-9 <= tick.get_loc() <= high + 1e-9]
    ticks.sort(key=lambda tick: tick.get_loc())
    return [label for tick in ticks for label in (tick.label1,) if label.get_visible() and label.get_text().strip()]


def _box(label: Any, renderer: Any) -> _Box:
    drawn = label.get_window_extent(renderer)
    angle = label.get_rotation() % 180
    width, height = drawn.width, drawn.height
    if angle == 90:
        width, height = height, width
    elif angle:
        rotation = label.get_rotation()
        label.set_rotation(0)
        flat = label.get_window_extent(renderer)
        label.set_rotation(rotation)
        width, height = flat.width, flat.height
    return _Box(label.get_text(), drawn.x0 + drawn.width / 2, drawn.y0 + drawn.height / 2, width, height, angle)
