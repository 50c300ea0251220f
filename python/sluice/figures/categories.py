"""Decides which category each bar, box or cell stands at, where tick labels were set by hand or bars stand beside their tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sluice.figures.scales import Scale

#: Two places are the same within this share of the distance between ticks.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Slots:
    """The stretches of one axis that the bars, boxes or cells of a series take up."""

    series: dict[str, Any]
    axis: str
    low: Any
    high: Any

    @property
    def centres(self) -> Any:
        """The middle of each stretch."""
        return (self.low + self.high) / 2


def assign_categories(scale: Scale, axis: str, slots: Sequence[Slots]) -> str:
    """Return the kind of the axis, and add to bars beside their tick the index of their category.

    An axis whose tick labels were set by hand is one of categories if each bar, box or cell stands on a tick, or is part of
    a group around one tick. In doubt it stays an axis of numbers.
    """
    ticks = np.array(sorted(scale.labels))
    own = [one for one in slots if one.axis == axis and len(one.low)]
    if not len(ticks) or not own or scale.kind not in ("linear", "category"):
        return scale.kind
    for one in own:
        if one.series["type"] == "histogram" and scale.kind == "category":
            _name_bins(one, ticks)
    others = [one for one in own if one.series["type"] != "histogram"]
    chosen = (_by_group(others, ticks) or _by_distance(others, ticks)) if others else None
    if chosen is None:
        return scale.kind
    for one, indices in zip(others, chosen, strict=True):
        if one.series["type"] != "heatmap" and not np.array_equal(ticks[indices], one.series[axis]):
            one.series[f"{axis}Categories"] = indices.tolist()
    return "category"


def _name_bins(slots: Slots, ticks: Any) -> None:
    """A bin of text holds what was counted for the one category in it; the last bin includes its end."""
    first, after = np.searchsorted(ticks, slots.low), np.searchsorted(ticks, slots.high)
    after[-1] = np.searchsorted(ticks, slots.high[-1], side="right")
    if np.all(after - first == 1):
        slots.series[f"{slots.axis}Categories"] = first.tolist()


def _by_group(slots: Sequence[Slots], ticks: Any) -> list[Any] | None:
    """The category of each bar, if gaps separate the groups and each group is around exactly one tick.

    A group is around a tick if one of its bars, its middle or its edge is on it.
    """
    near = TOLERANCE * _step(ticks)
    low, high = (np.concatenate([getattr(one, name) for one in slots]) for name in ("low", "high"))
    if not np.all(np.isfinite(low) & np.isfinite(high)):
        return None
    order = np.argsort(low)
    low, high = low[order], high[order]
    starts = np.flatnonzero(np.concatenate([[True], low[1:] > np.maximum.accumulate(high)[:-1] + near]))
    first, last = low[starts], np.maximum.reduceat(high, starts)
    tick = np.searchsorted(ticks, first - near)
    if not np.all(np.searchsorted(ticks, last + near, side="right") - tick == 1):
        return None
    group = np.repeat(np.arange(len(starts)), np.diff([*starts, len(low)]))
    on_tick = np.logical_or.reduceat(np.abs((low + high) / 2 - ticks[tick[group]]) <= near, starts)
    for anchor in ((first + last) / 2, first, last):
        on_tick |= np.abs(anchor - ticks[tick]) <= near
    category = np.empty(len(low), int)
    category[order] = tick[group]
    return _split(category, slots) if np.all(on_tick) else None


def _by_distance(slots: Sequence[Slots], ticks: Any) -> list[Any] | None:
    """The category of each bar, if the bars around each tick are placed alike, and evenly to both sides."""
    centres = np.concatenate([one.centres for one in slots])
    if not np.all(np.isfinite(centres)):
        return None
    step = _step(ticks)
    above = np.clip(np.searchsorted(ticks, centres), 0, len(ticks) - 1)
    below = np.maximum(above - 1, 0)
    nearest = np.where(centres - ticks[below] < ticks[above] - centres, below, above)
    offsets = np.round((centres - ticks[nearest]) / step, 7)
    pattern = np.unique(offsets)
    used = np.unique(nearest)
    alike = len(np.unique(np.stack([nearest, offsets]), axis=1).T) == len(used) * len(pattern)
    even = pattern[-1] < 0.5 and np.allclose(pattern, -pattern[::-1], atol=1e-6)
    return _split(nearest, slots) if alike and even else None


def _split(categories: Any, slots: Sequence[Slots]) -> list[Any] | None:
    """The categories by series. None if a series has two bars in one category."""
    chosen = np.split(categories, np.cumsum([len(one.low) for one in slots])[:-1])
    return chosen if all(len(np.unique(one)) == len(one) for one in chosen) else None


def _step(ticks: Any) -> float:
    return float(np.diff(ticks).min()) if len(ticks) > 1 else 1.0
