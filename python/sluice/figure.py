"""`save_figure`: emits a matplotlib figure as a picture, together with the plotted data."""

from __future__ import annotations

import json
import re
import struct
from typing import Any

from sluice import _cell
from sluice._figure_watch import is_saved, mark_saved, open_figures
from sluice._title import check_title
from sluice.coverage_report import CadenceArgument
from sluice.errors import FigureError, OutputLimitError
from sluice.figures.coverage import figure_coverage
from sluice.figures.labels import large_legends
from sluice.figures.read_figure import describe_figure, read_figure
from sluice.figures.reading import Reading
from sluice.figures.render import render

MAX_ALT_CHARACTERS = 10_000
FILE_NAME = re.compile(r"\S+\.\w{2,5}|.*\.(?:png|jpe?g|svg|gif|webp|pdf)", re.IGNORECASE)


def save_figure(alt: str, title: str | None = None, fig: Any = None, *, cadence: CadenceArgument = None) -> None:
    """Emit a matplotlib figure as a picture, and close the figure.

    The plotted values are read back from the figure and sent with the picture, so that they can be checked and reused.
    Series that do not fit into 2 MB, the largest first, are left out and listed as unread.

    Parameters
    ----------
    alt : str
        What the picture shows, for a reader who cannot see it: at least 10 characters of text, not a file name.
    title : str, optional
        A title shown next to the picture.
    fig : matplotlib figure, optional
        The figure, or one of its axes. By default the current figure.
    cadence : dict or str, optional
        The intended step between the points of a series, by its label: ``{"Fed rate": "6W"}``. A series on a time
        axis that shows less than 60 % of the index it came from, or of the points of another series, between its own
        first and last point is reported in ``diagnostics.lowCoverage``, unless its points are regular. Set the cadence
        of a series that is sparse by design, or None to skip the check for it. Markers without a line are checked
        only when nothing else is drawn.

    Raises
    ------
    FigureError
        When the alt text does not describe anything, when there is no figure, or when the figure is empty or was
        already saved. The figure stays open.
    OutputLimitError
        When the picture is larger than 10 MB or 50 megapixels, or does not fit into what the cell or the turn may emit.

    Notes
    -----
    The picture is a PNG at 150 dpi, cropped to its content. `plt.show()` and `plt.savefig()` do not emit anything.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> _ = plt.plot([1, 2, 3], [3, 1, 2])
    >>> save_figure("Line that falls from 3 to 1 and rises to 2", title="Three points")
    """
    import matplotlib.pyplot as plt

    report = _cell.current()
    text = check_alt(alt)
    caption = check_title(title, FigureError)
    figure = _chosen_figure(fig)
    if is_saved(figure):
        raise FigureError("this figure was already saved; create a new figure for each save_figure")
    report.check_artifact_count()
    readings = read_figure(figure)
    if _is_empty(figure, readings):
        raise FigureError("the figure is empty: none of its axes shows a value; plot something before save_figure")
    coverage = figure_coverage(readings, cadence)
    axes = [reading.axes for reading in readings]
    rendered = render(figure, axes)
    allowed = report.limits.artifact_bytes
    if len(rendered.png) > allowed:
        raise OutputLimitError(
            "artifactBytes",
            allowed,
            len(rendered.png),
            f"the picture is {len(rendered.png):,} bytes, at most {allowed:,} are allowed; "
            "use a smaller figsize or draw less",
        )
    report.check_artifact_bytes(len(rendered.png))
    width, height = struct.unpack(">II", rendered.png[16:24])
    left = report.artifact_bytes_left() - len(rendered.png)
    data = figure_json(describe_figure(figure, readings), min(report.limits.artifact_data_bytes, left))
    header = {"alt": text, "title": caption, "width": width, "height": height}
    report.put_artifact("image", header, data, rendered.png)
    mark_saved(figure)
    if not data:
        report.note("figureDataOmitted", {"figure": text})
    coverage.note()
    for key, entries in (
        ("overlappingLabels", rendered.overlapping),
        ("missingGlyphs", rendered.missing_glyphs),
        ("largeLegend", large_legends(figure, axes)),
    ):
        for entry in entries:
            report.note(key, entry)
    plt.close(figure)


