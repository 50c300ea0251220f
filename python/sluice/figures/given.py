"""What a plotting call was given, kept with the artists that it made.

Most values can be read back from artists. Some cannot: a histogram's bars look like any bars, a pie keeps angles, an
area keeps a polygon, error bars keep end points. `watch_axes` wraps those few methods, so that the artists carry what
was plotted. Readers still trust the artist: a record that no longer fits it (it was changed later) is not used.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

MARK = "_sluice_given"


def given(artist: Any, method: str) -> dict[str, Any] | None:
    """What `method` was given when it made this artist or container, if it did."""
    record = getattr(artist, MARK, None)
    return record if isinstance(record, dict) and record["method"] == method else None


def owner(artist: Any) -> dict[str, Any] | None:
    """The record of the call that made this artist as one of several."""
    record = getattr(artist, MARK, None)
    return record if isinstance(record, dict) else None


def watch_axes() -> None:
    """Wrap the methods of Axes; calling it again changes nothing."""
    from matplotlib.axes import Axes

    axes: Any = Axes
    if getattr(axes.hist, "_sluice_watched", False):
        return
    for method, keep in _KEEPERS.items():
        setattr(axes, method, _wrapped(getattr(axes, method), keep))


def _wrapped(plain: Any, keep: Callable[[Any, Any, dict[str, Any]], None]) -> Any:
    import inspect

    signature = inspect.signature(plain)

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        made = plain(*args, **kwargs)
        try:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            keep(args[0], made, _resolve_data(bound.arguments))
        except Exception:  # a plot that was drawn is never lost because its record could not be kept
            return made
        return made

    call._sluice_watched = True  # type: ignore[attr-defined]
    return call


def _resolve_data(arguments: dict[str, Any]) -> dict[str, Any]:
    """Names of columns stand for the columns when `data=` was passed."""
    data = arguments.get("data")
    if data is None:
        return arguments
    return {
        name: data[value] if isinstance(value, str) and value in data else value for name, value in arguments.items()
    }


def _put(artists: Any, record: dict[str, Any]) -> None:
    """The outermost call has the last word: a histogram draws with `bar`, a violin with `fill_between`."""
    for artist in artists:
        setattr(artist, MARK, record)


def _numbers(axis: Any, values: Any) -> Any:
    """Values in the floats of an axis."""
    return np.ma.asarray(np.ma.filled(np.ma.asarray(axis.convert_units(values), dtype=float), np.nan)).data


def _keep_bar(axes: Any, made: Any, arguments: dict[str, Any]) -> None:
    """`barh` calls `bar` with its arguments turned around; only the outer call says what is what."""
    vertical = made.orientation == "vertical"
    if vertical != ("x" in arguments and "bottom" in arguments):
        return
    axis, position, length = (axes.xaxis, "x", "height") if vertical else (axes.yaxis, "y", "width")
    record = {
        "method": "bar",
        "position": np.atleast_1d(_numbers(axis, arguments[position])) if arguments["align"] == "center" else None,
        "plain": arguments[position],
        "length": arguments[length],
    }
    _put([made], record)
    errors = owner(made.errorbar) if made.errorbar is not None else None
    if errors is not None:  # they were rounded on their way from here to `errorbar`
        errors.update({name: arguments["kwargs"].get(name) for name in ("xerr", "yerr")})


def _keep_hist(_axes: Any, made: Any, arguments: dict[str, Any]) -> None:
    counts, edges, groups = made
    single = not isinstance(groups, list) or (len(groups) and not hasattr(groups[0], "__iter__"))
    groups = [groups] if single else groups
    tops = np.atleast_2d(np.asarray(counts, dtype=float))
    stacked = (arguments["stacked"] or arguments["histtype"] == "barstacked") and len(tops) > 1
    heights = np.diff(tops, axis=0, prepend=0) if stacked else tops
    bottom = arguments["bottom"]
    starts = tops - heights + (0 if bottom is None else np.asarray(bottom, dtype=float))
    for position, group in enumerate(groups):
        record = {
            "method": "hist",
            "counts": heights[position],
            "baseline": starts[position] if np.any(starts) else None,
            "edges": np.asarray(edges, dtype=float),
            "horizontal": arguments["orientation"] == "horizontal",
            "label": next(iter(group)).get_label() if hasattr(group, "__iter__") and len(group) else None,
        }
        _put([group] if hasattr(group, "patches") else group, record)


def _keep_pie(_axes: Any, made: Any, arguments: dict[str, Any]) -> None:
    wedges = made.wedges if hasattr(made, "wedges") else made[0]
    labels = arguments["labels"]
    record = {
        "method": "pie",
        "values": [float(value) for value in arguments["x"]],
        "labels": [str(label) for label in labels] if labels is not None else None,
        "wedges": list(wedges),
    }
    _put(wedges, record)


def _keep_errorbar(_axes: Any, made: Any, arguments: dict[str, Any]) -> None:
    record = {
        "method": "errorbar",
        "x": arguments["x"],
        "y": arguments["y"],
        "xerr": arguments["xerr"],
        "yerr": arguments["yerr"],
    }
    _put([made], record)


def _keep_area(axes: Any, made: Any, arguments: dict[str, Any]) -> None:
    x = np.atleast_1d(_numbers(axes.xaxis, arguments["x"]))
    upper, lower = (
        np.broadcast_to(_numbers(axes.yaxis, arguments[name]), x.shape).astype(float) for name in ("y1", "y2")
    )
    if arguments["where"] is not None:
        shown = np.asarray(arguments["where"], dtype=bool)
        upper, lower = np.where(shown, upper, np.nan), np.where(shown, lower, np.nan)
    if (_is_baseline(upper) and not _is_baseline(lower)) or (
        not _is_baseline(lower) and np.all((upper <= lower) | np.isnan(upper))
    ):
        upper, lower = lower, upper
    _put([made], {"method": "fill_between", "x": x, "plain": arguments["x"], "y": upper, "baseline": lower})


def _is_baseline(edge: Any) -> bool:
    """Whether an edge of an area is the zero line; stacks are drawn from their lower edge."""
    return bool(np.all(np.isnan(edge) | (edge == 0)))


def _keep_box(_axes: Any, made: Any, arguments: dict[str, Any]) -> None:
    stats = arguments["bxpstats"]
    positions = arguments["positions"]
    record = {
        "method": "bxp",
        "positions": list(range(1, len(stats) + 1))
        if positions is None
        else [float(position) for position in positions],
        "labels": [str(one.get("label", "")) for one in stats],
        "summaries": [[float(one[key]) for key in ("whislo", "q1", "med", "q3", "whishi")] for one in stats],
        "outliers": [[float(value) for value in one.get("fliers", [])] for one in stats],
        "horizontal": _is_horizontal(arguments),
        "unread": ["means"] if made["means"] else [],
    }
    _put([artist for artists in made.values() for artist in artists], record)


def _keep_violin_data(_axes: Any, made: Any, arguments: dict[str, Any]) -> None:
    """`violinplot` computes densities and calls `violin`; only here the points are known, so the quartiles are too."""
    dataset = arguments["dataset"]
    columns = list(dataset.T) if isinstance(dataset, np.ndarray) and dataset.ndim == 2 else dataset
    columns = [columns] if len(columns) and np.isscalar(columns[0]) else columns
    record = owner(made["bodies"][0])
    if record is not None:
        record["summaries"] = [
            [float(q) for q in np.percentile(np.asarray(column, dtype=float), [0, 25, 50, 75, 100])]
            for column in columns
        ]


def _keep_violin(_axes: Any, made: Any, arguments: dict[str, Any]) -> None:
    stats = arguments["vpstats"]
    positions = arguments["positions"]
    record = {
        "method": "violin",
        "positions": list(range(1, len(stats) + 1))
        if positions is None
        else [float(position) for position in positions],
        "labels": None,
        "summaries": [[float(one["min"]), np.nan, float(one["median"]), np.nan, float(one["max"])] for one in stats],
        "outliers": None,
        "horizontal": _is_horizontal(arguments),
        "unread": [name[1:] for name in ("cmeans", "cquantiles") if name in made],
    }
    artists = [
        artist
        for name, made_artists in made.items()
        for artist in (made_artists if name == "bodies" else [made_artists])
    ]
    _put(artists, record)


def _is_horizontal(arguments: dict[str, Any]) -> bool:
    return arguments.get("orientation") == "horizontal" or arguments.get("vert") is False


def _keep_mesh(axes: Any, made: Any, arguments: dict[str, Any]) -> None:
    """Centres that were given are kept: the mesh only has the edges that matplotlib made up between them."""
    args = arguments["args"]
    if len(args) != 3:
        return
    x, y = (_numbers(axis, values) for axis, values in ((axes.xaxis, args[0]), (axes.yaxis, args[1])))
    x = x[0] if x.ndim == 2 and (x == x[0]).all() else x
    y = y[:, 0] if y.ndim == 2 and (y == y[:, :1]).all() else y
    if (np.size(y), np.size(x)) == np.shape(args[2])[:2]:
        _put([made], {"method": "pcolormesh", "x": x, "y": y})


_KEEPERS: dict[str, Callable[[Any, Any, dict[str, Any]], None]] = {
    "bar": _keep_bar,
    "barh": _keep_bar,
    "hist": _keep_hist,
    "pie": _keep_pie,
    "errorbar": _keep_errorbar,
    "fill_between": _keep_area,
    "bxp": _keep_box,
    "violin": _keep_violin,
    "violinplot": _keep_violin_data,
    "pcolormesh": _keep_mesh,
    "pcolor": _keep_mesh,
}
