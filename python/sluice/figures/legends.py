"""Names series by the entries of legends, where the name was not given to the call that drew the series.

`legend(["a", "b"])` names artists that have no label of their own. Proxies, like an empty line of the same colour, name what
looks like them. A legend of the whole figure is often drawn from the artists of one axes, and stands for all of them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sluice.figures.reading import Drawn, Reading

WHITE = (1.0, 1.0, 1.0)
#: How `legend_elements` of a scatter writes numbers.
UPRIGHT = re.compile(r"\$\\mathdefault\{(.*)\}\$")


def watch_legends() -> None:
    """Record the artists that each entry of a legend stands for. Calling it again changes nothing."""
    from matplotlib.legend import Legend

    legend: Any = Legend
    create = legend._init_legend_box
    if getattr(create, "_sluice_watched", False):
        return

    @functools.wraps(create)
    def watched(self: Any, handles: Any, labels: Any, *args: Any, **kwargs: Any) -> Any:
        given = list(zip(handles, labels, strict=False))
        self._sluice_entries = given
        return (
            create(self, *zip(*given, strict=True), *args, **kwargs) if given else create(self, [], [], *args, **kwargs)
        )

    watched._sluice_watched = True  # type: ignore[attr-defined]
    legend._init_legend_box = watched


def name_series(figure: Any, readings: Sequence[Reading]) -> None:
    """Give the text of a legend's entry to the series, bars, slices or points that it stands for."""
    entries = [entry for legend in _legends(figure, readings) for entry in _read_entries(legend)]
    if not entries:
        return
    drawn = [(reading, one) for reading in readings for one in reading.drawn]
    kinds = {id(artist): one.series["type"] for _, one in drawn for artist in (*one.whole, *one.parts)}
    proxies = [(entry, _look(handle)) for entry in entries for handle in entry.handles if id(handle) not in kinds]
    nameless = [(reading, look) for reading, one in drawn if "label" not in one.series for look in _looks(one)]
    # An empty line stands for lines. It stands for points and bars of its colour only where no line looks like it.
    exact = [
        (entry, sample)
        for entry, sample in proxies
        if any(entry.is_about(reading.axes) and sample.is_exactly_like(look) for reading, look in nameless)
    ]
    for reading, one in drawn:
        own = {id(artist) for artist in one.parts}
        samples = [
            (entry.text, sample, (entry, sample) in exact) for entry, sample in proxies if entry.is_about(reading.axes)
        ]
        for entry in entries:
            for handle in entry.handles:
                of_figure = (
                    entry.axes is None and kinds.get(id(handle)) == one.series["type"] and not _has_legend(reading)
                )
                if id(handle) in own or of_figure:
                    samples.append((entry.text, _look(handle), False))
        _name(one, entries, samples)


@dataclass(frozen=True)
class Entry:
    """One line of a legend: its text and the artists that are drawn beside it."""

    text: str
    handles: Sequence[Any]
    #: The axes that the legend belongs to. None if it belongs to the figure.
    axes: Any

    def is_about(self, axes: Any) -> bool:
        """Whether the entry can name something in this axes, or in a twin of it."""
        return self.axes is None or self.axes is axes or self.axes in axes._twinned_axes.get_siblings(axes)


#: The text of an entry, its look, and whether it stands only for artists of its own kind.
Sample = tuple[str, "Look", bool]


def _legends(figure: Any, readings: Sequence[Reading]) -> Iterator[Any]:
    """The visible legends: of each axes, added to it as artists, and of the figure and its parts."""
    from matplotlib.legend import Legend

    found = [legend for one in readings for legend in (one.axes.get_legend(), *one.axes.artists)]
    figures = [figure]
    for one in figures:
        figures += one.subfigs
        found += one.legends
    yield from (legend for legend in found if isinstance(legend, Legend) and legend.get_visible())


def _read_entries(legend: Any) -> Iterator[Entry]:
    """The entries as they are shown now: their texts may have been changed after the legend was drawn."""
    given = getattr(legend, "_sluice_entries", [])
    shown = [text.get_text() for text in legend.get_texts()]
    texts = shown if len(shown) == len(given) else [str(label) for _, label in given]
    for (handle, _), text in zip(given, texts, strict=True):
        name = UPRIGHT.sub(r"\1", text).strip()
        if name:
            yield Entry(name, _flat(handle), legend.axes)


def _flat(handle: Any) -> list[Any]:
    """The artists of a handle. A tuple stands for several, but a container is a tuple too."""
    from matplotlib.container import Container

    if isinstance(handle, tuple | list) and not isinstance(handle, Container):
        return [artist for part in handle for artist in _flat(part)]
    return [handle]


def _has_legend(reading: Reading) -> bool:
    legend = reading.axes.get_legend()
    return legend is not None and bool(legend.get_texts())


def _name(drawn: Drawn, entries: Sequence[Entry], samples: Sequence[Sample]) -> None:
    """A legend overrules the label of an artist that it shows. Proxies name only what has no label."""
    series = drawn.series
    texts = _texts(drawn.whole, entries)
    if texts:
        if series.get("label") not in texts:
            series["label"] = texts[0]
        return
    own = [_texts([part], entries) for part in drawn.parts]
    if "labels" in series or ("label" in series and not any(own)):
        return
    by_look = functools.cache(functools.partial(_by_look, samples=samples))
    looks = _looks(drawn)
    if drawn.parts:
        _put(series, [texts[0] if texts else by_look(look) for texts, look in zip(own, looks, strict=True)])
    elif len(looks) > 1:
        names = [by_look(look) for look in looks]
        if "z" not in series or None not in names:  # the colours of some values say nothing about the others
            _put(series, names)
    elif looks and (name := by_look(looks[0])) is not None:
        series["label"] = name


