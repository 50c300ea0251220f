"""Remembers which values pandas replaces by zeros when it draws areas and bars, so that they count as missing."""

from __future__ import annotations

import functools
from typing import Any

import pandas as pd


def drawn_nulls(axes: Any, label: str, count: int) -> Any:
    """Which of the `count` values of the series with this label were null; None if that is not known."""
    records = getattr(axes.get_figure(root=True), "_sluice_nulls", {})
    nulls = records.get(label)
    return nulls if nulls is not None and len(nulls) == count else None


def watch_nulls(core: Any) -> None:
    """Record the nulls of each area and bar plot of pandas. Calling it again changes nothing."""
    for kind in (core.AreaPlot, core.BarPlot):
        _watch(kind, "__init__", _remember_data)
    _watch(core.MPLPlot, "generate", _attach_to_figure)


def _watch(kind: Any, name: str, remember: Any) -> None:
    original = getattr(kind, name)
    if getattr(original, "_sluice_watched", False):
        return

    @functools.wraps(original)
    def watched(self: Any, *args: Any, **more: Any) -> Any:
        result = original(self, *args, **more)
        try:
            remember(self, *args, **more)
        except Exception:  # without a record, the zeros count as values
            return result
        return result

    watched._sluice_watched = True  # type: ignore[attr-defined]
    setattr(kind, name, watched)


def _remember_data(plot: Any, data: Any, *_args: Any, **more: Any) -> None:
    frame = data.to_frame(more.get("label") or data.name) if isinstance(data, pd.Series) else data
    if frame.index.is_monotonic_increasing and frame.columns.is_unique:
        plot._sluice_nulls = {str(name): column.isna().to_numpy() for name, column in frame.items()}


def _attach_to_figure(plot: Any) -> None:
    nulls = getattr(plot, "_sluice_nulls", None)
    if nulls:
        figure = plot.axes[0].get_figure(root=True)
        figure._sluice_nulls = {**getattr(figure, "_sluice_nulls", {}), **nulls}
