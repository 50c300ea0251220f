"""Programs and the numbers that they plot: axes with tick labels, categories beside their tick, odd scales, legends.

The programs and their data are in `corpus/figure-places.json` and `corpus/figure-legends.json`.
"""

from __future__ import annotations

import warnings
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from conftest import Cell
from corpus import read
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

import sluice

NAMES = {"plt": plt, "np": np, "pd": pd, "mpl": mpl, "Line": Line2D, "Patch": Patch}


def check(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Only the fields of `expected` are compared. None means that the field is absent."""
    assert {name: found.get(name) for name in expected} == expected


def run(cell: Cell, program: str) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(program, dict(NAMES))
        sluice.save_figure("A figure whose data is read back")
    axes: list[dict[str, Any]] = cell.figure()["axes"]
    return axes


@pytest.mark.parametrize("case", read("figure-places.json"), ids=lambda case: case["python"])
def test_places_are_the_plotted_numbers(case: dict[str, Any], cell: Cell) -> None:
    (axes,) = run(cell, case["python"])
    check(axes["x"], case["x"])
    check(axes["y"], case["y"])
    assert len(axes["series"]) == len(case["series"])
    for found, expected in zip(axes["series"], case["series"], strict=True):
        check(found, expected)


@pytest.mark.parametrize("case", read("figure-legends.json"), ids=lambda case: case["python"])
def test_legends_name_what_they_stand_for(case: dict[str, Any], cell: Cell) -> None:
    """`labels` has an entry for each series of all axes: its label, or the labels of its parts."""
    found = [series for axes in run(cell, case["python"]) for series in axes["series"]]
    assert [series.get("label", series.get("labels")) for series in found] == case["labels"]


def test_titles_of_the_figure_are_in_the_data(cell: Cell) -> None:
    run(cell, "f,a=plt.subplots(1,2); a[0].plot([1]); f.suptitle('T'); f.supxlabel('X'); f.supylabel('Y')")
    check(cell.figure(), {"title": "T", "xLabel": "X", "yLabel": "Y"})


def test_many_artists_of_one_kind_are_one_unread_entry(cell: Cell) -> None:
    (axes,) = run(cell, "x,y=np.mgrid[0:3:5j,0:3:5j]; plt.streamplot(x[:,0],y[0],x,y)")
    arrows, lines = axes["unread"]
    assert arrows["count"] > 50
    assert lines["artist"] == "LineCollection"


@pytest.mark.parametrize(
    ("style", "lines"),
    [
        ({"font.family": "Arial", "font.weight": 100}, ["findfont: Font family 'Arial' not found."]),
        ({"font.family": ["Arial", "DejaVu Sans"]}, []),
        ({"font.family": ["Arial", "Roboto"]}, ["findfont: Font family 'Arial' not found.", "findfont: Font family 'Roboto' not found."]),
        ({"font.weight": 100}, []),
    ],
)  # fmt: skip
def test_a_missing_font_is_reported_once_in_a_cell(
    style: Any, lines: list[str], cell: Cell, caplog: pytest.LogCaptureFixture
) -> None:
    for expected in (lines, []):
        caplog.clear()
        with plt.rc_context(style):
            run(cell, "plt.plot([1,2],label='x'); plt.title('T',size=20); plt.xlabel('x',weight='bold'); plt.legend()")
        assert [record.getMessage() for record in caplog.records] == expected
    caplog.clear()
    with plt.rc_context(style):
        run(Cell(), "plt.title('T'); plt.plot([1,2])")
    assert [record.getMessage() for record in caplog.records] == lines
