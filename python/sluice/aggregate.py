"""Rows that share a bucket become one row, by a rule that is said for each column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from sluice.errors import TimeError

Rule = str | Callable[[Any], Any]
#: What the rules are called, and the name of the pandas reduction that they are.
RULES = {
    "level": "last", "last": "last", "flow": "sum", "sum": "sum", "first": "first", "mean": "mean", "median": "median",
    "min": "min", "max": "max", "count": "count", "nunique": "nunique", "std": "std", "var": "var",
}  # fmt: skip


def check_rule(rule: object) -> Rule:
    """The rule, by its pandas name.

    Raises
    ------
    TimeError
        For a rule that is not known.
    """
    if callable(rule):
        return rule
    if isinstance(rule, str) and rule in RULES:
        return RULES[rule]
    raise TimeError(f"agg={rule!r} is no rule; use one of {', '.join(RULES)} or a function of a Series")


def rules_for(columns: list[Any], agg: object, labels: Mapping[Any, str]) -> tuple[dict[Any, Rule], set[Any]]:
    """The rule of each column of one source, and the keys of `agg` that were used. `labels` are the prefixed names."""
    if not isinstance(agg, Mapping):
        rule = check_rule("level" if agg is None else agg)
        return dict.fromkeys(columns, rule), set()
    rules: dict[Any, Rule] = {}
    used: set[Any] = set()
    for column in columns:
        key = next((key for key in (labels.get(column), column) if key in agg), None)
        rules[column] = check_rule("level" if key is None else agg[key])
        if key is not None:
            used.add(key)
    return rules, used


def merge_duplicates(frame: pd.DataFrame, codes: Any, size: int, rules: Mapping[Any, Rule]) -> pd.DataFrame:
    """One row for each code from 0 to `size` - 1.

    `codes` tells the bucket of each row, in the order of time. Nulls never win over values, and a bucket of nothing
    but nulls stays null under every rule but ``count``.
    """
    columns: dict[Any, Any] = {}
    grouped: Any = None
    for column, rule in rules.items():
        series = frame[column]
        fast = _fast(series, codes, size, rule)
        if fast is None:
            grouped = frame.groupby(codes, sort=True) if grouped is None else grouped
            fast = _reduce(grouped[column], rule, series).array
        columns[column] = fast
    return pd.DataFrame(columns, index=pd.RangeIndex(size), columns=list(rules))


def _reduce(group: Any, rule: Rule, series: pd.Series[Any]) -> pd.Series[Any]:
    if callable(rule):
        return group.agg(rule)  # type: ignore[no-any-return]
    numeric = pd.api.types.is_numeric_dtype(series.dtype)
    if rule in ("sum", "mean", "median", "std", "var") and not numeric:
        raise TimeError(
            f"the column {series.name!r} holds {series.dtype}, which has no {rule}; "
            f"pass agg={{{series.name!r}: 'last'}}"
        )
    if rule == "sum":
        return group.sum(min_count=1)  # type: ignore[no-any-return]
    return getattr(group, rule)()  # type: ignore[no-any-return]


def _fast(series: pd.Series[Any], codes: Any, size: int, rule: Rule) -> Any:
    """Plain floats and integers without pandas' grouping; None where that has to do it."""
    dtype = series.dtype
    if rule != "last" or not isinstance(dtype, np.dtype) or dtype.kind not in "fiu":
        return None
    values = series.to_numpy()
    if dtype.kind == "f":
        there = values == values
        if not there.all():
            out = np.full(size, np.nan, dtype=dtype)
            out[codes[there]] = values[there]
            return out
    out = np.empty(size, dtype=dtype)
    out[codes] = values  # with an index more than once, numpy keeps the last value
    return out
