"""`derive_change_series`: how a total changed, apart from changes in which entities were counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from sluice import _cell
from sluice.buckets import Bucket
from sluice.coverage_notes import note_coverage
from sluice.errors import TimeError
from sluice.observations import Observations, carry_between_reports, listed, read_observations
from sluice.quality import Quality

KINDS = ("level", "flow")


class CoverageEvents(list[dict[str, Any]]):
    """The events in `.attrs`. Pandas deep-copies attrs with each operation; this list is never changed, so it is shared."""

    def __deepcopy__(self, _memo: object) -> CoverageEvents:
        return self


def derive_change_series(
    data: Any,
    time_col: str | None = None,
    entity_col: str | None = None,
    value_col: str | None = None,
    freq: Any = None,
    agg: Any = "last",
    kind: str = "level",
    sign: int = 1,
    selected: Any = None,
    tz: str = "UTC",
) -> pd.DataFrame:
    """Derive the change of a total over entities that come and go, split into real flow and coverage.

    Parameters
    ----------
    data : object
        Anything that `to_frame` accepts: wide (one numeric column per entity) or long (one row per time and entity).
    time_col, entity_col, value_col : str, optional
        The columns. `entity_col` and `value_col` make the data long. By default they are found by name and dtype.
    freq : str, optional
        The size of a period, like ``"1D"``. Times are floored to it, and periods without any row appear as null.
        By default each distinct time is a period, unless entities report at different times in a rhythm that they
        share, like once a day: then that is the period.
    agg : str or function
        How several rows of one entity in one period are combined. ``"last"`` (default) takes the last value that is
        not null, so a null placeholder never hides a sample; ``"sum"`` adds. With ``kind="flow"`` the default adds.
    kind : {"level", "flow"}
        ``"level"``: values are stocks (balances, reserves, holdings, open interest, supply) and are differenced.
        ``"flow"``: values are already changes and are summed, not differenced.
    sign : {1, -1}
        -1 inverts the sign of all changes, for a source with the opposite sign convention.
    selected : list of entities or int, optional
        Adds ``selected_entities_change`` for these entities, or for this many entities with the largest last value.
        No other column changes.
    tz : str
        The zone assumed for times without one, and the zone of the periods.

    Returns
    -------
    DataFrame
        Indexed by ``period``, with these columns:

        total_value
            Sum over the entities counted in the period: those that reported, and those that, by their own calendar,
            had no report due.
        total_change
            Change of that sum. Always equal to ``stable_entities_change + coverage_change``.
        stable_entities_change
            Change of the entities counted in both this period and the one before: the real flow. Headline this one.
        coverage_change
            What entities add by entering (their value) and remove by leaving (their last value). Show it as an
            annotation; it is not a flow.
        entering_entity_count, exiting_entity_count
            How many entities entered and left.
        spans_periods
            How many periods the change covers: 1, or more after periods in which no entity reported. 0 without a change.
        selected_entities_change
            Like stable_entities_change, for the selected entities only.

        ``.attrs["coverage_events"]`` is a list of ``{period, entity, kind, value}`` with kind ``first_listed``,
        ``delisted``, ``gap_start`` or ``gap_end``. The value is the first value of an entity that enters, or the last
        value of one that leaves. ``.attrs["data_quality"]["assumed"]`` names what was assumed about calendars and periods.

        A period in which no entity reported is null, not zero; the change over it is in the next period with a report.
        So changes add up: over any range their sum is the last total minus the first. In the first period changes
        are null and counts are 0, for flows too, because no earlier period shows which entities are new. Its sum is in
        ``total_value``.

    Raises
    ------
    TimeError
        When times, entities or values cannot be found, or when nothing was observed.

    Notes
    -----
    Sign. For a stock, a positive change is a net flow into the place that holds it, and a negative change is a net flow
    out of it. Use ``sign=-1`` only for a source that is already a flow and documents the opposite sign convention.

    Calendars. An entity that reports on weekdays, at month ends or in another rhythm of its own is counted with its last
    value between its reports (a flow with zero). It is missing from the period in which a report was due and none came.
    A single gap of an entity is coverage.

    Flow and coverage. A change is a flow only for entities that were observed in both periods. A venue that is first
    listed with 35,000 makes the sum jump by 35,000 although nothing moved: that is coverage. Differencing each entity
    and dropping nulls would hide it; differencing the sum would report it as an inflow.

    Examples
    --------
    >>> rows = [
    ...     {"day": "2024-01-01", "venue": "a", "btc": 100.0},
    ...     {"day": "2024-01-02", "venue": "a", "btc": 90.0},
    ...     {"day": "2024-01-02", "venue": "b", "btc": 35000.0},
    ... ]
    >>> changes = derive_change_series(rows, freq="1D")
    >>> changes[["total_change", "stable_entities_change", "coverage_change"]].iloc[1].tolist()
    [34990.0, -10.0, 35000.0]
    >>> [(event["entity"], event["kind"], event["value"]) for event in changes.attrs["coverage_events"]]
    [('b', 'first_listed', 35000.0)]
    """
    if kind not in KINDS:
        raise TimeError(
            f"kind={kind!r} is not known; use 'level' for stocks, or 'flow' for values that are already changes"
        )
    if sign not in (1, -1):
        raise TimeError(f"sign={sign!r} must be 1 or -1")
    rule = "sum" if kind == "flow" and agg == "last" else agg
    reported, bucket = read_observations(data, time_col, entity_col, value_col, freq, rule, tz)
    observations = carry_between_reports(reported, bucket, kind)
    _warn_if_too_fine(observations, bucket)
    changes = _changes(observations, kind, sign)
    chosen = None if selected is None else _selected_codes(reported, selected)
    if chosen is not None:
        changes["selected_entities_change"] = _selected_change(observations, chosen, kind, sign)
    changes = _with_every_period(changes, observations)
    if chosen is not None:
        changes.attrs["selected"] = [observations.entities[code] for code in chosen]
    events = _events(observations)
    changes.attrs["coverage_events"] = events
    changes.attrs["data_quality"] = Quality(
        observations.quality, helper="derive_change_series", kind=kind, coverageEvents=len(events)
    )
    _cell.current().note("dataQuality", changes.attrs["data_quality"])
    note_coverage(changes, kind, sign, _name(observations))
    return changes


def _name(observations: Observations) -> str:
    """The name of the series in reports."""
    value, entity = observations.quality["valueColumn"], observations.quality["entityColumn"]
    return f"{value} by {entity}" if entity is not None else f"the total of {listed(observations.entities)}"


def _warn_if_too_fine(observations: Observations, bucket: Bucket | None) -> None:
    """Warn when entities enter or leave in most periods: usually they report at different times."""
    was_before, is_after = _neighbours(observations)
    last = len(observations.periods) - 1
    changed = np.union1d(
        observations.period[~was_before & (observations.period > 0)],
        observations.period[~is_after & (observations.period < last)] + 1,
    )
    if last >= 3 and len(changed) > 0.5 * last:
        what = f"the period {bucket.text}" if bucket is not None else "each time is a period, which"
        observations.quality["warnings"].append(
            f"entities enter or leave in {len(changed)} of {last} periods: {what} is finer than their reports, "
            "so pass a coarser freq="
        )


def _neighbours(observations: Observations) -> tuple[Any, Any]:
    """For each observation, whether the same entity was also observed one period before, and one period after.

    Observations are sorted by entity, then period, so neighbours in the arrays are neighbours in time.
    """
    next_is_adjacent = (observations.entity[1:] == observations.entity[:-1]) & (
        observations.period[1:] == observations.period[:-1] + 1
    )
    return np.r_[False, next_is_adjacent], np.r_[next_is_adjacent, False]


def _changes(observations: Observations, kind: str, sign: int) -> pd.DataFrame:
    """The columns, for the periods in which an entity reported. Neighbours are such periods, too."""
    count = len(observations.periods)
    was_before, is_after = _neighbours(observations)
    total = _sum(observations.period, observations.value, count)
    entering = ~was_before & (observations.period > 0)
    exiting = ~is_after & (observations.period < count - 1)
    if kind == "flow":
        stable = _sum(observations.period[~entering], observations.value[~entering], count)
        coverage = _sum(observations.period[entering], observations.value[entering], count)
    else:
        moved = observations.value[was_before] - observations.value[np.flatnonzero(was_before) - 1]
        stable = _sum(observations.period[was_before], moved, count)
        coverage = _sum(observations.period[entering], observations.value[entering], count) - _sum(
            observations.period[exiting] + 1, observations.value[exiting], count
        )
    known = np.arange(count) > 0
    stable, coverage = (np.where(known, sign * part, np.nan) for part in (stable, coverage))
    return pd.DataFrame(
        {
            "total_value": total,
            "total_change": stable + coverage,
            "stable_entities_change": stable,
            "coverage_change": coverage,
            "entering_entity_count": np.bincount(observations.period[entering], minlength=count),
            "exiting_entity_count": np.bincount(observations.period[exiting] + 1, minlength=count),
        },
        index=observations.periods,
    )


def _with_every_period(changes: pd.DataFrame, observations: Observations) -> pd.DataFrame:
    """Add `spans_periods`, and the periods in which no entity reported: null, with counts of 0."""
    at = np.searchsorted(observations.every_period.asi8, observations.periods.asi8)
    changes.insert(6, "spans_periods", np.diff(at, prepend=at[0]))
    if len(at) == len(observations.every_period):
        return changes
    counts = ["entering_entity_count", "exiting_entity_count", "spans_periods"]
    changes = changes.reindex(observations.every_period)
    changes[counts] = changes[counts].fillna(0).astype("int64")
    return changes


def _sum(codes: Any, values: Any, count: int) -> Any:
    return np.bincount(codes, weights=values, minlength=count) + 0.0


def _selected_codes(observations: Observations, selected: Any) -> list[int]:
    """The codes of the selected entities, in the given order."""
    if isinstance(selected, int) and not isinstance(selected, bool):
        last = np.r_[observations.entity[1:] != observations.entity[:-1], True]
        order = np.argsort(-np.abs(observations.value[last]), kind="stable")
        return [int(code) for code in observations.entity[last][order][:selected]]
    wanted = [selected] if isinstance(selected, str) or not isinstance(selected, Iterable) else list(selected)
    codes = {entity: code for code, entity in enumerate(observations.entities)}
    unknown = [entity for entity in wanted if entity not in codes]
    if unknown:
        known = ", ".join(map(repr, observations.entities[:20])) + (", …" if len(observations.entities) > 20 else "")
        raise TimeError(f"selected names {', '.join(map(repr, unknown))}, but the entities are {known}")
    return [codes[entity] for entity in dict.fromkeys(wanted)]


def _selected_change(observations: Observations, chosen: list[int], kind: str, sign: int) -> Any:
    """Null where no selected entity was observed in both periods."""
    count = len(observations.periods)
    was_before, _ = _neighbours(observations)
    taken = np.isin(observations.entity, chosen) & was_before
    values = observations.value[taken] - (observations.value[np.flatnonzero(taken) - 1] if kind == "level" else 0.0)
    known = np.bincount(observations.period[taken], minlength=count) > 0
    return np.where(known, sign * _sum(observations.period[taken], values, count), np.nan)


def _events(observations: Observations) -> CoverageEvents:
    entity, period = observations.entity, observations.period
    was_before, is_after = _neighbours(observations)
    first = np.r_[True, entity[1:] != entity[:-1]]
    last = np.r_[first[1:], True]
    enters = np.flatnonzero(~was_before & (period > 0))
    leaves = np.flatnonzero(~is_after & (period < len(observations.periods) - 1))
    last_report = np.maximum.accumulate(np.where(observations.carried, 0, np.arange(len(period))))
    stamps = list(observations.periods)
    parts = (
        (enters, 0, np.where(first[enters], "first_listed", "gap_end"), enters),
        (leaves, 1, np.where(last[leaves], "delisted", "gap_start"), last_report[leaves]),
    )
    found = sorted(
        event
        for at, shift, kinds, valued in parts  # an entity leaves in the period after its last one
        for event in zip(
            (period[at] + shift).tolist(),
            [shift] * len(at),
            entity[at].tolist(),
            kinds.tolist(),
            observations.value[valued].tolist(),
            strict=True,
        )
    )
    return CoverageEvents(
        {"period": stamps[at], "entity": observations.entities[code], "kind": kind, "value": value}
        for at, _, code, kind, value in found
    )
