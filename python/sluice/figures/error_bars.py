"""Reads error bars, alone or on top of bars."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sluice.figures.plot_calls import call_record
from sluice.figures.reading import Reading
from sluice.figures.scales import as_floats, plain_numbers

MILLISECONDS_A_DAY = 86_400_000


def read_errorbars(reading: Reading) -> None:
    """Read every container of error bars that does not belong to bars."""
    from matplotlib.container import BarContainer, ErrorbarContainer

    containers = reading.axes.containers
    of_bars = {id(bars.errorbar) for bars in containers if isinstance(bars, BarContainer) and bars.errorbar is not None}
    for container in containers:
        if not isinstance(container, ErrorbarContainer):
            continue
        line, caps, stems = container.lines
        reading.claim(*caps, *stems, *([line] if line is not None else []))
        if id(container) not in of_bars:
            _read_errorbar(reading, container, line)


def error_lengths(reading: Reading, container: Any, count: int) -> dict[str, list[Any]]:
    """``xerr`` and ``yerr`` as passed to the call: a length, or a pair of lengths below and above, null where no bar is drawn.

    On a time axis lengths are milliseconds. ``uplims`` and so on mark the points that were given as limits.
    """
    stems = list(container.lines[2])
    found: dict[str, list[Any]] = {}
    record = call_record(container, "errorbar") or {}
    for axis, scale, has in (("x", reading.x, container.has_xerr), ("y", reading.y, container.has_yerr)):
        if not has:
            continue
        if scale.kind == "time" and scale.period_freq is not None:
            reading.cannot_read(container, "the lengths of error bars on an axis of periods")
            continue
        drawn = _ends(stems.pop(0), "xy".index(axis)) if stems else None
        prefix = "x" if axis == "x" else ""
        limits = {name: _flags(record.get(name), count) for name in (f"{prefix}lolims", f"{prefix}uplims")}
        lengths = _exact_lengths(record, axis, limits, drawn, count) or _drawn_lengths(
            reading, record, axis, drawn, count
        )
        if lengths is None:
            reading.cannot_read(
                container, f"the lengths of error bars along {axis}, which were changed after they were drawn"
            )
            continue
        unit = MILLISECONDS_A_DAY if scale.kind == "time" else 1
        found[f"{axis}err"] = _pairs(*(_scaled(length, unit) for length in lengths))
        found |= {name: flags.tolist() for name, flags in limits.items() if flags.any()}
    return found


def _read_errorbar(reading: Reading, container: Any, line: Any) -> None:
    record = call_record(container, "errorbar")
    if line is not None:
        numbers, plain = (line.get_xdata(orig=False), line.get_ydata(orig=False)), (line.get_xdata(), line.get_ydata())
    elif record is not None:
        axes = reading.axes
        plain = (np.atleast_1d(np.asarray(record["x"])), np.atleast_1d(np.asarray(record["y"])))
        numbers = (axes.xaxis.convert_units(plain[0]), axes.yaxis.convert_units(plain[1]))
    else:
        reading.cannot_read(container, "error bars without a line that were drawn before sluice was loaded")
        return
    x, y = reading.x.values(numbers[0], plain[0]), reading.y.values(numbers[1], plain[1])
    parts = [container, line, *container.lines[1], *container.lines[2]]
    more = reading.nanoseconds(x=(numbers[0], plain[0]), y=(numbers[1], plain[1]))
    reading.add(
        "errorbar", container.get_label(), x, y, artists=parts, **more, **error_lengths(reading, container, len(x))
    )


def _exact_lengths(
    record: dict[str, Any], axis: str, limits: dict[str, Any], drawn: tuple[Any, Any] | None, count: int
) -> tuple[Any, Any] | None:
    """The lengths below and above as they were passed to the call, if bars of these lengths are drawn."""
    given = _both_sides(record.get(f"{axis}err"), count)
    if given is None:
        return None
    low, up = limits.values()
    is_drawn = _every(record.get("errorevery", 1), count)
    if drawn is not None:
        # A limit has a bar to one side only.
        widths = (np.where(low, 0, given[0]) + np.where(up, 0, given[1]))[is_drawn]
        if len(widths) != len(drawn[0]) or not _are_apart(widths, drawn):
            return None
    below, above = (np.where(is_drawn, length, np.nan) for length in given)
    return below, above


def _drawn_lengths(
    reading: Reading, record: dict[str, Any], axis: str, drawn: tuple[Any, Any] | None, count: int
) -> tuple[Any, Any] | None:
    if drawn is None or len(drawn[0]) != count:
        return None
    one_axis = getattr(reading.axes, f"{axis}axis")
    middle = as_floats(one_axis.convert_units(record[axis])) if axis in record else (drawn[0] + drawn[1]) / 2
    return middle - drawn[0], drawn[1] - middle


def _are_apart(lengths: Any, ends: tuple[Any, Any]) -> bool:
    """Whether the drawn ends are those lengths apart, except for rounding errors."""
    drawn = ends[1] - ends[0]
    present = np.isfinite(drawn)  # a missing point or length draws nothing
    rounding = 1e-12 * np.nanmax(np.abs(ends), initial=0)
    return np.allclose(lengths[present], drawn[present], rtol=1e-12, atol=rounding)


def _ends(stems: Any, direction: int) -> tuple[Any, Any]:
    ends = np.array(
        [
            [segment[0][direction], segment[-1][direction]] if len(segment) else [np.nan, np.nan]
            for segment in stems.get_segments()
        ],
        dtype=float,
    ).reshape(-1, 2)
    return ends[:, 0], ends[:, 1]


def _both_sides(errors: Any, count: int) -> tuple[Any, Any] | None:
    """The lengths below and above, from one number, one number per point, or two rows. Durations in days, as drawn."""
    if errors is None:
        return None
    try:
        array = np.asarray(errors)
        if array.dtype.kind in "mO":
            array = pd.to_timedelta(array.ravel()).to_numpy().reshape(array.shape) / np.timedelta64(1, "D")
        both = np.broadcast_to(array.astype(float), (2, count))
    except (TypeError, ValueError):
        return None
    return both[0], both[1]


def _flags(limits: Any, count: int) -> Any:
    return np.broadcast_to(False if limits is None else limits, (count,)).astype(bool)


def _every(errorevery: Any, count: int) -> Any:
    """Which points have error bars: every nth, from an offset, or as listed."""
    if isinstance(errorevery, int):
        errorevery = (0, errorevery)
    chosen = slice(errorevery[0], None, errorevery[1]) if isinstance(errorevery, tuple) else errorevery
    mask = np.zeros(count, bool)
    mask[chosen] = True
    return mask


def _scaled(lengths: Any, unit: int) -> Any:
    return lengths if unit == 1 else np.round(lengths * unit, 3)


def _pairs(below: Any, above: Any) -> list[Any]:
    low, high = plain_numbers(below), plain_numbers(above)
    return low if low == high else [list(pair) for pair in zip(low, high, strict=True)]
