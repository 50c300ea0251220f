"""Draws a figure to PNG, and finds problems in what was drawn."""

from __future__ import annotations

import io
import re
import warnings
from dataclasses import dataclass
from typing import Any

from sluice.errors import OutputLimitError
from sluice.figures.labels import overlapping_labels
from sluice.figures.png import to_png

DPI = 150
PAD_INCHES = 0.1
MAX_PIXELS = 50_000_000
MISSING_GLYPH = re.compile(r"Glyph (\d+) .*missing from")


@dataclass(frozen=True)
class Rendered:
    """The picture, and the problems found in it."""

    png: bytes
    overlapping: list[dict[str, Any]]
    missing_glyphs: list[dict[str, Any]]


def render(figure: Any, axes: list[Any]) -> Rendered:
    """Draw the figure as PNG at 150 dpi, cropped to its content.

    Raises
    ------
    OutputLimitError
        For a picture of more than 50 megapixels. The size is checked before drawing.
    """
    _refuse_too_many_pixels(*(float(inches) * DPI for inches in figure.get_size_inches()))
    canvas = _agg_canvas(figure)
    before = figure.dpi
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            figure.dpi = DPI
            canvas.draw()
            renderer = canvas.get_renderer()
            content = figure.get_tightbbox(renderer)
            box = content.padded(PAD_INCHES)
            _refuse_too_many_pixels(box.width * DPI, box.height * DPI)
            overlapping = [
                entry for number, one in enumerate(axes) for entry in overlapping_labels(one, number, renderer)
            ]
            png = _crop(canvas, box) if _can_crop(figure, content) else _draw_again(canvas, box)
        finally:
            _free_pixels(canvas)
            figure.dpi = before
    codes = sorted({int(match[1]) for warning in caught if (match := MISSING_GLYPH.match(str(warning.message)))})
    _warn_again(caught)
    return Rendered(png, overlapping, _texts_with(figure, codes))


def _can_crop(figure: Any, content: Any) -> bool:
    """Whether the picture can be cropped from the drawn pixels.

    That is so if nothing reaches over the edge of the figure, and saving would not change its opaque background.
    """
    from matplotlib import rcParams
    from matplotlib.colors import to_rgba

    width, height = figure.get_size_inches()
    inside = content.x0 >= 0 and content.y0 >= 0 and content.x1 <= width and content.y1 <= height
    unchanged = (
        rcParams["savefig.facecolor"] == rcParams["savefig.edgecolor"] == "auto" and not rcParams["savefig.transparent"]
    )
    background = figure.patch
    opaque = background.get_visible() and to_rgba(background.get_facecolor())[3] == 1
    return inside and unchanged and opaque and not background.get_linewidth()


def _crop(canvas: Any, box: Any) -> bytes:
    """The drawn pixels within the box. Where its margin exceeds the figure, the background colour is continued."""
    import numpy as np
    from matplotlib.colors import to_rgba

    drawn = np.asarray(canvas.buffer_rgba())
    height, width = drawn.shape[:2]
    left, top = round(box.x0 * DPI), round(height - box.y1 * DPI)
    right, bottom = left + int(box.width * DPI), top + int(box.height * DPI)
    part = drawn[max(top, 0) : min(bottom, height), max(left, 0) : min(right, width)]
    margins = ((max(-top, 0), max(bottom - height, 0)), (max(-left, 0), max(right - width, 0)))
    if margins != ((0, 0), (0, 0)):
        padded = np.empty((bottom - top, right - left, 4), np.uint8)
        padded[:] = [round(255 * share) for share in to_rgba(canvas.figure.get_facecolor())]
        padded[margins[0][0] : margins[0][0] + part.shape[0], margins[1][0] : margins[1][0] + part.shape[1]] = part
        part = padded
    return to_png(part, DPI)


def _draw_again(canvas: Any, box: Any) -> bytes:
    target = io.BytesIO()
    canvas.print_figure(target, format="png", dpi=DPI, bbox_inches=box)
    return target.getvalue()


def _agg_canvas(figure: Any) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    return figure.canvas if isinstance(figure.canvas, FigureCanvasAgg) else FigureCanvasAgg(figure)


def _free_pixels(canvas: Any) -> None:
    """Free the megabytes of pixels now.

    A figure is a reference cycle, so they would stay until garbage collection, and the next picture would need new memory.
    """
    renderer = canvas.get_renderer()
    renderer.__init__(1, 1, renderer.dpi)
    canvas._lastKey = None  # so that drawing again creates a renderer of the right size


def _refuse_too_many_pixels(width: float, height: float) -> None:
    if width * height > MAX_PIXELS:
        raise OutputLimitError(
            "artifactPixels",
            MAX_PIXELS,
            int(width * height),
            f"the picture would be {width:,.0f} by {height:,.0f} pixels at {DPI} dpi, "
            f"over {MAX_PIXELS // 1_000_000} megapixels; "
            "use a smaller figsize, and keep text and arrows near the axes",
        )


def _texts_with(figure: Any, codes: list[int]) -> list[dict[str, Any]]:
    """The texts with a character that no font has."""
    if not codes:
        return []
    from matplotlib.text import Text

    missing = {chr(code) for code in codes}
    texts = {text.get_text() for text in figure.findobj(Text) if text.get_visible() and missing & set(text.get_text())}
    return [{"text": text, "glyphs": sorted(missing & set(text))} for text in sorted(texts)]


def _warn_again(caught: list[warnings.WarningMessage]) -> None:
    for warning in caught:
        if not MISSING_GLYPH.match(str(warning.message)):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
