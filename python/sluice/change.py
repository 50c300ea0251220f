"""`derive_change_series`: how a total changed, apart from changes in which entities were counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from sluice import _cell
from sluice.errors import TimeError
from sluice.observations import Observations, read_observations
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
        By default each distinct time is a period.
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
            Sum over the entities observed in the period.
        total_change
            Change of that sum. Always equal to ``stable_entities_change + coverage_change``.
        stable_entities_change
            Change of the entities observed in both this period and the one before: the real flow. Headline this one.
        coverage_change
            What entities add by entering (their value) and remove by leaving (their last value). Show it as an
            annotation; it is not a flow.
        entering_entity_count, exiting_entity_count
            How many entities entered and left.
        selected_entities_change
            Like stable_entities_change, for the selected entities only.

        ``.attrs["coverage_events"]`` is a list of ``{period, entity, kind, value}`` with kind ``first_listed``,
        ``delisted``, ``gap_start`` or ``gap_end``. The value is the first value of an entity that enters, or the last
        value of one that leaves. A period in which nothing was observed is null, not zero. In the first period changes
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
    observations = read_observations(data, time_col, entity_col, value_col, freq, rule, tz)
    changes = _changes(observations, kind, sign)
    if selected is not None:
        chosen = _selected_codes(observations, selected)
        changes["selected_entities_change"] = _selected_change(observations, chosen, kind, sign)
        changes.attrs["selected"] = [observations.entities[code] for code in chosen]
    events = _events(observations)
    changes.attrs["coverage_events"] = events
    changes.attrs["data_quality"] = Quality(
        observations.quality, helper="derive_change_series", kind=kind, coverageEvents=len(events)
    )
    _cell.current().note("dataQuality", changes.attrs["data_quality"])
    return changes


def _neighbours(observations: Observations) -> tuple[Any, Any]:
    """For each observation, whether the same entity was also observed one period before, and one period after.

    Observations are sorted by entity, then period, so neighbours in the arrays are neighbours in time.
    """
    next_is_adjacent = (observations.entity[1:] == observations.entity[:-1]) & (
        observations.period[1:] == observations.period[:-1] + 1
    )
    return np.r_[False, next_is_adjacent], np.r_[next_is_adjacent, False]


def _changes(observations: Observations, kind: str, sign: int) -> pd.DataFrame:
    count = len(observations.periods)
    was_before, is_after = _neighbours(observations)
    observed = np.bincount(observations.period, minlength=count) > 0
    total = _sum(observations.period, observations.value, count)
    entering = ~was_before & (observations.period > 0)
    exiting = ~is_after & (observations.period < count - 1)
    if kind == "flow":
        stable = _sum(observations.period[~entering], observations.value[~entering], count)
        coverage = _sum(observations.period[entering], observations.value[entering], count)
        known = observed & (np.arange(count) > 0)
    else:
        moved = observations.value[was_before] - observations.value[np.flatnonzero(was_before) - 1]
        stable = _sum(observations.period[was_before], moved, count)
        coverage = _sum(observations.period[entering], observations.value[entering], count) - _sum(
            observations.period[exiting] + 1, observations.value[exiting], count
        )
        known = observed & np.r_[False, observed[:-1]]
    stable, coverage = (np.where(known, sign * part, np.nan) for part in (stable, coverage))
    return pd.DataFrame(
        {
            "total_value": np.where(observed, total, np.nan),
            "total_change": stable + coverage,
            "stable_entities_change": stable,
            "coverage_change": coverage,
            "entering_entity_count": np.bincount(observations.period[entering], minlength=count),
            "exiting_entity_count": np.bincount(observations.period[exiting] + 1, minlength=count),
        },
        index=observations.periods,
    )


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
    was_before, is_after = _neighbours(observations)
    first = np.r_[True, observations.entity[1:] != observations.entity[:-1]]
    last = np.r_[first[1:], True]
    enters = np.flatnonzero(~was_before & (observations.period > 0))
    leaves = np.flatnonzero(~is_after & (observations.period < len(observations.periods) - 1))
    entries = _event_tuples(observations, enters, 0, np.where(first[enters], "first_listed", "gap_end"))
    exits = _event_tuples(observations, leaves, 1, np.where(last[leaves], "delisted", "gap_start"))
    stamps = list(observations.periods)
    return CoverageEvents(
        {"period": stamps[period], "entity": observations.entities[entity], "kind": kind, "value": value}
        for period, _, entity, kind, value in sorted(entries + exits, key=lambda event: event[:3])
    )


def _event_tuples(
    observations: Observations, at: Any, shift: int, kinds: Any
) -> list[tuple[int, int, int, str, float]]:
    """Tuples of period, order within the period, entity, kind and value. `shift` 1 moves an event to the next period."""
    periods = (observations.period[at] + shift).tolist()
    return list(
        zip(
            periods,
            [shift] * len(at),
            observations.entity[at].tolist(),
            kinds.tolist(),
            observations.value[at].tolist(),
            strict=True,
        )
    )
