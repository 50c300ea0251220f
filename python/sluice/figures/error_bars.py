"""Reads error bars, alone or on top of bars."""

from __future__ import annotations

from typing import Any

import numpy as np

from sluice.figures.plot_calls import call_record
from sluice.figures.reading import Reading
from sluice.figures.scales import as_floats, plain_numbers


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
    """``xerr`` and ``yerr`` as passed to the call: a length, or a pair of lengths below and above. None on a time axis."""
    stems = list(container.lines[2])
    lengths: dict[str, list[Any]] = {}
    record = call_record(container, "errorbar") or {}
    for name, has, direction in (("xerr", container.has_xerr, 0), ("yerr", container.has_yerr, 1)):
        if not has:
            continue
        ends = _ends(stems.pop(0), direction, count) if stems else None
        if (reading.x, reading.y)[direction].kind == "time":
            reading.cannot_read(container, "the lengths of error bars on a time axis")
            continue
        exact = _exact(record.get(name), count)
        if exact is not None and (ends is None or _is_close(np.sum(exact, axis=0), ends)):
            lengths[name] = _pairs(*exact)
        elif ends is not None:
            middle = as_floats(record["xy"[direction]]) if "x" in record else (ends[0] + ends[1]) / 2
            lengths[name] = _pairs(middle - ends[0], ends[1] - middle)
    return lengths


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
    reading.add("errorbar", container.get_label(), x, y, **error_lengths(reading, container, len(x)))


def _is_close(lengths: Any, ends: tuple[Any, Any]) -> bool:
    """Whether the drawn ends are those lengths apart, except for rounding errors."""
    drawn = ends[1] - ends[0]
    present = np.isfinite(drawn)  # a missing point or length draws nothing
    rounding = 1e-12 * np.nanmax(np.abs(ends), initial=0)
    return np.allclose(lengths[present], drawn[present], rtol=1e-12, atol=rounding)


def _ends(stems: Any, direction: int, count: int) -> tuple[Any, Any] | None:
    segments = stems.get_segments()
    if len(segments) != count:
        return None
    ends = np.array(
        [[segment[0][direction], segment[-1][direction]] if len(segment) else [np.nan, np.nan] for segment in segments],
        dtype=float,
    )
    return ends[:, 0], ends[:, 1]


def _exact(errors: Any, count: int) -> tuple[Any, Any] | None:
    """The lengths below and above, from one number, one number per point, or two rows."""
    if errors is None:
        return None
    try:
        array = np.asarray(errors, dtype=float)
    except (TypeError, ValueError):
        return None
    if array.ndim == 2 and array.shape == (2, count):
        return array[0], array[1]
    if array.ndim <= 1 and (array.ndim == 0 or array.shape == (count,)):
        both = np.broadcast_to(array, (count,))
        return both, both
    return None


def _pairs(below: Any, above: Any) -> list[Any]:
    low, high = plain_numbers(below), plain_numbers(above)
    return low if low == high else [list(pair) for pair in zip(low, high, strict=True)]
