"""`derive_change_series`: how a total moved, told apart from who was counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sluice import _cell
from sluice.errors import TimeError
from sluice.observations import Observations, read_observations
from sluice.quality import Quality

KINDS = ("level", "flow")


class CoverageEvents(list[dict[str, Any]]):
    """The events in `.attrs`; shared where pandas would copy them with each operation."""

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
    """Change of a total over entities whose membership changes, split into real flow and coverage.

    Parameters
    ----------
    data : object
        Anything that `to_frame` takes: wide (one numeric column for each entity) or long (a row for each time and
        entity).
    time_col, entity_col, value_col : str, optional
        The columns; `entity_col` and `value_col` make the data long. Found by name and dtype if not given.
    freq : str, optional
        The size of a period, like ``"1D"``. Times are floored to it, and periods without any row are there, as null.
        Without it each distinct time is a period.
    agg : str or function
        How several rows of one entity in one period become one: ``"last"`` (default) takes the last value that is
        not null, so a null placeholder never hides a sample; ``"sum"`` adds. With ``kind="flow"`` the default adds.
    kind : {"level", "flow"}
        ``"level"``: values are stocks (balances, reserves, holdings, open interest, supply) and are differenced.
        ``"flow"``: values are changes already and are summed, not differenced.
    sign : {1, -1}
        -1 turns the sign of all changes, for a source whose own convention is the opposite.
    selected : list of entities or int, optional
        Adds ``selected_entities_change`` for these entities, or for the `selected` largest by their last value.
        It never changes any other column.
    tz : str
        The zone of times that have none, and of the periods.

    Returns
    -------
    DataFrame
        Indexed by ``period``, with the columns

        total_value
            Sum over the entities observed in the period.
        total_change
            Change of that sum: always ``stable_entities_change + coverage_change``.
        stable_entities_change
            Change of the entities observed in this period and the one before: the real flow. Headline this one.
        coverage_change
            What entities add by entering (their value) and take by leaving (their last value). Show it as an
            annotation; it is not a flow.
        entering_entity_count, exiting_entity_count
            How many entities came and went.
        selected_entities_change
            As stable_entities_change, of the selected entities only.

        ``.attrs["coverage_events"]`` is a list of ``{period, entity, kind, value}`` with kind ``first_listed``,
        ``delisted``, ``gap_start`` or ``gap_end``; value is the first value of who enters and the last value of who
        leaves. A period in which nothing was observed is null, not zero. In the first period changes are null and
        counts 0, for flows too: nothing tells yet who is new. Its sum is in ``total_value``.

    Raises
    ------
    TimeError
        When times, entities or values cannot be found, or nothing was observed.

    Notes
    -----
    Sign rule. For a stock, a positive change is a net flow into the place that holds it, a negative one is a net flow
    out. Use ``sign=-1`` only for a source that is a flow already and says that its sign means the opposite.

    Flow and coverage. A change is only a flow for entities that were observed in both periods. A venue that is first
    listed with 35,000 makes the sum jump by 35,000 although nothing moved: that is coverage. Differencing each entity
    and dropping nulls would hide it; differencing the sum would call it an inflow.

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
            f"kind={kind!r} is not known; use 'level' for stocks or 'flow' for values that are changes already"
        )
    if sign not in (1, -1):
        raise TimeError(f"sign={sign!r} must be 1 or -1")
    rule = "sum" if kind == "flow" and agg == "last" else agg
    seen = read_observations(data, time_col, entity_col, value_col, freq, rule, tz)
    changes = _changes(seen, kind, sign)
    if selected is not None:
        chosen = _chosen(seen, selected)
        changes["selected_entities_change"] = _selected_change(seen, chosen, kind, sign)
        changes.attrs["selected"] = [seen.entities[code] for code in chosen]
    events = _events(seen)
    changes.attrs["coverage_events"] = events
    changes.attrs["data_quality"] = Quality(
        seen.quality, helper="derive_change_series", kind=kind, coverageEvents=len(events)
    )
    _cell.current().note("dataQuality", changes.attrs["data_quality"])
    return changes


@dataclass(frozen=True)
class _Steps:
    """Per observation: whether the same entity was observed one period before, and one period after."""

    before: Any
    after: Any


def _steps(seen: Observations) -> _Steps:
    """Observations are sorted by entity, then period, so neighbours in the arrays are neighbours in time."""
    next_is_adjacent = (seen.entity[1:] == seen.entity[:-1]) & (seen.period[1:] == seen.period[:-1] + 1)
    return _Steps(np.r_[False, next_is_adjacent], np.r_[next_is_adjacent, False])


