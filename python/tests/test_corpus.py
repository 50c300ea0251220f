"""Python writes what the TypeScript schemas accept: both are tested with the same corpus."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import json
import uuid
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from conftest import Cell
from corpus import cases, read

import sluice
from sluice.charts.rules import check_chart
from sluice.figure import check_alt


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: float


NAMES = {"np": np, "pd": pd, "dt": dt, "decimal": decimal, "uuid": uuid, "Colour": Colour, "Point": Point}


@pytest.mark.parametrize("case", cases("charts"))
def test_a_chart_of_the_corpus_has_exactly_its_issues(case: dict[str, Any]) -> None:
    assert sorted({issue.path for issue in check_chart(case["spec"], case["data"])}) == sorted(case["issues"])


@pytest.mark.parametrize("case", [case for case in cases("charts") if not case.values[0]["issues"]])
def test_a_valid_chart_of_the_corpus_is_emitted_unchanged(case: dict[str, Any], cell: Cell) -> None:
    sluice.render_chart(case["spec"], case["data"])
    kind, _, body, _ = cell.artifacts[0]
    emitted = json.loads(body)
    assert (kind, emitted["spec"]) == ("chart", case["spec"])
    assert emitted["data"] == [{key: row[key] for key in emitted["data"][0]} for row in case["data"]]


@pytest.mark.parametrize("case", cases("results"))
def test_a_result_of_the_corpus_gives_its_json(case: dict[str, Any], cell: Cell) -> None:
    sluice.set_result(eval(case["python"], NAMES))
    assert cell.result == case["json"]
    if int(pd.__version__.partition(".")[0]) < 3 and "diagnostics" in case:
        pytest.skip("the dtypes of the corpus, and NaN for missing text, are those of pandas 3")
    assert cell.diagnostics.get("nonFinite") == case.get("diagnostics", {}).get("nonFinite")
    assert cell.report.result_json is not None
    if "text" in case:
        assert cell.report.result_json.decode() == case["text"]
    if "frames" in case.get("diagnostics", {}):
        assert cell.diagnostics["frames"] == case["diagnostics"]["frames"]


@pytest.mark.parametrize("case", cases("figures"))
def test_a_figure_of_the_corpus_gives_its_data(case: dict[str, Any], cell: Cell) -> None:
    _, ax = plt.subplots()
    exec(case["python"], {**NAMES, "plt": plt, "ax": ax})
    sluice.save_figure("A figure of the corpus")
    assert cell.figure() == case["figure"]


@pytest.mark.parametrize("case", read("alt-texts.json"), ids=lambda case: repr(case["alt"]))
def test_an_alt_text_of_the_corpus_is_accepted_or_refused(case: dict[str, Any]) -> None:
    if case["ok"]:
        assert check_alt(case["alt"]) == case["alt"].strip()
    else:
        with pytest.raises(sluice.FigureError, match="alt must say what the picture shows"):
            check_alt(case["alt"])
