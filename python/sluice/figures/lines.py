"""Reads lines, steps, stems and markers."""

from __future__ import annotations

from typing import Any

import numpy as np

from sluice.figures.reading import Reading
from sluice.figures.scales import plain_numbers


def read_stems(reading: Reading) -> None:
    """Read the points of `stem` from its heads. Stalks and the base line only decorate them."""
    from matplotlib.container import StemContainer

    for container in reading.axes.containers:
        if isinstance(container, StemContainer):
            stalks = container.stemlines if isinstance(container.stemlines, list) else [container.stemlines]
            reading.claim(container.markerline, container.baseline, *stalks)
            _add(reading, "scatter", container.markerline, container.get_label())


def read_lines(reading: Reading) -> None:
    """Read every line that shows data. Lines across the whole axes are listed as reference lines."""
    from matplotlib.lines import AxLine

    for line in reading.remaining(reading.axes.lines):
        reading.claim(line)
        if isinstance(line, AxLine):
            reading.cannot_read(line, "a reference line, not data")
        elif not reading.is_data(line):
            reading.cannot_read(line, _reference(reading, line))
        elif len(line.get_xdata(orig=False)):
            _add(reading, line_kind(line), line, line.get_label())


def read_scatters(reading: Reading) -> None:
    """Read scatter plots, with the numbers behind their colours. Marker sizes are listed as unread."""
    from matplotlib.collections import PathCollection

    for points in reading.remaining(reading.axes.collections):
        if not isinstance(points, PathCollection) or not _is_at_data(reading, points):
            continue
        reading.claim(points)
        offsets: Any = np.ma.asarray(points.get_offsets())
        if not len(offsets) or reading.is_too_large(points, len(offsets)):
            continue
        colours = points.get_array()
        z = None if colours is None else [plain_numbers(colours)]
        x, y = np.ma.getdata(offsets)[:, 0], offsets[:, 1]  # matplotlib masks both where one is missing
        reading.add("scatter", points.get_label(), reading.x.values(x), reading.y.values(y), z=z)
        if len(set(np.ravel(points.get_sizes()).tolist())) > 1:
            reading.cannot_read(points, "the sizes of the markers")


def line_kind(line: Any) -> str:
    """Whether a Line2D shows a line, steps, or only its markers."""
    if str(line.get_drawstyle()).startswith("steps"):
        return "step"
    return "scatter" if line.get_linestyle() in ("None", "", " ", "none") else "line"


def _add(reading: Reading, kind: str, line: Any, label: Any) -> None:
    if reading.is_too_large(line, len(line.get_xdata(orig=False))):
        return
    x = reading.x.values(line.get_xdata(orig=False), line.get_xdata(orig=True))
    y = reading.y.values(line.get_ydata(orig=False), line.get_ydata(orig=True))
    reading.add(kind, label, x, y)
    reading.lines.append((line, reading.series[-1]))


def _is_at_data(reading: Reading, points: Any) -> bool:
    return bool(points.get_offset_transform().contains_branch(reading.axes.transData))


def _reference(reading: Reading, line: Any) -> str:
    in_x, in_y = line.get_transform().contains_branch_seperately(reading.axes.transData)
    if in_x or in_y:
        scale, numbers = (reading.x, line.get_xdata(orig=False)) if in_x else (reading.y, line.get_ydata(orig=False))
        value = scale.values(numbers)
        return f"a reference line at {'x' if in_x else 'y'} = {value[0] if value else '?'}"
    return "a line in figure coordinates, not data"
