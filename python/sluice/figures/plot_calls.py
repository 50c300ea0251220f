"""Records the arguments of plotting calls on the artists that they create.

Most values can be read back from the artists. Some cannot: the bars of a histogram look like any bars, a pie keeps
angles, an area a polygon, error bars their end points. `watch_axes` wraps the methods that draw those. Readers still
trust the artist: a record that no longer matches it, because the artist was changed later, is not used.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

RECORD_ATTRIBUTE = "_sluice_call"


def call_record(artist: Any, method: str) -> dict[str, Any] | None:
    """The record of the call if `method` created this artist or container, else None."""
    record = any_call_record(artist)
    return record if record is not None and record["method"] == method else None


def any_call_record(artist: Any) -> dict[str, Any] | None:
    """The record of whichever call created this artist, or None."""
    record = getattr(artist, RECORD_ATTRIBUTE, None)
    return record if isinstance(record, dict) else None


def watch_axes() -> None:
    """Wrap the plotting methods of Axes. Calling it again changes nothing."""
    from matplotlib.axes import Axes

    axes: Any = Axes
    if getattr(axes.hist, "_sluice_watched", False):
        return
    for method, record in _RECORDERS.items():
        setattr(axes, method, _wrapped(getattr(axes, method), record))


def _wrapped(original: Any, record: Callable[[Any, Any, dict[str, Any]], None]) -> Any:
    import inspect

    signature = inspect.signature(original)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        created = original(*args, **kwargs)
        try:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            record(args[0], created, _resolve_data(bound.arguments))
        except Exception:  # a missing record must not break a plot
            return created
        return created

    call._sluice_watched = True  # type: ignore[attr-defined]
    return call


def _resolve_data(arguments: dict[str, Any]) -> dict[str, Any]:
    """Replace column names by the columns when `data=` was passed."""
    data = arguments.get("data")
    if data is None:
        return arguments
    return {
        name: data[value] if isinstance(value, str) and value in data else value for name, value in arguments.items()
    }


def _store(artists: Any, record: dict[str, Any]) -> None:
    """Store the record. The outermost call stores last and wins: a histogram calls `bar`, a violin `fill_between`."""
    for artist in artists:
        setattr(artist, RECORD_ATTRIBUTE, record)


def _numbers(axis: Any, values: Any) -> Any:
    """Values as the floats that an axis uses."""
    return np.ma.asarray(np.ma.filled(np.ma.asarray(axis.convert_units(values), dtype=float), np.nan)).data


def _record_bar(axes: Any, created: Any, arguments: dict[str, Any]) -> None:
    """`barh` calls `bar` with swapped arguments, so only the outer call is recorded."""
    vertical = created.orientation == "vertical"
    if vertical != ("x" in arguments and "bottom" in arguments):
        return
    axis, position, length = (axes.xaxis, "x", "height") if vertical else (axes.yaxis, "y", "width")
    record = {
        "method": "bar",
        "position": np.atleast_1d(_numbers(axis, arguments[position])) if arguments["align"] == "center" else None,
        "plain": arguments[position],
        "length": arguments[length],
    }
    _store([created], record)
    errors = any_call_record(created.errorbar) if created.errorbar is not None else None
    if errors is not None:  # `bar` rounds them before it calls `errorbar`
        errors.update({name: arguments["kwargs"].get(name) for name in ("xerr", "yerr")})


def _record_hist(_axes: Any, created: Any, arguments: dict[str, Any]) -> None:
    counts, edges, groups = created
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
        _store([group] if hasattr(group, "patches") else group, record)


def _record_pie(_axes: Any, created: Any, arguments: dict[str, Any]) -> None:
    wedges = created.wedges if hasattr(created, "wedges") else created[0]
    labels = arguments["labels"]
    record = {
        "method": "pie",
        "values": np.asarray(arguments["x"]).ravel(),
        "labels": [str(label) for label in labels] if labels is not None else None,
        "wedges": list(wedges),
    }
    _store(wedges, record)


def _record_errorbar(_axes: Any, created: Any, arguments: dict[str, Any]) -> None:
    record = {
        "method": "errorbar",
        "x": arguments["x"],
        "y": arguments["y"],
        "xerr": arguments["xerr"],
        "yerr": arguments["yerr"],
        **{name: arguments[name] for name in ("lolims", "uplims", "xlolims", "xuplims", "errorevery")},
    }
    _store([created], record)


def _record_scatter(_axes: Any, created: Any, arguments: dict[str, Any]) -> None:
    plain = {name: getattr(arguments[name], "to_numpy", lambda given=arguments[name]: given)() for name in ("x", "y")}
    _store([created], {"method": "scatter", **plain, "offsets": np.ma.getdata(created.get_offsets()).copy()})


def _record_stem(_axes: Any, created: Any, arguments: dict[str, Any]) -> None:
    horizontal = arguments["orientation"] == "horizontal"
    _store([created], {"method": "stem", "horizontal": horizontal, "bottom": float(arguments["bottom"])})


def _record_area(axes: Any, created: Any, arguments: dict[str, Any]) -> None:
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
    _store([created], {"method": "fill_between", "x": x, "plain": arguments["x"], "y": upper, "baseline": lower})


def _is_baseline(edge: Any) -> bool:
    """Whether an edge of an area is the zero line. Stacks are drawn from their lower edge."""
    return bool(np.all(np.isnan(edge) | (edge == 0)))


def _record_box(_axes: Any, created: Any, arguments: dict[str, Any]) -> None:
    stats = arguments["bxpstats"]
    record = {
        "method": "bxp",
        "positions": _positions(arguments, len(stats)),
        "labels": [str(one.get("label", "")) for one in stats],
        "summaries": [[float(one[key]) for key in ("whislo", "q1", "med", "q3", "whishi")] for one in stats],
        "outliers": [[float(value) for value in one.get("fliers", [])] for one in stats] if created["fliers"] else None,
        "horizontal": _is_horizontal(arguments),
        "unread": ["means"] if created["means"] else [],
        "bodies": created["boxes"],
    }
    record["artists"] = [artist for artists in created.values() for artist in artists]
    _store(record["artists"], record)


def _record_violin_data(_axes: Any, created: Any, arguments: dict[str, Any]) -> None:
    """Add the quartiles to the record of `violin`, which `violinplot` calls with densities instead of points."""
    dataset = arguments["dataset"]
    columns = list(dataset.T) if isinstance(dataset, np.ndarray) and dataset.ndim == 2 else dataset
    columns = [columns] if len(columns) and np.isscalar(columns[0]) else columns
    record = any_call_record(created["bodies"][0])
    if record is not None:
        record["summaries"] = [
            [float(q) for q in np.percentile(np.asarray(column, dtype=float), [0, 25, 50, 75, 100])]
            for column in columns
        ]


def _record_violin(_axes: Any, created: Any, arguments: dict[str, Any]) -> None:
    stats = arguments["vpstats"]
    record = {
        "method": "violin",
        "positions": _positions(arguments, len(stats)),
        "labels": None,
        "summaries": [[float(one["min"]), np.nan, float(one["median"]), np.nan, float(one["max"])] for one in stats],
        "outliers": None,
        "horizontal": _is_horizontal(arguments),
        "unread": [name[1:] for name in ("cmeans", "cquantiles") if name in created],
        "bodies": created["bodies"],
    }
    artists = [
        artist
        for name, created_artists in created.items()
        for artist in (created_artists if name == "bodies" else [created_artists])
    ]
    record["artists"] = artists
    _store(artists, record)


def _positions(arguments: dict[str, Any], count: int) -> list[float]:
    """Where the boxes or violins are drawn: by default at 1, 2, 3 and so on."""
    positions = arguments["positions"]
    return list(range(1, count + 1)) if positions is None else [float(position) for position in positions]


def _is_horizontal(arguments: dict[str, Any]) -> bool:
    return arguments.get("orientation") == "horizontal" or arguments.get("vert") is False


def _record_mesh(axes: Any, created: Any, arguments: dict[str, Any]) -> None:
    """Record the centres, if these were passed: the mesh itself only has the edges that matplotlib computed between them."""
    args = arguments["args"]
    if len(args) != 3:
        return
    x, y = (_numbers(axis, values) for axis, values in ((axes.xaxis, args[0]), (axes.yaxis, args[1])))
    x = x[0] if x.ndim == 2 and (x == x[0]).all() else x
    y = y[:, 0] if y.ndim == 2 and (y == y[:, :1]).all() else y
    if (np.size(y), np.size(x)) == np.shape(args[2])[:2]:
        _store([created], {"method": "pcolormesh", "x": x, "y": y})


_RECORDERS: dict[str, Callable[[Any, Any, dict[str, Any]], None]] = {
    "bar": _record_bar,
    "barh": _record_bar,
    "hist": _record_hist,
    "pie": _record_pie,
    "errorbar": _record_errorbar,
    "scatter": _record_scatter,
    "stem": _record_stem,
    "fill_between": _record_area,
    "bxp": _record_box,
    "violin": _record_violin,
    "violinplot": _record_violin_data,
    "pcolormesh": _record_mesh,
    "pcolor": _record_mesh,
}
