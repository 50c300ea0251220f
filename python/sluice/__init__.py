"""The library inside the sandbox. Every name in ``__all__`` is a global of each cell, without an import."""

from sluice.align import align_timeseries, safe_merge_timeseries
from sluice.change import derive_change_series
from sluice.chart import render_chart
from sluice.errors import ChartError, FigureError, OutputLimitError, ResultError, ShapeError, SluiceError, TimeError
from sluice.figure import save_figure
from sluice.frame import to_frame
from sluice.result import set_result

__all__ = ["set_result", "save_figure", "render_chart", "to_frame", "align_timeseries", "safe_merge_timeseries", "derive_change_series"]  # noqa: RUF022
