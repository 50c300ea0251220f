"""What `save_figure` emits, refuses and notes."""

from __future__ import annotations

import io
import struct
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import PIL.Image
import pytest
from conftest import Cell
from matplotlib.figure import Figure
from matplotlib.patches import Circle

import sluice

ALT = "A line that says something"


def saved(figure: Figure, **options: Any) -> Any:
    target = io.BytesIO()
    figure.savefig(target, dpi=150, **options)
    return pixels(target.getvalue())


def pixels(png: bytes) -> Any:
    return np.asarray(PIL.Image.open(io.BytesIO(png)).convert("RGBA"))


def test_the_png_has_150_dpi_and_is_cropped_to_its_content(cell: Cell) -> None:
    figure, axes = plt.subplots(figsize=(4, 3))
    axes.plot([1, 2, 3])
    whole, tight = saved(figure), saved(figure, bbox_inches="tight")
    sluice.save_figure(ALT, title="T")
    kind, header, _, image = cell.artifacts[0]
    assert kind == "image"
    width, height = struct.unpack(">II", image[16:24])
    assert header == {"alt": ALT, "title": "T", "width": width, "height": height}
    ours = pixels(cell.png())
    assert PIL.Image.open(io.BytesIO(cell.png())).info["dpi"] == pytest.approx((150, 150), abs=0.02)
    assert ours.shape == tight.shape
    parts = np.lib.stride_tricks.sliding_window_view(whole, ours.shape)[:, :, 0]
    assert any((part == ours).all() for row in parts for part in row)


@pytest.mark.parametrize("ground", ["#00000000", "#ff000080"])
def test_a_transparent_background_stays_transparent(cell: Cell, ground: str) -> None:
    figure, axes = plt.subplots(figsize=(4, 3), facecolor=ground)
    axes.plot([1, 2, 3])
    expected = saved(figure, bbox_inches="tight")
    sluice.save_figure(ALT)
    assert (pixels(cell.png()) == expected).all()


def test_content_beyond_the_edge_of_the_figure_is_in_the_picture(cell: Cell) -> None:
    figure, axes = plt.subplots(figsize=(4, 3))
    axes.plot([1, 2, 3])
    axes.text(2.6, 1, "far to the right of the figure")
    expected = saved(figure, bbox_inches="tight")
    sluice.save_figure(ALT)
    assert (pixels(cell.png()) == expected).all()


def test_the_margin_of_a_picture_that_fills_the_figure_has_the_figures_colour(cell: Cell) -> None:
    figure = plt.figure(figsize=(2, 2), facecolor="#336699")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow([[0, 1], [1, 0]])
    axes.set_axis_off()
    sluice.save_figure(ALT)
    ours = pixels(cell.png())
    assert ours.shape == (330, 330, 4)
    assert (ours[:10] == [0x33, 0x66, 0x99, 255]).all() and (ours[:, -10:] == [0x33, 0x66, 0x99, 255]).all()
    assert not (ours[20:-20, 20:-20] == [0x33, 0x66, 0x99, 255]).all(axis=2).any()


def test_a_figure_can_be_drawn_again_after_it_was_saved(cell: Cell) -> None:
    figure, axes = plt.subplots(figsize=(4, 3))
    axes.plot([1, 2, 3])
    before = saved(figure)
    sluice.save_figure(ALT)
    assert (saved(figure) == before).all()


def test_the_figure_is_closed(cell: Cell) -> None:
    plt.plot([1, 2])
    sluice.save_figure(ALT)
    assert plt.get_fignums() == []


def test_the_current_figure_is_the_default(cell: Cell) -> None:
    first, axes = plt.subplots()
    axes.plot([1, 2], label="first")
    plt.figure()
    plt.plot([1, 2], label="second")
    sluice.save_figure(ALT)
    assert cell.series()[0]["label"] == "second"
    sluice.save_figure(ALT, fig=first)
    assert cell.series()[0]["label"] == "first"


def test_axes_and_figures_without_pyplot_are_accepted(cell: Cell) -> None:
    _, axes = plt.subplots()
    axes.plot([1, 2])
    sluice.save_figure(ALT, fig=axes)
    figure = Figure()
    figure.add_subplot().plot([1, 2])
    sluice.save_figure(ALT, fig=figure)
    parts: Any = plt.figure().subfigures(1, 2)
    parts[0].add_subplot().plot([1, 2])
    sluice.save_figure(ALT, fig=parts[0])
    assert len(cell.artifacts) == 3


def refused(fig: Any = None) -> str:
    with pytest.raises(sluice.FigureError) as caught:
        sluice.save_figure(ALT, fig=fig)
    return str(caught.value)


def test_saving_without_a_figure_is_refused(cell: Cell) -> None:
    assert refused() == "there is no figure to save; plot something first, or pass fig="
    assert "got list" in refused([1])