def _changes(seen: Observations, kind: str, sign: int) -> pd.DataFrame:
    count = len(seen.periods)
    steps = _steps(seen)
    observed = np.bincount(seen.period, minlength=count) > 0
    total = _sum(seen.period, seen.value, count)
    entering = ~steps.before & (seen.period > 0)
    exiting = ~steps.after & (seen.period < count - 1)
    if kind == "flow":
        stable = _sum(seen.period[~entering], seen.value[~entering], count)
        coverage = _sum(seen.period[entering], seen.value[entering], count)
        known = observed & (np.arange(count) > 0)
    else:
        moved = seen.value[steps.before] - seen.value[np.flatnonzero(steps.before) - 1]
        stable = _sum(seen.period[steps.before], moved, count)
        coverage = _sum(seen.period[entering], seen.value[entering], count) - _sum(
            seen.period[exiting] + 1, seen.value[exiting], count
        )
        known = observed & np.r_[False, observed[:-1]]
    stable, coverage = (np.where(known, sign * part, np.nan) for part in (stable, coverage))
    return pd.DataFrame(
        {
            "total_value": np.where(observed, total, np.nan),
            "total_change": stable + coverage,
            "stable_entities_change": stable,
            "coverage_change": coverage,
            "entering_entity_count": np.bincount(seen.period[entering], minlength=count),
            "exiting_entity_count": np.bincount(seen.period[exiting] + 1, minlength=count),
        },
        index=seen.periods,
    )


def _sum(codes: Any, values: Any, count: int) -> Any:
    return np.bincount(codes, weights=values, minlength=count) + 0.0


def _chosen(seen: Observations, selected: Any) -> list[int]:
    """The codes of the selected entities, in the order given."""
    if isinstance(selected, int) and not isinstance(selected, bool):
        last = np.r_[seen.entity[1:] != seen.entity[:-1], True]
        order = np.argsort(-np.abs(seen.value[last]), kind="stable")
        return [int(code) for code in seen.entity[last][order][:selected]]
    wanted = [selected] if isinstance(selected, str) or not isinstance(selected, Iterable) else list(selected)
    codes = {entity: code for code, entity in enumerate(seen.entities)}
    unknown = [entity for entity in wanted if entity not in codes]
    if unknown:
        known = ", ".join(map(repr, seen.entities[:20])) + (", …" if len(seen.entities) > 20 else "")
        raise TimeError(f"selected names {', '.join(map(repr, unknown))}, but the entities are {known}")
    return [codes[entity] for entity in dict.fromkeys(wanted)]


def _selected_change(seen: Observations, chosen: list[int], kind: str, sign: int) -> Any:
    """Null where no selected entity was observed in both periods."""
    count = len(seen.periods)
    before = _steps(seen).before
    taken = np.isin(seen.entity, chosen) & before
    values = seen.value[taken] - (seen.value[np.flatnonzero(taken) - 1] if kind == "level" else 0.0)
    known = np.bincount(seen.period[taken], minlength=count) > 0
    return np.where(known, sign * _sum(seen.period[taken], values, count), np.nan)


def _events(seen: Observations) -> CoverageEvents:
    steps = _steps(seen)
    first = np.r_[True, seen.entity[1:] != seen.entity[:-1]] if len(seen.entity) else np.zeros(0, dtype=bool)
    last = np.r_[first[1:], True] if len(first) else first
    enters = np.flatnonzero(~steps.before & (seen.period > 0))
    leaves = np.flatnonzero(~steps.after & (seen.period < len(seen.periods) - 1))
    entries = _told(seen, enters, 0, np.where(first[enters], "first_listed", "gap_end"))
    exits = _told(seen, leaves, 1, np.where(last[leaves], "delisted", "gap_start"))
    stamps = list(seen.periods)
    return CoverageEvents(
        {"period": stamps[period], "entity": seen.entities[entity], "kind": kind, "value": value}
        for period, _, entity, kind, value in sorted(entries + exits, key=lambda event: event[:3])
    )


def _told(seen: Observations, at: Any, shift: int, kinds: Any) -> list[tuple[int, int, int, str, float]]:
    """Plain tuples of period, order within the period, entity, kind and value."""
    periods = (seen.period[at] + shift).tolist()
    return list(
        zip(periods, [shift] * len(at), seen.entity[at].tolist(), kinds.tolist(), seen.value[at].tolist(), strict=True)
    )
