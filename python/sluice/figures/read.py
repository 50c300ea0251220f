"""Reads a whole figure, axes by axes."""

from __future__ import annotations

from typing import Any

from sluice.figures.bars import read_bars, read_outline_histograms, read_stairs
from sluice.figures.errors import read_errorbars
from sluice.figures.grids import read_images, read_meshes
from sluice.figures.lines import read_lines, read_scatters, read_stems
from sluice.figures.scales import Scale
from sluice.figures.series import Reading
from sluice.figures.shapes import read_areas, read_boxes, read_pies

#: In this order: a container takes its parts before they are read as artists of their own.
READERS = (
    read_bars,
    read_errorbars,
    read_stems,
    read_boxes,
    read_pies,
    read_outline_histograms,
    read_stairs,
    read_areas,
    read_images,
    read_meshes,
    read_scatters,
    read_lines,
)


def read_figure(figure: Any) -> list[Reading]:
    """A reading for each axes of the figure that shows data, insets too; colour bars are left out."""
    readings = [read_axes(axes) for axes in data_axes(figure)]
    for artist in [*figure.artists, *figure.lines, *figure.patches, *figure.images]:
        if readings and artist.get_visible():
            readings[0].cannot_read(artist, "drawn on the figure and in no axes")
    return readings


def data_axes(figure: Any) -> list[Any]:
    """The axes that show data."""
    found: list[Any] = []
    for axes in figure.axes:
        if not hasattr(axes, "_colorbar") and axes.get_visible():
            found.append(axes)
            found += [
                inset
                for inset in axes.child_axes
                if hasattr(inset, "has_data") and not hasattr(inset, "_colorbar") and inset.has_data()
            ]
    return found


def read_axes(axes: Any) -> Reading:
    """Everything that one axes shows: read, or named as unread."""
    reading = Reading.of(axes)
    if axes.name not in ("rectilinear", "polar"):
        for artist in _artists(reading):
            reading.cannot_read(artist, f"an axes of the projection {axes.name!r}")
        return reading
    for read in READERS:
        try:
            read(reading)
        except Exception as error:  # the picture is still good; what this reader would have read is named below
            reading.unread.append(
                {"artist": read.__name__.removeprefix("read_"), "reason": f"{type(error).__name__}: {error}"[:200]}
            )
    for artist in _artists(reading):
        reading.cannot_read(artist, _why(reading, artist))
    return reading


def describe_axes(reading: Reading) -> dict[str, Any]:
    """The reading in the shape of the contract."""
    axes = reading.axes
    titles = {
        "title": axes.get_title() or axes.get_title("left"),
        "xLabel": axes.get_xlabel(),
        "yLabel": axes.get_ylabel(),
    }
    return {
        **{name: text for name, text in titles.items() if text},
        "xScale": _scale(reading.x, [series["x"] for series in reading.series]),
        "yScale": _scale(reading.y, [series["y"] for series in reading.series]),
        "series": reading.series,
        "unread": reading.unread,
    }


def _scale(scale: Scale, places: list[list[Any]]) -> str:
    """Tick labels that name no place of any series do not make an axis of numbers one of categories."""
    is_named = any(isinstance(place, str) for listed in places for place in listed)
    return "linear" if scale.loose and places and not is_named else scale.kind


def _artists(reading: Reading) -> list[Any]:
    axes = reading.axes
    return reading.left([*axes.lines, *axes.patches, *axes.collections, *axes.images, *axes.tables])


def _why(reading: Reading, artist: Any) -> str:
    from matplotlib.patches import Patch
    from matplotlib.table import Table

    if isinstance(artist, Table):
        return "a table of text"
    if isinstance(artist, Patch) and not reading.is_data(artist):
        return "a reference area, no data"
    return f"values of a {type(artist).__name__} cannot be read back"
