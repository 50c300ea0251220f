"""Reads all plotted values of a figure, one axes after the other."""

from __future__ import annotations

from typing import Any

from sluice.figures.bars import read_bars, read_outline_histograms, read_stairs
from sluice.figures.categories import assign_categories
from sluice.figures.error_bars import read_errorbars
from sluice.figures.grids import read_images, read_meshes
from sluice.figures.legends import name_series
from sluice.figures.lines import read_lines, read_scatters, read_stems
from sluice.figures.reading import Reading
from sluice.figures.scales import Scale, zone_name
from sluice.figures.shapes import read_areas, read_boxes, read_pies

#: The order matters: a container claims its parts before they are read as single artists.
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
    """One reading per axes that shows data, including insets. Colour bars are left out."""
    readings = [read_axes(axes) for axes in data_axes(figure)]
    for artist in [*figure.artists, *figure.lines, *figure.patches, *figure.images]:
        if readings and artist.get_visible():
            readings[0].cannot_read(artist, "drawn on the figure, not in an axes")
    try:
        name_series(figure, readings)
    except Exception as error:  # the series keep the labels of their own
        readings[0].note_unread("legend", f"{type(error).__name__}: {error}"[:200])
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
    """Read everything that one axes shows. What cannot be read is listed as unread."""
    reading = Reading.create(axes)
    if axes.name not in ("rectilinear", "polar"):
        reading.x, reading.y = Scale("other", {}), Scale("other", {})
        for artist in _artists(reading):
            reading.cannot_read(artist, f"an axes with the projection {axes.name!r}")
        return reading
    for read in READERS:
        try:
            read(reading)
        except Exception as error:  # the picture is still usable; its artists are listed as unread below
            reading.note_unread(read.__name__.removeprefix("read_"), f"{type(error).__name__}: {error}"[:200])
    for artist in _artists(reading):
        reading.cannot_read(artist, _reason(reading, artist))
    return reading


def describe_figure(figure: Any, readings: list[Reading]) -> dict[str, Any]:
    """The readings as the protocol describes figure data (`src/protocol/figure.ts`)."""
    texts = {
        "title": figure.get_suptitle(),
        "xLabel": figure.get_supxlabel(),
        "yLabel": figure.get_supylabel(),
    }
    axes = [_describe_axes(reading) for reading in readings]
    more = _other_texts(figure, readings)
    return {
        "schemaVersion": 2,
        **{name: text for name, text in texts.items() if text},
        **({"texts": more} if more else {}),
        "axes": axes,
    }


#: Texts of one figure, and the characters of each.
MAX_TEXTS = 200
MAX_TEXT_CHARACTERS = 500


def _other_texts(figure: Any, readings: list[Reading]) -> list[str]:
    """The texts inside the picture that no title, label or series has: annotations, and entries of legends."""
    axes = [reading.axes for reading in readings]
    titles = [getattr(figure, name, None) for name in ("_suptitle", "_supxlabel", "_supylabel")]
    legends = [*figure.legends, *(one.get_legend() for one in axes)]
    found = [
        *(text for text in figure.texts if text not in titles),
        *(text for one in axes for text in (one.title, one._left_title, one._right_title, *one.texts)),
        *(text for legend in legends if legend is not None for text in (legend.get_title(), *legend.get_texts())),
    ]
    shown = {text.get_text().strip()[:MAX_TEXT_CHARACTERS] for text in found if text.get_visible()}
    known = {figure.get_suptitle(), *(_title(one) for one in axes)}
    for series in (one for reading in readings for one in reading.series):
        known |= {series.get("label"), *series.get("labels", [])}
    words = (
        text for text in shown - known if any(map(str.isalpha, text))
    )  # bars and slices may have their number as a text
    return sorted(words)[:MAX_TEXTS]


def _title(axes: Any) -> str:
    title: str = axes.get_title() or axes.get_title("left") or axes.get_title("right")
    return title


def _describe_axes(reading: Reading) -> dict[str, Any]:
    axes = reading.axes
    title = _title(axes)
    return {
        **({"title": title} if title else {}),
        "x": _describe_axis("x", reading, reading.x, axes.get_xlabel()),
        "y": _describe_axis("y", reading, reading.y, axes.get_ylabel()),
        "series": reading.series,
        "unread": reading.unread,
    }


def _describe_axis(name: str, reading: Reading, scale: Scale, label: str) -> dict[str, Any]:
    kind = assign_categories(scale, name, reading.slots)
    labels = sorted(scale.labels.items())
    places = scale.values([place for place, _ in labels])
    return {
        "scale": kind,
        **({"label": label} if label else {}),
        **({"zone": zone_name(scale.zone)} if kind == "time" and scale.zone is not None else {}),
        **(
            {"tickLabels": [{"at": at, "text": text} for at, (_, text) in zip(places, labels, strict=True)]}
            if labels
            else {}
        ),
    }


def _artists(reading: Reading) -> list[Any]:
    axes = reading.axes
    return reading.remaining([*axes.lines, *axes.patches, *axes.collections, *axes.images, *axes.tables])


def _reason(reading: Reading, artist: Any) -> str:
    from matplotlib.patches import Patch
    from matplotlib.table import Table

    if isinstance(artist, Table):
        return "a table of text"
    if isinstance(artist, Patch) and not reading.is_data(artist):
        return "a reference area, not data"
    return f"values of a {type(artist).__name__} cannot be read back"