def test_an_empty_figure_is_refused(cell: Cell) -> None:
    plt.figure()
    assert "the figure is empty" in refused()
    plt.subplots(2, 2)
    assert "the figure is empty" in refused()
    plt.figure()
    plt.plot([], [])
    assert "the figure is empty" in refused()
    plt.figure()
    plt.plot([1, 2], [np.nan, np.nan])
    assert "the figure is empty" in refused()
    plt.figure()
    plt.imshow([[np.nan, np.nan]])
    assert "the figure is empty" in refused()
    figure, axes = plt.subplots()
    figure.suptitle("Prices")
    figure.supxlabel("day")
    axes.plot([1, 2], [np.nan, np.nan], label="price")
    axes.legend()
    assert "the figure is empty" in refused(), "titles are no content"
    assert cell.artifacts == []


def test_a_figure_of_text_is_not_empty(cell: Cell) -> None:
    plt.figure().text(0.5, 0.5, "Nothing was sold in May")
    sluice.save_figure(ALT)
    assert len(cell.artifacts) == 1


def test_a_figure_saved_twice_is_refused(cell: Cell) -> None:
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    sluice.save_figure(ALT)
    assert refused(figure) == "this figure was already saved; create a new figure for each save_figure"
    assert len(cell.artifacts) == 1


def test_a_refused_figure_can_be_fixed_and_saved(cell: Cell) -> None:
    plt.plot([1, 2])
    with pytest.raises(sluice.FigureError, match="alt must say"):
        sluice.save_figure("plot.png")
    sluice.save_figure(ALT)
    assert len(cell.artifacts) == 1


@pytest.mark.parametrize("alt", [None, 3, "", "chart", "figure.png", "123 456 789 0"])
def test_alt_is_required_and_must_describe_the_picture(cell: Cell, alt: Any) -> None:
    plt.plot([1, 2])
    with pytest.raises(sluice.FigureError, match="alt must say what the picture shows, in at least 10 characters"):
        sluice.save_figure(alt)
    with pytest.raises(TypeError):
        sluice.save_figure()  # type: ignore[call-arg]


def test_more_than_50_megapixels_are_refused_before_drawing(cell: Cell) -> None:
    plt.figure(figsize=(60, 40)).gca().plot([1, 2])
    with pytest.raises(sluice.OutputLimitError) as caught:
        sluice.save_figure(ALT)
    assert (caught.value.name, caught.value.allowed, caught.value.seen) == ("artifactPixels", 50_000_000, 54_000_000)
    plt.close("all")
    _, axes = plt.subplots()
    axes.plot([1, 2])
    axes.annotate("far away", (0, 1), xytext=(2000, 2000), textcoords="axes fraction", annotation_clip=False)
    with pytest.raises(sluice.OutputLimitError, match="over 50 megapixels"):
        sluice.save_figure(ALT)


def test_a_picture_that_is_too_large_is_refused() -> None:
    Cell(artifact_bytes=5000)
    plt.imshow(np.random.default_rng(0).random((200, 200)))
    with pytest.raises(sluice.OutputLimitError) as caught:
        sluice.save_figure(ALT)
    assert (caught.value.name, caught.value.allowed) == ("artifactBytes", 5000)
    assert caught.value.seen > 5000
    plt.close("all")


def test_figure_data_that_does_not_fit_is_listed_as_unread() -> None:
    cell = Cell(artifact_data_bytes=60_000)
    plt.plot(np.random.default_rng(0).random(20_000), linewidth=0.1, label="long", color="white")
    plt.plot([0, 1], [0, 1], label="short")
    plt.axis("off")
    sluice.save_figure(ALT)
    assert [series["label"] for series in cell.series()] == ["short"]
    assert cell.figure()["axes"][0]["unread"][0]["artist"] == "line 'long'"
    assert "too large to send" in cell.figure()["axes"][0]["unread"][0]["reason"]
    assert len(cell.artifacts[0][2]) <= 60_000


@pytest.mark.parametrize("points", [100_000, 2_000_000])
def test_a_line_of_very_many_points_is_a_picture_whose_data_say_what_is_missing(cell: Cell, points: int) -> None:
    plt.plot(np.random.default_rng(0).random(points), label="long")
    sluice.save_figure(ALT)
    assert len(cell.artifacts[0][2]) <= 2 << 20
    (unread,) = cell.figure()["axes"][0]["unread"]
    assert "'long'" in unread["artist"]
    assert "too" in unread["reason"]


def test_many_artists_that_cannot_be_read_are_counted() -> None:
    cell = Cell(artifact_data_bytes=20_000)
    _, axes = plt.subplots()
    axes.plot([1, 2], label="kept")
    for place in range(500):
        axes.add_patch(Circle((place, 1), 1, label=f"circle {place}"))
    sluice.save_figure(ALT)
    unread = cell.figure()["axes"][0]["unread"]
    assert len(unread) == 101
    assert sum(entry.get("count", 1) for entry in unread) == 501  # the line is left out, too


