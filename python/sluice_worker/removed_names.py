"""Hints for functions, methods and arguments that newer versions of pandas, numpy, matplotlib, scipy and statsmodels lack.

Python guesses a similar name instead ("Did you mean: 'apply'?"), which is rarely the replacement.
"""

from __future__ import annotations

import re
import traceback

#: The replacement of each removed name, by the module or class that had it. Names that numpy explains itself are not listed.
REMOVED_NAMES: dict[str, dict[str, str]] = {
    "numpy": {
        "NAN": "np.nan",
        "bool8": "np.bool_",
        "cumproduct": "np.cumprod",
        "disp": "print",
        "in1d": "np.isin",
        "int0": "np.intp",
        "msort": "np.sort(a, axis=0)",
        "product": "np.prod",
        "trapz": "np.trapezoid",
        "typeDict": "np.sctypeDict",
    },
    "numpy.ndarray": {
        "itemset": "a[index] = value",
        "newbyteorder": "a.view(a.dtype.newbyteorder())",
        "ptp": "np.ptp(a)",
    },
    "pandas": {
        "Float64Index": "pd.Index(values, dtype='float64')",
        "Int64Index": "pd.Index(values, dtype='int64')",
        "UInt64Index": "pd.Index(values, dtype='uint64')",
        "Panel": "a DataFrame with a MultiIndex",
        "TimeGrouper": "pd.Grouper(freq=...)",
        "datetime": "datetime from the module datetime, or pd.Timestamp",
        "ewma": "s.ewm(span=...).mean()",
        "np": "np, which is a global of every cell",
        "rolling_mean": "s.rolling(n).mean()",
        "rolling_std": "s.rolling(n).std()",
        "rolling_sum": "s.rolling(n).sum()",
        "scatter_matrix": "pd.plotting.scatter_matrix",
        "tools": "pd.plotting for plots, and pd.concat or pd.merge for frames",
        "value_counts": "s.value_counts()",
    },
    "pandas.io.json": {"json_normalize": "pd.json_normalize"},
    "pandas.util": {"testing": "pd.testing"},
    "DataFrame": {
        "append": "pd.concat([df, other])",
        "applymap": "df.map(function)",
        "as_matrix": "df.to_numpy()",
        "backfill": "df.bfill()",
        "bool": "df.iloc[0, 0]",
        "first": "df.loc[df.index < start + offset]",
        "from_items": "pd.DataFrame(dict(items))",
        "get_value": "df.at[row, column]",
        "iteritems": "df.items()",
        "ix": "df.loc for labels, or df.iloc for positions",
        "last": "df.loc[df.index > end - offset]",
        "lookup": "df.to_numpy()[rows, columns] with positions from get_indexer",
        "mad": "(df - df.mean()).abs().mean()",
        "pad": "df.ffill()",
        "reindex_axis": "df.reindex(labels, axis=...)",
        "set_value": "df.at[row, column] = value",
        "slice_shift": "df.shift(n)",
        "sort": "df.sort_values(by) or df.sort_index()",
        "swapaxes": "df.T",
        "tshift": "df.shift(n, freq=...)",
    },
    "Series": {
        "append": "pd.concat([s, other])",
        "as_matrix": "s.to_numpy()",
        "backfill": "s.bfill()",
        "bool": "s.item()",
        "clip_lower": "s.clip(lower=...)",
        "clip_upper": "s.clip(upper=...)",
        "compress": "s[condition]",
        "first": "s.loc[s.index < start + offset]",
        "get_value": "s.at[label]",
        "get_values": "s.to_numpy()",
        "is_monotonic": "s.is_monotonic_increasing",
        "iteritems": "s.items()",
        "ix": "s.loc for labels, or s.iloc for positions",
        "last": "s.loc[s.index > end - offset]",
        "mad": "(s - s.mean()).abs().mean()",
        "nonzero": "s.to_numpy().nonzero()",
        "order": "s.sort_values()",
        "pad": "s.ffill()",
        "ptp": "s.max() - s.min()",
        "ravel": "s.to_numpy()",
        "set_value": "s.at[label] = value",
        "slice_shift": "s.shift(n)",
        "sort": "s.sort_values()",
        "to_dense": "s.sparse.to_dense()",
        "tshift": "s.shift(n, freq=...)",
        "view": "s.astype(...)",
    },
    "Index": {
        "format": "index.astype(str)",
        "get_value": "s.at[label]",
        "is_all_dates": "isinstance(index, pd.DatetimeIndex)",
        "is_monotonic": "index.is_monotonic_increasing",
        "is_numeric": "pd.api.types.is_numeric_dtype(index)",
        "is_integer": "pd.api.types.is_integer_dtype(index)",
        "week": "index.isocalendar().week",
        "weekofyear": "index.isocalendar().week",
    },
    "DatetimeProperties": {"week": "s.dt.isocalendar().week", "weekofyear": "s.dt.isocalendar().week"},
    "BaseGroupBy": {
        "fillna": "groups.ffill() or groups.bfill()",
        "mad": "groups.agg(lambda s: (s - s.mean()).abs().mean())",
        "pad": "groups.ffill()",
        "backfill": "groups.bfill()",
        "tshift": "groups.shift(n, freq=...)",
    },
    "matplotlib.cm": {
        "get_cmap": "matplotlib.colormaps[name]",
        "register_cmap": "matplotlib.colormaps.register(cmap)",
        "unregister_cmap": "matplotlib.colormaps.unregister(name)",
    },
    "matplotlib.pyplot": {
        "hold": "several calls, whose plots are always added to the same axes",
        "plot_date": "plt.plot",
        "spectral": "plt.nipy_spectral",
    },
    "matplotlib.dates": {
        "epoch2num": "pd.to_datetime(seconds, unit='s')",
        "num2epoch": "mdates.num2date(days)",
        "strpdate2num": "pd.to_datetime",
    },
    "matplotlib.mlab": {"griddata": "scipy.interpolate.griddata", "normpdf": "scipy.stats.norm.pdf"},
    "Axes": {
        "plot_date": "ax.plot",
        "set_axis_bgcolor": "ax.set_facecolor",
        "set_color_cycle": "ax.set_prop_cycle(color=...)",
    },
    "GrouperView": {"join": "ax.sharex(other) or ax.sharey(other)"},
    "Legend": {"legendHandles": "legend.legend_handles"},
    "scipy": {
        "arange": "np.arange",
        "array": "np.array",
        "exp": "np.exp",
        "interp": "np.interp",
        "linspace": "np.linspace",
        "log": "np.log",
        "mean": "np.mean",
        "misc": "scipy.special, scipy.integrate or scipy.datasets",
        "pi": "np.pi",
        "sqrt": "np.sqrt",
        "zeros": "np.zeros",
    },
    "scipy.misc": {
        "comb": "scipy.special.comb",
        "derivative": "scipy.differentiate.derivative",
        "factorial": "scipy.special.factorial",
        "logsumexp": "scipy.special.logsumexp",
    },
    "scipy.integrate": {
        "cumtrapz": "scipy.integrate.cumulative_trapezoid",
        "quadrature": "scipy.integrate.quad",
        "romberg": "scipy.integrate.quad",
        "simps": "scipy.integrate.simpson",
        "trapz": "scipy.integrate.trapezoid",
    },
    "scipy.stats": {
        "binom_test": "scipy.stats.binomtest(k, n, p).pvalue",
        "chisqprob": "scipy.stats.chi2.sf",
        "itemfreq": "np.unique(values, return_counts=True)",
        "median_absolute_deviation": "scipy.stats.median_abs_deviation",
        "nanmean": "np.nanmean",
        "nanmedian": "np.nanmedian",
        "nanstd": "np.nanstd",
        "signaltonoise": "np.mean(a) / np.std(a)",
        "threshold": "np.clip",
    },
    "scipy.signal": {
        **{
            name: f"scipy.signal.windows.{name}"
            for name in ("bartlett", "blackman", "boxcar", "gaussian", "hamming", "hann", "kaiser", "tukey")
        },
        "hanning": "scipy.signal.windows.hann",
    },
    "scipy.linalg": {"pinv2": "scipy.linalg.pinv", "tril": "np.tril", "triu": "np.triu"},
    "scipy.special": {"sph_harm": "scipy.special.sph_harm_y, which takes its angles in another order"},
    "statsmodels.tsa.api": {"ARMA": "sm.tsa.ARIMA", "arima_model": "sm.tsa.ARIMA"},
    "statsmodels.formula.api": {"OLS": "smf.ols", "GLM": "smf.glm", "Logit": "smf.logit"},
}

