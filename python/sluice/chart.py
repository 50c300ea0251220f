"""`render_chart`: emits an interactive chart as a spec and rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sluice import _cell
from sluice._title import check_title
from sluice.charts.coverage import chart_coverage
from sluice.charts.rows import chart_frame, chart_rows, is_time
from sluice.charts.rules import MAX_ROWS, check_chart, check_spec, named_keys
from sluice.charts.schema import Issue
from sluice.coverage_report import CadenceArgument
from sluice.errors import ChartError, OutputLimitError, ResultError
from sluice.json_value import JsonValues


def render_chart(
    spec: Mapping[str, Any], data: Any, title: str | None = None, *, cadence: CadenceArgument = None
) -> None:
    """Emit an interactive chart. Nothing is drawn here; the reader's page draws the chart from the rows.

    Parameters
    ----------
    spec : dict
        ``type``: line, bar, area, scatter, composed, histogram, heatmap or candlestick.
        ``xKey``: the column on the x axis.
        ``series``: a list of ``{key, label?, type?, errorKey?, yAxis?, satisfies?}``. ``type`` (line, bar, area,
        scatter) is for composed charts only, ``yAxis`` is left or right, ``errorKey`` is a column with the length of
        error bars, ``satisfies`` is one of ``expectedMeasures``.
        Optional: ``xAxis``, ``yAxis``, ``yAxisRight`` (each ``{type: time|category|number, label, format:
        number|percent|currency|compact, valueScale: fraction|percent_points, currency}``), ``stacked``, ``brush``,
        ``legend``, ``expectedMeasures`` (each must be shown by a series), ``referenceLines``
        (``[{axis: x|y|yRight, value, label?}]``), ``referenceAreas`` (``[{x1, x2, y1, y2, label?}]``).
        A heatmap has ``yKey`` and ``valueKey`` instead of series, a candlestick chart has ``ohlc`` (``{openKey,
        highKey, lowKey, closeKey}``). In a histogram each row is a bin.
    data : DataFrame, records or anything that `to_frame` accepts
        At most 5,000 rows. Only the columns that the spec names are sent. Times become ISO text, NaN becomes a gap.
    title : str, optional
        A title shown above the chart.
    cadence : dict or str, optional
        The intended step between the points of a series, by its label or key, as in `save_figure`: a series along time
        with less than 60 % of its expected points is reported in ``diagnostics.lowCoverage``.

    Raises
    ------
    ChartError
        Lists every problem with its path and what is allowed, or names a series of `cadence` that the chart does not
        have. Nothing was emitted.
    OutputLimitError
        When the spec and the rows have more than 2 MB of JSON, or do not fit into what the cell or the turn may emit.

    Examples
    --------
    >>> import pandas as pd
    >>> prices = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=3), "price": [42.0, None, 45.5]})
    >>> render_chart({"type": "line", "xKey": "day", "series": [{"key": "price", "label": "BTC"}]}, prices)
    """
    report = _cell.current()
    report.check_artifact_count()
    checked = _plain_spec(spec)
    _refuse(check_spec(checked))
    frame = chart_frame(data)
    if len(frame) > MAX_ROWS:
        raise ChartError(_too_many_rows(len(frame), checked, frame))
    _set_time_axis(checked, frame)
    rows, issues = chart_rows(frame, named_keys(checked))
    _refuse(issues or _with_all_columns(check_chart(checked, rows), frame))
    coverage = chart_coverage(checked, rows, cadence)
    body = json.dumps(
        {"spec": checked, "data": rows}, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    ).encode()
    allowed = report.limits.artifact_data_bytes
    if len(body) > allowed:
        raise OutputLimitError(
            "artifactDataBytes",
            allowed,
            len(body),
            f"the {len(rows):,} rows of the chart have {len(body):,} bytes of JSON, at most {allowed:,} are allowed; "
            "aggregate them, show fewer series, shorten texts, or draw them with matplotlib and save_figure",
        )
    report.put_artifact("chart", {"title": check_title(title, ChartError)}, body)
    coverage.note()


def _plain_spec(spec: Any) -> Any:
    """A copy of the spec with JSON values only: numpy numbers become numbers, times ISO text, tuples lists."""
    try:
        plain = JsonValues(max_bytes=1 << 40).convert(spec)
    except ResultError as error:
        raise ChartError(f"the chart is not valid: in the spec {error}") from None
    if isinstance(plain, dict) and plain.get("type") in ("heatmap", "candlestick"):
        plain.setdefault("series", [])  # these chart types have keys of their own instead of series
    return plain


def _refuse(issues: list[Issue]) -> None:
    if issues:
        listed = "; ".join(f"{issue.path or 'spec'} {issue.message}" for issue in issues[:10])
        raise ChartError(
            f"the chart is not valid: {listed}" + (f"; and {len(issues) - 10} more" if len(issues) > 10 else "")
        )


def _with_all_columns(issues: list[Issue], frame: Any) -> list[Issue]:
    """List all columns of the data in messages about a missing column: the rows only have those that the spec names."""
    listed = ", ".join(map(str, frame.columns[:30]))
    return [
        Issue(issue.path, f"{issue.message.partition(';')[0]}; the columns are {listed}")
        if "; the columns are" in issue.message
        else issue
        for issue in issues
    ]


def _set_time_axis(spec: dict[str, Any], frame: Any) -> None:
    """Make the x axis a time axis if its column holds times and the spec does not say otherwise."""
    key = spec["xKey"]
    if key in frame.columns and is_time(frame[key]) and "type" not in spec.get("xAxis", {}):
        spec["xAxis"] = {"type": "time", **spec.get("xAxis", {})}


def _too_many_rows(rows: int, spec: dict[str, Any], frame: Any) -> str:
    key = spec["xKey"]
    timed = key in frame.columns and is_time(frame[key])
    how = f'df.resample("1D", on={key!r}).last()' if timed else f"df.groupby({key!r}).mean(numeric_only=True)"
    return (
        f"data has {rows:,} rows, at most {MAX_ROWS:,} can be drawn; aggregate first, for example with {how}, "
        "or draw all of them with matplotlib and save_figure"
    )