def test_the_pictures_and_data_of_a_cell_and_of_a_turn_are_limited_together() -> None:
    for limits, name, whose in (
        ({"cell_artifact_bytes": 60_000}, "cellArtifactBytes", "cell"),
        ({"turn_artifact_bytes": 1_000_000, "turn_artifact_bytes_used": 940_000}, "turnArtifactBytes", "turn"),
    ):
        cell = Cell(**limits)
        message = f"the figures and charts of this {whose} would have"
        with pytest.raises(sluice.OutputLimitError, match=message) as caught:
            for _ in range(20):
                plt.plot([1, 2, 3])
                sluice.save_figure(ALT)
        assert caught.value.name == name
        assert caught.value.seen > caught.value.allowed
        assert 1 <= len(cell.artifacts) < 20
        plt.close("all")


def test_figure_data_get_what_the_pictures_of_the_cell_leave(cell: Cell) -> None:
    plt.plot(np.random.default_rng(0).random(5_000), label="long")
    sluice.save_figure(ALT)
    picture = len(cell.png())
    for left, expected in ((10_000, []), (10, None)):
        small = Cell(cell_artifact_bytes=picture + left)
        plt.plot(np.random.default_rng(0).random(5_000), label="long")
        sluice.save_figure(ALT)
        assert (small.series() if small.artifacts[0][2] else None) == expected
        assert ("figureDataOmitted" in small.diagnostics) == (expected is None)


@pytest.mark.parametrize(
    ("more", "message"), [({"alt": "a word " * 2000}, "alt has"), ({"title": "t" * 501}, "title has 501")]
)
def test_texts_that_are_too_long_are_refused(cell: Cell, more: dict[str, str], message: str) -> None:
    plt.plot([1, 2])
    with pytest.raises(sluice.FigureError, match=message):
        sluice.save_figure(**{"alt": ALT, **more})
    assert cell.artifacts == []


def test_figures_left_unsaved_are_noted(cell: Cell) -> None:
    plt.plot([1, 2])
    plt.figure()
    plt.plot([1, 2])
    plt.figure()
    assert cell.diagnostics == {"unsavedFigures": 2}
    plt.figure(1)
    sluice.save_figure(ALT)
    assert cell.diagnostics == {"unsavedFigures": 1}


def test_show_does_nothing_and_is_counted(cell: Cell) -> None:
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    plt.show()
    figure.show()
    sluice.save_figure(ALT)
    assert cell.diagnostics == {"showCalls": 2}


def test_savefig_without_save_figure_is_counted(cell: Cell) -> None:
    plt.plot([1, 2])
    plt.savefig(io.BytesIO())
    sluice.save_figure(ALT)
    assert cell.diagnostics == {}
    plt.plot([1, 2])
    plt.savefig(io.BytesIO())
    plt.close("all")
    assert cell.diagnostics == {"savefigCalls": 1}


def test_missing_glyphs_are_noted_with_their_text(cell: Cell) -> None:
    plt.rcParams["font.family"] = ["DejaVu Sans"]
    plt.plot([1, 2])
    plt.title("Price of \U00012000 and a")
    sluice.save_figure(ALT)
    assert cell.diagnostics["missingGlyphs"] == [{"text": "Price of \U00012000 and a", "glyphs": ["\U00012000"]}]


def test_overlapping_tick_labels_are_noted(cell: Cell) -> None:
    names = [f"a rather long name {i}" for i in range(12)]
    plt.bar(names, range(12))
    sluice.save_figure(ALT)
    noted = cell.diagnostics["overlappingLabels"][0]
    assert (noted["axes"], noted["axis"]) == (0, "x")
    assert noted["pairs"] >= 10
    assert noted["example"] == names[:2]


@pytest.mark.parametrize("rotation", [45, 60, 90, -45])
def test_rotated_tick_labels_do_not_overlap(cell: Cell, rotation: float) -> None:
    plt.figure(figsize=(8, 4))
    plt.bar([f"a rather long name {i}" for i in range(12)], range(12))
    plt.xticks(rotation=rotation)
    sluice.save_figure(ALT)
    assert "overlappingLabels" not in cell.diagnostics


def test_default_tick_labels_do_not_overlap(cell: Cell) -> None:
    plt.plot(np.arange(1000) * 12345)
    sluice.save_figure(ALT)
    assert cell.diagnostics == {}


def test_more_than_20_legend_entries_are_noted(cell: Cell) -> None:
    for entries in (20, 21):
        for i in range(entries):
            plt.plot([1, 2], [i, i], label=str(i))
        plt.legend()
        sluice.save_figure(ALT)
    assert cell.diagnostics == {"largeLegend": [{"axes": 0, "entries": 21}]}


def test_warnings_of_matplotlib_still_reach_the_user(cell: Cell) -> None:
    figure, axes = plt.subplots(layout="constrained", figsize=(0.3, 0.3))
    axes.plot([1, 2])
    axes.set_title("a title that is far too long for it")
    with pytest.warns(UserWarning, match="constrained_layout not applied"):
        sluice.save_figure(ALT, fig=figure)
