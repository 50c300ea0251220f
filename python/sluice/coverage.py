"""The law of coverage: whether a plotted series shows enough of the points that it should have.

`src/protocol/check-coverage.ts` is the same law for the host. Both are tested with `corpus/coverage`, and with generated
cases that compare their verdicts; change them together. docs/python.md states the law.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

#: A series with a smaller share of its expected points is reported.
MIN_COVERAGE = 0.6
#: Points are called regular only if random points of the same grid would look as regular with a smaller chance.
MAX_CHANCE = 5e-4
#: The same for calendar quarters and years that last from one end of the grid to the other, like four of them in twelve months.
MAX_CHANCE_THROUGHOUT = 5e-3
#: At least this share of the points must fit a calendar pattern.
FITTING_SHARE = 0.9
#: A step on a grid that differs by at most this share from the usual one counts as the same: third Fridays are 4 or 5 weeks apart.
STEP_TOLERANCE = 0.25
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
#: A longer grid of the usual step is not built.
MAX_OWN_GRID = 200_000
#: Milliseconds of a day.
DAY = 86_400_000.0


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

    They may all be shifted by the same part of a step, like the bars of a group. Points outside of the grid's span are
    left out if at least half of the points are inside.
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
    part = (inside - grid[below]) / size
    if bool(np.all(np.minimum(np.abs(part), np.abs(1 - part)) <= tolerance)):
        return np.unique(np.minimum(below + (part > 0.5), len(grid) - 1))
    circle = np.sort(np.mod(part, 1))
    spread = 1 - max(float(np.diff(circle).max(initial=0)), float(circle[0] + 1 - circle[-1]))
    return np.unique(below) if spread <= 2 * tolerance else None


class _Fit(NamedTuple):
    observed: int
    expected: int
    is_regular: bool = False


def _best_fit(grid: Any, found: Any) -> _Fit:
    """The coverage of the grid between the first and the last point, or of the best regular pattern that the points follow."""
    best = _Fit(len(found), int(found[-1] - found[0]) + 1)
    if best.observed >= MIN_COVERAGE * best.expected or len(found) < 3:
        return best
    for fit in _regular_fits(grid, found):
        if fit.observed * best.expected > best.observed * fit.expected:
            best = fit
    return best


def _regular_fits(grid: Any, found: Any) -> Iterator[_Fit]:
    usual = _lower_median(np.diff(grid))
    is_weekday = _is_weekday(grid)
    steps = [found, grid[found] / usual] + ([np.cumsum(is_weekday)[found]] if is_weekday[found].all() else [])
    for at in steps:
        fit = _fit_steps(at, found, len(grid))
        if fit is not None:
            yield fit
    for pattern in _calendar_patterns(grid, found):
        fit = _fit_pattern(pattern, found)
        if fit is not None:
            yield fit
    fit = _fit_hours(grid, found, usual)
    if fit is not None:
        yield fit


def _fit_steps(at: Any, found: Any, places: int) -> _Fit | None:
    """The points follow a usual step of at least two places, with few points between and some missing."""
    count = len(at)
    steps = np.diff(at)
    usual = _lower_median(steps)
    if usual < 1.5:
        return None
    is_single = (steps >= (1 - STEP_TOLERANCE) * usual) & (steps <= (1 + STEP_TOLERANCE) * usual)
    singles = steps[is_single]
    extra = int((steps < (1 - STEP_TOLERANCE) * usual).sum())
    if extra > (1 - FITTING_SHARE) * (count - 1):
        return None
    expected = 1 + int(np.maximum(np.floor(steps / usual + 0.5), 1).sum())
    widths = math.floor(singles.max() - singles.min() + 0.5) + 1
    others = count - 1 - len(singles)
    chance = (
        math.log(5 * usual * max(places - int(found[-1] - found[0]), 1))
        + len(singles) * math.log(widths)
        + others * math.log(places)
        + _log_choices(count - 1, others)
        - _log_choices(places, count)
    )
    return _Fit(count, expected, True) if chance < math.log(MAX_CHANCE) else None


class _Pattern(NamedTuple):
    """Places of a grid, and how many patterns like it there are."""

    flags: Any
    alternatives: float
    max_chance_throughout: float = MAX_CHANCE


def _fit_pattern(pattern: _Pattern, found: Any) -> _Fit | None:
    """Nearly all points are at places of the pattern."""
    flags, alternatives, max_chance_throughout = pattern
    places, count = len(flags), len(found)
    order = np.cumsum(flags)
    total = int(order[-1])
    hits = order[found[flags[found]]]
    hit = len(hits)
    if hit < 3 or hit < FITTING_SHARE * count or 1.2 * total > places:
        return None
    expected = int(hits[-1] - hits[0]) + 1
    chance = (
        math.log(alternatives * (total - expected + 1))
        + _log_choices(expected - 2, hit - 2)
        + (count - hit) * math.log(places)
        + _log_choices(count, hit)
        - _log_choices(places, count)
    )
    limit = max_chance_throughout if expected >= total - 1 else MAX_CHANCE
    return _Fit(hit, expected, True) if chance < math.log(limit) else None


def _calendar_patterns(grid: Any, found: Any) -> Iterator[_Pattern]:
    """The first, the last and the same place in each day, week, month, quarter and year."""
    middle = int(found[len(found) // 2])
    days = np.floor(grid / DAY)
    weeks = np.floor((days + 3) / 7)
    for period, offset in ((days, grid - days * DAY), (weeks, grid - (weeks * 7 - 3) * DAY)):
        yield _Pattern(_is_first(period), 2)
        yield _Pattern(_is_first(period[::-1])[::-1], 2)
        yield _like(offset == offset[middle])
    months = days.astype("int64").astype("datetime64[D]").astype("datetime64[M]").astype("int64")
    month_starts = months.astype("datetime64[M]").astype("datetime64[D]").astype("int64")
    offset = grid - month_starts * DAY
    starts, ends = _is_first(months), _is_first(months[::-1])[::-1]
    for length in (1, 3, 12):
        phase = np.mod(months, length)
        here = phase == phase[middle]
        for flags, usual_phase in ((starts & here, 0), (ends & here, length - 1)):
            is_usual = length > 1 and phase[middle] == usual_phase
            yield _Pattern(flags, 1, MAX_CHANCE_THROUGHOUT) if is_usual else _Pattern(flags, 2 * length)
        yield _like(here & (offset == offset[middle]))


def _like(flags: Any) -> _Pattern:
    return _Pattern(flags, len(flags) / max(int(flags.sum()), 1))


def _fit_hours(grid: Any, found: Any, usual: float) -> _Fit | None:
    """The points keep to some hours of the day, or to weekdays."""
    if usual > DAY:
        return None
    days = np.floor(grid / DAY)
    times = grid - days * DAY
    used = np.unique(times[found])
    pauses = np.diff(np.append(used, used[0] + DAY))
    longest = int(np.argmax(pauses))
    flags = np.mod(times - used[(longest + 1) % len(used)], DAY) <= DAY - pauses[longest]
    is_weekday = _is_weekday(grid)
    if is_weekday[found].all():
        flags = flags & is_weekday
    places, count, total = len(grid), len(found), int(flags.sum())
    if 1.2 * total > places:
        return None
    slots = math.floor(DAY / usual + 0.5)
    chance = math.log(2 * slots * slots) + _log_choices(total, count) - _log_choices(places, count)
    expected = int(flags[found[0] : found[-1] + 1].sum())
    return _Fit(count, expected, True) if chance < math.log(MAX_CHANCE) else None


def _is_weekday(times: Any) -> Any:
    return np.mod(np.floor(times / DAY) + 3, 7) < 5


def _is_first(period: Any) -> Any:
    return np.append(True, period[1:] != period[:-1])


def _judge_steps(own: Any) -> Verdict:
    """The verdict on a series that has only its own steps."""
    count = len(own)
    if count < 3:
        return COMPLETE
    weeks = np.floor((np.floor(own / DAY) + 3) / 7)
    steps = np.diff(own - weeks * 2 * DAY if _is_weekday(own).all() else own)
    usual = _lower_median(steps)
    tolerance = STEP_TOLERANCE if count >= 2 * FEW else OWN_STEP_TOLERANCE
    singles = int((np.abs(steps - usual) <= tolerance * usual).sum())
    if singles < REGULAR_SHARE * len(steps):
        return UNKNOWN
    expected = 1 + int(np.maximum(np.floor(steps / usual + 0.5), 1).sum())
    if count >= MIN_COVERAGE * expected or _keeps_hours(own, usual):
        return COMPLETE
    others = len(steps) - singles
    chance = others * math.log(expected) + _log_choices(len(steps), others) - _log_choices(expected, count)
    return _low(own, expected, OWN_STEP) if chance < math.log(MAX_CHANCE) else UNKNOWN


def _keeps_hours(own: Any, usual: float) -> bool:
    """Whether the points fill the hours and weekdays that they use."""
    places = math.floor((own[-1] - own[0]) / usual + 0.5) + 1
    if usual > DAY / 3 or places > MAX_OWN_GRID:
        return False
    grid = own[0] + usual * np.arange(places)
    found = np.unique(np.floor((own - own[0]) / usual + 0.5).astype("int64"))
    fit = _fit_hours(grid, found, usual)
    return fit is not None and fit.observed >= MIN_COVERAGE * fit.expected


def _lower_median(steps: Any) -> float:
    return float(np.sort(steps)[(len(steps) - 1) // 2])


def _log_choices(total: int, chosen: int) -> float:
    """The logarithm of the number of ways to choose from `total` things."""
    return _log_factorial(total) - _log_factorial(chosen) - _log_factorial(total - chosen)


def _log_factorial(number: int) -> float:
    if number < 16:
        return math.log(math.factorial(number))
    return (number + 0.5) * math.log(number) - number + 0.5 * math.log(2 * math.pi) + 1 / (12 * number)
