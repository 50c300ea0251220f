from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
from hypothesis import settings

from sluice import _cell

sys.path.insert(0, str(Path(__file__).parent))
_cell.install_hooks()
settings.register_profile("sluice", deadline=None, max_examples=60)
settings.load_profile("sluice")


class Cell:
    """One cell without a worker: its artifacts and its report."""

    def __init__(self, **limits: int) -> None:
        self.artifacts: list[tuple[str, dict[str, Any], bytes, bytes]] = []
        self.report = _cell.begin(lambda *artifact: self.artifacts.append(artifact), _cell.Limits(**limits))

    @property
    def result(self) -> Any:
        assert self.report.result_json is not None
        return json.loads(self.report.result_json)

    @property
    def diagnostics(self) -> dict[str, Any]:
        diagnostics = self.report.diagnostics()
        json.dumps(diagnostics, allow_nan=False)
        return diagnostics

    def png(self, place: int = -1) -> bytes:
        return self.artifacts[place][3]

    def figure(self, place: int = -1) -> dict[str, Any]:
        figure: dict[str, Any] = json.loads(self.artifacts[place][2])
        return figure

    def series(self, place: int = -1) -> list[dict[str, Any]]:
        """Every series of the figure, from all axes."""
        return [series for axes in self.figure(place)["axes"] for series in axes["series"]]


@pytest.fixture
def cell() -> Iterator[Cell]:
    plt.close("all")
    yield Cell()
    plt.close("all")
