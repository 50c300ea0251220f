"""Tests of the hints for removed functions and arguments, against the installed versions of the packages."""

from __future__ import annotations

import importlib
import re
import warnings
from typing import Any

import matplotlib.axes
import matplotlib.figure
import matplotlib.legend
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from sluice_worker.removed_names import REMOVED_ARGUMENTS, REMOVED_NAMES
from sluice_worker.traceback_text import describe, remember_source

CELL = "<cell 1>"
CLASSES: dict[str, Any] = {
    "numpy.ndarray": np.ndarray,
    "DataFrame": pd.DataFrame,
    "Series": pd.Series,
    "DatetimeProperties": type(pd.Series(pd.date_range("2024", periods=1)).dt),
    "BaseGroupBy": type(pd.DataFrame({"a": [1]}).groupby("a")),
    "Axes": matplotlib.axes.Axes,
    "GrouperView": type(matplotlib.figure.Figure().subplots().get_shared_x_axes()),
    "Legend": matplotlib.legend.Legend,
}


def failure(code: str) -> dict[str, Any]:
    frame = pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": ["x", "y", "x"]})
    series = pd.Series([1, 2, 3], index=pd.date_range("2024-01-01", periods=3))
    remember_source(CELL, code)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(code, CELL, "exec"), {"np": np, "pd": pd, "plt": plt, "sm": sm, "df": frame, "s": series})
        except Exception as error:
            return describe(error, CELL)
        finally:
            plt.close("all")
    raise AssertionError("the code did not fail")


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("df.applymap(str)", "It was removed: use df.map(function) instead."),
        ("df.a.append(df.a)", "use pd.concat([s, other]) instead."),
        ("df.append(df)", "use pd.concat([df, other]) instead."),
        ("df.a.iteritems()", "use s.items() instead."),
        ("df.ix[0]", "use df.loc for labels, or df.iloc for positions instead."),
        ("df.a.fillna(method='ffill')", "use ffill() or bfill() instead."),
        ("df.groupby('b').mad()", "use groups.agg(lambda s: (s - s.mean()).abs().mean()) instead."),
        ("df.sum(level=0)", "use df.groupby(level=...) before the aggregation instead."),
        ("df.sort_values('a', 'b')", "use the names of the arguments after the first instead."),
        ("df.pivot('a', 'b')", "use the names of the arguments after the first instead."),
        ("df.mean()", "use numeric_only=True, or choose the columns of numbers instead."),
        ("df.a.pct_change(fill_method='pad')", "use ffill() before pct_change(fill_method=None) instead."),
        ("df.a.interpolate(method='ffill')", "use ffill() or bfill() instead."),
        ("df.groupby('b').agg({'a': {'x': 'sum'}})", "use agg(new_name=('column', 'sum')) instead."),
        ("df.describe(datetime_is_numeric=True)", "The argument was removed: leave it out."),
        ("df.to_csv(line_terminator='x')", "use lineterminator instead."),
        ("pd.read_csv('x', error_bad_lines=False)", "use on_bad_lines='skip' instead."),
        ("pd.date_range('2024', periods=2, closed='left')", "use inclusive instead."),
        ("s.index.week", "use index.isocalendar().week instead."),
        ("pd.Index([1]).is_monotonic", "use index.is_monotonic_increasing instead."),
        ("pd.Int64Index([1])", "use pd.Index(values, dtype='int64') instead."),
        ("from pandas import Int64Index", "use pd.Index(values, dtype='int64') instead."),
        ("from pandas.tools.plotting import scatter_matrix", "use pd.plotting for plots, and pd.concat or pd.merge"),
        ("from pandas.io.json import json_normalize", "use pd.json_normalize instead."),
        ("s[0]", "use s.iloc[0] instead."),
        ("s[-1]", "use s.iloc[-1] instead."),
        ("s.resample('A').sum()", "use the frequency 'YE' ('Y' for periods) instead."),
        ("s.resample('A-MAR').sum()", "use the frequency 'YE-MAR' ('Y-MAR' for periods) instead."),
        ("s.resample('BAS').sum()", "use the frequency 'BYS' instead."),
        ("s.resample('M').sum()", "Please use 'ME' instead."),
        ("s.resample('15T').sum()", "use the frequency 'min' instead."),
        ("s.resample('2H').sum()", "use the frequency 'h' instead."),
        ("s.rolling('2T').sum()", "use the frequency 'min' instead."),
        ("pd.Timedelta('1T')", "use the frequency 'min' instead."),
        ("s.resample('D', how='sum')", "use a method after it, like .sum() instead."),
        ("np.float(1)", "use `float` by itself"),
        ("np.bool8(1)", "use np.bool_ instead."),
        ("np.product([1])", "use np.prod instead."),
        ("np.alltrue([1])", "Use `np.all` instead."),
        ("np.trapz([1, 2])", "use np.trapezoid instead."),
        ("np.array([1]).ptp()", "use np.ptp(a) instead."),
        ("from numpy import product", "use np.prod instead."),
        ("plt.boxplot([[1, 2]], labels=['a'])", "It was removed: use tick_labels instead."),
        ("plt.gca().boxplot([[1, 2]], labels=['a'])", "use tick_labels instead."),
        ("plt.cm.get_cmap('viridis')", "use matplotlib.colormaps[name] instead."),
        ("from matplotlib.cm import get_cmap", "use matplotlib.colormaps[name] instead."),
        ("plt.style.use('seaborn')", "use the style 'seaborn-v0_8' instead."),
        ("plt.style.use('seaborn-whitegrid')", "use the style 'seaborn-v0_8-whitegrid' instead."),
        ("plt.hist([1], normed=True)", "use density instead."),
        ("plt.grid(b=True)", "use visible=True instead."),
        ("plt.gca().plot_date([1], [2])", "use ax.plot instead."),
        ("plt.figure().gca(projection='polar')", "use plt.subplot(projection=...) instead."),
        ("plt.plot([1], label='a'); plt.legend().legendHandles", "use legend.legend_handles instead."),
        ("from scipy.integrate import simps", "use scipy.integrate.simpson instead."),
        ("import scipy.integrate; scipy.integrate.cumtrapz([1])", "use scipy.integrate.cumulative_trapezoid instead."),
        ("from scipy.misc import derivative", "use scipy.differentiate.derivative instead."),
        ("from scipy.stats import binom_test", "use scipy.stats.binomtest(k, n, p).pvalue instead."),
        ("from scipy.signal import hann", "use scipy.signal.windows.hann instead."),
        ("import scipy; scipy.mean([1])", "use np.mean instead."),
        ("sm.tsa.acf([1, 2, 3], unbiased=True)", "use adjusted instead."),
        ("sm.tsa.ARMA([1, 2])", "use sm.tsa.ARIMA instead."),
    ],
)  # fmt: skip
def test_the_hint_for_a_removed_name_names_its_replacement(code: str, hint: str) -> None:
    found = failure(code)
    assert hint in found["message"]
    if "removed" in hint:
        assert "Did you mean" not in found["message"] + found["traceback"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("df.colour", "'DataFrame' object has no attribute 'colour'"),
        ("np.means", "module 'numpy' has no attribute 'means'"),
        ("{}[0]", "0"),
        ("pd.Series([1, 2], index=['a', 'b'])['c']", "'c'"),
        ("(lambda labels=1: 0)(label=2)", None),
        (
            "import pandas.nowhere",
            "No module named 'pandas.nowhere'. The installed version of pandas has no such module.",
        ),
    ],
)
def test_other_errors_get_no_hint_of_that_kind(code: str, message: str | None) -> None:
    found = failure(code)["message"]
    assert "It was removed" not in found
    assert message is None or found == message