def _texts(artists: Sequence[Any], entries: Sequence[Entry]) -> list[str]:
    known = {id(artist) for artist in artists}
    return [entry.text for entry in entries if any(id(handle) in known for handle in entry.handles)]


def _put(series: dict[str, Any], names: list[str | None]) -> None:
    """One name for the series if all its parts have it, otherwise a name for each part."""
    if series["type"] != "pie" and None not in names and len(set(names)) == 1:
        series["label"] = names[0]
    elif any(names):
        series["labels"] = names


@dataclass(frozen=True)
class Look:
    """What it is (``line``, ``marker`` or ``fill``), and what tells the entries of a legend apart. None where an artist has no such property."""

    kind: str
    colours: frozenset[tuple[float, ...]]
    line: str | None = None
    marker: str | None = None
    hatch: str | None = None

    def is_like(self, other: Look) -> bool:
        """Whether both have a colour in common, and the same dashes and hatches where both have some."""
        same_line = None in (self.line, other.line) or self.line == other.line
        same_hatch = None in (self.hatch, other.hatch) or self.hatch == other.hatch
        return same_line and same_hatch and not self.colours.isdisjoint(other.colours)

    def is_exactly_like(self, other: Look) -> bool:
        """Whether both look alike and are of the same kind."""
        return self.kind == other.kind and self.is_like(other)


def _by_look(look: Look, samples: Sequence[Sample]) -> str | None:
    """The text of the only entry that looks like this. None if there are several."""
    alike = [
        (text, sample)
        for text, sample, is_exact in samples
        if (look.is_exactly_like(sample) if is_exact else look.is_like(sample))
    ]
    same_marker = [(text, sample) for text, sample in alike if look.marker == sample.marker]
    for found in (alike, same_marker):
        texts = {text for text, _ in found}
        if len(texts) == 1:
            return texts.pop()
    return None


def _looks(drawn: Drawn) -> list[Look]:
    """The look of each bar, slice, box or point that can differ, or of the whole series."""
    if drawn.parts:
        return [_look(part) for part in drawn.parts]
    looks = [look for artist in drawn.whole[:1] for look in _point_looks(artist)]
    return looks if len(looks) == len(drawn.series["x"]) else [_look(artist) for artist in drawn.whole[:1]]


def _look(artist: Any) -> Look:
    from matplotlib.collections import Collection, PathCollection
    from matplotlib.container import BarContainer, ErrorbarContainer, StemContainer
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if isinstance(artist, BarContainer) and artist.patches:
        return _look(artist.patches[0])
    if isinstance(artist, ErrorbarContainer):
        line, _, stems = artist.lines
        return _look(line if line is not None else stems[0])
    if isinstance(artist, StemContainer):
        return _look(artist.markerline)
    if isinstance(artist, Line2D):
        return _look_of_line(artist)
    if isinstance(artist, Patch):
        return Look("fill", _rgb([artist.get_facecolor(), artist.get_edgecolor()]), hatch=artist.get_hatch() or "")
    if isinstance(artist, Collection):
        kind = "marker" if isinstance(artist, PathCollection) else "fill"
        return Look(kind, _rgb([*artist.get_facecolor()[:1], *artist.get_edgecolor()[:1]]))
    return Look("other", frozenset())


def _look_of_line(line: Any) -> Look:
    has_line = line.get_linestyle() not in ("None", "", " ", "none")
    has_marker = line.get_marker() not in (None, "None", "", " ", "none")
    colours = [line.get_color()] if has_line else []
    if has_marker:
        colours += [line.get_markerfacecolor(), line.get_markeredgecolor()]
    style = str(line.get_linestyle()) if has_line else None
    # Of a white line with a coloured marker only the marker is seen.
    is_line = has_line and _rgb([line.get_color()]) == _rgb(colours)
    return Look(
        "line" if is_line else "marker",
        _rgb(colours),
        style if is_line else None,
        str(line.get_marker()) if has_marker else None,
    )


def _point_looks(points: Any) -> list[Look]:
    """The looks of the points of a scatter, if they have colours of their own."""
    from matplotlib.collections import PathCollection

    if not isinstance(points, PathCollection):
        return []
    mapped = points.get_array()
    colours = points.get_facecolor() if mapped is None else points.to_rgba(mapped)
    if len(colours) <= 1:
        return []
    kinds, which = np.unique(np.asarray(colours, dtype=float), axis=0, return_inverse=True)
    looks = [Look("marker", _rgb([colour])) for colour in kinds]
    return [looks[kind] for kind in np.ravel(which)]


def _rgb(colours: Sequence[Any]) -> frozenset[tuple[float, ...]]:
    """The first of the colours that is visible and not white, which only fills or separates; white if there is no other."""
    from matplotlib.colors import to_rgba

    known = [to_rgba(colour) for colour in colours if not isinstance(colour, str) or colour.lower() != "none"]
    seen = [tuple(round(part, 3) for part in rgba[:3]) for rgba in known if rgba[3] > 0]
    coloured = [one for one in seen if one != WHITE]
    return frozenset(coloured[:1] or seen[:1])
