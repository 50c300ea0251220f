"""Diagnostics travel in the header of a frame, so they are shortened to a budget."""

from __future__ import annotations

import json

from conftest import Cell

from sluice._cell import MAX_DIAGNOSTICS_BYTES


def test_the_longest_lists_are_cut_and_counted(cell: Cell) -> None:
    for place in range(10_000):
        cell.report.note("long", {"place": place, "text": "x" * 20})
    cell.report.note("short", "kept")
    cell.report.note("single", "y" * MAX_DIAGNOSTICS_BYTES)
    diagnostics = cell.diagnostics
    assert len(json.dumps(diagnostics)) < MAX_DIAGNOSTICS_BYTES + 100
    assert diagnostics["short"] == ["kept"]
    assert diagnostics["long"][0]["place"] == 0
    omitted = diagnostics["omittedDiagnostics"]
    assert omitted == {"long": 10_000 - len(diagnostics["long"]), "single": 1}
