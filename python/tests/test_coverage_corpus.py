"""The law of coverage gives the verdicts of the corpus, as it does in TypeScript (`src/protocol/judge-coverage.test.ts`)."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from conftest import Cell
from corpus import cases, read
from coverage_corpus import describe_verdicts, read_case

import sluice


@pytest.mark.parametrize("case", cases("coverage"))
def test_a_case_of_the_corpus_has_its_verdicts(case: dict[str, Any]) -> None:
    assert describe_verdicts(read_case(case)) == case["verdicts"]


def rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    size = max(len(column) if isinstance(column, list) else column.get("days", 0) for column in columns.values())
    cells = {name: _cells(column, size) for name, column in columns.items()}
    return [{name: column[row] for name, column in cells.items()} for row in range(size)]


def _cells(column: Any, size: int) -> list[Any]:
    if isinstance(column, list):
        return column
    if "from" in column:
        return [day.date().isoformat() for day in pd.date_range(column["from"], periods=size)]
    return [row if column["at"] == "all" or row in column["at"] else None for row in range(size)]


@pytest.mark.parametrize("case", read("coverage-charts.json"), ids=lambda case: case["title"])
def test_a_chart_of_the_corpus_has_its_sparse_series(case: dict[str, Any], cell: Cell) -> None:
    sluice.render_chart(case["spec"], rows(case["columns"]), cadence=case.get("cadence"))
    low = [
        [one[name] for name in ("label", "observed", "expected", "against", "largestGap", "gapStart", "gapEnd")]
        for one in cell.diagnostics.get("lowCoverage", [])
    ]
    assert low == case["low"]
    assert [one["label"] for one in cell.diagnostics.get("coverageUnknown", [])] == case["unknown"]
