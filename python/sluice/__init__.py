"""The library that cells use. Every name in ``__all__`` is available in each cell without an import."""

from sluice.align import align_timeseries, safe_merge_timeseries
from sluice.change import derive_change_series
from sluice.chart import render_chart
from sluice.errors import ChartError as ChartError
from sluice.errors import FigureError as FigureError
from sluice.errors import OutputLimitError as OutputLimitError
from sluice.errors import ResultError as ResultError
from sluice.errors import ShapeError as ShapeError
from sluice.errors import SluiceError as SluiceError
from sluice.errors import TimeError as TimeError
from sluice.figure import save_figure
from sluice.frame import to_frame
from sluice.result import set_result

__all__ = [
    "align_timeseries",
    "derive_change_series",
    "render_chart",
    "safe_merge_timeseries",
    "save_figure",
    "set_result",
    "to_frame",
]
