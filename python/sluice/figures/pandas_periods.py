"""Remembers the times that pandas replaces by periods when it draws a regular series.

`series.plot()` draws a week, month or business day at the number of its period. The day within the period is lost, so that
Sundays would be read back as the Mondays on which their weeks start.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sluice.figures.pandas_nulls import watch_nulls


@dataclass(frozen=True)
class ConvertedTimes:
    """The times of one frame, and the ordinals of the periods that pandas drew instead."""

    freq: Any
    ordinals: Any
    times: pd.DatetimeIndex

    def at(self, places: Any) -> pd.DatetimeIndex | None:
        """The times at these ordinals, or None if some of them are not of this frame."""
        order = np.argsort(self.ordinals)
        present = np.isfinite(places)
        found = np.searchsorted(self.ordinals[order], np.where(present, places, self.ordinals[0]))
        chosen = order[np.minimum(found, len(order) - 1)]
        if not np.array_equal(self.ordinals[chosen][present], places[present]):
            return None
        found_times: pd.DatetimeIndex = self.times[chosen].where(present)
        return found_times


def converted_times(axes: Any, freq: Any) -> Sequence[ConvertedTimes]:
    """What pandas converted for the figure of this axes, at the frequency of its time axis.

    Empty if the same period stands for different times in two frames.
    """
    records = [one for one in getattr(axes.get_figure(root=True), "_sluice_converted", ()) if one.freq == freq]
    times: dict[int, pd.Timestamp] = {}
    for one in records:
        for ordinal, time in zip(one.ordinals.tolist(), one.times, strict=True):
            if times.setdefault(ordinal, time) != time:
                return ()
    return records


def watch_pandas() -> None:
    """Record the conversions of pandas' plotting, which is only imported by the first plot. Calling it again changes nothing."""
    from pandas.plotting import _core

    core: Any = _core
    load = core._get_plot_backend
    if getattr(load, "_sluice_watched", False):
        return

    @functools.wraps(load)
    def get_backend(backend: str | None = None) -> Any:
        module = load(backend)
        if getattr(module, "__name__", "") == "pandas.plotting._matplotlib":
            _watch_conversion(module.core)
            watch_nulls(module.core)
        return module

    get_backend._sluice_watched = True  # type: ignore[attr-defined]
    core._get_plot_backend = get_backend


def _watch_conversion(core: Any) -> None:
    convert = getattr(core, "maybe_convert_index", None)
    if convert is None or getattr(convert, "_sluice_watched", False):
        return

    @functools.wraps(convert)
    def watched(axes: Any, data: Any) -> Any:
        converted = convert(axes, data)
        try:
            _remember(axes, data.index, *converted)
        except Exception:  # without a record the periods are read
            return converted
        return converted

    watched._sluice_watched = True  # type: ignore[attr-defined]
    core.maybe_convert_index = watched


def _remember(axes: Any, times: Any, drawn: Any, freq: str) -> None:
    ordinals = np.asarray(drawn.index.asi8 if isinstance(drawn.index, pd.PeriodIndex) else drawn.index)
    if not isinstance(times, pd.DatetimeIndex) or not times.is_unique or len(np.unique(ordinals)) != len(times):
        return
    figure = axes.get_figure(root=True)
    record = ConvertedTimes(pd.tseries.frequencies.to_offset(freq, is_period=True), ordinals, times)
    figure._sluice_converted = [*getattr(figure, "_sluice_converted", []), record]
