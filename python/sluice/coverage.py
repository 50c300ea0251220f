"""The law of coverage: whether a plotted series shows enough of the points that it should have.

`src/protocol/judge-coverage.ts` is the same law for charts that the host draws. `corpus/coverage` holds both to the same
verdicts; change them together. docs/python.md states the law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from sluice.regular_points import (
    DAY,
    MAX_CHANCE,
    STEP_TOLERANCE,
    Fit,
    fits_hours,
    is_weekday,
    log_choices,
    lower_median,
    regular_fits,
)

#: A series with a smaller share of its expected points is reported.
MIN_COVERAGE = 0.6
#: The same for fewer than ten points without a grid: months have 28 to 31 days.
OWN_STEP_TOLERANCE = 0.1
#: Steps are regular if at least this share of them are the usual one.
REGULAR_SHARE = 0.8
#: A point lies on a grid if it is this close to a place of it, as a share of the step there: clocks change by 4 % of a day.
PLACE_TOLERANCE = 0.05
#: The same for fewer than five points, which are close to places by chance.
EXACT_PLACE_TOLERANCE = 0.00001
FEW = 5
#: A series alone with one or two points is judged over its whole index, if that has at least as many places.
MIN_INDEX = 10


@dataclass(frozen=True)
class PlottedSeries:
    """One series as the law sees it.

    Attributes
    ----------
    label : str
        The name of the series in reports.
    places : array of float
        Its places on the time axis, nulls included: milliseconds since 1970 on the wall clock of the axis.
    has_value : array of bool
        Whether the series has a value at each place.
    markers : bool
        Whether only markers are drawn, without a line, bars or an area.
    """

    label: str
    places: Any
    has_value: Any
    markers: bool = False


class Verdict(NamedTuple):
    """What the law says about a series. `against` is the label of the series whose grid was used, or words for its own."""

    kind: Literal["complete", "low", "unknown"]
    observed: int = 0
    expected: int = 0
    against: str = ""
    #: The longest stretch without a point: its first and its last millisecond.
    gap: tuple[float, float] = (0.0, 0.0)


OWN_INDEX = "its own index"
OWN_STEP = "its own step"
COMPLETE = Verdict("complete")
UNKNOWN = Verdict("unknown")


def judge_coverage(series: Sequence[PlottedSeries]) -> list[Verdict | None]:
    """Judge all series that share one time axis. None for a series that is not judged: without a value, or markers beside others."""
    grids = [np.unique(one.places[np.isfinite(one.places)]) for one in series]
    points = [np.unique(one.places[one.has_value & np.isfinite(one.places)]) for one in series]
    is_alone = sum(len(own) > 0 for own in points) == 1
    known = {grid.tobytes(): (grid, one.label) for grid, one in zip(grids, series, strict=True)}
    verdicts: list[Verdict | None] = []
    for one, own_index, own in zip(series, grids, points, strict=True):
        if not len(own) or (one.markers and not is_alone):
            verdicts.append(None)
        elif is_alone and len(own) < 3 and len(own_index) >= MIN_INDEX:
            verdicts.append(_low(own, len(own_index), OWN_INDEX, (own_index[0], own_index[-1])))
        else:
            others = [entry for entry in known.values() if entry[0] is not own_index]
            verdicts.append(_judge_one(own, own_index, others))
    return verdicts


def _judge_one(own: Any, own_index: Any, others: Sequence[tuple[Any, str]]) -> Verdict:
    candidates = ([(own_index, OWN_INDEX)] if len(own_index) > len(own) else []) + [
        entry for entry in others if not np.array_equal(entry[0], own_index)
    ]
    lowest: Verdict | None = None
    is_judged = False
    for grid, name in candidates:
        if MIN_COVERAGE * len(grid) < 0.5 * len(own):
            continue
        found = _places_on(own, grid)
        if found is None or (len(found) < len(own) and _judge_steps(own) == COMPLETE):
            continue
        is_judged = True
        fit = _best_fit(grid, found)
        if fit.is_regular and fit.observed >= MIN_COVERAGE * fit.expected:
            return COMPLETE
        if fit.observed < MIN_COVERAGE * fit.expected and (
            lowest is None or fit.observed * lowest.expected < lowest.observed * fit.expected
        ):
            lowest = _low(own, fit.expected, name)._replace(observed=fit.observed)
    if is_judged:
        return lowest or COMPLETE
    return _judge_steps(own)


def _low(own: Any, expected: int, against: str, ends: tuple[float, float] | None = None) -> Verdict:
    bounds = own if ends is None else np.concatenate([[ends[0]], own, [ends[1]]])
    widest = int(np.argmax(np.diff(bounds))) if len(bounds) > 1 else 0
    gap = (float(bounds[widest]), float(bounds[min(widest + 1, len(bounds) - 1)]))
    return Verdict("low", len(own), expected, against, gap)


def _places_on(own: Any, grid: Any) -> Any:
    """The number of the grid's place for each point, or None if the points do not lie on the grid.

    They may all be shifted by the same time or the same part of a step, like the bars of a group. Points outside of the
    grid's span are left out if at least half of the points are inside.
    """
    if len(grid) < 2:
        return None
    steps = np.diff(grid)
    tolerance = PLACE_TOLERANCE if len(own) >= FEW else EXACT_PLACE_TOLERANCE
    inside = own[(own >= grid[0] - tolerance * steps[0]) & (own < grid[-1] + steps[-1])]
    if len(inside) < max(2, 0.5 * len(own)):
        return None
    below = np.clip(np.searchsorted(grid, inside, side="right") - 1, 0, len(grid) - 1)
    size = steps[np.minimum(below, len(steps) - 1)]
    after = inside - grid[below]
    part = after / size
    if bool(np.all(np.minimum(np.abs(part), np.abs(1 - part)) <= tolerance)):
        return np.unique(np.minimum(below + (part > 0.5), len(grid) - 1))
    same_time = 2 * tolerance * lower_median(steps)
    if np.ptp(after) <= same_time:
        return np.unique(below)
    if np.ptp(size - after) <= same_time:
        return np.unique(np.minimum(below + 1, len(grid) - 1))
    circle = np.sort(np.mod(part, 1))
    spread = 1 - max(float(np.diff(circle).max(initial=0)), float(circle[0] + 1 - circle[-1]))
    return np.unique(below) if spread <= 2 * tolerance else None


def _best_fit(grid: Any, found: Any) -> Fit:
    """The coverage of the grid between the first and the last point, or of the best regular pattern that the points follow."""
    best = Fit(len(found), int(found[-1] - found[0]) + 1)
    if best.observed >= MIN_COVERAGE * best.expected or len(found) < 3:
        return best
    for fit in regular_fits(grid, found):
        if fit.observed * best.expected > best.observed * fit.expected:
            best = fit
    return best


def _judge_steps(own: Any) -> Verdict:
    """The verdict on a series that has only its own steps."""
    count = len(own)
    if count < 3:
        return COMPLETE
    weeks = np.floor((np.floor(own / DAY) + 3) / 7)
    steps = np.diff(own - weeks * 2 * DAY if is_weekday(own).all() else own)
    usual = lower_median(steps)
    tolerance = STEP_TOLERANCE if count >= 2 * FEW else OWN_STEP_TOLERANCE
    singles = int((np.abs(steps - usual) <= tolerance * usual).sum())
    if singles < REGULAR_SHARE * len(steps):
        return UNKNOWN
    expected = 1 + int(np.maximum(np.floor(steps / usual + 0.5), 1).sum())
    if count >= MIN_COVERAGE * expected or fits_hours(own, usual, MIN_COVERAGE):
        return COMPLETE
    others = len(steps) - singles
    chance = others * math.log(expected) + log_choices(len(steps), others) - log_choices(expected, count)
    return _low(own, expected, OWN_STEP) if chance < math.log(MAX_CHANCE) else UNKNOWN
