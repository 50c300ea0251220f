"""Tests of figure data beyond the corpus: exact values, changes after drawing, plots of pandas."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from conftest import Cell
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matplotlib.lines import Line2D

import sluice

ALT = "A figure whose data is read back"
numbers = st.floats(min_value=-1e9, max_value=1e9, allow_nan=False, allow_subnormal=False)
quick = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def saved(cell: Cell) -> list[dict[str, Any]]:
    sluice.save_figure(ALT)
    return cell.series()


def axis(cell: Cell, name: str) -> dict[str, Any]:
    found: dict[str, Any] = cell.figure()["axes"][0][name]
    return found


def milliseconds(*times: Any) -> list[float]:
    return [pd.Timestamp(time).value / 1e6 for time in times]


def unread(cell: Cell) -> list[dict[str, Any]]:
    return [entry for axes in cell.figure()["axes"] for entry in axes["unread"]]


@quick
@given(values=st.lists(numbers, min_size=1, max_size=8), data=st.data())
def test_stacked_bars_with_errors_are_read_back_exactly(values: list[float], data: st.DataObject) -> None:
    bottoms = data.draw(st.lists(numbers, min_size=len(values), max_size=len(values)))
    errors = data.draw(st.lists(st.floats(0, 1e6), min_size=len(values), max_size=len(values)))
    places = data.draw(st.lists(numbers, min_size=len(values), max_size=len(values), unique=True))
    cell = Cell()
    plt.close("all")
    _, axes = plt.subplots()
    axes.bar(places, values, bottom=bottoms, yerr=errors, width=0.73)
    axes.barh(range(len(values)), values, left=bottoms)
    bars, lying = saved(cell)
    assert bars["x"] == places
    assert bars["y"] == values
    assert bars["yerr"] == errors
    assert bars.get("baseline", [0.0] * len(values)) == bottoms
    assert (lying["type"], lying["x"]) == ("barh", values)


@quick
@given(
    values=st.lists(numbers | st.just(float("nan")), min_size=2, max_size=30).filter(lambda v: not np.isnan(v).all())
)
def test_lines_are_read_back_exactly_with_their_gaps(values: list[float]) -> None:
    cell = Cell()
    times = pd.date_range("2024-01-01T00:00:00.123456", periods=len(values), freq="17min")
    plt.plot(times, values)
    plt.scatter(times, values)
    expected = [None if np.isnan(value) else value for value in values]
    for series in saved(cell):
        assert series["y"] == expected
        assert series["x"] == milliseconds(*times)


def test_nanoseconds_of_a_line_are_kept(cell: Cell) -> None:
    plt.plot(pd.to_datetime(["2024-01-01T00:00:00.000000001", "2024-01-01T00:00:00.000000002"]), [1, 2])
    series = saved(cell)[0]
    assert series["x"] == milliseconds("2024-01-01", "2024-01-01")
    assert series["xNanoseconds"] == [1, 2]


def test_day_numbers_under_a_date_formatter_are_times(cell: Cell) -> None:
    plt.plot([19723, 19724], [1, 2])
    plt.gca().xaxis_date()
    assert saved(cell)[0]["x"] == milliseconds("2024-01-01", "2024-01-02")


def test_bars_changed_after_drawing_are_read_as_shown(cell: Cell) -> None:
    bars = plt.bar([1, 2], [3, 4])
    bars[0].set_height(30)
    bars[1].set_x(10)
    series = saved(cell)[0]
    assert series["y"] == [30.0, 4.0]
    assert series["x"][1] == pytest.approx(10.4)


def test_a_histogram_changed_after_drawing_is_read_as_shown(cell: Cell) -> None:
    bars: Any = plt.hist([1, 2, 2], bins=2)[2]
    bars[0].set_height(7)
    assert saved(cell)[0]["y"] == [7.0, 2.0]


def test_a_line_changed_after_drawing_is_read_as_shown(cell: Cell) -> None:
    (line,) = plt.plot([1, 2], [3, 4])
    line.set_ydata([5, 6])
    assert saved(cell)[0]["y"] == [5.0, 6.0]


def test_an_area_changed_after_drawing_is_unread(cell: Cell) -> None:
    area = plt.fill_between([1, 2], [3, 4])
    area.set_verts([[(0, 0), (9, 9), (9, 0)]])
    saved(cell)
    assert unread(cell) == [
        {"artist": "FillBetweenPolyCollection", "reason": "the area was changed after it was drawn"}
    ]


def test_histograms_of_every_type_give_counts_and_edges(cell: Cell) -> None:
    values = [[1, 2, 2, 3], [3, 3]]
    for kind in ("bar", "barstacked", "step", "stepfilled"):
        plt.hist(values, bins=[1, 2, 3, 4], histtype=kind, label=["a", "b"])
        series = saved(cell)
        by_label = {one["label"]: one["y"] for one in series}
        assert by_label == {"a": [1.0, 2.0, 1.0], "b": [0.0, 0.0, 2.0]}, kind
        assert {one["type"] for one in series} == {"histogram"}
        assert all(one["edges"] == [1.0, 2.0, 3.0, 4.0] for one in series)


def test_a_histogram_of_dates_with_weights_gives_counts_and_edges(cell: Cell) -> None:
    times = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-02"])
    edges = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"])
    plt.hist(times, bins=edges, weights=[0.5, 0.25, 0.25])  # type: ignore[arg-type]
    series = saved(cell)[0]
    assert series["y"] == [0.5, 0.5]
    assert series["edges"] == milliseconds("2024-01-01", "2024-01-02", "2024-01-03")


def test_a_horizontal_histogram_and_stairs_are_read(cell: Cell) -> None:
    plt.hist([1, 2, 2], bins=2, orientation="horizontal")
    assert saved(cell)[0]["x"] == [1.0, 2.0]
    plt.stairs([3, 4], [0, 1, 2], label="s")
    assert saved(cell)[0] == {
        "type": "histogram", "label": "s", "x": [0.5, 1.5], "y": [3, 4], "edges": [0.0, 1.0, 2.0],
    }  # fmt: skip


def test_artists_of_one_axes_are_read_independently(cell: Cell) -> None:
    _, axes = plt.subplots()
    axes.bar([1, 2, 3], [4, 5, 6], yerr=0.5, label="bars")
    axes.plot([1, 2, 3], [7, 8, 9], label="line")
    axes.errorbar([1, 2], [3, 4], yerr=0.25, fmt="o", label="dots")
    axes.scatter([1], [2], label="point")
    axes.fill_between([1, 2], [3, 4], label="area")
    axes.hist([1, 1, 2], bins=2, label="hist")
    axes.boxplot([[1, 2, 3]], positions=[5])
    axes.axvspan(1, 2)
    axes.legend()
    found = {series.get("label", series["type"]): series["type"] for series in saved(cell)}
    assert found == {
        "bars": "bar", "line": "line", "dots": "errorbar", "point": "scatter", "area": "area", "hist": "histogram",
        "box": "box",
    }  # fmt: skip
    assert [entry["reason"] for entry in unread(cell)] == ["a reference area, not data"]


def test_bars_and_a_line_may_share_a_category_axis(cell: Cell) -> None:
    plt.bar(["b", "a", "c"], [1, 2, 3])
    plt.plot(["a", "c"], [9, 8])
    bars, line = saved(cell)
    assert axis(cell, "x")["tickLabels"] == [{"at": 0, "text": "b"}, {"at": 1, "text": "a"}, {"at": 2, "text": "c"}]
    assert (bars["x"], line["x"]) == ([0, 1, 2], [1, 2])


def test_grouped_and_stacked_bars_drawn_by_pandas_are_read(cell: Cell) -> None:
    frame = pd.DataFrame({"u": [0.1, 0.2], "v": [0.3, 0.4]}, index=["p", "q"])
    frame.plot.bar()
    assert [(one["label"], one["x"], one["xCategories"], one["y"]) for one in saved(cell)] == [
        ("u", [-0.125, 0.875], [0, 1], [0.1, 0.2]),
        ("v", [0.125, 1.125], [0, 1], [0.3, 0.4]),
    ]
    assert axis(cell, "x")["tickLabels"] == [{"at": 0, "text": "p"}, {"at": 1, "text": "q"}]
    frame.plot.barh(stacked=True)
    assert [(one["y"], one["x"], one.get("baseline")) for one in saved(cell)] == [
        ([0, 1], [0.1, 0.2], None),
        ([0, 1], [0.3, 0.4], [0.1, 0.2]),
    ]
    assert axis(cell, "y")["tickLabels"] == [{"at": 0, "text": "p"}, {"at": 1, "text": "q"}]


def test_time_series_drawn_by_pandas_are_read(cell: Cell) -> None:
    days = pd.date_range("2024-01-01", periods=3)
    frame = pd.DataFrame({"u": [0.1, np.nan, 0.3]}, index=days)
    expected = milliseconds("2024-01-01", "2024-01-02", "2024-01-03")
    frame.plot()
    assert saved(cell)[0] == {"type": "line", "label": "u", "x": expected, "y": [0.1, None, 0.3]}
    frame.plot.bar()
    series = saved(cell)[0]
    texts = [one["text"] for one in axis(cell, "x").get("tickLabels", [])]
    assert series["x"] == expected or texts[0].startswith("2024-01-01")
    frame["u"].dropna().plot(style="o")
    assert saved(cell)[0]["type"] == "scatter"


def test_boxes_and_pies_drawn_by_pandas_are_read(cell: Cell) -> None:
    frame = pd.DataFrame({"u": [1, 2, 3], "v": [4, 5, 60]})
    frame.plot.box()
    assert (saved(cell)[0]["x"], axis(cell, "x")["scale"]) == ([1, 2], "category")
    assert axis(cell, "x")["tickLabels"] == [{"at": 1, "text": "u"}, {"at": 2, "text": "v"}]
    frame.set_axis(["a", "b", "c"])["u"].plot(kind="pie")
    assert saved(cell)[0] == {"type": "pie", "x": [0, 1, 2], "y": [1, 2, 3], "labels": ["a", "b", "c"]}
    plt.violinplot(frame.to_numpy(), orientation="horizontal")
    series = saved(cell)[0]
    assert (series["type"], series["x"][0], series["y"]) == ("violin", [1.0, 1.5, 2.0, 2.5, 3.0], [1.0, 2.0])


def test_a_partial_pie_and_a_pie_without_labels_are_read(cell: Cell) -> None:
    plt.pie([0.25, 0.5], normalize=False)
    assert saved(cell)[0] == {"type": "pie", "x": [0, 1], "y": [0.25, 0.5]}


def test_images_with_an_extent_and_a_lower_origin_are_read(cell: Cell) -> None:
    plt.imshow([[1, 2], [3, 4]], extent=(0, 4, 0, 2), origin="lower")
    assert saved(cell)[0] == {"type": "heatmap", "x": [1.0, 3.0], "y": [0.5, 1.5], "z": [[1, 2], [3, 4]]}
    plt.imshow([[1, 2]], extent=(0, 4, 0, 2))
    assert saved(cell)[0]["y"] == [1.0]


def test_a_heatmap_with_named_rows_columns_and_a_colour_bar_is_read(cell: Cell) -> None:
    image = plt.imshow([[1, 2], [3, 4]])
    plt.colorbar(image)
    plt.xticks([0, 1], ["mon", "tue"])
    plt.yticks([0, 1], ["am", "pm"])
    sluice.save_figure(ALT)
    axes = cell.figure()["axes"]
    assert len(axes) == 1
    assert axes[0]["x"] == {"scale": "category", "tickLabels": [{"at": 0, "text": "mon"}, {"at": 1, "text": "tue"}]}
    assert axes[0]["y"] == {"scale": "category", "tickLabels": [{"at": 0, "text": "am"}, {"at": 1, "text": "pm"}]}
    assert axes[0]["series"] == [{"type": "heatmap", "x": [0, 1], "y": [0, 1], "z": [[1, 2], [3, 4]]}]


def test_a_mesh_over_dates_and_a_masked_mesh_are_read(cell: Cell) -> None:
    days = pd.date_range("2024-01-01", periods=2)
    plt.pcolormesh(days, [1, 2], np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[True, False], [False, False]]))
    series = saved(cell)[0]
    assert series["x"] == milliseconds("2024-01-01", "2024-01-02")
    assert series["z"] == [[None, 2.0], [3.0, 4.0]]
    plt.hist2d([1, 2, 2], [1, 2, 2], bins=2)
    assert saved(cell)[0]["z"] == [[1.0, 0.0], [0.0, 2.0]]


def test_log_scales_twins_insets_and_several_axes_are_read(cell: Cell) -> None:
    _, (left, right) = plt.subplots(1, 2)
    left.loglog([1, 10], [1, 100])
    right.plot([1, 2], [3, 4])
    right.twinx().bar([1, 2], [5, 6])
    inset = right.inset_axes([0.1, 0.1, 0.3, 0.3])
    inset.plot([7, 8], [9, 10])
    sluice.save_figure(ALT)
    axes = cell.figure()["axes"]
    assert [one["series"][0]["type"] for one in axes] == ["line", "line", "line", "bar"]
    assert (axes[0]["x"], axes[0]["y"]) == ({"scale": "log"}, {"scale": "log"})
    assert axes[2]["series"][0]["x"] == [7.0, 8.0]


def test_error_bars_on_dates_without_a_line_are_read(cell: Cell) -> None:
    plt.errorbar(pd.to_datetime(["2024-01-01", "2024-01-02"]), [1, 2], yerr=[0.1, 0.3], fmt="none")
    assert saved(cell)[0] == {
        "type": "errorbar",
        "x": milliseconds("2024-01-01", "2024-01-02"),
        "y": [1.0, 2.0],
        "yerr": [0.1, 0.3],
    }


def test_error_bars_along_a_time_axis_have_lengths_in_milliseconds(cell: Cell) -> None:
    hour = pd.Timedelta("1h").to_pytimedelta()
    plt.errorbar(pd.to_datetime(["2024-01-01", "2024-01-02"]), [1, 2], xerr=hour, label="e")  # type: ignore[arg-type]
    assert saved(cell)[0]["xerr"] == [3_600_000, 3_600_000]
    assert unread(cell) == []


@pytest.mark.parametrize("freq", ["M", "Q", "Y", "W", "D", "h", "min"])
def test_periods_drawn_by_pandas_are_times(cell: Cell, freq: str) -> None:
    periods = pd.period_range("2024-01-01", periods=3, freq=freq)
    pd.Series([0.1, 0.2, 0.3], index=periods).plot()
    series = saved(cell)[0]
    assert series["x"] == milliseconds(*(period.start_time for period in periods))
    assert series["y"] == [0.1, 0.2, 0.3]


@pytest.mark.parametrize("freq", ["B", "MS", "ME", "QE", "7D", "W", "W-WED", "2W", "YE", "h", "90min", "D"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_a_regular_series_that_pandas_draws_as_periods_keeps_its_times(cell: Cell, freq: str, zone: str | None) -> None:
    times = pd.date_range("2024-01-03", periods=5, freq=freq, tz=zone)
    pd.DataFrame({"a": [0.1, 0.2, np.nan, 0.3, 0.4], "b": [1, 2, 3, 4, 5]}, index=times).plot(subplots=True)
    for series in saved(cell):
        assert series["x"] == milliseconds(*times)
    assert axis(cell, "x").get("zone") == zone


def test_times_that_pandas_draws_at_the_same_place_are_read_as_their_period(cell: Cell) -> None:
    pd.Series([1, 2], index=pd.date_range("2024-01-31", periods=2, freq="ME")).plot()
    pd.Series([3, 4], index=pd.date_range("2024-01-01", periods=2, freq="MS")).plot()
    for series in saved(cell):
        assert series["x"] == milliseconds("2024-01-01", "2024-02-01")


def test_a_gantt_chart_gives_start_and_end_of_each_bar(cell: Cell) -> None:
    start = pd.to_datetime(["2024-01-01", "2024-01-03"])
    plt.barh(["a", "b"], pd.to_timedelta(["2D", "1D"]), left=start)
    series = saved(cell)[0]
    assert series["x"] == milliseconds("2024-01-03", "2024-01-04")
    assert series["baseline"] == milliseconds("2024-01-01", "2024-01-03")


def draw_contour() -> None:
    plt.contourf([[1, 2], [3, 4]])


def draw_hexbin() -> None:
    plt.hexbin([1, 2], [3, 4])


def draw_lines() -> None:
    plt.vlines([1], 0, 1)


def draw_polygon() -> None:
    plt.fill([0, 1, 1], [0, 0, 1])


def draw_picture() -> None:
    plt.imshow(np.zeros((2, 2, 3)))


def draw_table() -> None:
    plt.table([["a", "b"]])


def draw_in_3d() -> None:
    plt.subplot(projection="3d").plot([1, 2], [3, 4], [5, 6])


def draw_curved_mesh() -> None:
    x, y = np.meshgrid([0.0, 1.0, 2.0], [0.0, 1.0])
    plt.pcolormesh(x + y, y, [[1, 2]])


@pytest.mark.parametrize(
    "draw",
    [draw_contour, draw_hexbin, draw_lines, draw_polygon, draw_picture, draw_table, draw_in_3d, draw_curved_mesh],
)
def test_unreadable_artists_are_listed_and_never_dropped(cell: Cell, draw: Any) -> None:
    draw()
    assert saved(cell) == []
    assert unread(cell)[0]["artist"]
    assert unread(cell)[0]["reason"]


def test_marker_sizes_are_listed_as_unread(cell: Cell) -> None:
    plt.scatter([1, 2], [3, 4], s=[10, 20], label="bubbles")
    assert saved(cell)[0]["y"] == [3.0, 4.0]
    assert unread(cell) == [{"artist": "PathCollection 'bubbles'", "reason": "the sizes of the markers"}]


def test_hidden_artists_are_not_read(cell: Cell) -> None:
    plt.plot([1, 2], label="seen")
    plt.plot([3, 4], label="hidden", visible=False)
    assert [series["label"] for series in saved(cell)] == ["seen"]


def test_stems_give_their_points(cell: Cell) -> None:
    plt.stem([1, 2], [3, 4], label="s")
    assert saved(cell) == [{"type": "stem", "label": "s", "x": [1.0, 2.0], "y": [3.0, 4.0]}]


def test_an_artist_with_too_many_values_is_listed_as_unread(cell: Cell) -> None:
    plt.plot(np.zeros(500_001), label="long")
    plt.plot([1, 2], label="short")
    assert [series["label"] for series in saved(cell)] == ["short"]
    assert unread(cell) == [
        {"artist": "Line2D 'long'", "reason": "500,001 values are too many to send, at most 500,000"}
    ]


def test_artists_outside_any_axes_are_listed_as_unread(cell: Cell) -> None:
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    figure.add_artist(Line2D([0, 1], [0, 1]))
    saved(cell)
    assert unread(cell) == [{"artist": "Line2D", "reason": "drawn on the figure, not in an axes"}]


def test_ten_thousand_categories_are_read(cell: Cell) -> None:
    names = [f"name {i}" for i in range(10_000)]
    plt.plot(names, range(10_000))
    plt.xticks([])
    assert saved(cell)[0]["x"] == list(range(10_000))
    assert [one["text"] for one in axis(cell, "x")["tickLabels"]] == names
