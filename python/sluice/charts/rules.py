"""The rules for charts that the schema cannot express. The same as in check-chart.ts; both are tested with the same corpus."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sluice.charts.schema import Issue, chart_schema, check_value

MAX_ROWS = 5000
ISO_TIME = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?)?")

Rows = list[dict[str, Any]]


def check_chart(spec: Any, rows: Rows) -> list[Issue]:
    """Everything that is wrong with a chart; an empty list when it is valid."""
    issues = check_spec(spec)
    if len(rows) > MAX_ROWS:
        issues.append(Issue("data", f"has {len(rows):,} rows, at most {MAX_ROWS:,} are allowed"))
    issues += _check_cells(rows)
    return issues or [*_check_parts(spec), *_check_rows(spec, rows)]


def check_spec(spec: Any) -> list[Issue]:
    """What is wrong with a spec according to the schema."""
    return check_value(spec, chart_schema())


def named_keys(spec: dict[str, Any]) -> list[str]:
    """Every column that a spec names, once, in order."""
    keys = [spec["xKey"], *([spec["yKey"]] if "yKey" in spec else []), *(key for _, key in _numeric_keys(spec))]
    return list(dict.fromkeys(keys))


def _check_cells(rows: Rows) -> list[Issue]:
    for place, row in enumerate(rows):
        for name, cell in row.items():
            if isinstance(cell, bool) or not isinstance(cell, str | int | float | None) or cell != cell:
                return [Issue(f"data[{place}].{name}", f"must be a string, number or null, got {type(cell).__name__}")]
    return []


def _check_parts(spec: dict[str, Any]) -> Iterator[Issue]:
    yield from _check_kind(spec)
    yield from _check_series(spec)
    yield from _check_measures(spec)
    yield from _check_references(spec)
    yield from _check_axes(spec)


def _check_kind(spec: dict[str, Any]) -> Iterator[Issue]:
    kind = spec["type"]
    if (kind == "candlestick") != ("ohlc" in spec):
        yield Issue(
            "ohlc", "a candlestick chart needs ohlc" if kind == "candlestick" else "only a candlestick chart has ohlc"
        )
    for name in ("yKey", "valueKey"):
        if (kind == "heatmap") != (name in spec):
            yield Issue(name, f"a heatmap needs {name}" if kind == "heatmap" else f"only a heatmap has {name}")
    if kind not in ("heatmap", "candlestick") and not spec["series"]:
        yield Issue("series", "at least one series is needed")
    if spec.get("stacked") and kind not in ("bar", "area", "composed", "histogram"):
        yield Issue("stacked", "only bar, area, composed and histogram charts can be stacked")


def _check_series(spec: dict[str, Any]) -> Iterator[Issue]:
    seen: set[str] = set()
    for place, series in enumerate(spec["series"]):
        if series["key"] in seen:
            yield Issue(f"series[{place}].key", f"{series['key']} is used twice")
        seen.add(series["key"])
        if spec["type"] != "composed" and series.get("type", spec["type"]) != spec["type"]:
            yield Issue(f"series[{place}].type", "only a composed chart mixes types")


def _check_measures(spec: dict[str, Any]) -> Iterator[Issue]:
    expected = spec.get("expectedMeasures")
    if expected is None:
        return
    for place, series in enumerate(spec["series"]):
        if "satisfies" in series and series["satisfies"] not in expected:
            yield Issue(
                f"series[{place}].satisfies",
                f"{series['satisfies']} is not one of the expected measures {', '.join(expected)}",
            )
    shown = {series.get(name) for series in spec["series"] for name in ("key", "label", "satisfies")}
    for place, measure in enumerate(expected):
        if measure not in shown:
            yield Issue(f"expectedMeasures[{place}]", f"no series shows {measure}")


def _check_references(spec: dict[str, Any]) -> Iterator[Issue]:
    for place, area in enumerate(spec.get("referenceAreas", [])):
        complete = ("x1" in area) == ("x2" in area) and ("y1" in area) == ("y2" in area)
        if not complete or not ("x1" in area or "y1" in area):
            yield Issue(f"referenceAreas[{place}]", "needs x1 and x2, or y1 and y2, or all four")


def _check_axes(spec: dict[str, Any]) -> Iterator[Issue]:
    for name in ("xAxis", "yAxis", "yAxisRight"):
        axis = spec.get(name, {})
        for key, needed in (("valueScale", "percent"), ("currency", "currency")):
            if key in axis and axis.get("format") != needed:
                yield Issue(f"{name}.{key}", f"only with format {needed}")


def _check_rows(spec: dict[str, Any], rows: Rows) -> Iterator[Issue]:
    if not rows:
        yield Issue("data", "there are no rows")
        return
    columns = list(dict.fromkeys(name for row in rows for name in row))
    yield from _check_positions(spec, rows, columns)
    for path, key in _numeric_keys(spec):
        yield from _check_numbers(path, key, rows, columns)


def _check_positions(spec: dict[str, Any], rows: Rows, columns: list[str]) -> Iterator[Issue]:
    for path, axis in (("xKey", "xAxis"), ("yKey", "yAxis")):
        if path not in spec:
            continue
        key, kind = spec[path], spec.get(axis, {}).get("type")
        if key not in columns:
            yield _missing(path, key, columns)
            continue
        bad = next((place for place, row in enumerate(rows) if not _has_position(row.get(key), kind)), None)
        if bad is not None:
            yield Issue(
                f"data[{bad}].{key}",
                f"{rows[bad].get(key)!r} is not a valid position on {f'a {kind}' if kind else 'an'} axis",
            )


def _has_position(cell: Any, kind: str | None) -> bool:
    if cell is None:
        return False
    if kind == "number":
        return isinstance(cell, int | float)
    return kind != "time" or (isinstance(cell, str) and ISO_TIME.fullmatch(cell) is not None)


def _numeric_keys(spec: dict[str, Any]) -> list[tuple[str, str]]:
    keys: list[tuple[str, str]] = []
    for place, series in enumerate(spec["series"]):
        keys += [(f"series[{place}].{name}", series[name]) for name in ("key", "errorKey") if name in series]
    if "valueKey" in spec:
        keys.append(("valueKey", spec["valueKey"]))
    return keys + [(f"ohlc.{name}", key) for name, key in spec.get("ohlc", {}).items()]


def _check_numbers(path: str, key: str, rows: Rows, columns: list[str]) -> Iterator[Issue]:
    if key not in columns:
        yield _missing(path, key, columns)
        return
    text = next((place for place, row in enumerate(rows) if isinstance(row.get(key), str)), None)
    if text is not None:
        yield Issue(f"data[{text}].{key}", f"must be a number or null, got {rows[text][key]!r}")
    elif all(row.get(key) is None for row in rows):
        yield Issue(path, f"{key} is null in every row")


def _missing(path: str, key: str, columns: list[str]) -> Issue:
    return Issue(path, f"{key} is not in the data; the columns are {', '.join(columns)}")