_LEVEL = "df.groupby(level=...) before the aggregation"
_LEAVE_OUT = "no such argument: leave it out"
#: The replacement of each removed argument, by function and argument.
REMOVED_ARGUMENTS: dict[tuple[str, str], str] = {
    ("boxplot", "labels"): "tick_labels",
    ("stem", "use_line_collection"): _LEAVE_OUT,
    ("gca", "projection"): "plt.subplot(projection=...)",
    ("set", "axisbg"): "facecolor",
    ("set", "normed"): "density",
    ("set", "sort_columns"): "df.sort_index(axis=1) before plotting",
    ("fillna", "method"): "ffill() or bfill()",
    ("replace", "method"): "ffill() or bfill() after replacing by None",
    ("ffill", "downcast"): "infer_objects() afterwards",
    ("bfill", "downcast"): "infer_objects() afterwards",
    ("fillna", "downcast"): "infer_objects() afterwards",
    ("groupby", "axis"): "df.T.groupby(...)",
    ("groupby", "squeeze"): _LEAVE_OUT,
    ("rolling", "axis"): "df.T.rolling(...)",
    ("resample", "axis"): "df.T.resample(...)",
    ("resample", "how"): "a method after it, like .sum()",
    ("resample", "loffset"): "adding the offset to the index of the result",
    ("resample", "base"): "offset or origin",
    ("_generate_range", "closed"): "inclusive",
    **{(name, "level"): _LEVEL for name in ("sum", "mean", "median", "min", "max", "std", "var", "prod", "count")},
    ("set_axis", "inplace"): "the returned frame",
    ("concat", "join_axes"): "reindex after concat",
    ("get_loc", "method"): "index.get_indexer([label], method=...)",
    ("describe", "datetime_is_numeric"): _LEAVE_OUT,
    ("info", "null_counts"): "show_counts",
    ("to_csv", "line_terminator"): "lineterminator",
    ("to_datetime", "infer_datetime_format"): _LEAVE_OUT,
    ("read_csv", "date_parser"): "date_format, or pd.to_datetime afterwards",
    ("read_csv", "delim_whitespace"): "sep=r'\\s+'",
    ("read_csv", "error_bad_lines"): "on_bad_lines='skip'",
    ("read_csv", "warn_bad_lines"): "on_bad_lines='warn'",
    ("read_csv", "infer_datetime_format"): _LEAVE_OUT,
    ("read_csv", "mangle_dupe_cols"): _LEAVE_OUT,
    ("read_csv", "prefix"): "df.add_prefix(...) afterwards",
    ("read_csv", "squeeze"): "df.squeeze('columns') afterwards",
    ("cg", "tol"): "rtol",
    ("acf", "unbiased"): "adjusted",
    ("acovf", "unbiased"): "adjusted",
    ("seasonal_decompose", "freq"): "period",
}

