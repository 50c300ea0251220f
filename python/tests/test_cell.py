"""Tests of the cell report, which the worker relies on."""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from conftest import Cell

import sluice
from sluice import _cell


def test_every_helper_has_a_docstring_with_an_example() -> None:
    for name in sluice.__all__:
        documentation = getattr(sluice, name).__doc__
        assert "Examples\n" in documentation, name
        assert ">>> " in documentation, name


def test_the_value_of_the_last_expression_is_the_result(cell: Cell) -> None:
    finished = cell.report.finish(pd.Series([1, 2]), has_value=True)
    assert finished.result_json == b"[1,2]"
    assert finished.diagnostics == {"implicitResult": True}


def test_set_result_wins_over_the_last_expression(cell: Cell) -> None:
    sluice.set_result(1)
    finished = cell.report.finish(2, has_value=True)
    assert finished.result_json == b"1"
    assert finished.diagnostics == {}


@pytest.mark.parametrize(("value", "has_value"), [(None, True), (None, False)])
def test_a_cell_without_a_value_has_no_result(cell: Cell, value: object, has_value: bool) -> None:
    finished = cell.report.finish(value, has_value=has_value)
    assert finished.result_json is None
    assert "implicitResult" not in finished.diagnostics


def test_a_last_expression_without_json_form_does_not_fail_the_cell(cell: Cell) -> None:
    finished = cell.report.finish(plt.plot([1, 2]), has_value=True)
    assert finished.result_json is None
    assert "Line2D" in finished.diagnostics["implicitResultError"]


def test_a_last_expression_that_is_too_large_raises_an_output_limit_error() -> None:
    report = Cell(result_bytes=100).report
    with pytest.raises(sluice.OutputLimitError) as caught:
        report.finish("x" * 200, has_value=True)
    assert (caught.value.name, caught.value.allowed, caught.value.seen) == ("resultBytes", 100, 202)


def test_only_the_notes_of_the_last_result_count(cell: Cell) -> None:
    sluice.set_result(float("nan"))
    sluice.set_result(1)
    assert cell.result == 1
    assert cell.diagnostics == {}


def test_diagnostics_are_available_after_a_failure(cell: Cell) -> None:
    plt.plot([1, 2])
    with pytest.raises(sluice.FigureError):
        sluice.save_figure("")
    assert cell.diagnostics == {"unsavedFigures": 1}


def test_more_artifacts_than_allowed_are_refused() -> None:
    cell = Cell(artifacts=1)
    rows = [{"x": 1, "y": 2}]
    spec = {"type": "line", "xKey": "x", "series": [{"key": "y"}]}
    sluice.render_chart(spec, rows)
    with pytest.raises(sluice.OutputLimitError) as caught:
        sluice.render_chart(spec, rows)
    assert (caught.value.name, caught.value.allowed, caught.value.seen) == ("artifacts", 1, 2)
    plt.plot([1, 2])
    with pytest.raises(sluice.OutputLimitError, match="at most 1 figures and charts"):
        sluice.save_figure("A line that comes too late")
    assert len(cell.artifacts) == 1
    plt.close("all")


def test_outside_a_worker_artifacts_are_collected() -> None:
    code = """
import sluice, sluice._cell, matplotlib.pyplot as plt
plt.plot([1, 2])
sluice.save_figure("A line from one to two")
print(sluice._cell.collected[0].kind, sluice._cell.collected[0].header["alt"])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "image A line from one to two\n"


def test_open_figures_of_an_earlier_cell_do_not_count_as_unsaved(cell: Cell) -> None:
    plt.plot([1, 2])
    assert cell.diagnostics["unsavedFigures"] == 1
    later = Cell()
    assert later.diagnostics == {}
    sluice.save_figure("The figure of the cell before")
    assert len(later.artifacts) == 1


def test_installing_the_hooks_twice_changes_nothing(cell: Cell) -> None:
    _cell.install_hooks()
    plt.plot([1, 2])
    plt.show()
    assert cell.diagnostics["showCalls"] == 1


def test_the_library_adds_at_most_50_ms_to_the_import(tmp_path: Path) -> None:
    """Measured with byte code, as in a snapshot. Without it Python would compile the library each time."""
    shutil.copytree(Path(sluice.__file__).parent, tmp_path / "sluice", ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(tmp_path / "sluice", quiet=2)
    code = """
import time
import pandas, matplotlib.pyplot
started = time.process_time()
import sluice, sluice._cell
sluice._cell.install_hooks()
print((time.process_time() - started) * 1000)
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def measure() -> float:
        command = [sys.executable, "-P", "-c", code]
        return float(subprocess.check_output(command, env=environment, text=True))

    assert min(measure() for _ in range(3)) <= 50
