"""Draws a figure once, and looks at what was drawn."""

from __future__ import annotations

import io
import re
import warnings
from dataclasses import dataclass, field
from typing import Any

from sluice.errors import OutputLimitError
from sluice.figures.labels import overlapping_labels

DPI = 150
PAD_INCHES = 0.1
MAX_PIXELS = 50_000_000
MISSING_GLYPH = re.compile(r"Glyph (\d+) .*missing from")


@dataclass
class Rendered:
    """The picture, and what is to be said about it."""

    png: bytes
    overlapping: list[dict[str, Any]] = field(default_factory=list)
    missing_glyphs: list[dict[str, Any]] = field(default_factory=list)


def render(figure: Any, axes: list[Any]) -> Rendered:
    """The figure as PNG at 150 dpi, cut to what is drawn.

    Raises
    ------
    OutputLimitError
        For a picture over 50 megapixels; it is measured before it is drawn.
    """
    _refuse_too_many_pixels(*(float(inches) * DPI for inches in figure.get_size_inches()))
    canvas = _agg_canvas(figure)
    before = figure.dpi
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            figure.dpi = DPI
            renderer = canvas.get_renderer()
            with renderer._draw_disabled():
                figure.draw(renderer)
            box = figure.get_tightbbox(renderer).padded(PAD_INCHES)
            _refuse_too_many_pixels(box.width * DPI, box.height * DPI)
            overlapping = [
                entry for number, one in enumerate(axes) for entry in overlapping_labels(one, number, renderer)
            ]
            target = io.BytesIO()
            canvas.print_figure(target, format="png", dpi=DPI, bbox_inches=box)
        finally:
            figure.dpi = before
    codes = sorted({int(match[1]) for warning in caught if (match := MISSING_GLYPH.match(str(warning.message)))})
    _warn_again(caught)
    return Rendered(target.getvalue(), overlapping, _texts_with(figure, codes))


def _agg_canvas(figure: Any) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    return figure.canvas if isinstance(figure.canvas, FigureCanvasAgg) else FigureCanvasAgg(figure)


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
    """The texts that use a character which no font has."""
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