def check_alt(alt: object) -> str:
    """Return the alt text, trimmed. Raises FigureError when it does not describe anything."""
    text = alt.strip() if isinstance(alt, str) else ""
    if len(text) < 10 or not any(character.isalpha() for character in text) or FILE_NAME.fullmatch(text):
        raise FigureError(
            f"alt must say what the picture shows, in at least 10 characters with letters, "
            f"and not be a file name; got {alt!r}. "
            'For example save_figure("Daily price of BTC in 2024, rising from 42k to 93k")'
        )
    if len(text) > MAX_ALT_CHARACTERS:
        raise FigureError(f"alt has {len(text):,} characters, at most {MAX_ALT_CHARACTERS:,} are allowed; shorten it")
    return text


#: How many unread artists are listed by name when the list itself is too large.
MAX_UNREAD = 100


def figure_json(figure: dict[str, Any], max_bytes: int) -> bytes:
    """The figure data as JSON. Series that do not fit, the largest first, are listed as unread instead.

    Empty when even the axes without series do not fit.
    """
    data = _dump(figure)
    if len(data) <= max_bytes:
        return data
    axes = figure["axes"]
    sizes = [(len(_dump(series)), one, series) for one in axes for series in one["series"]]
    size, dropped = len(data), set()
    for series_bytes, one, series in sorted(sizes, key=lambda entry: entry[0], reverse=True):
        if size <= max_bytes:
            break
        name = series["type"] + (f" {series['label'][:200]!r}" if "label" in series else "")
        note = {"artist": name, "reason": f"its data is too large to send ({series_bytes:,} bytes)"}
        one["unread"].append(note)
        dropped.add(id(series))
        size += len(_dump(note)) + 1 - series_bytes
    for one in axes:
        one["series"] = [series for series in one["series"] if id(series) not in dropped]
        if size > max_bytes and len(one["unread"]) > MAX_UNREAD + 1:
            rest = sum(entry.get("count", 1) for entry in one["unread"][MAX_UNREAD:])
            more = {"artist": "others", "reason": "too many to list", "count": rest}
            one["unread"] = [*one["unread"][:MAX_UNREAD], more]
    data = _dump(figure)
    return data if len(data) <= max_bytes else b""


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def _chosen_figure(fig: Any) -> Any:
    if fig is None:
        if not open_figures():
            raise FigureError("there is no figure to save; plot something first, or pass fig=")
        import matplotlib.pyplot as plt

        return plt.gcf()
    from matplotlib.figure import FigureBase

    figure = fig if isinstance(fig, FigureBase) else getattr(fig, "figure", None)
    # A subfigure stands for the whole figure.
    while figure is not None and getattr(figure, "figure", figure) is not figure:
        figure = figure.figure
    if not isinstance(figure, FigureBase):
        raise FigureError(f"fig must be a matplotlib figure or one of its axes, got {type(fig).__name__}")
    return figure


def _is_empty(figure: Any, readings: list[Reading]) -> bool:
    """Whether the figure shows nothing: no value except nulls, no artist that could not be read, no text."""
    titles = [getattr(figure, name, None) for name in ("_suptitle", "_supxlabel", "_supylabel")]
    texts = [text for text in figure.texts if text not in titles]
    if texts or figure.artists or figure.images or figure.lines or figure.patches:
        return False
    return not any(reading.axes.texts or reading.unread or any(map(_has_value, reading.series)) for reading in readings)


def _has_value(series: dict[str, Any]) -> bool:
    values = series["z"] if series["type"] == "heatmap" else [series["y"] if series["type"] != "barh" else series["x"]]
    return any(value is not None for row in values for value in row)
