"""`save_figure`: hands a matplotlib figure to the host as a PNG."""

from __future__ import annotations

import io
import json
import re
import struct
from typing import TYPE_CHECKING, Any

from sluice import _cell
from sluice._figure_watch import is_saved, mark_saved, open_figures
from sluice.errors import FigureError, OutputLimitError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 150
PAD_INCHES = 0.1
MAX_PIXELS = 50_000_000


def save_figure(alt: str, title: str | None = None, fig: Any = None) -> None:
    """Hand a matplotlib figure over as a picture, and close it.

    Parameters
    ----------
    alt : str
        What the picture shows, for someone who cannot see it: at least 10 characters of text, not a file name.
    title : str, optional
        A title shown beside the picture.
    fig : matplotlib figure, optional
        The figure (or one of its axes); the current figure if not given.

    Raises
    ------
    FigureError
        For an alt text that says nothing, no figure, an empty figure, or one that was saved before.
    OutputLimitError
        For a picture over 10 MB or 50 megapixels.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> _ = plt.plot([1, 2, 3], [3, 1, 2])
    >>> save_figure("Line that falls from 3 to 1 and rises to 2", title="Three points")
    """
    report = _cell.current()
    text = check_alt(alt)
    figure = _chosen_figure(fig)
    if is_saved(figure):
        raise FigureError("this figure was saved before; draw a new one for each save_figure")
    if not any(axes.has_data() or axes.texts or axes.tables for axes in figure.axes) and not figure.texts:
        raise FigureError("the figure is empty: nothing was drawn in its axes; plot something before save_figure")
    png = _render(figure)
    width, height = struct.unpack(">II", png[16:24])
    if len(png) > report.limits.artifact_bytes:
        allowed = report.limits.artifact_bytes
        raise OutputLimitError(
            "artifactBytes", allowed, len(png), f"the picture is {len(png):,} bytes, at most {allowed:,} are allowed; draw less"
        )
    header = {"alt": text, "title": title, "width": width, "height": height, "pngBytes": len(png)}
    report.put_artifact("image", header, png + json.dumps({"axes": []}).encode())
    mark_saved(figure)
    _close(figure)


def check_alt(alt: object) -> str:
    """The alt text, trimmed; refused when it says nothing."""
    text = alt.strip() if isinstance(alt, str) else ""
    if len(text) < 10 or not any(character.isalpha() for character in text) or re.search(r"\.\w{2,4}$", text) and " " not in text:
        raise FigureError(
            f"alt must describe the picture in at least 10 characters and not be a file name, got {alt!r}; "
            'for example save_figure("Daily price of BTC in 2024, rising from 42k to 93k")'
        )
    return text


def _chosen_figure(fig: Any) -> Any:
    if fig is None:
        figures = open_figures()
        if not figures:
            raise FigureError("there is no figure to save; plot something first, or pass fig=")
        import matplotlib.pyplot as plt

        return plt.gcf()
    figure = getattr(fig, "figure", fig)
    if not hasattr(figure, "get_tightbbox"):
        raise FigureError(f"fig must be a matplotlib figure, got {type(fig).__name__}")
    return figure


def _render(figure: Figure) -> bytes:
    width, height = (inches * DPI for inches in figure.get_size_inches())
    if width * height > MAX_PIXELS:
        raise OutputLimitError(
            "artifactPixels", MAX_PIXELS, int(width * height), f"the figure is {width:.0f} by {height:.0f} pixels; use a smaller figsize"
        )
    target = io.BytesIO()
    figure.canvas.print_figure(target, format="png", dpi=DPI, bbox_inches="tight", pad_inches=PAD_INCHES)
    return target.getvalue()


def _close(figure: Figure) -> None:
    import matplotlib.pyplot as plt

    plt.close(figure)
