"""Combines the rows of one bucket into one row, with an aggregation rule per column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from sluice.errors import TimeError

Rule = str | Callable[[Any], Any]
#: The rules by name, each with the pandas reduction that it stands for.
RULES = {
    "level": "last", "last": "last", "flow": "sum", "sum": "sum", "first": "first", "mean": "mean", "median": "median",
    "min": "min", "max": "max", "count": "count", "nunique": "nunique", "std": "std", "var": "var",
}  # fmt: skip


def check_rule(rule: object) -> Rule:
    """Return the rule as the name of a pandas reduction, or the function itself.

    Raises
    ------
    TimeError
        For an unknown rule.
    """
    if callable(rule):
        return rule
    if isinstance(rule, str) and rule in RULES:
        return RULES[rule]
    raise TimeError(f"agg={rule!r} is not a rule; use one of {', '.join(RULES)}, or a function of a Series")


def rules_for(columns: list[Any], agg: object, labels: Mapping[Any, str]) -> tuple[dict[Any, Rule], set[Any]]:
    """The rule of each column of one source, and the keys of `agg` that were used. `labels` are the prefixed column names."""
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

    `codes` is the bucket of each row, and rows are in order of time. A null never replaces a value. A bucket that has
    only nulls stays null under every rule except ``count``.
    """
    columns: dict[Any, Any] = {}
    grouped: Any = None
    for column, rule in rules.items():
        series = frame[column]
        values = _last_numbers(series, codes, size, rule)
        if values is None:
            grouped = frame.groupby(codes, sort=True) if grouped is None else grouped
            values = _reduce(grouped[column], rule, series).array
        columns[column] = values
    return pd.DataFrame(columns, index=pd.RangeIndex(size), columns=list(rules))


def _reduce(group: Any, rule: Rule, series: pd.Series[Any]) -> pd.Series[Any]:
    if callable(rule):
        return group.agg(rule)  # type: ignore[no-any-return]
    numeric = pd.api.types.is_numeric_dtype(series.dtype)
    if rule in ("sum", "mean", "median", "std", "var") and not numeric:
        raise TimeError(
            f"the column {series.name!r} has the dtype {series.dtype}, which has no {rule}; "
            f"pass agg={{{series.name!r}: 'last'}}"
        )
    if rule == "sum":
        return group.sum(min_count=1)  # type: ignore[no-any-return]
    return getattr(group, rule)()  # type: ignore[no-any-return]


def _last_numbers(series: pd.Series[Any], codes: Any, size: int, rule: Rule) -> Any:
    """Fast path for the rule ``last`` on plain numbers. None when pandas has to group."""
    dtype = series.dtype
    if rule != "last" or not isinstance(dtype, np.dtype) or dtype.kind not in "fiu":
        return None
    values = series.to_numpy()
    if dtype.kind == "f":
        present = values == values
        if not present.all():
            out = np.full(size, np.nan, dtype=dtype)
            out[codes[present]] = values[present]
            return out
    out = np.empty(size, dtype=dtype)
    out[codes] = values  # numpy keeps the last value of a repeated index
    return out