#: Frequencies that pandas renamed. Those of periods end where the name of the unit ends: ``M``, not ``ME``.
RENAMED_FREQUENCIES = {
    "M": "ME", "Q": "QE", "Y": "YE", "A": "YE", "AS": "YS", "SM": "SME",
    "BM": "BME", "BQ": "BQE", "BY": "BYE", "BA": "BYE", "BAS": "BYS", "CBM": "CBME",
    "H": "h", "BH": "bh", "CBH": "cbh", "T": "min", "S": "s", "L": "ms", "U": "us", "N": "ns",
}  # fmt: skip

_ATTRIBUTE = re.compile(r"(?:\w+ )*'(?P<owner>[\w.]+)'(?: object)? has no attribute '(?P<name>\w+)'")
_ARGUMENT = re.compile(r"(?P<function>\w+)\(\) got an unexpected keyword argument '(?P<name>\w+)'")
_FREQUENCY = re.compile(
    r"(?:Invalid frequency: |invalid unit abbreviation: |passed window )-?\d*(?P<alias>[A-Z]+)(?P<anchor>-[A-Z]+)?\b"
)
_STYLE = re.compile(r"'seaborn(?P<name>-[\w-]+)?' is not a valid package style")
_POSITIONAL = re.compile(r"(?:DataFrame|Series|NDFrame)\.\w+\(\) takes .*positional arguments? but")
_OTHERS = (
    (re.compile("keyword grid_b is not recognized"), "visible=True"),
    (re.compile("Can not interpolate with method=(?:pad|ffill|bfill|backfill)"), "ffill() or bfill()"),
    (re.compile("fill_method must be None"), "ffill() before pct_change(fill_method=None)"),
    (re.compile("nested renamer is not supported"), "agg(new_name=('column', 'sum'))"),
    (
        re.compile("Cannot perform reduction '\\w+' with string dtype"),
        "numeric_only=True, or choose the columns of numbers",
    ),
)
#: The libraries' messages are shorter. The time that the patterns take grows with the square of the length.
MAX_MESSAGE_CHARACTERS = 1_000
SUGGESTION = re.compile(r"\.? Did you mean:? '[^']*'\?")