@pytest.mark.parametrize(("owner", "name"), [(owner, name) for owner, names in REMOVED_NAMES.items() for name in names])
def test_every_listed_name_is_absent_from_the_installed_version(owner: str, name: str) -> None:
    if owner == "Index":
        holders: list[Any] = [pd.Index, pd.DatetimeIndex, pd.RangeIndex]
    else:
        holders = [CLASSES[owner] if owner in CLASSES else importlib.import_module(owner)]
    if (owner, name) == ("scipy", "misc"):
        return  # an empty module that can still be imported
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for holder in holders:
            assert not hasattr(holder, name)


def test_every_replacement_exists_in_the_installed_version() -> None:
    import scipy
    import statsmodels.formula.api as smf
    from matplotlib import dates

    known = {
        "np": np,
        "pd": pd,
        "plt": plt,
        "sm": sm,
        "smf": smf,
        "scipy": scipy,
        "matplotlib": matplotlib,
        "mdates": dates,
    }
    objects = {
        "df": pd.DataFrame({"a": [1]}),
        "s": pd.Series([1]),
        "index": pd.DatetimeIndex([]),
        "ax": matplotlib.axes.Axes,
    }
    texts = [text for names in REMOVED_NAMES.values() for text in names.values()] + list(REMOVED_ARGUMENTS.values())
    checked = 0
    for path in (match for text in texts for match in re.findall(r"\b[a-z]+(?:\.[A-Za-z_]\w*)+", text)):
        start, *parts = path.split(".")
        if start not in known | objects or (start, parts[0]) in (("s", "dt"), ("s", "sparse")):
            continue
        place = (known | objects)[start]
        for depth, part in enumerate(parts):
            if not hasattr(place, part):  # a module that was not imported yet
                importlib.import_module(".".join([start, *parts[: depth + 1]]))
            place = getattr(place, part)
        checked += 1
    assert checked > 80
