"""Counts figures that were shown, written to a file or left open instead of being passed to `save_figure`."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from sluice import _cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def watch_pyplot() -> None:
    """Replace `plt.show` and count calls of `savefig`. Calling it again changes nothing."""
    import matplotlib.figure
    import matplotlib.pyplot as plt

    figure_class: Any = matplotlib.figure.Figure
    if getattr(figure_class.savefig, "_sluice_watched", False):
        return

    original_savefig = figure_class.savefig

    @functools.wraps(original_savefig)
    def savefig(self: Figure, *args: Any, **kwargs: Any) -> Any:
        _cell.current().savefig_figures.append(self)
        return original_savefig(self, *args, **kwargs)

    savefig._sluice_watched = True  # type: ignore[attr-defined]
    figure_class.savefig = savefig
    figure_class.show = _count_show
    plt.show = _count_show


def _count_show(*_args: Any, **_kwargs: Any) -> None:
    """Does nothing: a sandbox has no display. Use `save_figure(alt)` to return a figure."""
    _cell.current().show_calls += 1


def mark_open_figures() -> None:
    """Mark the figures that earlier cells left open, so that they do not count as unsaved in this cell."""
    for figure in open_figures():
        figure._sluice_earlier = True


def figure_counts(report: _cell.CellReport) -> dict[str, int]:
    """The current figure counters for the diagnostics."""
    written = [figure for figure in report.savefig_figures if not is_saved(figure)]
    unsaved = [figure for figure in open_figures() if not hasattr(figure, "_sluice_earlier") and _has_content(figure)]
    return {"unsavedFigures": len(unsaved), "showCalls": report.show_calls, "savefigCalls": len(written)}


def open_figures() -> list[Any]:
    """Every figure that pyplot holds. Does not import matplotlib."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    return [] if helpers is None else [manager.canvas.figure for manager in helpers.Gcf.get_all_fig_managers()]


def mark_saved(figure: Figure) -> None:
    """Remember that `save_figure` saved this figure."""
    figure._sluice_saved = True  # type: ignore[attr-defined]


def is_saved(figure: Figure) -> bool:
    """Whether `save_figure` saved this figure."""
    return getattr(figure, "_sluice_saved", False)


def _has_content(figure: Figure) -> bool:
    return bool(figure.axes or figure.texts or figure.images)