def removed_name_hint(error: BaseException) -> str:
    """The hint to append to the message of an error that a removed name caused. Empty if it was something else.

    >>> removed_name_hint(AttributeError("module 'numpy' has no attribute 'trapz'"))
    '. It was removed: use np.trapezoid instead.'
    """
    replacement = _replacement(error, str(error)[:MAX_MESSAGE_CHARACTERS])
    if replacement is None:
        return ""
    if replacement == _LEAVE_OUT:
        return ". The argument was removed: leave it out."
    return f". It was removed: use {replacement} instead."


def _replacement(error: BaseException, text: str) -> str | None:
    if isinstance(error, AttributeError) and (found := _ATTRIBUTE.search(text)):
        return _removed_from([found["owner"], *_classes(error)], found["name"])
    if isinstance(error, ModuleNotFoundError) and error.name:
        package, _, name = error.name.rpartition(".")
        return _removed_from([package], name)
    if isinstance(error, ImportError) and error.name:
        return _removed_from([error.name], error.name_from)
    if found := _ARGUMENT.search(text):
        return REMOVED_ARGUMENTS.get((found["function"], found["name"]))
    if isinstance(error, KeyError):
        return _positional_access(error)
    return _by_message(text)


def _removed_from(owners: list[str], name: str | None) -> str | None:
    return next((REMOVED_NAMES[owner][name] for owner in owners if name in REMOVED_NAMES.get(owner, {})), None)


def _classes(error: AttributeError) -> list[str]:
    """The names of the classes that the object belongs to: the removed methods of an index are listed once."""
    return [one.__name__ for one in type(error.obj).__mro__]


def _by_message(text: str) -> str | None:
    if found := _FREQUENCY.search(text):
        renamed = RENAMED_FREQUENCIES.get(found["alias"])
        if renamed is None or f"'{renamed}" in text:  # pandas says so itself
            return None
        period = found["alias"].replace("A", "Y") if renamed[-1] == "E" else None
        new = f"{renamed}{found['anchor'] or ''}"
        return f"the frequency '{new}'" + (f" ('{period}{found['anchor'] or ''}' for periods)" if period else "")
    if found := _STYLE.search(text):
        return f"the style 'seaborn-v0_8{found['name'] or ''}'"
    if _POSITIONAL.search(text):
        return "the names of the arguments after the first"
    return next((replacement for pattern, replacement in _OTHERS if pattern.search(text)), None)


def _positional_access(error: KeyError) -> str | None:
    """``s[0]`` once meant the first value; now a Series only has labels there."""
    if len(error.args) != 1 or not isinstance(error.args[0], int):
        return None
    files = (frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__))
    return f"s.iloc[{error.args[0]}]" if any(name.endswith("/pandas/core/series.py") for name in files) else None
