"""Reads lines, steps, stems and markers."""

from __future__ import annotations

from typing import Any

import numpy as np

from sluice.figures.plot_calls import call_record
from sluice.figures.reading import Reading
from sluice.figures.scales import plain_numbers


def read_stems(reading: Reading) -> None:
    """Read the points of `stem` from its heads. Stalks and the base line only decorate them."""
    from matplotlib.container import StemContainer

    for container in reading.axes.containers:
        if isinstance(container, StemContainer):
            stalks = container.stemlines if isinstance(container.stemlines, list) else [container.stemlines]
            parts = [container.markerline, container.baseline, *stalks]
            reading.claim(*parts)
            record = call_record(container, "stem") or {}
            more = {"orientation": "horizontal" if record.get("horizontal") else None, "artists": [container, *parts]}
            bottom, along = record.get("bottom"), reading.x if record.get("horizontal") else reading.y
            if bottom is not None and (bottom or along.kind == "time"):
                more["baseline"] = along.values(np.full(np.shape(container.markerline.get_xdata()), bottom))
            _add(reading, "stem", container.markerline, container.get_label(), **more)


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
            _add(reading, line_kind(line), line, line.get_label(), where=_where(line))


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
        record = call_record(points, "scatter")
        plain = (
            (record["x"], record["y"]) if record and np.array_equal(record["offsets"], offsets.data) else (None, None)
        )
        values = reading.x.values(x, plain[0]), reading.y.values(y, plain[1])
        times = reading.nanoseconds(x=(x, plain[0]), y=(y, plain[1]))
        reading.add("scatter", points.get_label(), *values, z=z, artists=[points], **times)
        if len(set(np.ravel(points.get_sizes()).tolist())) > 1:
            reading.cannot_read(points, "the sizes of the markers")


def line_kind(line: Any) -> str:
    """Whether a Line2D shows a line, steps, or only its markers."""
    if str(line.get_drawstyle()).startswith("steps"):
        return "step"
    return "scatter" if line.get_linestyle() in ("None", "", " ", "none") else "line"


def _where(line: Any) -> str | None:
    """Where the steps of a line are: ``pre`` (before each point), ``mid`` or ``post``."""
    style = str(line.get_drawstyle())
    return (style.partition("-")[2] or "pre") if style.startswith("steps") else None


def _add(reading: Reading, kind: str, line: Any, label: Any, **more: Any) -> None:
    x, y = (line.get_xdata(orig=False), line.get_xdata()), (line.get_ydata(orig=False), line.get_ydata())
    if reading.is_too_large(line, len(x[0])):
        return
    more = {"artists": [line], **reading.nanoseconds(x=x, y=y), **more}
    series = reading.add(kind, label, reading.x.values(*x), reading.y.values(*y), **more)
    reading.lines.append((line, series))


def _is_at_data(reading: Reading, points: Any) -> bool:
    return bool(points.get_offset_transform().contains_branch(reading.axes.transData))


def _reference(reading: Reading, line: Any) -> str:
    in_x, in_y = line.get_transform().contains_branch_seperately(reading.axes.transData)
    if in_x or in_y:
        scale, numbers = (reading.x, line.get_xdata(orig=False)) if in_x else (reading.y, line.get_ydata(orig=False))
        return f"a reference line at {'x' if in_x else 'y'} = {scale.text(numbers[0]) if len(numbers) else '?'}"
    return "a line in figure coordinates, not data"
