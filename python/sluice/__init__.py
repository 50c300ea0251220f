"""The library inside the sandbox. Every name in ``__all__`` is a global of each cell, without an import."""

from sluice.errors import ChartError, FigureError, OutputLimitError, ResultError, ShapeError, SluiceError, TimeError
from sluice.figure import save_figure
from sluice.result import set_result

__all__ = ["save_figure", "set_result"]  # noqa: RUF022
