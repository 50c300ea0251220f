"""Regular patterns that the points of a series may follow on a grid: steps, calendars, hours. For the law in coverage.py.

`src/protocol/regular-points.ts` is the same for the host.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

#: Points are called regular only if random points of the same grid would look as regular with a smaller chance.
MAX_CHANCE = 5e-4
#: The same for calendar quarters and years that last from one end of the grid to the other, like four of them in twelve months.
MAX_CHANCE_THROUGHOUT = 5e-3
#: At least this share of the points must fit a calendar pattern.
FITTING_SHARE = 0.9
#: A step on a grid that differs by at most this share from the usual one counts as the same: third Fridays are 4 or 5 weeks apart.
STEP_TOLERANCE = 0.25
#: A longer grid of the usual step is not built.
MAX_OWN_GRID = 200_000
#: Milliseconds of a day.
DAY = 86_400_000.0


class Fit(NamedTuple):
    """How many points of a pattern a series has, between its first and its last point."""

    observed: int
    expected: int
    is_regular: bool = False


def regular_fits(grid: Any, found: Any) -> Iterator[Fit]:
    """All regular patterns that the points of a grid follow, apart from chance. `found` has the numbers of their places."""
    usual = lower_median(np.diff(grid))
    weekdays = is_weekday(grid)
    steps = [found, grid[found] / usual] + ([np.cumsum(weekdays)[found]] if weekdays[found].all() else [])
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


def _fit_steps(at: Any, found: Any, places: int) -> Fit | None:
    """The points follow a usual step of at least two places, with few points between and some missing."""
    count = len(at)
    steps = np.diff(at)
    usual = lower_median(steps)
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
        + log_choices(count - 1, others)
        - log_choices(places, count)
    )
    return Fit(count, expected, True) if chance < math.log(MAX_CHANCE) else None


class _Pattern(NamedTuple):
    """Places of a grid, and how many patterns like it there are."""

    flags: Any
    alternatives: float
    max_chance_throughout: float = MAX_CHANCE


def _fit_pattern(pattern: _Pattern, found: Any) -> Fit | None:
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
        + log_choices(expected - 2, hit - 2)
        + (count - hit) * math.log(places)
        + log_choices(count, hit)
        - log_choices(places, count)
    )
    limit = max_chance_throughout if expected >= total - 1 else MAX_CHANCE
    return Fit(hit, expected, True) if chance < math.log(limit) else None


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


def _fit_hours(grid: Any, found: Any, usual: float) -> Fit | None:
    """The points keep to some hours of the day, or to weekdays."""
    if usual > DAY:
        return None
    days = np.floor(grid / DAY)
    times = grid - days * DAY
    used = np.unique(times[found])
    pauses = np.diff(np.append(used, used[0] + DAY))
    longest = int(np.argmax(pauses))
    slack = 0.001 * usual  # for binary fractions
    flags = np.mod(times - used[(longest + 1) % len(used)] + slack, DAY) <= DAY - pauses[longest] + 2 * slack
    weekdays = is_weekday(grid)
    if weekdays[found].all():
        flags = flags & weekdays
    places, count, total = len(grid), len(found), int(flags.sum())
    if 1.2 * total > places:
        return None
    slots = math.floor(DAY / usual + 0.5)
    chance = math.log(2 * slots * slots) + log_choices(total, count) - log_choices(places, count)
    expected = int(flags[found[0] : found[-1] + 1].sum())
    return Fit(count, expected, True) if chance < math.log(MAX_CHANCE) else None


def is_weekday(times: Any) -> Any:
    """Whether each time is on a Monday to Friday."""
    return np.mod(np.floor(times / DAY) + 3, 7) < 5


def _is_first(period: Any) -> Any:
    return np.append(True, period[1:] != period[:-1])


def fits_hours(own: Any, usual: float, min_share: float) -> bool:
    """Whether points without a grid fill the hours and weekdays that they use. `usual` is their usual step."""
    places = math.floor((own[-1] - own[0]) / usual + 0.5) + 1
    if usual > DAY / 3 or places > MAX_OWN_GRID:
        return False
    grid = own[0] + usual * np.arange(places)
    found = np.unique(np.floor((own - own[0]) / usual + 0.5).astype("int64"))
    fit = _fit_hours(grid, found, usual)
    return fit is not None and fit.observed >= min_share * fit.expected


def lower_median(steps: Any) -> float:
    """The middle number; of two in the middle, the smaller one."""
    return float(np.sort(steps)[(len(steps) - 1) // 2])


def log_choices(total: int, chosen: int) -> float:
    """The logarithm of the number of ways to choose from `total` things."""
    return _log_factorial(total) - _log_factorial(chosen) - _log_factorial(total - chosen)


def _log_factorial(number: int) -> float:
    if number < 16:
        return math.log(math.factorial(number))
    return (number + 0.5) * math.log(number) - number + 0.5 * math.log(2 * math.pi) + 1 / (12 * number)
